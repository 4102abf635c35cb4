import Observer
import Testing
import Wire

/// Tests FlexFEC streams (RFC 8627), and the streams that they protect.
struct ProtectionTests {
  private static let tuple = FiveTuple(from: Messages.a, to: Messages.b)
  private static let media: UInt32 = 0x0102_0304
  private static let correction: UInt32 = 0x0a0b_0c0d

  private func description(_ formats: [String], _ lines: [String]) -> String {
    let types = formats.map { $0.prefix { $0 != " " } }.joined(separator: " ")
    let head = [
      "v=0", "o=- 1 1 IN IP4 192.0.2.1", "s=-", "c=IN IP4 192.0.2.1", "t=0 0",
      "m=video 5000 RTP/AVP " + types,
    ]
    return (head + formats.map { "a=rtpmap:" + $0 } + lines + [""]).joined(separator: "\r\n")
  }

  /// Makes a `flexfec-03` packet that protects the media stream.
  private func protecting(_ sequence: Int, ssrc: UInt32 = media) -> [UInt8] {
    var packet = Messages.rtp(sequence, ssrc: Self.correction, type: 35)
    packet[12] = 0x10
    packet.replaceSubrange(20..<24, with: [1, 0, 0, 0])
    packet.replaceSubrange(24..<28, with: (0..<4).map { UInt8(ssrc >> (24 - 8 * $0) & 255) })
    return packet
  }

  private func streams(
    _ description: String, repairsFully: Bool = true, protects ssrc: UInt32 = media
  ) -> [ObservedStream] {
    var settings = ObserverSettings()
    settings.repairsFully = repairsFully
    var observer = Observer(settings)
    var call = SyntheticCall()
    call.watch.step(&observer, .description(description), at: .zero)
    for number in 0..<20 {
      call.send(
        Messages.rtp(number, ssrc: Self.media, type: 96), Self.tuple, to: &observer)
      if number % 4 == 3 {
        call.send(protecting(number / 4, ssrc: ssrc), Self.tuple, to: &observer)
      }
    }
    call.watch.end(&observer)
    return observer.streams
  }

  /// The media stream that a FlexFEC stream protects is found through an SSRC group or, if there is
  /// none, through the packets, even if no format is named.
  @Test(arguments: [
    [
      "a=ssrc-group:FEC-FR 16909060 168496141", "a=ssrc:16909060 cname:x",
      "a=ssrc:168496141 cname:x",
    ],
    [],
  ])
  func aFlexFECStreamProtectsItsMediaStream(lines: [String]) throws {
    for formats in [["96 VP8/90000", "35 flexfec-03/90000"], ["96 VP8/90000"]] {
      let streams = streams(description(formats, lines))
      try #require(streams.map(\.ssrc) == [Self.media, Self.correction])
      #expect(streams[1].protects == Self.media)
      #expect(streams[0].protects == nil)
      #expect(streams[0].protectedBy == (lines.isEmpty ? nil : Self.correction))
      #expect(streams[1].payloads.map(\.codec) == ["flexfec-03"])
      #expect(streams[1].kind == .video)
    }
  }

  /// A FlexFEC stream that names a missing stream protects nothing.
  @Test func aMissingSourceIsNotProtected() throws {
    let streams = streams(description(["96 VP8/90000"], []), protects: 77)
    try #require(streams.count == 2)
    #expect(streams[1].protects == nil)
  }

  /// In takes of older formats, the stream is read as an ordinary one.
  @Test func olderTakesDoNotDistinguishThem() throws {
    let formats = ["96 VP8/90000", "35 flexfec-03/90000"]
    let streams = streams(description(formats, []), repairsFully: false)
    try #require(streams.count == 2)
    #expect(streams[1].protects == nil)
  }
}
