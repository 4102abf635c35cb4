import Foundation
import RTP
import Seeded
import Testing
import Wire

@testable import Flow

struct ReceivingTests {
  @Test(arguments: [
    // Found by the mid alone; the mid takes precedence over the payload type.
    ("v", UInt32(77), UInt8(96), "v"), ("w", 77, 96, "w"),
    // Found by the announced source, then by a payload type that only one section has.
    ("", Agreed.videoSSRC, 96, "v"), ("", 78, 111, "a"),
    // No section is found: two sections have the payload type, it is unknown, or the mid is
    // unknown.
    ("", 79, 96, nil), ("", 80, 42, nil), ("nowhere", Agreed.videoSSRC, 96, nil),
  ])
  func packetsReachTheirSection(mid: String, ssrc: UInt32, payloadType: UInt8, expected: String?) {
    var second = Agreed.video(announced: false)[1]
    second.mid = "w"
    var receiver = Receiver([Agreed.audio()[1], Agreed.video()[1], second])
    receiver.rtp(packet(ssrc: ssrc, sequence: 1, payloadType: payloadType, mid: mid))
    #expect(receiver.began == (expected.map { ["\($0) \(ssrc)"] } ?? []))
    #expect(receiver.flow.refused.unroutable == (expected == nil ? 1 : 0))
  }

  /// Chromium probes the path with padding over RTX, before the first frame and after it.
  ///
  /// Chromium's receiver counts all of this padding. Older takes omit padding that arrived before
  /// the stream's other packets.
  @Test(arguments: [(true, UInt64(5)), (false, 1)])
  func paddingThatProbesThePathIsCounted(countsProbes: Bool, packets: UInt64) throws {
    var receiver = Receiver([Agreed.video()[1]], countsProbes: countsProbes)
    func probe(_ sequence: UInt8) -> [UInt8] {
      [0xa0, 97, 0, sequence, 0, 0, 0, 0, 0x10, 0, 0, 2] + [UInt8](repeating: 0, count: 99) + [100]
    }
    for sequence in UInt8(1)...2 { receiver.rtp(probe(sequence)) }
    receiver.rtp(packet(ssrc: Agreed.videoSSRC, sequence: 1))
    for sequence in UInt8(3)...4 { receiver.rtp(probe(sequence)) }
    let counters = try #require(receiver.flow.inbound.first)
    #expect(counters.packetsReceived == packets)
    #expect(counters.probesReceived == packets - 1)
    #expect(counters.retransmittedPacketsReceived == 0)
    #expect(counters.headerBytesReceived >= 12 + (packets - 1) * 112)
  }

  @Test func aLearnedSourceNeedsNoMid() {
    var receiver = Receiver([Agreed.video(announced: false)[1]])
    receiver.rtp(packet(ssrc: 5, sequence: 1, mid: "v"))
    receiver.rtp(packet(ssrc: 5, sequence: 2))
    #expect(receiver.frames.map(\.firstSequence) == [1, 2])
  }

  @Test func anotherSourceTakesOverTheSection() {
    var receiver = Receiver([Agreed.video(announced: false)[1]])
    receiver.rtp(packet(ssrc: 5, sequence: 1, mid: "v"))
    receiver.rtp(packet(ssrc: 6, sequence: 100, mid: "v"))
    #expect(receiver.began == ["v 5", "v 6"])
    #expect(receiver.ended == ["v 5"])
    // A late packet from the old source changes nothing.
    receiver.rtp(packet(ssrc: 5, sequence: 2))
    #expect(receiver.frames.map(\.ssrc) == [5, 6])
    // When the new source falls silent, the old one may return.
    receiver.now += .seconds(3)
    receiver.rtp(packet(ssrc: 5, sequence: 300))
    #expect(receiver.began == ["v 5", "v 6", "v 5"])
    #expect(receiver.ended == ["v 5", "v 6"])
    for ssrc in 10..<40 { receiver.rtp(packet(ssrc: UInt32(ssrc), sequence: 1, mid: "v")) }
    #expect(receiver.flow.inbound.count <= 2)
    #expect(receiver.flow.receivers.routes.count <= 2)
  }

