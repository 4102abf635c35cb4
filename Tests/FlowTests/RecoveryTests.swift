import RTP
import Testing
import Wire

@testable import Flow

struct RecoveryTests {
  @Test(arguments: [UInt64(1), 2, 3])
  func everyFrameArrivesIntactDespiteLoss(seed: UInt64) {
    let pair = Pair(sections: Agreed.video().map { [$0] }, seed: seed)
    pair.links[0] = Link(jitter: .milliseconds(4), loss: 0.05, duplication: 0.02)
    pair.links[1] = Link(loss: 0.05)
    let camera = Camera()
    pair.film(camera, milliseconds: 8000)
    let received = pair.received(1)
    #expect(received.map(\.bytes) == camera.frames.map(\.bytes))
    #expect(received.map(\.isKey) == camera.frames.map(\.isKey))
    #expect(camera.frames.filter(\.isKey).count == 1)
    let sender = pair.flows[0].outbound[0]
    #expect(sender.retransmittedPacketsSent > 10)
    #expect(pair.flows[1].inbound[0].packetsRecovered > 10)
    // Received frames have the sent frames' media times, apart from a constant offset.
    let offset = received[0].extendedTime
    for (frame, original) in zip(received, camera.frames) {
      #expect(frame.extendedTime - offset == Int64(original.mediaTime))
    }
  }

  @Test(arguments: [UInt64(1), 2, 3])
  func heavyLossIsSurvivedByKeyFrames(seed: UInt64) {
    let pair = Pair(sections: Agreed.video().map { [$0] }, seed: seed)
    pair.links[0] = Link(delay: .milliseconds(60), jitter: .milliseconds(10), loss: 0.3)
    pair.links[1] = Link(delay: .milliseconds(60), loss: 0.3)
    let camera = Camera()
    pair.film(camera, milliseconds: 10_000)
    expectDecodable(pair.received(1), of: camera)
    #expect(pair.received(1).count > camera.frames.count / 2)
  }

  @Test func withoutRetransmissionsAGapIsSkippedToTheNextKeyFrame() {
    let sections = Agreed.video(feedback: ["nack pli", "transport-cc"]).map { [$0] }
    let pair = Pair(sections: sections)
    pair.links[0] = Link(loss: 0.02)
    let camera = Camera()
    pair.film(camera, milliseconds: 10_000)
    expectDecodable(pair.received(1), of: camera)
    #expect(pair.flows[1].inbound[0].pliCount > 3)
    #expect(pair.flows[1].inbound[0].nackCount == 0)
    #expect(pair.flows[0].outbound[0].retransmittedPacketsSent == 0)
    #expect(pair.received(1).count > camera.frames.count / 3)
  }

