package import Wire

/// Everything specific to one codec, apart from its library.
///
/// It is declared beside the payload formats because they register the names and parameters that
/// descriptions use (RFC 4855). A codec that is only passed through needs just its entry in `all`.
package struct Codec: Sendable {
  /// The encoding name in lower case.
  package var name: CodecName
  /// The encoding name as rtpmap lines and MIME types spell it.
  package var spelling: String
  /// The name in messages, such as `VP8`.
  package var title: String
  package var kind: MediaKind
  /// The RTP clock rate in Hz.
  package var clockRate: UInt32
  package var channels: UInt8?
  /// The formats in local offers, in order of preference.
  package var formats: [OfferedFormat]
  package var rules = FormatRules.fixed
  /// Whether a peer offers the codec if its genesis names no codecs.
  package var isUsual = true
  /// Whether a new connection offers the codec if the application names no codecs.
  package var isOffered = true
  /// Whether frames usually pass through undecoded; they are decoded only if the genesis lists the
  /// codec in `decoders`.
  ///
  /// Such a codec is received in every variant of its format.
  package var isPassedThrough = false
  /// The name of the decoder and the encoder in statistics.
  package var decoderTitle = "libvpx"
  /// The lowest mean quantiser at which the bit rate counts as too low: libwebrtc's limit for
  /// reducing the resolution; nil if libwebrtc has none for the codec.
  package var poorQuantiser: Int?
  package var payload: PayloadFormat
  /// Parses the bytes of a frame; nil for codecs whose frames never arrive encoded.
  package var look: (@Sendable (_ frame: RawSpan) -> FrameLook)?
  /// Whether the size of received frames, which is read from their bytes, is recorded.
  package var recordsSize = false
  /// The file format in which frames that cannot be decoded here are exported; nil if there is
  /// none.
  package var container: FrameContainer?

  package static func named(_ name: String) -> Codec? {
    // Search by index, so that only the codec that is found is copied.
    place(of: name).map { all[$0] }
  }

  /// Encoding names of the codecs that a new connection offers when the application names none.
  package static let offeredNames = all.filter(\.isOffered).map(\.spelling)

  static func place(of name: String) -> Int? {
    all.indices.first { all[$0].name.rawValue == name }
  }

  /// Returns a codec's payload format; nil if the codec is unknown.
  ///
  /// Every packet needs the format, so it is looked up without copying the codec.
  static func payloadFormat(of name: String) -> PayloadFormat? {
    place(of: name).map { all[$0].payload }
  }

  /// Returns the local fmtp value that answers the peer's `parameters`.
  package func localParameters(answering parameters: String) -> String {
    rules.answer(parameters) ?? formats.first?.parameters ?? ""
  }

  /// The names of the video codecs that every build can encode, as part of a sentence: `VP8 or
  /// VP9`.
  package static var encodedTitles: String {
    all.filter { $0.kind == .video && !$0.isPassedThrough }.map(\.title).joined(separator: " or ")
  }
}

/// One format of a codec in local offers.
package struct OfferedFormat: Hashable, Sendable {
  /// The local fmtp value; empty if there is none.
  package var parameters: String
  /// The preferred payload type; RTX for video uses the next payload type.
  package var payloadType: UInt8
  /// The RTP clock rate in Hz; nil for the codec's usual rate.
  package var clockRate: UInt32?

  package init(_ parameters: String, _ payloadType: UInt8, clockRate: UInt32? = nil) {
    self.parameters = parameters
    self.payloadType = payloadType
    self.clockRate = clockRate
  }
}

/// The rules by which a codec's fmtp parameters are compared and answered (RFC 3264 section 6.1).
package struct FormatRules: Sendable {
  /// Returns the parameters that distinguish the codec's formats; nil if they are invalid for the
  /// codec.
  package var variant: @Sendable (_ parameters: String) -> CodecFormat.Variant?
  /// Returns local parameters that answer the peer's; nil if the parameters of local offers are the
  /// answer.
  package var answer: @Sendable (_ parameters: String) -> String?

  package init(
    variant: @escaping @Sendable (String) -> CodecFormat.Variant?,
    answer: @escaping @Sendable (String) -> String? = { _ in nil }
  ) {
    self.variant = variant
    self.answer = answer
  }

  /// The rules for codecs with a single format, whatever its parameters.
  package static let fixed = FormatRules { _ in CodecFormat.Variant.none }

  /// Returns rules for a codec with profiles; a missing parameter means the `usual` profile.
  package static func profile(_ parameter: String, usual: String) -> FormatRules {
    FormatRules { .profile(CodecFormat.value(of: parameter, in: $0) ?? usual) }
  }
}