  @Test func aSourceMayReturnAfterABYE() {
    var receiver = Receiver([Agreed.video()[1]])
    receiver.rtp(packet(ssrc: Agreed.videoSSRC, sequence: 30_000))
    var writer = ByteWriter()
    RTCPPacket.goodbye(Goodbye(ssrcs: [Agreed.videoSSRC])).write(into: &writer)
    receiver.step(.rtcp(writer.bytes, arrival: receiver.now))
    #expect(receiver.ended == ["v \(Agreed.videoSSRC)"])
    #expect(receiver.flow.inbound[0].hasEnded)
    // The source may start its numbers anywhere.
    receiver.rtp(packet(ssrc: Agreed.videoSSRC, sequence: 29_000))
    #expect(receiver.began.count == 2)
    #expect(receiver.frames.count == 2)
    #expect(receiver.frames[1].firstSequence > receiver.frames[0].firstSequence)
    #expect(receiver.flow.inbound[0].packetsReceived == 2)
    #expect(receiver.flow.inbound[0].packetsLost == 0)
  }

  @Test func framesCrossTheWrapAround() {
    var receiver = Receiver([Agreed.video()[1]])
    for index in 0..<200 {
      let number = UInt16(truncatingIfNeeded: 65_500 + index)
      receiver.rtp(
        packet(
          ssrc: Agreed.videoSSRC, sequence: number, timestamp: 0xffff_f000 &+ UInt32(index) * 3000,
          isKey: index == 0, pictureID: UInt16((0x7ff0 + index) & 0x7fff)))
    }
    #expect(receiver.frames.map(\.firstSequence) == Array(65_500..<65_700))
    #expect(receiver.frames.last?.extendedTime == Int64(0xffff_f000) + 199 * 3000)
    #expect(receiver.flow.inbound[0].packetsLost == 0)
  }

  @Test func lostPaddingDelaysNothingWherePictureIDsContinue() {
    var receiver = Receiver([Agreed.video()[1]])
    receiver.rtp(packet(ssrc: Agreed.videoSSRC, sequence: 1, isKey: true, pictureID: 127))
    // 2 is padding that arrives, 4 is padding that does not.
    receiver.rtp(packet(ssrc: Agreed.videoSSRC, sequence: 2, isKey: false, padding: 100))
    receiver.rtp(packet(ssrc: Agreed.videoSSRC, sequence: 3, isKey: false))
    receiver.rtp(packet(ssrc: Agreed.videoSSRC, sequence: 5, isKey: false))
    #expect(receiver.frames.map(\.firstSequence) == [1, 3])
    var next = Receiver([Agreed.video()[1]])
    for (sequence, id) in [(UInt16(1), UInt16(0x7fff)), (3, 0), (5, 1)] {
      next.rtp(
        packet(
          ssrc: Agreed.videoSSRC, sequence: sequence, isKey: sequence == 1, pictureID: id))
    }
    #expect(next.frames.map(\.firstSequence) == [1, 3, 5])
  }

  @Test func aFrameThatCanNeverBeCompleteDoesNotBlockTheStream() {
    var receiver = Receiver([Agreed.video()[1]])
    receiver.rtp(packet(ssrc: Agreed.videoSSRC, sequence: 1, isKey: true, pictureID: 1))
    // This frame's marker was never set.
    receiver.rtp(
      packet(ssrc: Agreed.videoSSRC, sequence: 2, isKey: false, pictureID: 2, marker: false))
    receiver.rtp(packet(ssrc: Agreed.videoSSRC, sequence: 3, isKey: false, pictureID: 3))
    #expect(receiver.records("pli").count == 1)
    receiver.rtp(packet(ssrc: Agreed.videoSSRC, sequence: 4, isKey: true, pictureID: 4))
    #expect(receiver.frames.map(\.firstSequence) == [1, 4])
  }