  @Test func aLostPacketIsRequestedImmediatelyAndAgainAfterARoundTrip() throws {
    let pair = Pair(sections: Agreed.video().map { [$0] })
    var blocked = 0
    var lostSequence: UInt16?
    // The stream's third packet is lost, and so are its first two retransmissions.
    pair.drop = { side, isRTP, bytes in
      guard side == 0, isRTP, let header = try? RTPHeader(parsing: bytes.span.bytes)
      else { return false }
      if header.ssrc == Agreed.videoSSRC {
        blocked += 1
        if blocked == 3 { lostSequence = header.sequence }
        return blocked == 3
      }
      blocked += 1000
      return blocked < 3000
    }
    let camera = Camera()
    pair.film(camera, milliseconds: 1000)
    let requests = pair.outputs[1].filter {
      if case .rtcpBlock(let record) = $0.output { record.type == "nack" } else { false }
    }
    #expect(requests.count == 3)
    let gaps = zip(requests, requests.dropFirst()).map { ($1.at - $0.at).milliseconds }
    #expect(gaps.allSatisfy { (40...160).contains($0) })
    let lost = try #require(lostSequence)
    #expect(
      pair.records(1, "nack", inbound: false).allSatisfy {
        $0.fields == "{\"sequences\":[\(lost)]}"
      })
    #expect(pair.received(1).map(\.bytes) == camera.frames.map(\.bytes))
  }

  @Test func anAbandonedPacketLeadsToAKeyFrameRequest() {
    let pair = Pair(sections: Agreed.video().map { [$0] })
    let camera = Camera()
    var hidden: UInt16?
    // A later frame's packet never gets through, not even as a retransmission.
    pair.drop = { side, isRTP, bytes in
      guard side == 0, isRTP, let header = try? RTPHeader(parsing: bytes.span.bytes)
      else { return false }
      if header.ssrc == Agreed.videoSSRC {
        if camera.frames.count == 10, hidden == nil { hidden = header.sequence }
        return header.sequence == hidden
      }
      return RTX.unwrap(bytes.span.bytes, header: header)?.sequence == hidden
    }
    pair.film(camera, milliseconds: 4000)
    let inbound = pair.flows[1].inbound[0]
    #expect((3...UInt64(MissingPackets.maximumTries)).contains(inbound.nackCount))
    #expect(inbound.pliCount == 1)
    #expect(pair.flows[0].outbound[0].pliCount == 1)
    #expect(pair.flows[0].outbound[0].nackCount == inbound.nackCount)
    expectDecodable(pair.received(1), of: camera)
    #expect(camera.frames.filter(\.isKey).count == 2)
    #expect(pair.received(1).last?.bytes == camera.frames.last?.bytes)
    #expect(inbound.framesDropped > 0)
  }

  @Test func keyFramesAreRequestedByFIRWhereOnlyThatIsNegotiated() {
    let pair = Pair(sections: Agreed.video(feedback: ["ccm fir"]).map { [$0] })
    let camera = Camera()
    pair.film(camera, milliseconds: 1000)
    pair.step(1, .requestKeyframe(mid: "v"))
    pair.step(1, .requestKeyframe(mid: "v"))
    pair.film(camera, milliseconds: 1000)
    #expect(pair.records(0, "fir", inbound: true).count == 1)
    #expect(pair.flows[0].outbound[0].firCount == 1)
    #expect(camera.frames.filter(\.isKey).count == 2)
  }

  @Test func keyFrameRequestsAreRepeatedUntilAKeyFrameArrives() {
    let pair = Pair(sections: Agreed.video().map { [$0] })
    let camera = Camera()
    pair.film(camera, milliseconds: 400, settle: 0)
    pair.step(1, .requestKeyframe(mid: "v"))
    // The encoder ignores requests for a second.
    let end = pair.now + .seconds(1)
    while pair.now < end {
      camera.wantsKey = false
      pair.step(0, .frame(mid: "v", camera.frame(at: pair.now)))
      pair.run(until: pair.now + .milliseconds(40))
    }
    let requests = pair.records(1, "pli", inbound: false).count
    #expect((3...4).contains(requests))
    camera.wantsKey = true
    pair.film(camera, milliseconds: 1000)
    #expect(pair.records(1, "pli", inbound: false).count == requests)
  }

  @Test func withoutRTXAPacketIsRepeatedByteForByte() {
    let pair = Pair(sections: Agreed.video(rtx: false).map { [$0] })
    pair.links[0].loss = 0.05
    let camera = Camera()
    pair.film(camera, milliseconds: 4000)
    #expect(pair.received(1).map(\.bytes) == camera.frames.map(\.bytes))
    var bySequence: [UInt16: [UInt8]] = [:]
    var repeated = 0
    for packet in pair.sent(0) {
      if let first = bySequence[packet.header.sequence] {
        #expect(first == packet.bytes)
        repeated += 1
      }
      bySequence[packet.header.sequence] = packet.bytes
    }
    #expect(repeated > 5)
    #expect(repeated == Int(pair.flows[0].outbound[0].retransmittedPacketsSent))
  }

  @Test func aStreamJoinedInTheMiddleRequestsAKeyFrame() {
    let pair = Pair(sections: Agreed.video().map { [$0] })
    let camera = Camera()
    pair.drop = { _, isRTP, _ in isRTP && camera.frames.count < 20 }
    pair.film(camera, milliseconds: 2000)
    #expect(pair.flows[1].inbound[0].pliCount == 1)
    expectDecodable(pair.received(1), of: camera)
    #expect(pair.received(1).count > 20)
  }

  /// Expects every frame to be a key frame or the successor of the frame before it.
  private func expectDecodable(_ received: [ReceivedFrame], of camera: Camera) {
    var last = -1
    for frame in received {
      guard let index = camera.frames.firstIndex(where: { $0.bytes == frame.bytes }) else {
        Issue.record("a frame arrived that was never sent")
        return
      }
      #expect(index > last)
      if !frame.isKey { #expect(index == last + 1) }
      last = index
    }
  }
}
