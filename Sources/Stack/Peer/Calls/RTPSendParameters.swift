public import JSEP
public import Media
import SCTP
package import Wire

/// The parameters of an encoding (W3C RTCRtpEncodingParameters).
public struct RTPEncoding: Hashable, Sendable, Codable {
  /// Whether the encoding is sent; changing it needs no negotiation.
  public var active = true
  /// The maximum bit rate in bit/s; nil leaves it to the connection.
  public var maxBitrate: UInt64?
  /// The maximum frame rate; nil leaves it to the source.
  public var maxFramerate: Double?
  /// The factor, at least 1, by which width and height are scaled down; nil for audio.
  public var scaleResolutionDownBy: Double?
  /// The simulcast layer's name; nil for the only encoding.
  ///
  /// It consists of 1 to 16 letters and digits (RFC 8851) and is fixed at creation.
  public var rid: String?
  /// The temporal layers of VP8: `L1T1`, `L1T2` or `L1T3` (W3C scalabilityMode); nil for a single
  /// layer.
  ///
  /// Other codecs, and an application's encoders, have a single layer.
  public var scalabilityMode: String?
  /// The DSCP priority of the encoding's packets (W3C networkPriority); nil means low, the default.
  ///
  /// It has an effect only if the configuration sets `enablesDSCP`.
  public var networkPriority: NetworkPriority?

  /// Creates an encoding; by default it is active and has no limits.
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
  /// Creates named layers, the largest first, each half the size of the previous one.
  package static func halved(_ rids: [String]) -> [RTPEncoding] {
    rids.prefix(SimulcastLayer.countMaximum).enumerated().map { place, rid in
      RTPEncoding(rid: rid, scaleResolutionDownBy: Double(1 << place))
    }
  }
}

/// A sender's parameters (W3C RTCRtpSendParameters).
public struct RTPSendParameters: Hashable, Sendable, Codable {
  /// A codec with its payload type (W3C RTCRtpCodecParameters).
  public struct Codec: Hashable, Sendable, Codable {
    /// The payload type, from 0 to 127.
    public var payloadType: UInt8
    /// The codec of packets with this payload type.
    public var codec: RTPCodec

    /// Creates an entry of the `codecs` list.
    public init(payloadType: UInt8, codec: RTPCodec) {
      self.payloadType = payloadType
      self.codec = codec
    }
  }

  /// A header extension with its identifier (W3C RTCRtpHeaderExtensionParameters).
  public struct HeaderExtension: Hashable, Sendable, Codable {
    /// The URI that names the extension in descriptions (RFC 8285).
    public var uri: String
    /// The identifier, from 1 to 14.
    public var id: UInt8

    /// Creates an entry of the `headerExtensions` list.
    public init(uri: String, id: UInt8) {
      self.uri = uri
      self.id = id
    }
  }

  /// The identifier of the getParameters call that returned these parameters; they can be set once.
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
  /// What to reduce first if the bit rate is too low for the video; nil lets the content hint
  /// decide.
  ///
  /// If there is no hint either, nothing is reduced.
  public var degradationPreference: DegradationPreference?

  /// Creates parameters; only parameters that were read from a connection can be set.
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

// MARK: - NetworkPriority

/// The DSCP priority of packets (W3C RTCPriorityType, RFC 8835 section 4).
public enum NetworkPriority: String, Hashable, Sendable, Codable, CaseIterable {
  /// Below best effort.
  case veryLow = "very-low"
  /// Best effort; the default.
  case low
  /// Above best effort.
  case medium
  /// Above `medium`.
  case high

  var rank: Int { NetworkPriority.allCases.firstIndex(of: self) ?? 1 }

  /// Returns the code point for audio or interactive video (RFC 8837 table 1).
  package func codePoint(of kind: MediaKind) -> UInt8 {
    switch (self, kind) {
    case (.veryLow, _): CodePoint.lowerEffort
    case (.low, _): CodePoint.default
    case (.medium, .audio), (.high, .audio): CodePoint.expedited
    case (.medium, .video): CodePoint.assured42
    case (.high, .video): CodePoint.assured41
    }
  }

