import RTP
import Testing
import Wire

@testable import Flow

struct SendingTests {
  @Test func packetsStayBelowTheirLimitWithRoomForProtection() {
    let pair = Pair(sections: Agreed.video().map { [$0] })
    pair.links[0].loss = 0.1
    let camera = Camera()
    pair.film(camera, milliseconds: 2000)
    var largest = 0
    for packet in pair.packets[0] {
      largest = max(largest, packet.bytes.count)
      #expect(packet.bytes.capacity >= packet.bytes.count + 16)
    }
    #expect(largest <= 1200 - 16)
    #expect(largest > 1100)
  }

  @Test func theMarkerEndsAFrameAndTimesAndNumbersIncrease() {
    let pair = Pair(sections: Agreed.video().map { [$0] })
    let camera = Camera()
    pair.film(camera, milliseconds: 400)
    let media = pair.sent(0).filter { $0.header.ssrc == Agreed.videoSSRC }
    #expect(media.filter(\.header.marker).count == camera.frames.count)
    for (packet, next) in zip(media, media.dropFirst()) {
      #expect(next.header.sequence == packet.header.sequence &+ 1)
      #expect((next.header.timestamp == packet.header.timestamp) == !packet.header.marker)
    }
    #expect(media[0].header.sequence < 0x8000)
    #expect(pair.flows[0].outbound[0].framesSent == UInt64(camera.frames.count))
    #expect(pair.flows[0].outbound[0].keyFramesSent == 1)
  }

