import Observer
import Testing
import Wire

/// Tests payloads in RED (RFC 2198), and their error correction (RFC 5109).
struct RedundancyTests {
  private static let tuple = FiveTuple(from: Messages.a, to: Messages.b)

  private func seen(_ inside: [UInt8]) -> Seen {
    var observer = Observer()
    // The media is unencrypted, so that the payload can be read.
    let description = [
      "v=0", "o=- 1 1 IN IP4 192.0.2.1", "s=-", "c=IN IP4 192.0.2.1", "t=0 0",
      "m=video 5000 RTP/AVP 116 96 117", "a=rtpmap:116 red/90000", "a=rtpmap:96 VP8/90000",
      "a=rtpmap:117 ulpfec/90000", "",
    ]
    var call = SyntheticCall()
    call.watch.step(
      &observer, .description(description.joined(separator: "\r\n")), at: .zero)
    for (sequence, type) in inside.enumerated() {
      var packet = Messages.rtp(sequence, type: 116)
      packet[12] = type
      call.send(packet, Self.tuple, to: &observer)
    }
    call.watch.end(&observer)
    return call.seen
  }

  @Test func theCodecInsideREDIsReported() throws {
    let seen = seen(Array(repeating: 96, count: 10))
    let stream = try #require(seen.streams.first)
    #expect(stream.payloads.map(\.codec) == ["red", "vp8"])
    #expect(!seen.coverage.contains { $0.kind == .redundancy })
  }

  /// ULPFEC is recognized and used, so the coverage does not report it.
  @Test func ulpfecInsideREDIsRecognized() throws {
    let seen = seen([96, 96, 96, 117, 96, 96, 117, 96])
    #expect(try #require(seen.streams.first).payloads.map(\.codec) == ["red", "vp8", "ulpfec"])
    #expect(!seen.coverage.contains { $0.kind == .redundancy })
    #expect(seen.packets.count == 8)
  }

  @Test func anUnknownBlockIsIgnored() throws {
    let seen = seen([96, 96, 96, 99, 96])
    #expect(try #require(seen.streams.first).payloads.map(\.codec) == ["red", "vp8"])
  }
}
