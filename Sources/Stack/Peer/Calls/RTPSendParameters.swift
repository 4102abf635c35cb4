public import JSEP
public import Media

/// How one encoding is sent (W3C RTCRtpEncodingParameters).
public struct RTPEncoding: Hashable, Sendable, Codable {
  /// Whether anything is sent.
  public var active = true
  /// The most that is spent, in bits per second; nil leaves it to the connection.
  public var maxBitrate: UInt64?
  /// The most video frames per second; nil leaves it to the source.
  public var maxFramerate: Double?
  /// By how much both sides of a video frame are made smaller: 1 or more; nil for audio.
  public var scaleResolutionDownBy: Double?
  /// The name of the layer where several are sent; nil for the only encoding.
  ///
  /// 1 to 16 letters and digits (RFC 8851), which cannot be changed.
  public var rid: String?
  /// The temporal layers of VP8: `L1T1`, `L1T2` or `L1T3` (W3C scalabilityMode); nil for one.
  ///
  /// Other codecs, and encoders of an application, have one.
  public var scalabilityMode: String?
  /// How important the packets are to the network (W3C networkPriority), where the configuration
  /// `enablesDSCP`; nil: low, as everything else.
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
  /// Layers by their names, the largest first, each half as large as the one before.
  package static func halved(_ rids: [String]) -> [RTPEncoding] {
    rids.prefix(SimulcastLayer.countMaximum).enumerated().map { place, rid in
      RTPEncoding(rid: rid, scaleResolutionDownBy: Double(1 << place))
    }
  }
}

/// How a transceiver sends (W3C RTCRtpSendParameters).
public struct RTPSendParameters: Hashable, Sendable, Codable {
  /// A codec with its payload type (W3C RTCRtpCodecParameters).
  public struct Codec: Hashable, Sendable, Codable {
    /// 0 to 127.
    public var payloadType: UInt8
    /// What the payload type stands for.
    public var codec: RTPCodec

    /// Creates a codec with its payload type.
    public init(payloadType: UInt8, codec: RTPCodec) {
      self.payloadType = payloadType
      self.codec = codec
    }
  }

  /// A header extension with its identifier (W3C RTCRtpHeaderExtensionParameters).
  public struct HeaderExtension: Hashable, Sendable, Codable {
    /// What the extension is.
    public var uri: String
    /// 1 to 14.
    public var id: UInt8

    /// Creates an extension with its identifier.
    public init(uri: String, id: UInt8) {
      self.uri = uri
      self.id = id
    }
  }

  /// Ties the parameters that are set to those that were read before; they may be set once.
  public var transactionId: String
  /// How the encodings are sent: one, or one for each layer of a simulcast.
  public var encodings: [RTPEncoding]
  /// The agreed codecs, the one that is sent first; cannot be set.
  public var codecs: [Codec]
  /// The agreed header extensions; cannot be set.
  public var headerExtensions: [HeaderExtension]
  /// The RTCP name of all that is sent; cannot be set.
  public var cname: String
  /// Whether RTCP of reduced size was agreed (RFC 5506); cannot be set.
  public var reducedSizeRTCP: Bool
  /// What is given up first where video frames take too much; nil leaves it to the content hint,
  /// and without one nothing is given up.
  public var degradationPreference: DegradationPreference?

  /// Creates parameters; only those that a connection gave out can be set.
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
