import RTP
public import Wire

/// A codec as in the W3C API (RTCRtpCodec).
public struct RTPCodec: Hashable, Sendable, Codable {
  /// `audio/opus`, `video/VP8`, `video/rtx`, ...
  public var mimeType: String
  /// In Hz.
  public var clockRate: UInt32
  /// The number of audio channels, if more than one.
  public var channels: UInt8?
  /// The fmtp parameters, if any.
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

  /// All codecs of a kind that can be sent and received, RTX last (W3C
  /// RTCRtpSender.getCapabilities).
  /// - Parameter names: the codecs in the connection's configuration; nil for the default.
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

  package init(_ capability: CodecCapability) {
    self.init(
      mimeType: "\(capability.kind.rawValue)/\(capability.name)", clockRate: capability.clockRate,
      channels: capability.channels,
      sdpFmtpLine: capability.parameters.isEmpty ? nil : capability.parameters)
  }

  /// Creates the codec from a negotiated one, as it is received here.
  package init(_ codec: NegotiatedCodec, _ kind: MediaKind) {
    self.init(
      mimeType: "\(kind.rawValue)/\(codec.displayName)", clockRate: codec.clockRate,
      channels: codec.channels,
      sdpFmtpLine: codec.localParameters.isEmpty ? nil : codec.localParameters)
  }

  /// What distinguishes the codec's formats; nil if the parameters are invalid.
  var format: CodecFormat? {
    mimeType.split(separator: "/").last.flatMap {
      CodecFormat(name: String($0), parameters: sdpFmtpLine ?? "", clockRate: clockRate)
    }
  }

  /// Whether it carries media, unlike RTX and telephone events.
  var carriesMedia: Bool {
    !isRetransmission && format.map { CodecName(rawValue: $0.name).carriesMedia } ?? true
  }

  /// Whether two codecs are the same; MIME types are compared ignoring case.
  func isSame(as other: RTPCodec) -> Bool {
    mimeType.lowercased() == other.mimeType.lowercased() && clockRate == other.clockRate
      && channels == other.channels && sdpFmtpLine == other.sdpFmtpLine
  }

  /// Whether it is RTX (RFC 4588).
  var isRetransmission: Bool { mimeType.lowercased().hasSuffix("/rtx") }
}
