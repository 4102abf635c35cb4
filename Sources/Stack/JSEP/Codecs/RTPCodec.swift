import RTP
public import Wire

/// A codec as applications name it (W3C RTCRtpCodec).
public struct RTPCodec: Hashable, Sendable, Codable {
  /// `audio/opus`, `video/VP8`, `video/rtx`, ...
  public var mimeType: String
  /// In Hz.
  public var clockRate: UInt32
  /// The number of audio channels, when there are several.
  public var channels: UInt8?
  /// The parameters as an fmtp line gives them, when there are any.
  public var sdpFmtpLine: String?

  /// Creates a codec.
  public init(
    mimeType: String, clockRate: UInt32, channels: UInt8? = nil, sdpFmtpLine: String? = nil
  ) {
    self.mimeType = mimeType
    self.clockRate = clockRate
    self.channels = channels
    self.sdpFmtpLine = sdpFmtpLine
  }

  /// All codecs of a kind that can be sent and received (W3C RTCRtpSender.getCapabilities), with
  /// the retransmission format at the end if there is one.
  /// - Parameter names: the codecs that the configuration of the connection names; nil for those
  ///   that connections have whose application names none.
  public static func capabilities(_ kind: MediaKind, offering names: [String]? = nil)
    -> [RTPCodec]
  {
    capabilities(kind, of: names == nil ? .offered : Capabilities(codecs: names))
  }

  /// All codecs of a kind that a peer with these capabilities can send and receive.
  static func capabilities(_ kind: MediaKind, of capabilities: Capabilities) -> [RTPCodec] {
    let known = capabilities.codecs(kind)
    var codecs = known.map { RTPCodec($0) }
    if let repaired = known.first(where: { $0.rtxPayloadType != nil }) {
      codecs.append(
        RTPCodec(mimeType: "\(kind.rawValue)/rtx", clockRate: repaired.clockRate))
    }
    return codecs
  }

  /// A codec that this side supports.
  package init(_ capability: CodecCapability) {
    self.init(
      mimeType: "\(capability.kind.rawValue)/\(capability.name)", clockRate: capability.clockRate,
      channels: capability.channels,
      sdpFmtpLine: capability.parameters.isEmpty ? nil : capability.parameters)
  }

  /// A codec that was agreed on, as this side receives it.
  package init(_ codec: NegotiatedCodec, _ kind: MediaKind) {
    self.init(
      mimeType: "\(kind.rawValue)/\(codec.displayName)", clockRate: codec.clockRate,
      channels: codec.channels,
      sdpFmtpLine: codec.ownParameters.isEmpty ? nil : codec.ownParameters)
  }

  /// What tells the codec from others; nil when the parameters name no format.
  var format: CodecFormat? {
    mimeType.split(separator: "/").last.flatMap {
      CodecFormat(name: String($0), parameters: sdpFmtpLine ?? "", clockRate: clockRate)
    }
  }

  /// Whether it carries media: it is no retransmission format, and no events beside audio.
  var carriesMedia: Bool {
    !isRetransmission && format.map { CodecName(rawValue: $0.name).carriesMedia } ?? true
  }

  /// Whether two name the same codec; MIME types are compared without case.
  func isSame(as other: RTPCodec) -> Bool {
    mimeType.lowercased() == other.mimeType.lowercased() && clockRate == other.clockRate
      && channels == other.channels && sdpFmtpLine == other.sdpFmtpLine
  }

  /// Whether it is the retransmission format (RFC 4588).
  var isRetransmission: Bool { mimeType.lowercased().hasSuffix("/rtx") }
}