/// The properties of an encoded frame that its bytes reveal without decoding.
package struct FrameLook: Hashable, Sendable {
  /// Whether the bytes contain a video frame or part of one.
  package var hasFrame = false
  /// Whether a decoder can start with the frame.
  package var isKey = false
  /// Whether other video frames may refer to this one.
  package var isReference = false
  /// The size in pixels, if the bytes contain it.
  package var size: (width: Int, height: Int)?

  package init() {}

  package static func == (left: Self, right: Self) -> Bool {
    left.hasFrame == right.hasFrame && left.isKey == right.isKey
      && left.isReference == right.isReference && left.size?.width == right.size?.width
      && left.size?.height == right.size?.height
  }

  package func hash(into hasher: inout Hasher) {
    hasher.combine(hasFrame)
    hasher.combine(isKey)
  }
}

/// A file format for encoded frames.
package enum FrameContainer: Hashable, Sendable {
  /// Concatenated frames, with the file extension.
  case byteStream(ending: String)
  /// IVF, which keeps the frame times, with the codec's four-character code.
  case ivf(fourCC: String)

  /// The file extension.
  package var ending: String {
    switch self {
    case .byteStream(let ending): ending
    case .ivf: "ivf"
    }
  }
}

// MARK: - Table

extension Codec {
  /// All codecs, in order of preference within each kind; decodable codecs come first.
  package static let all = [opus, pcmu, pcma, telephoneEvent, vp8, vp9, h264, av1]

  private static let opus = Codec(
    name: .opus, spelling: "opus", title: "Opus", kind: .audio, clockRate: 48_000, channels: 2,
    formats: [OfferedFormat("minptime=10;useinbandfec=1", 111)], payload: .whole)

  private static let pcmu = Codec(
    name: .pcmu, spelling: "PCMU", title: "G.711 (PCMU)", kind: .audio, clockRate: 8_000,
    formats: [OfferedFormat("", 0)], isUsual: false, payload: .whole)

  private static let pcma = Codec(
    name: .pcma, spelling: "PCMA", title: "G.711 (PCMA)", kind: .audio, clockRate: 8_000,
    formats: [OfferedFormat("", 8)], isUsual: false, payload: .whole)

  /// Telephone events have the clock rate of their audio codec (RFC 7874 section 3).
  private static let telephoneEvent = Codec(
    name: .telephoneEvent, spelling: "telephone-event", title: "telephone events", kind: .audio,
    clockRate: 48_000,
    formats: [OfferedFormat("", 110), OfferedFormat("", 126, clockRate: 8_000)], isUsual: false,
    payload: .whole)

  private static let vp8 = Codec(
    name: .vp8, spelling: "VP8", title: "VP8", kind: .video, clockRate: 90_000,
    formats: [OfferedFormat("", 96)], poorQuantiser: 95, payload: .vp8)

  private static let vp9 = Codec(
    name: .vp9, spelling: "VP9", title: "VP9", kind: .video, clockRate: 90_000,
    formats: [OfferedFormat("profile-id=0", 98)], rules: .profile("profile-id", usual: "0"),
    poorQuantiser: 205, payload: .vp9)

  private static let h264 = Codec(
    name: .h264, spelling: "H264", title: "H.264", kind: .video, clockRate: 90_000,
    formats: [
      OfferedFormat(FormatRules.h264("42e01f", mode: 1), 102),
      OfferedFormat(FormatRules.h264("42e01f", mode: 0), 104),
      OfferedFormat(FormatRules.h264("4d001f", mode: 1), 106),
      OfferedFormat(FormatRules.h264("64001f", mode: 1), 108),
    ],
    rules: .h264, isPassedThrough: true, decoderTitle: "OpenH264", poorQuantiser: 37,
    payload: .h264, look: { H264Payload.look($0) },
    container: .byteStream(ending: "h264"))

  private static let av1 = Codec(
    name: .av1, spelling: "AV1", title: "AV1", kind: .video,
    clockRate: 90_000, formats: [OfferedFormat("level-idx=5;profile=0;tier=0", 45)],
    rules: .av1, isUsual: false, isOffered: false, isPassedThrough: true, decoderTitle: "dav1d",
    payload: .av1,
    look: { AV1Unit.look($0) }, recordsSize: true, container: .ivf(fourCC: "AV01"))
}

// MARK: - CodecFormat