  @Test func lateAndRepeatedPacketsAreCountedAndDropped() {
    var receiver = Receiver([Agreed.video()[1]])
    for sequence: UInt16 in [10, 11, 11, 10, 12] {
      receiver.rtp(packet(ssrc: Agreed.videoSSRC, sequence: sequence, isKey: true))
    }
    let inbound = receiver.flow.inbound[0]
    #expect(receiver.frames.map(\.firstSequence) == [10, 11, 12])
    #expect(inbound.packetsDuplicated == 2)
    #expect(inbound.packetsReceived == 5)
    #expect(inbound.packetsLost == -2)
    #expect(inbound.framesReceived == 3 && inbound.keyFramesReceived == 3)
  }

  @Test func heldFramesAreLimited() {
    var receiver = Receiver([Agreed.video()[1]])
    // Incomplete frames, over more sequence numbers than the receiver keeps.
    for index in 0..<20_000 {
      receiver.rtp(
        packet(
          ssrc: Agreed.videoSSRC, sequence: UInt16(truncatingIfNeeded: index), timestamp: 1,
          isKey: index == 0, marker: false))
    }
    #expect(receiver.frames.isEmpty)
    #expect(receiver.records("pli").count >= 1)
    // Every second number is missing.
    var gaps = Receiver([Agreed.video()[1]])
    for index in 0..<20_000 {
      gaps.rtp(
        packet(
          ssrc: Agreed.videoSSRC, sequence: UInt16(truncatingIfNeeded: index * 2), isKey: false))
    }
    #expect(gaps.records("nack").count < 20_000)
  }

  @Test func aBrowsersCallIsReceived() throws {
    var video = Agreed.video(announced: false)[1]
    video.mid = "1"
    var audio = Agreed.audio()[1]
    audio.mid = "0"
    audio.receiving?.ssrcs = []
    audio.receiving?.rtxSSRCs = []
    var receiver = Receiver([audio, video])
    for (time, bytes) in try chromiumCall() {
      receiver.now = .zero + .microseconds(time)
      receiver.step(
        DatagramClass(bytes.span.bytes) == .rtcp
          ? .rtcp(bytes, arrival: receiver.now) : .rtp(bytes, arrival: receiver.now))
    }
    #expect(receiver.began == ["0 2517566769", "1 3711522846"])
    let videoFrames = receiver.frames.filter { $0.kind == .video }
    #expect(videoFrames.first?.isKey == true)
    #expect(videoFrames.count > 5)
    for (videoFrame, next) in zip(videoFrames, videoFrames.dropFirst()) {
      #expect(next.firstSequence == videoFrame.lastSequence + 1)
    }
    let inbound = receiver.flow.inbound
    #expect(inbound.map(\.packetsLost) == [0, 0])
    #expect(inbound[1].rtxSSRC == 4_248_789_835)
    // Probes repeat packets that arrived already, so none is recovered, and all are counted.
    #expect(inbound[1].packetsRecovered == 0)
    #expect(inbound[1].retransmittedPacketsReceived == inbound[1].packetsDuplicated)
    #expect(inbound[1].retransmittedPacketsReceived > 3)
    #expect(inbound.allSatisfy { $0.remote?.reportsSent ?? 0 >= 1 })
    #expect(receiver.flow.refused == RefusedPackets())
  }

  @Test func anyBytesAreSurvived() throws {
    let packets = try chromiumCall().map(\.bytes)
    var generator = SeededGenerator(seed: 5)
    var video = Agreed.video()[1]
    video.mid = "1"
    video.sending = Agreed.video()[0].sending
    var receiver = Receiver([video, Agreed.audio()[1]])
    let camera = Camera()
    for round in 0..<30_000 {
      var bytes = packets[round % packets.count]
      for _ in 0...Int.random(in: 0..<3, using: &generator) where !bytes.isEmpty {
        let place = Int.random(in: 0..<min(bytes.count, 60), using: &generator)
        bytes[place] = UInt8.random(in: 0...255, using: &generator)
      }
      if generator.chance(0.1) {
        bytes.removeLast(Int.random(in: 0..<bytes.count, using: &generator))
      }
      receiver.now += .microseconds(Int64.random(in: 0..<3000, using: &generator))
      let isControl = DatagramClass(bytes.span.bytes) == .rtcp || generator.chance(0.02)
      receiver.step(
        isControl ? .rtcp(bytes, arrival: receiver.now) : .rtp(bytes, arrival: receiver.now))
      if round % 50 == 0 { receiver.step(.frame(mid: "1", camera.frame(at: receiver.now))) }
      if let deadline = receiver.flow.deadline, deadline <= receiver.now {
        receiver.step(.deadline)
      }
    }
    #expect(receiver.flow.receivers.all.count <= 4)
    #expect(receiver.flow.receivers.routes.count <= ReceiveStreams.routesMaximum)
    #expect(receiver.flow.refused.malformed > 100)
  }

