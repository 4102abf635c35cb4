import RTP
import Testing
import Wire

@testable import Flow

struct FeedbackTests {
  @Test(arguments: [Int64(1), 25, 150])
  func theRoundTripIsMeasured(delay: Int64) throws {
    let pair = Pair(
      sections: Agreed.video().map { [$0] }, link: Link(delay: .milliseconds(delay)),
      at: .zero + .seconds(5))
    pair.film(Camera(), milliseconds: 4000)
    let remote = try #require(pair.flows[0].outbound[0].remote)
    let expected = Double(2 * delay) / 1000
    #expect(abs((remote.roundTripTime ?? 0) - expected) < 0.001)
    #expect(remote.roundTripTimeMeasurements >= 3)
    let mean = remote.totalRoundTripTime / Double(remote.roundTripTimeMeasurements)
    #expect(abs(mean - expected) < 0.001)
    // The receive-only side measures with extended reports.
    let inbound = try #require(pair.flows[1].inbound[0].remote)
    #expect(abs((inbound.roundTripTime ?? 0) - expected) < 0.001)
  }

  @Test func statisticsMatchWhatWasSentAndLost() throws {
    // Without retransmissions, each side's counts can be compared with the network's.
    let sections = (0..<2).map {
      [Agreed.audio()[$0], Agreed.video(feedback: ["nack pli", "transport-cc"])[$0]]
    }
    let pair = Pair(sections: sections)
    let camera = Camera()
    for index in 0..<500 {
      // Losses before the first packet that arrives would not be counted.
      if index == 1 {
        pair.links[0] = Link(jitter: .milliseconds(5), loss: 0.05, duplication: 0.01)
      }
      pair.step(0, .frame(mid: "a", audio(at: pair.now)))
      if index % 2 == 0 { pair.step(0, .frame(mid: "v", camera.frame(at: pair.now))) }
      pair.run(until: pair.now + .milliseconds(20))
    }
    // The streams' last packets arrive, so that the receiver notices every loss.
    pair.links[0] = Link()
    pair.step(0, .frame(mid: "a", audio(at: pair.now)))
    pair.step(0, .frame(mid: "v", camera.frame(at: pair.now)))
    pair.run(until: pair.now + .seconds(4))
    for (index, ssrc) in [Agreed.audioSSRC, Agreed.videoSSRC].enumerated() {
      let sent = pair.flows[0].outbound[index]
      let received = pair.flows[1].inbound[index]
      #expect(sent.ssrc == ssrc && received.ssrc == ssrc)
      let packets = pair.sent(0).filter { $0.header.ssrc == ssrc }
      let lost = pair.lost[0].filter { (try? RTPHeader(parsing: $0.span.bytes))?.ssrc == ssrc }
      #expect(sent.packetsSent == UInt64(packets.count))
      #expect(sent.bytesSent == UInt64(packets.reduce(0) { $0 + $1.header.payload.count }))
      #expect(sent.headerBytesSent == UInt64(packets.reduce(0) { $0 + $1.header.headerLength }))
      let duplicates = Int64(received.packetsDuplicated)
      #expect(received.packetsLost == Int64(lost.count) - duplicates)
      #expect(Int64(received.packetsReceived) == Int64(packets.count - lost.count) + duplicates)
      let remote = try #require(sent.remote)
      #expect(remote.packetsLost == received.packetsLost)
      #expect(remote.packetsReceived == Int64(received.packetsReceived))
      #expect(abs(remote.jitter - received.jitter) < 0.001)
      #expect(received.jitter > 0.0005 && received.jitter < 0.01)
      let remoteSender = try #require(received.remote)
      #expect(remoteSender.packetsSent == sent.packetsSent)
      #expect(remoteSender.bytesSent == sent.bytesSent)
    }
    #expect(
      pair.duplicatedCount[0]
        == pair.flows[1].inbound.reduce(0) { $0 + Int($1.packetsDuplicated) })
    let reports = pair.outputs[0].filter {
      if case .lossReported(mid: "v", let fraction) = $0.output { fraction > 0 } else { false }
    }
    #expect(!reports.isEmpty)
  }

  @Test func theTargetReachesItsMaximumWithinSecondsOnACleanPath() throws {
    let pair = Pair(sections: Agreed.video().map { [$0] }, link: Link(delay: .milliseconds(1)))
    pair.step(0, .bitrateLimits(start: 600_000, maximum: 4_000_000))
    let targets = film(pair, milliseconds: 8000)
    #expect(targets.first?.bitrate == 600_000)
    let reached = try #require(targets.first { $0.bitrate == 4_000_000 })
    #expect(reached.at < .zero + .seconds(5))
    #expect(targets.last?.bitrate == 4_000_000)
    for (target, next) in zip(targets, targets.dropFirst()) {
      #expect(next.at - target.at >= .milliseconds(150))
    }
    #expect(pair.flows[0].availableOutgoingBitrate == 4_000_000)
    #expect(pair.flows[1].availableOutgoingBitrate == nil)
  }

  @Test(arguments: [400_000.0, 1_200_000])
  func aNarrowPathIsNotOverrun(rate: Double) {
    let pair = Pair(sections: Agreed.video().map { [$0] })
    pair.links[0] = Link(rate: rate, queue: .milliseconds(400))
    let targets = film(pair, milliseconds: 30_000)
    let late = targets.filter { $0.at > .zero + .seconds(10) }.map { Double($0.bitrate) }
    let mean = late.reduce(0, +) / Double(max(1, late.count))
    #expect(mean > 0.5 * rate && mean < 1.1 * rate)
    let inbound = pair.flows[1].inbound[0]
    #expect(Double(inbound.packetsLost) < 0.05 * Double(inbound.packetsReceived))
  }

  @Test func withREMBTheTargetStaysBelowThePeersEstimate() {
    let sections = Agreed.video(feedback: ["nack", "nack pli", "goog-remb"]).map { [$0] }
    let pair = Pair(sections: sections)
    pair.step(0, .bitrateLimits(start: 600_000, maximum: 4_000_000))
    let targets = film(pair, milliseconds: 12_000)
    #expect(pair.records(1, "remb", inbound: false).count > 8)
    #expect(pair.records(1, "transport-cc", inbound: false).isEmpty)
    #expect((targets.last?.bitrate ?? 0) > 1_000_000)
    var outbox = Outbox<MediaFlow.Output>()
    var writer = ByteWriter()
    RTCPPacket.maximumBitrate(
      MaximumBitrate(senderSSRC: 1, bitrate: 300_000, ssrcs: [Agreed.videoSSRC])
    ).write(into: &writer)
    pair.flows[0].step(.rtcp(writer.bytes, arrival: pair.now), at: pair.now, into: &outbox)
    #expect(pair.flows[0].availableOutgoingBitrate == 300_000)
  }

  @Test func everyArrivalIsReportedOnceAndInTime() {
    let pair = Pair(sections: Agreed.video().map { [$0] })
    pair.links[0] = Link(jitter: .milliseconds(8), loss: 0.1)
    let camera = Camera()
    pair.film(camera, milliseconds: 4000)
    var reported = 0
    for record in pair.records(1, "transport-cc", inbound: false) {
      reported += Int(record.fields.split(separator: "\"received\":")[1].prefix { $0 != "," }) ?? 0
    }
    let arrived = pair.sent(0).count - pair.lost[0].count
    // Packets that overtook a late packet are reported a second time, together with the late one.
    #expect(reported >= arrived && reported < arrived + arrived / 5)
    let feedbackTimes = pair.packets[1].filter { $0.bytes[1] == 205 && $0.bytes[0] == 0x8f }.map(
      \.at)
    #expect(feedbackTimes.count > 30 && feedbackTimes.count < 90)
  }

  @Test func withoutReducedSizeFeedbackFollowsAReport() {
    let pair = Pair(sections: Agreed.video(reducedSize: false).map { [$0] })
    pair.links[0].loss = 0.05
    pair.film(Camera(), milliseconds: 1000)
    for packet in pair.packets[1] {
      #expect(packet.bytes[1] == 201)
      let compound = RTCPCompound(parsing: packet.bytes.span.bytes)
      guard case .sourceDescription(let names)? = compound.packets.dropFirst().first else {
        Issue.record("no name")
        continue
      }
      #expect(names.chunks.map(\.cname) == ["side1"])
    }
  }

  @Test func anIdleFlowHasNoDeadline() {
    let pair = Pair(sections: Agreed.video().map { [$0] })
    #expect(pair.flows.allSatisfy { $0.deadline == nil })
    pair.film(Camera(), milliseconds: 2000, settle: 5000)
    #expect(pair.flows.allSatisfy { $0.deadline == nil })
    let last = pair.wakes.joined().max() ?? .zero
    #expect(last < .zero + .seconds(5))
  }

  @Test func aSteadyCallHasFewDeadlines() {
    let sections = (0..<2).map { [Agreed.audio()[$0], Agreed.video()[$0]] }
    let pair = Pair(sections: sections)
    let camera = Camera()
    for index in 0..<500 {
      pair.step(0, .frame(mid: "a", audio(at: pair.now)))
      if index % 2 == 0 { pair.step(0, .frame(mid: "v", camera.frame(at: pair.now))) }
      pair.run(until: pair.now + .milliseconds(20))
    }
    // The receiver sends its feedback when packets arrive; the sender wakes for the pacer.
    #expect(pair.wakes[1].count < 20)
    #expect(pair.wakes[0].count < 10 * 80)
  }

  @Test func blocksAreRecordedForTheTake() {
    let block = ReportBlock(
      ssrc: 9, fractionLost: 1, cumulativeLost: -2, highestSequence: 3, jitter: 4,
      lastSenderReport: 5, delaySinceLastSenderReport: 6)
    let expectations: [(RTCPPacket, String, UInt32, String)] = [
      (
        .senderReport(
          SenderReport(
            ssrc: 1, ntpTime: (2_208_988_800 + 1000) << 32 | 1 << 31, rtpTime: 7, packetCount: 8,
            octetCount: 9)), "sr", 1,
        #"{"unix_us":1000500000,"rtp_time":7,"packets":8,"octets":9,"blocks":[]}"#
      ),
      (
        .receiverReport(ReceiverReport(ssrc: 2, blocks: [block])), "rr", 2,
        #"{"blocks":[{"ssrc":9,"fraction_lost":1,"lost":-2,"#
          + #""highest":3,"jitter":4,"lsr":5,"dlsr":6}]}"#
      ),
      (
        .sourceDescription(SourceDescription(chunks: [.init(ssrc: 3, cname: "a\"\\\u{1}é")])),
        "sdes",
        3, #"{"chunks":[{"ssrc":3,"cname":"a\"\\\u0001é"}]}"#
      ),
      (.goodbye(Goodbye(ssrcs: [4, 5])), "bye", 4, #"{"ssrcs":[4,5],"reason":""}"#),
      (
        .genericNACK(GenericNACK(senderSSRC: 1, mediaSSRC: 6, sequences: [1, 2])), "nack", 6,
        #"{"sequences":[1,2]}"#
      ),
      (.pictureLoss(PictureLoss(senderSSRC: 1, mediaSSRC: 7)), "pli", 7, "{}"),
      (
        .fullIntraRequest(FullIntraRequest(senderSSRC: 1, entries: [.init(ssrc: 8, number: 2)])),
        "fir", 8, #"{"entries":[{"ssrc":8,"number":2}]}"#
      ),
      (
        .maximumBitrate(MaximumBitrate(senderSSRC: 1, bitrate: .max, ssrcs: [9])), "remb", 9,
        #"{"bitrate":9223372036854775807,"ssrcs":[9]}"#
      ),
      (
        .transportFeedback(
          TransportFeedback(
            senderSSRC: 1, mediaSSRC: 10, base: 11, count: 12, reference: 13, number: 14,
            arrivals: [.init(offset: 0, ticks: 0)])), "transport-cc", 10,
        #"{"base":11,"count":12,"received":1,"reference":13,"feedback":14}"#
      ),
      (
        .extendedReport(
          ExtendedReport(
            ssrc: 11, delays: [.init(ssrc: 1, lastReport: 2, delaySinceLastReport: 3)])), "xr", 11,
        #"{"delays":[{"ssrc":1,"lrr":2,"dlrr":3}]}"#
      ),
      (.other(type: .application, format: 3, ssrc: 12, length: 16), "204-3", 12, #"{"length":16}"#),
    ]
    for (packet, type, ssrc, fields) in expectations {
      #expect(
        RTCPRecord(packet, isInbound: true)
          == RTCPRecord(isInbound: true, type: type, ssrc: ssrc, fields: fields))
    }
  }

  /// Sends frames from an encoder that meets the target; returns all targets reported.
  private func film(_ pair: Pair, milliseconds: Int64) -> [(at: Instant, bitrate: UInt64)] {
    let camera = Camera()
    pair.onOutput = { side, output in
      guard side == 0 else { return }
      // 25 video frames per second.
      if case .targetBitrate(let bitrate) = output { camera.size = Int(bitrate / 8 / 25) }
      if case .keyframeRequested = output { camera.wantsKey = true }
    }
    let end = pair.now + .milliseconds(milliseconds)
    while pair.now < end {
      pair.step(0, .frame(mid: "v", camera.frame(at: pair.now)))
      pair.run(until: pair.now + .milliseconds(40))
    }
    return pair.outputs[0].compactMap {
      if case .targetBitrate(let bitrate) = $0.output { ($0.at, bitrate) } else { nil }
    }
  }

  private func audio(at now: Instant) -> EncodedFrame {
    EncodedFrame(
      kind: .audio, codec: .opus, mediaTime: UInt32(now.nanoseconds / 1_000_000 * 48),
      bytes: [UInt8](repeating: 7, count: 80), isKey: true, audioLevel: 30)
  }
}
