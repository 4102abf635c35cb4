public import JSEP
public import Media

/// The parameters of one encoding (W3C RTCRtpEncodingParameters).
public struct RTPEncoding: Hashable, Sendable, Codable {
  /// Whether it is sent.
  public var active = true
  /// The maximum bit rate in bits per second; nil leaves it to the connection.
  public var maxBitrate: UInt64?
  /// The maximum frame rate; nil leaves it to the source.
  public var maxFramerate: Double?
  /// The factor, at least 1, by which both sides are scaled down; nil for audio.
  public var scaleResolutionDownBy: Double?
  /// The name of the simulcast layer; nil for the only encoding.
  ///
  /// 1 to 16 letters and digits (RFC 8851), fixed at creation.
  public var rid: String?
  /// The temporal layers of VP8: `L1T1`, `L1T2` or `L1T3` (W3C scalabilityMode); nil for one.
  ///
  /// Other codecs, and an application's encoders, have only one.
  public var scalabilityMode: String?
  /// The packets' priority in the network (W3C networkPriority), if the configuration
  /// `enablesDSCP`; nil means low, the default.
  public var networkPriority: NetworkPriority?

  /// Creates an encoding with these limits.
  public init(
    rid: String? = nil, active: Bool = true, maxBitrate: UInt64? = nil,
    maxFramerate: Double? = nil, scaleResolutionDownBy: Double? = nil,
    scalabilityMode: String? = nil, networkPriority: NetworkPriority? = nil
  ) {
    self.rid = rid
    self.scalabilityMode = scalabilityMode
    self.networkPriority = networkPriority
    self.active = active
    self.maxBitrate = maxBitrate
    self.maxFramerate = maxFramerate
    self.scaleResolutionDownBy = scaleResolutionDownBy
  }
}

extension RTPEncoding {
  /// Creates layers by name, the largest first, each half the size of the one before.
  package static func halved(_ rids: [String]) -> [RTPEncoding] {
    rids.prefix(SimulcastLayer.countMaximum).enumerated().map { place, rid in
      RTPEncoding(rid: rid, scaleResolutionDownBy: Double(1 << place))
    }
  }
}

/// The parameters of a sender (W3C RTCRtpSendParameters).
public struct RTPSendParameters: Hashable, Sendable, Codable {
  /// A codec with its payload type (W3C RTCRtpCodecParameters).
  public struct Codec: Hashable, Sendable, Codable {
    /// 0 to 127.
    public var payloadType: UInt8
    /// The codec of the payload type.
    public var codec: RTPCodec

    /// Creates a codec with its payload type.
    public init(payloadType: UInt8, codec: RTPCodec) {
      self.payloadType = payloadType
      self.codec = codec
    }
  }

  /// A header extension with its identifier (W3C RTCRtpHeaderExtensionParameters).
  public struct HeaderExtension: Hashable, Sendable, Codable {
    /// The URI of the extension.
    public var uri: String
    /// 1 to 14.
    public var id: UInt8

    /// Creates an extension with its identifier.
    public init(uri: String, id: UInt8) {
      self.uri = uri
      self.id = id
    }
  }

  /// Links parameters being set to those read before; each can be set once.
  public var transactionId: String
  /// The encodings: one, or one per simulcast layer.
  public var encodings: [RTPEncoding]
  /// The negotiated codecs in order of preference; read-only.
  public var codecs: [Codec]
  /// The negotiated header extensions; read-only.
  public var headerExtensions: [HeaderExtension]
  /// The RTCP canonical name; read-only.
  public var cname: String
  /// Whether reduced-size RTCP was negotiated (RFC 5506); read-only.
  public var reducedSizeRTCP: Bool
  /// What to reduce first when video is limited; nil leaves it to the content hint, and without one
  /// nothing is reduced.
  public var degradationPreference: DegradationPreference?

  /// Creates parameters; only those read from a connection can be set.
  public init(
    transactionId: String, encodings: [RTPEncoding], codecs: [Codec],
    headerExtensions: [HeaderExtension], cname: String, reducedSizeRTCP: Bool
  ) {
    self.transactionId = transactionId
    self.encodings = encodings
    self.codecs = codecs
    self.headerExtensions = headerExtensions
    self.cname = cname
    self.reducedSizeRTCP = reducedSizeRTCP
  }
}
