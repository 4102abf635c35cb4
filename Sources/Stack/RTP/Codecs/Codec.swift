package import Wire

/// Everything that is specific to one codec, apart from its library.
///
/// It sits beside the payload formats because they register the names and parameters that
/// descriptions use (RFC 4855). A codec that is only passed through needs nothing but its entry in
/// `all`.
package struct Codec: Sendable {
  /// The encoding name in lower case.
  package var name: CodecName
  /// The encoding name as rtpmap lines and MIME types spell it.
  package var spelling: String
  /// The name as shown in messages, such as `VP8`.
  package var title: String
  package var kind: MediaKind
  /// In Hz.
  package var clockRate: UInt32
  package var channels: UInt8?
  /// The formats that local offers list, in order of preference.
  package var formats: [OfferedFormat]
  package var rules = FormatRules.fixed
  /// Whether peers offer it if their genesis names no codecs.
  package var isUsual = true
  /// Whether new connections offer it if the application names no codecs.
  package var isOffered = true
  /// Whether frames pass through undecoded, unless this build has a library for the codec and
  /// genesis names it.
  ///
  /// Any variant of the format is received.
  package var isPassedThrough = false
  /// The decoder and encoder as statistics name them.
  package var decoderTitle = "libvpx"
  /// The mean quantiser above which libwebrtc would reduce the resolution; nil if it has no such
  /// limit.
  package var poorQuantiser: Int?
  package var payload: PayloadFormat
  /// Parses the bytes of a frame; nil for codecs whose frames never arrive encoded.
  package var look: (@Sendable (_ frame: RawSpan) -> FrameLook)?
  /// Whether records of received frames state the size that the bytes carry.
  package var recordsSize = false
  /// The file format for exporting frames that are not decoded here.
  package var container: FrameContainer?

  package static func named(_ name: String) -> Codec? {
    // Copies only the codec that is found.
    place(of: name).map { all[$0] }
  }

  /// The encoding names of the codecs that a new connection offers if the application names none.
  package static let offeredNames = all.filter(\.isOffered).map(\.spelling)

  static func place(of name: String) -> Int? {
    all.indices.first { all[$0].name.rawValue == name }
  }

  /// The packetization of a codec.
  ///
  /// Every packet asks for it, so it is looked up without the codec.
  static func payloadFormat(of name: String) -> PayloadFormat? {
    place(of: name).map { all[$0].payload }
  }

  /// The local fmtp value that answers the peer's `parameters`.
  package func localParameters(answering parameters: String) -> String {
    rules.answer(parameters) ?? formats.first?.parameters ?? ""
  }

  /// The video codecs that have a library, listed for a sentence: `VP8 or VP9`.
  package static var encodedTitles: String {
    all.filter { $0.kind == .video && !$0.isPassedThrough }.map(\.title).joined(separator: " or ")
  }
}

/// One format of a codec in local offers.
package struct OfferedFormat: Hashable, Sendable {
  /// The local fmtp value; empty for none.
  package var parameters: String
  /// The preferred payload type; RTX for video uses the one after it.
  package var payloadType: UInt8
  /// In Hz; nil for that of the codec.
  package var clockRate: UInt32?

  package init(_ parameters: String, _ payloadType: UInt8, clockRate: UInt32? = nil) {
    self.parameters = parameters
    self.payloadType = payloadType
    self.clockRate = clockRate
  }
}

/// How fmtp parameters of a codec are compared and answered (RFC 3264 section 6.1).
package struct FormatRules: Sendable {
  /// What distinguishes formats of the codec; nil if the parameters are not valid for it.
  package var variant: @Sendable (_ parameters: String) -> CodecFormat.Variant?
  /// The local parameters in answer to the peer's; nil to use those of local offers.
  package var answer: @Sendable (_ parameters: String) -> String?

  package init(
    variant: @escaping @Sendable (String) -> CodecFormat.Variant?,
    answer: @escaping @Sendable (String) -> String? = { _ in nil }
  ) {
    self.variant = variant
    self.answer = answer
  }

  /// For codecs with a single format, whatever the parameters are.
  package static let fixed = FormatRules { _ in CodecFormat.Variant.none }

  /// For codecs with profiles; a missing parameter means the `usual` profile.
  package static func profile(_ parameter: String, usual: String) -> FormatRules {
    FormatRules { .profile(CodecFormat.value(of: parameter, in: $0) ?? usual) }
  }
}

/// What the bytes of an encoded frame say about it.
package struct FrameLook: Hashable, Sendable {
  /// Whether the bytes contain a video frame or part of one.
  package var hasFrame = false
  /// Whether a decoder can start here.
  package var isKey = false
  /// Whether other video frames may refer to it.
  package var isReference = false
  /// The size in pixels, if the frame carries it.
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
  /// Frames one after the other; the file's extension.
  case byteStream(ending: String)
  /// IVF, which keeps the frames' times; the codec's four-character code.
  case ivf(fourCC: String)

  /// The file extension.
  package var ending: String {
    switch self {
    case .byteStream(let ending): ending
    case .ivf: "ivf"
    }
  }
}
