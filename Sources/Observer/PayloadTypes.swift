package import Wire

/// What a payload type of a stream stands for, and how that is known.
package struct PayloadMeaning: Hashable, Sendable {
  package var payloadType: UInt8
  /// The encoding name in lower case; `rtx` for retransmissions.
  package var codec: String
  /// In Hz.
  package var clockRate: UInt32
  /// Nil where even that is not known.
  package var kind: MediaKind?
  package var how: Knowledge
  /// The payload type whose packets are sent again, for retransmissions that say so.
  package var associated: UInt8?
  /// What a description states of the format.
  package var parameters: String?

  package init(
    payloadType: UInt8, codec: String, clockRate: UInt32, kind: MediaKind?, how: Knowledge,
    associated: UInt8? = nil
  ) {
    self.payloadType = payloadType
    self.codec = codec
    self.clockRate = clockRate
    self.kind = kind
    self.how = how
    self.associated = associated
  }
}

/// The payload types that a standard fixes (RFC 3551 section 6).
enum StaticPayloadTypes {
  private static let table: [(UInt8, String, UInt32, MediaKind)] = [
    (0, "pcmu", 8000, .audio), (3, "gsm", 8000, .audio), (4, "g723", 8000, .audio),
    (5, "dvi4", 8000, .audio), (6, "dvi4", 16_000, .audio), (7, "lpc", 8000, .audio),
    (8, "pcma", 8000, .audio), (9, "g722", 8000, .audio), (10, "l16", 44_100, .audio),
    (11, "l16", 44_100, .audio), (12, "qcelp", 8000, .audio), (13, "cn", 8000, .audio),
    (14, "mpa", 90_000, .audio), (15, "g728", 8000, .audio), (16, "dvi4", 11_025, .audio),
    (17, "dvi4", 22_050, .audio), (18, "g729", 8000, .audio), (25, "celb", 90_000, .video),
    (26, "jpeg", 90_000, .video), (28, "nv", 90_000, .video), (31, "h261", 90_000, .video),
    (32, "mpv", 90_000, .video), (33, "mp2t", 90_000, .video), (34, "h263", 90_000, .video),
  ]

  static func meaning(of payloadType: UInt8) -> PayloadMeaning? {
    table.first { $0.0 == payloadType }.map {
      PayloadMeaning(
        payloadType: payloadType, codec: $0.1, clockRate: $0.2, kind: $0.3, how: .standard)
    }
  }

  private static let sounds = [
    "opus", "red", "cn", "telephone-event", "multiopus", "lyra", "isac", "ilbc", "speex", "amr",
    "amr-wb", "evs", "l24", "g7221", "mp4a-latm", "mpeg4-generic", "g726-32",
  ]

  static func kind(of codec: String) -> MediaKind? {
    if let known = table.first(where: { $0.1 == codec }) { return known.3 }
    if codec == "rtx" { return nil }
    return sounds.contains(codec) ? .audio : .video
  }

  /// The clock that an encoding has unless something else is said.
  static func usualClockRate(of codec: String) -> UInt32 {
    if codec == "opus" || codec == "red" { return 48_000 }
    if let known = table.first(where: { $0.1 == codec }) { return known.2 }
    return kind(of: codec) == .audio ? 8000 : 90_000
  }
}