  @Test func theMidIsCarriedUntilThePeerReports() throws {
    let pair = Pair(sections: Agreed.video().map { [$0] })
    pair.film(Camera(), milliseconds: 3000)
    let reported = try #require(
      pair.outputs[0].first {
        if case .rtcpBlock(let record) = $0.output {
          record.isInbound && record.type == "rr"
        } else {
          false
        }
      }
    ).at
    for packet in pair.sent(0) where packet.header.ssrc == Agreed.videoSSRC {
      let values = HeaderExtensions(
        parsing: packet.bytes.span.bytes, header: packet.header, map: Agreed.map)
      #expect((values.mid != nil) == (packet.at < reported))
      #expect(values.transportSequence != nil && values.absoluteSendTime != nil)
    }
    #expect(reported < .zero + .milliseconds(1200))
  }

  @Test func transportSequenceNumbersCountAllPacketsInOrder() {
    let sections = (0..<2).map { [Agreed.audio()[$0], Agreed.video()[$0]] }
    let pair = Pair(sections: sections)
    pair.links[0].loss = 0.05
    let camera = Camera()
    for _ in 0..<50 {
      pair.step(0, .frame(mid: "a", audio(at: pair.now)))
      pair.step(0, .frame(mid: "v", camera.frame(at: pair.now)))
      pair.run(until: pair.now + .milliseconds(20))
    }
    var expected: UInt16 = 0
    for packet in pair.sent(0) {
      let values = HeaderExtensions(
        parsing: packet.bytes.span.bytes, header: packet.header, map: Agreed.map)
      #expect(values.transportSequence == expected)
      expected += 1
    }
    #expect(expected > 150)
  }

  @Test func aLargeFrameIsSpreadOverTime() {
    let pair = Pair(sections: Agreed.video().map { [$0] }, link: Link(delay: .milliseconds(1)))
    let camera = Camera()
    camera.keySize = 60_000
    pair.step(0, .frame(mid: "v", camera.frame(at: pair.now)))
    pair.run(until: .zero + .milliseconds(800))
    let times = pair.sent(0).map(\.at)
    #expect(times.count > 50)
    // 480 kbit at 2.5 times 600 kbit/s take 320 ms.
    let last = times.last.map { $0.nanoseconds / 1_000_000 } ?? 0
    #expect((200...340).contains(last))
    let wakes = pair.wakes[0].filter { $0 <= times.last ?? .zero }
    for (wake, next) in zip(wakes, wakes.dropFirst()) { #expect(next - wake >= .milliseconds(5)) }
    // At most a few packets leave together.
    for time in times { #expect(times.filter { $0 == time }.count <= 4) }
    #expect(pair.flows[0].outbound[0].totalPacketSendDelay > .zero)
  }

  /// Packets above the target wait for half a second at most, however long the excess lasts.
  @Test func theSendQueueIsLimited() {
    let pair = Pair(sections: Agreed.video().map { [$0] }, link: Link(delay: .milliseconds(1)))
    // All feedback is dropped, because it would raise the target.
    pair.drop = { side, _, _ in side == 1 }
    let camera = Camera()
    (camera.keySize, camera.size) = (40_000, 40_000)
    var most: UInt64 = 0
    for _ in 0..<250 {
      pair.step(0, .frame(mid: "v", camera.frame(at: pair.now)))
      pair.run(until: pair.now + .milliseconds(40))
      most = max(most, pair.flows[0].snapshot.pacerQueueBytes)
    }
    // At 8 Mbit/s over a target of 600 kbit/s, the queue holds half a second of video plus one
    // frame.
    #expect(pair.flows[0].snapshot.congestion.target < 1_000_000)
    #expect(most > 300_000 && most < 500_000 + 40_000, "\(most)")
  }

  @Test func audioDoesNotWaitForVideoFrames() {
    let sections = (0..<2).map { [Agreed.audio()[$0], Agreed.video()[$0]] }
    let pair = Pair(sections: sections)
    let camera = Camera()
    camera.keySize = 60_000
    pair.step(0, .frame(mid: "v", camera.frame(at: pair.now)))
    for _ in 0..<10 {
      let before = pair.packets[0].count
      pair.step(0, .frame(mid: "a", audio(at: pair.now)))
      #expect(pair.sent(0).last { $0.header.ssrc == Agreed.audioSSRC }?.at == pair.now)
      #expect(pair.packets[0].count > before)
      pair.run(until: pair.now + .milliseconds(20))
    }
    #expect(pair.received(1, mid: "a").count == 10)
  }

  @Test func theAudioMarkerMarksTheStartOfSpeech() {
    let pair = Pair(sections: Agreed.audio().map { [$0] })
    for index in 0..<12 {
      pair.step(0, .frame(mid: "a", audio(at: pair.now, isVoice: index % 6 > 2)))
      pair.run(until: pair.now + .milliseconds(20))
    }
    #expect(pair.sent(0).map(\.header.marker) == (0..<12).map { $0 % 6 == 3 })
    let received = pair.received(1, mid: "a")
    #expect(received.map(\.isVoice) == (0..<12).map { $0 % 6 > 2 })
    #expect(received.allSatisfy { $0.audioLevel == 30 })
  }

  @Test func nothingIsSentBeforeTheTransportCanCarryIt() {
    let pair = Pair(sections: Agreed.video().map { [$0] })
    let camera = Camera()
    pair.step(0, .writable(false))
    pair.step(0, .frame(mid: "v", camera.frame(at: pair.now)))
    #expect(pair.packets[0].isEmpty)
    #expect(pair.flows[0].deadline == nil)
    #expect(pair.flows[0].outbound[0].framesDiscarded == 1)
    pair.step(0, .writable(true))
    let demands = pair.outputs[0].filter {
      if case .keyframeRequested(mid: "v", rid: nil) = $0.output { true } else { false }
    }
    #expect(demands.count == 1)
    camera.wantsKey = true
    pair.film(camera, milliseconds: 400)
    #expect(pair.received(1).count == 10)
  }

  @Test func closingSendsABYE() {
    let sections = (0..<2).map { [Agreed.audio()[$0], Agreed.video()[$0]] }
    let pair = Pair(sections: sections)
    pair.step(0, .frame(mid: "a", audio(at: pair.now)))
    pair.film(Camera(), milliseconds: 200)
    pair.step(0, .close)
    #expect(pair.flows[0].deadline == nil)
    pair.run(until: pair.now + .milliseconds(100))
    let ended = pair.outputs[1].compactMap {
      if case .streamEnded(_, let ssrc) = $0.output { ssrc } else { nil }
    }
    #expect(ended == [Agreed.audioSSRC, Agreed.videoSSRC])
    let count = pair.packets[0].count
    pair.step(0, .frame(mid: "a", audio(at: pair.now)))
    #expect(pair.packets[0].count == count)
  }

  @Test func aPausedStreamContinuesItsNumbers() {
    let video = Agreed.video()
    let pair = Pair(sections: video.map { [$0] })
    let camera = Camera()
    pair.film(camera, milliseconds: 400)
    var paused = video[0]
    paused.sending = nil
    pair.step(0, .configure([paused]))
    #expect(pair.flows[0].outbound.map(\.isActive) == [false])
    pair.step(0, .frame(mid: "v", camera.frame(at: pair.now)))
    let before = pair.sent(0).last { $0.header.ssrc == Agreed.videoSSRC }?.header.sequence
    pair.step(0, .configure([video[0]]))
    pair.step(0, .frame(mid: "v", camera.frame(at: pair.now)))
    let after = pair.sent(0).last { $0.header.ssrc == Agreed.videoSSRC }?.header.sequence
    #expect((after ?? 0) &- (before ?? 0) <= 4 && after != before)
    #expect(pair.flows[0].outbound[0].framesSent == 11)
  }

  private func audio(at now: Instant, isVoice: Bool = false) -> EncodedFrame {
    EncodedFrame(
      kind: .audio, codec: .opus, mediaTime: UInt32(now.nanoseconds / 1_000_000 * 48),
      bytes: [UInt8](repeating: 7, count: 80), isKey: true, audioLevel: 30, isVoice: isVoice)
  }
}
