/// A codec by its SDP encoding name.
package struct CodecName: RawRepresentable, Hashable, Sendable {
  /// The encoding name in lower case.
  package var rawValue: String
  package init(rawValue: String) { self.rawValue = rawValue.lowercased() }

  package static let opus = CodecName(rawValue: "opus")
  /// G.711 with the mu law (RFC 3551 section 4.5.14).
  package static let pcmu = CodecName(rawValue: "pcmu")
  /// G.711 with the A law.
  package static let pcma = CodecName(rawValue: "pcma")
  /// Telephone keys (RFC 4733).
  package static let telephoneEvent = CodecName(rawValue: "telephone-event")
  package static let vp8 = CodecName(rawValue: "vp8")
  package static let vp9 = CodecName(rawValue: "vp9")
  package static let h264 = CodecName(rawValue: "h264")
  package static let av1 = CodecName(rawValue: "av1")

  /// The codec's entry in the table, if it has one.
  package var codec: Codec? { Codec.named(rawValue) }

  /// Whether it is G.711, which needs no library.
  package var isG711: Bool { self == .pcmu || self == .pcma }

  /// Whether its packets carry audio or video frames rather than telephone events.
  package var carriesMedia: Bool { self != .telephoneEvent }

  /// The packetization; nil if the codec is not in the table.
  package var payloadFormat: PayloadFormat? { Codec.payloadFormat(of: rawValue) }

  /// Whether frames pass through undecoded because no library encodes them.
  package var isPassedThrough: Bool {
    // Asked for every frame, and a codec is large to copy.
    Codec.place(of: rawValue).map { Codec.all[$0].isPassedThrough } ?? false
  }
}