  /// The code point for data channels (RFC 8837 table 1).
  package var dataCodePoint: UInt8 {
    switch self {
    case .veryLow: CodePoint.lowerEffort
    case .low: CodePoint.default
    case .medium: CodePoint.assured11
    case .high: CodePoint.assured21
    }
  }
}

/// DSCP values, without the two ECN bits.
private enum CodePoint {
  static let `default`: UInt8 = 0
  /// CS1, which the drafts of RFC 8837 used for very low priority; the RFC itself uses LE, 1.
  static let lowerEffort: UInt8 = 8
  /// Expedited forwarding, EF (RFC 3246).
  static let expedited: UInt8 = 46
  /// DSCP of assured forwarding: AF11 is class 1 with drop precedence 1 (RFC 2597 section 6).
  static let assured11: UInt8 = 10
  static let assured21: UInt8 = 18
  static let assured41: UInt8 = 34
  static let assured42: UInt8 = 36
}

/// The code points for sent packets, if the configuration enables marking.
struct PacketMarks {
  /// Code points by SSRC; used only for look-ups, so the order does not matter.
  private var bySource: [UInt32: UInt8] = [:]
  /// The code point for RTCP: the same as for the media with the highest priority.
  private(set) var control: UInt8 = 0

  /// Returns an RTP packet's code point, or 0 if its SSRC is unknown.
  func mark(ofRTP packet: [UInt8]) -> UInt8 {
    guard !bySource.isEmpty, packet.count >= 12 else { return 0 }
    let source = packet[8..<12].reduce(0 as UInt32) { $0 << 8 | UInt32($1) }
    return bySource[source] ?? 0
  }

  /// Replaces all marks with the given streams' priorities.
  mutating func set(
    _ sources: [(ssrc: UInt32, rtxSSRC: UInt32, kind: MediaKind, priority: NetworkPriority)]
  ) {
    (bySource, control) = ([:], 0)
    var most = -1
    for source in sources {
      let mark = source.priority.codePoint(of: source.kind)
      bySource[source.ssrc] = mark
      bySource[source.rtxSSRC] = mark
      guard source.priority.rank > most else { continue }
      (most, control) = (source.priority.rank, mark)
    }
  }
}

extension PeerStack {
  /// Derives the marks from the negotiated sections' encodings, if the configuration enables DSCP.
  func updateMarks() {
    guard genesis.configuration.enablesDSCP == true else { return }
    var sources: [(ssrc: UInt32, rtxSSRC: UInt32, kind: MediaKind, priority: NetworkPriority)] = []
    for section in negotiation.sections where section.direction.sends {
      let id = section.transceiverID
      guard let transceiver = negotiation.transceivers.first(where: { $0.id == id }) else {
        continue
      }
      for source in transceiver.sources(in: section) {
        let encoding = tracks.senders.encoding(of: id, section.kind, rid: source.rid)
        sources.append(
          (source.ssrc, source.rtxSSRC, section.kind, encoding.networkPriority ?? .low))
      }
    }
    marks.set(sources)
  }

  /// The code point for SCTP packets; an association has only one, determined by its most important
  /// channel (RFC 8837 section 5).
  var dataMark: UInt8 {
    guard genesis.configuration.enablesDSCP == true else { return 0 }
    // Many channels most likely include every priority, so only the first 256 are examined.
    let priorities = data.channels.prefix(256).map { NetworkPriority($0.options.priority) }
    return (priorities.max { $0.rank < $1.rank } ?? .low).dataCodePoint
  }
}

extension NetworkPriority {
  fileprivate init(_ priority: DataChannelPriority) {
    self =
      switch priority {
      case .veryLow: .veryLow
      case .low: .low
      case .medium: .medium
      case .high: .high
      }
  }
}
