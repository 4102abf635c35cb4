import Flow
import Peer
import RTP
import Stats
import Testing
import Wire

/// One end of an observed call.
struct ObservedPeerTests {
  private func packet(_ sequence: UInt16) throws -> SeenPacket {
    var writer = ByteWriter()
    writer.uint16(0x8000 | 111)
    writer.uint16(sequence)
    writer.uint32(UInt32(sequence) * 960)
    writer.uint32(7)
    writer.append([0xf8, 0xff, 0xfe])
    let bytes = writer.bytes
    return SeenPacket(
      header: try RTPHeader(parsing: bytes.span.bytes), bytes: bytes, isClear: true)
  }

  /// Returns a VP8 key frame in one packet, alone or inside RED, which may contain another payload
  /// type.
  private func videoFrame(_ sequence: UInt16, type: UInt8, inside: UInt8?) throws -> SeenPacket {
    var writer = ByteWriter()
    writer.uint16(0x8080 | UInt16(type))
    writer.uint16(sequence)
    writer.uint32(UInt32(sequence) * 3000)
    writer.uint32(9)
    if let inside { writer.append([inside]) }
    // The descriptor (RFC 7741 section 4.2), then the header of a 16x16 key frame.
    writer.append([0x10, 0x10, 0x02, 0x00, 0x9d, 0x01, 0x2a, 16, 0, 16, 0, 1, 2, 3])
    let bytes = writer.bytes
    return SeenPacket(
      header: try RTPHeader(parsing: bytes.span.bytes), bytes: bytes, isClear: true)
  }

  /// Video frames in RED equal those without it; error correction packets between them leave no gap
  /// that frames would wait for (RFC 2198, RFC 5109).
  @Test func videoFramesAreExtractedFromRED() throws {
    var sizes: [[Int]] = []
    for isInRED in [true, false] {
      var peer = ObservedPeer(
        number: 1, wallClock: WallClock(unixNanosecondsAtZero: 0), codecs: nil)
      var outbox = Outbox<ObservedPeer.Output>()
      var track = ObservedTrack(number: 5, ssrc: 9, isInbound: true, kind: .video, mid: "0")
      for (type, name) in [(96, "vp8"), (116, "red"), (117, "ulpfec")] as [(UInt8, String)] {
        track.codecs.append(
          FlowSection.Codec(
            payloadType: type, name: CodecName(rawValue: name), clockRate: 90_000,
            rtxPayloadType: nil, feedback: ["nack"]))
      }
      peer.step(.stream(track), at: .zero, into: &outbox)
      for number in 0..<20 as Range<UInt16> {
        // Without RED, the error correction packets are missing.
        let isCorrection = isInRED && number % 4 == 3
        let sequence = isInRED ? number : number - (number + 1) / 4
        if !isInRED, number % 4 == 3 { continue }
        let seen = try videoFrame(
          sequence, type: isInRED ? 116 : 96, inside: isInRED ? isCorrection ? 117 : 96 : nil)
        let at = Instant.zero + .milliseconds(Int64(number) * 33)
        peer.step(.rtp(seen, stream: 5, isInbound: true), at: at, into: &outbox)
      }
      sizes.append(
        outbox.outputs.compactMap { output in
          guard case .event(.frame(let frame)) = output else { return nil }
          #expect(frame.codec == CodecName(rawValue: "vp8"))
          return frame.bytes.count
        })
    }
    #expect(sizes[0] == sizes[1] && sizes[0].count >= 14, "\(sizes)")
    #expect(sizes[0].allSatisfy { $0 == 13 })
  }

  /// When a stream continues on another transport, the other end may be its sender from then on.
  @Test func aReversedStreamIsCountedInBothDirections() throws {
    var peer = ObservedPeer(
      number: 1, wallClock: WallClock(unixNanosecondsAtZero: 0), codecs: nil)
    var outbox = Outbox<ObservedPeer.Output>()
    var now = Instant.zero
    var sequence: UInt16 = 0
    for isInbound in [true, false, true] {
      let track = ObservedTrack(number: 5, ssrc: 7, isInbound: isInbound, kind: .audio, mid: "0")
      peer.step(.stream(track), at: now, into: &outbox)
      for _ in 0..<4 {
        now += .milliseconds(20)
        sequence += 1
        let seen = try packet(sequence)
        peer.step(.rtp(seen, stream: 5, isInbound: isInbound), at: now, into: &outbox)
      }
    }
    let report = peer.report(at: now)
    for (type, member, count) in [
      ("inbound-rtp", "packetsReceived", "8"), ("outbound-rtp", "packetsSent", "4"),
    ] {
      let values = report.objects.filter { $0.type == type }.flatMap(\.members).filter {
        $0.name == member
      }
      #expect(values.map(\.value.json) == [count], "\(type)")
    }
  }
}
