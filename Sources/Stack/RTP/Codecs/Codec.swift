package import Wire

/// All that tells one codec from the others outside of its library.
///
/// It stands with the payload formats, because these register the names and the parameters that
/// descriptions have (RFC 4855). What is only carried through needs nothing but its entry in `all`.
package struct Codec: Sendable {
  /// The encoding name in lower case.
  package var name: CodecName
  /// The encoding name as rtpmap lines and MIME types spell it.
  package var spelling: String
  /// The name as people write it.
  package var title: String
  package var kind: MediaKind
  /// In Hz.
  package var clockRate: UInt32
  package var channels: UInt8?
  /// The formats that local offers list, the preferred one first.
  package var formats: [OfferedFormat]
  package var rules = FormatRules.fixed
  /// Whether peers offer it whose genesis names no codecs.
  package var isUsual = true
  /// Whether a new connection offers it whose application names no codecs.
  package var isOffered = true
  /// Whether frames are given on as they are, unless a build has a library that encodes or decodes
  /// them and genesis names the codec; any variant of the format is received.
  package var isPassedThrough = false
  /// The library that decodes it, and encodes it, as statistics name it.
  package var decoderTitle = "libvpx"
  /// The mean quantiser at which libwebrtc would make the video frames smaller; nil for none.
  package var poorQuantiser: Int?
  package var payload: PayloadFormat
  /// What the bytes of a frame tell of it; nil for codecs whose frames do not come encoded.
  package var look: (@Sendable (_ frame: RawSpan) -> FrameLook)?
  /// Whether the records of received frames have the size that the bytes tell.
  package var recordsSize = false
  /// The file that frames are exported into which are not decoded here.
  package var container: FrameContainer?

  /// The codec of an encoding name in lower case.
  package static func named(_ name: String) -> Codec? {
    // Only the one that is found is copied.
    place(of: name).map { all[$0] }
  }

  /// The codecs that a new connection offers whose application names none, by encoding name.
  package static let offeredNames = all.filter(\.isOffered).map(\.spelling)

  /// The place in `all` of the codec with an encoding name in lower case.
  static func place(of name: String) -> Int? {
    all.indices.first { all[$0].name.rawValue == name }
  }

  /// How frames of a codec are put into packets; every packet asks for it, and for nothing else.
  static func payloadFormat(of name: String) -> PayloadFormat? {
    place(of: name).map { all[$0].payload }
  }

  /// The local fmtp value for a format whose peer gave `parameters`.
  package func ownParameters(answering parameters: String) -> String {
    rules.answer(parameters) ?? formats.first?.parameters ?? ""
  }

  /// The codecs of video frames that have a library, as a sentence names them: `VP8 or VP9`.
  package static var encodedTitles: String {
    all.filter { $0.kind == .video && !$0.isPassedThrough }.map(\.title).joined(separator: " or ")
  }
}

/// One of the formats of a codec that local offers list.
package struct OfferedFormat: Hashable, Sendable {
  /// The local fmtp value; empty for none.
  package var parameters: String
  /// The payload type that is preferred; retransmissions of video frames have the one after it.
  package var payloadType: UInt8
  /// In Hz; nil for that of the codec.
  package var clockRate: UInt32?

  package init(_ parameters: String, _ payloadType: UInt8, clockRate: UInt32? = nil) {
    self.parameters = parameters
    self.payloadType = payloadType
    self.clockRate = clockRate
  }
}

/// How the fmtp parameters of a codec are read and answered (RFC 3264 section 6.1).
package struct FormatRules: Sendable {
  /// What tells formats of the codec apart; nil when the parameters name none.
  package var variant: @Sendable (_ parameters: String) -> CodecFormat.Variant?
  /// The local parameters where the peer gave these; nil for those of local offers.
  package var answer: @Sendable (_ parameters: String) -> String?

  package init(
    variant: @escaping @Sendable (String) -> CodecFormat.Variant?,
    answer: @escaping @Sendable (String) -> String? = { _ in nil }
  ) {
    self.variant = variant
    self.answer = answer
  }

  /// There is one format, whatever the parameters are.
  package static let fixed = FormatRules { _ in CodecFormat.Variant.none }

  /// A parameter tells profiles apart; without it, it is the usual one.
  package static func profile(_ parameter: String, usual: String) -> FormatRules {
    FormatRules { .profile(CodecFormat.value(of: parameter, in: $0) ?? usual) }
  }
}

/// What the bytes of a frame tell of it.
package struct FrameLook: Hashable, Sendable {
  /// Whether there is a video frame in it, or a part of one.
  package var hasFrame = false
  /// Whether a decoder can begin with it.
  package var isKey = false
  /// Whether other video frames may refer to it.
  package var isReference = false
  /// The size in pixels, where the frame tells it.
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

/// A file of frames as received.
package enum FrameContainer: Hashable, Sendable {
  /// The frames one after the other; the name of the file ends so.
  case byteStream(ending: String)
  /// The frames with their times (IVF), and the four letters by which it names the codec.
  case ivf(fourCC: String)

  /// How the name of the file ends.
  package var ending: String {
    switch self {
    case .byteStream(let ending): ending
    case .ivf: "ivf"
    }
  }
}