  // MARK: - Packets

  /// One receiving flow and its outputs.
  struct Receiver {
    var flow: MediaFlow
    var now = Instant.zero
    var outputs: [MediaFlow.Output] = []

    init(_ sections: [FlowSection], countsProbes: Bool = false) {
      flow = MediaFlow(
        entropy: Entropy(seed: [9]).stream("flow"), wallClock: WallClock(unixNanosecondsAtZero: 0),
        cname: "receiver", countsProbes: countsProbes)
      step(.configure(sections))
      step(.writable(true))
    }

    mutating func step(_ input: MediaFlow.Input) {
      var outbox = Outbox<MediaFlow.Output>()
      flow.step(input, at: now, into: &outbox)
      outputs += outbox.drain()
    }

    mutating func rtp(_ bytes: [UInt8]) {
      now += .milliseconds(1)
      step(.rtp(bytes, arrival: now))
    }

    /// Advances the time, meeting all deadlines on the way.
    mutating func wait(_ length: Interval) {
      let end = now + length
      while let due = flow.deadline, due <= end {
        now = max(now, due)
        step(.deadline)
      }
      now = end
    }

    var frames: [ReceivedFrame] {
      outputs.compactMap { if case .received(let frame) = $0 { frame } else { nil } }
    }
    var began: [String] {
      outputs.compactMap {
        if case .streamBegan(let mid, let ssrc) = $0 { "\(mid) \(ssrc)" } else { nil }
      }
    }
    var ended: [String] {
      outputs.compactMap {
        if case .streamEnded(let mid, let ssrc) = $0 { "\(mid) \(ssrc)" } else { nil }
      }
    }
    func records(_ type: String) -> [RTCPRecord] {
      outputs.compactMap {
        if case .rtcpBlock(let record) = $0, record.type == type { record } else { nil }
      }
    }
  }

  private func packet(
    ssrc: UInt32, sequence: UInt16, timestamp: UInt32? = nil, payloadType: UInt8 = 96,
    mid: String = "", isKey: Bool = true, pictureID: UInt16? = nil, marker: Bool = true,
    padding: UInt8 = 0
  ) -> [UInt8] {
    var header = OutgoingHeader(
      payloadType: payloadType, sequence: sequence,
      timestamp: timestamp ?? UInt32(sequence) * 3000, ssrc: ssrc)
    header.marker = marker
    if !mid.isEmpty { header.mid = Array(mid.utf8) }
    var writer = ByteWriter()
    header.write(into: &writer, map: Agreed.map)
    guard padding == 0 else {
      writer.zeros(Int(padding) - 1)
      writer.uint8(padding)
      var bytes = writer.bytes
      bytes[0] |= 0x20
      return bytes
    }
    VP8Descriptor(beginsPartition: true, pictureID: pictureID.map { PictureID($0) })
      .write(into: &writer)
    writer.append([isKey ? 0 : 1, 2, 3])
    return writer.bytes
  }

  /// Returns the recorded call's sent packets, with the time in microseconds.
  private func chromiumCall() throws -> [(time: Int64, bytes: [UInt8])] {
    let url = URL(filePath: #filePath).deletingLastPathComponent()
      .appending(path: "../RTPTests/Samples/chromium-call.txt")
    var packets: [(time: Int64, bytes: [UInt8])] = []
    let lines = try String(contentsOf: url, encoding: .utf8).split(separator: "\n")
    for line in lines where line.hasPrefix(">") {
      let fields = line.split(separator: " ")
      packets.append((Int64(fields[1]) ?? 0, try #require([UInt8](hexadecimal: fields[2]))))
    }
    return packets
  }
}