/// The values that must be equal in both descriptions for two payload formats to match (RFC 3264
/// section 6.1).
package struct CodecFormat: Hashable, Sendable {
  /// The values that distinguish formats of one encoding name.
  package enum Variant: Hashable, Sendable {
    case none
    /// A profile, such as the `profile-id` of VP9 (RFC 9628 section 7).
    case profile(String)
    /// H.264's packetization mode and profile; the level may differ (RFC 6184 section 8.2.2).
    case h264(packetizationMode: UInt8, H264Profile)
    /// The clock rate of telephone events in Hz, which must equal the rate of their audio codec
    /// (RFC 4733 section 7.1).
    case rate(UInt32)
  }

  /// The encoding name in lower case.
  package var name: String
  package var variant: Variant

  /// Parses the value of an fmtp line; nil if a known codec does not support the parameters.
  /// - Parameter clockRate: the rate in the rtpmap line, in Hz; nil for the codec's default.
  package init?(name: String, parameters: String, clockRate: UInt32? = nil) {
    self.name = name.lowercased()
    guard let codec = Codec.named(self.name) else {
      variant = .none
      return
    }
    guard let variant = codec.rules.variant(parameters) else { return nil }
    self.variant =
      codec.name.carriesMedia ? variant : .rate(clockRate ?? codec.clockRate)
  }

  /// Whether a peer with this format accepts fragmented units.
  package var acceptsFragments: Bool {
    if case .h264(let mode, _) = variant { return mode > 0 }
    return true
  }

  /// Returns the value of one parameter in an fmtp value `name=value;name=value`; nil if it is
  /// absent or empty.
  package static func value(of name: String, in parameters: String) -> String? {
    let (bytes, wanted) = (Array(parameters.utf8), Array(name.utf8))
    var start = 0
    while start < bytes.count {
      var (end, equals) = (start, bytes.count)
      while end < bytes.count, bytes[end] != semicolon {
        if bytes[end] == equalsSign, equals > end { equals = end }
        end += 1
      }
      if equals + 1 < end, isName(bytes[trimmed(bytes, start..<equals)], wanted) {
        return String(decoding: bytes[trimmed(bytes, equals + 1..<end)], as: UTF8.self)
      }
      start = end + 1
    }
    return nil
  }

  private static let semicolon = UInt8(ascii: ";")
  private static let equalsSign = UInt8(ascii: "=")
  private static let blank = UInt8(ascii: " ")

  /// Returns whether the text equals a lower-case name, ignoring case.
  private static func isName(_ text: ArraySlice<UInt8>, _ name: [UInt8]) -> Bool {
    guard text.count == name.count else { return false }
    for (index, wanted) in name.enumerated() {
      let byte = text[text.startIndex + index]
      let isCapital = byte >= 0x41 && byte <= 0x5a
      if (isCapital ? byte | 0x20 : byte) != wanted { return false }
    }
    return true
  }

  /// Returns the range without leading and trailing blanks.
  private static func trimmed(_ bytes: [UInt8], _ range: Range<Int>) -> Range<Int> {
    var (start, end) = (range.lowerBound, range.upperBound)
    while start < end, bytes[start] == blank { start += 1 }
    while end > start, bytes[end - 1] == blank { end -= 1 }
    return start..<end
  }
}

/// A codec's encoding name in SDP.
package struct CodecName: RawRepresentable, Hashable, Sendable {
  /// The encoding name in lower case.
  package var rawValue: String
  package init(rawValue: String) { self.rawValue = rawValue.lowercased() }

  package static let opus = CodecName(rawValue: "opus")
  /// G.711 with the mu law (RFC 3551 section 4.5.14).
  package static let pcmu = CodecName(rawValue: "pcmu")
  /// G.711 with the A law.
  package static let pcma = CodecName(rawValue: "pcma")
  /// DTMF tones and other telephone events (RFC 4733).
  package static let telephoneEvent = CodecName(rawValue: "telephone-event")
  package static let vp8 = CodecName(rawValue: "vp8")
  package static let vp9 = CodecName(rawValue: "vp9")
  package static let h264 = CodecName(rawValue: "h264")
  package static let av1 = CodecName(rawValue: "av1")

  /// The codec's entry in the table, if it has one.
  package var codec: Codec? { Codec.named(rawValue) }

  /// Whether the codec is G.711, which needs no library.
  package var isG711: Bool { self == .pcmu || self == .pcma }

  /// Whether the codec's packets contain audio or video frames rather than telephone events.
  package var carriesMedia: Bool { self != .telephoneEvent }

  /// The payload format; nil if the codec is not in the table.
  package var payloadFormat: PayloadFormat? { Codec.payloadFormat(of: rawValue) }

  /// Whether frames of the codec pass through undecoded, see `Codec.isPassedThrough`; false for
  /// unknown codecs.
  package var isPassedThrough: Bool {
    // This is read for every frame, so the codec is looked up by index instead of being copied.
    Codec.place(of: rawValue).map { Codec.all[$0].isPassedThrough } ?? false
  }
}
