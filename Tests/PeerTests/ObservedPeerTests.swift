import Peer
import RTP
import Stats
import Testing
import Wire

/// An end of somebody else's call.
@Suite struct ObservedPeerTests {
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

  /// A stream that goes on in another transport may come from the other end from then on.
  @Test func aStreamThatTurnsRoundIsCountedOnBothSides() throws {
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
