package import RTP
import SDP
package import Wire

/// The codecs and header extensions that a peer offers and accepts.
package struct Capabilities: Hashable, Sendable {
  /// All codecs, in order of preference within each kind.
  package private(set) var codecs: [CodecCapability]
  /// All extensions, in the order of offers.
  package private(set) var extensions: [ExtensionCapability]
  /// Whether a remote offer may turn a single-stream sender into one with several layers (W3C
  /// setRemoteDescription, proposedSendEncodings).
  package private(set) var acceptsOfferedLayers: Bool
  /// Whether codecs that the local offer lists are still received if the answer omits them.
  package private(set) var receivesAllOffered: Bool

  /// The default for peers whose genesis names no codecs.
  package static let usual = Capabilities()

  /// The default for new connections whose application names no codecs.
  static let offered = Capabilities(codecs: Codec.offeredNames)

  /// Looks up codecs and extensions by name; unknown names are ignored.
  ///
  /// - Parameters:
  ///   - codecs: encoding names in order of preference, in any case; nil for the usual codecs.
  ///   - extensions: URIs in the order of offers; nil for all.
  ///   - encoders: encoding names of codecs that are encoded here although they are usually passed
  ///     through.
  ///   - acceptsOfferedLayers: whether offers may determine the simulcast layers.
  ///   - receivesAllOffered: whether codecs that the local offer lists are still received if the
  ///     answer omits them.
  package init(
    codecs: [String]? = nil, extensions: [String]? = nil, encoders: [String] = [],
    acceptsOfferedLayers: Bool = false, receivesAllOffered: Bool = false
  ) {
    let encoders = encoders.map { CodecName(rawValue: $0) }
    self.acceptsOfferedLayers = acceptsOfferedLayers
    self.receivesAllOffered = receivesAllOffered
    self.codecs = Capabilities.codecs(named: codecs).flatMap { codec in
      codec.formats.map { CodecCapability(codec, $0, encoders: encoders) }
    }
    guard let extensions else {
      self.extensions = ExtensionCapability.all
      return
    }
    var found: [ExtensionCapability] = []
    for uri in extensions where !found.contains(where: { $0.uri == uri }) {
      found += ExtensionCapability.all.filter { $0.uri == uri }
    }
    self.extensions = found
  }

  private static func codecs(named wanted: [String]?) -> [Codec] {
    guard let wanted else { return Codec.all.filter(\.isUsual) }
    var found: [Codec] = []
    for text in wanted {
      let name = CodecName(rawValue: text)
      guard let codec = name.codec, !found.contains(where: { $0.name == name }) else { continue }
      found.append(codec)
    }
    return found
  }

  func codecs(_ kind: MediaKind) -> [CodecCapability] { codecs.filter { $0.kind == kind } }

  /// Returns the capability that matches a format in a remote section; nil if there is none.
  func codec(matching map: RTPMap, parameters: String, kind: MediaKind) -> CodecCapability? {
    guard
      let format = CodecFormat(
        name: map.name, parameters: parameters, clockRate: map.clockRate)
    else { return nil }
    let named = codecs.filter {
      // Without a channel count, audio has one channel (RFC 8866 section 6.6).
      $0.kind == kind && $0.clockRate == map.clockRate
        && ($0.channels ?? 1) == (map.channels ?? 1) && $0.name.lowercased() == format.name
    }
    return named.first { $0.format == format } ?? named.first { $0.isPassedThrough }
  }

  /// Returns whether an extension is supported in sections of a kind.
  func hasExtension(_ uri: String, kind: MediaKind) -> Bool {
    extensions.contains { $0.uri == uri && $0.kinds.contains(kind) }
  }
}

// MARK: - CodecCapability

/// A codec format that can be sent and received, with the payload types that local offers prefer.
package struct CodecCapability: Hashable, Sendable {
  package var kind: MediaKind
  /// The encoding name as in rtpmap lines.
  package let name: String
  /// The clock rate in Hz.
  package var clockRate: UInt32
  package var channels: UInt8?
  /// The local fmtp value; empty if there is none.
  package let parameters: String
  /// The values that distinguish the codec's formats; nil only if the parameters are invalid.
  package let format: CodecFormat?
  /// The supported rtcp-fb values, in the order of local offers.
  package var feedback: [String]
  package var payloadType: UInt8
  /// The payload type of RTX (RFC 4588), for codecs that have it.
  package var rtxPayloadType: UInt8?
  /// Whether frames usually pass through undecoded, in which case every variant of the format is
  /// received; see `Codec.isPassedThrough`.
  package var isPassedThrough: Bool
  /// Whether the codec can be encoded here, by a library or by the application.
  package private(set) var isEncoded: Bool

  init(_ codec: Codec, _ format: OfferedFormat, encoders: [CodecName] = []) {
    kind = codec.kind
    name = codec.spelling
    clockRate = format.clockRate ?? codec.clockRate
    channels = codec.channels
    parameters = format.parameters
    self.format = CodecFormat(
      name: codec.spelling, parameters: format.parameters, clockRate: format.clockRate)
    payloadType = format.payloadType
    isPassedThrough = codec.isPassedThrough
    isEncoded = !codec.isPassedThrough || encoders.contains(codec.name)
    switch codec.kind {
    case .audio where !codec.name.carriesMedia: feedback = []
    case .audio: feedback = ["transport-cc", "rrtr"]
    case .video:
      feedback = ["goog-remb", "transport-cc", "ccm fir", "nack", "nack pli", "rrtr"]
      rtxPayloadType = format.payloadType + 1
    }
  }
}

/// A supported header extension, with the id that local offers prefer.
package struct ExtensionCapability: Hashable, Sendable {
  package var uri: String
  package var id: UInt8
  package var kinds: [MediaKind]
  /// Whether local offers list the extension; otherwise it is only accepted.
  package var isOffered: Bool

  /// Whether the extension identifies simulcast layers (RFC 8852); offered only with simulcast.
  var namesLayers: Bool {
    let extensions = [HeaderExtensionURI.streamID, .repairedStreamID]
    return extensions.contains { $0.rawValue == uri }
  }

  /// All extensions, in the order of local offers.
  package static let all = [
    ExtensionCapability(
      uri: "urn:ietf:params:rtp-hdrext:ssrc-audio-level", id: 1, kinds: [.audio],
      isOffered: true),
    ExtensionCapability(
      uri: "http://www.webrtc.org/experiments/rtp-hdrext/abs-send-time", id: 2,
      kinds: [.audio, .video], isOffered: true),
    ExtensionCapability(
      uri: "http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01", id: 3,
      kinds: [.audio, .video], isOffered: true),
    ExtensionCapability(
      uri: "urn:ietf:params:rtp-hdrext:sdes:mid", id: 4, kinds: [.audio, .video],
      isOffered: true),
    ExtensionCapability(
      uri: "urn:ietf:params:rtp-hdrext:csrc-audio-level", id: 5, kinds: [.audio],
      isOffered: true),
    ExtensionCapability(
      uri: "urn:ietf:params:rtp-hdrext:sdes:rtp-stream-id", id: 10, kinds: [.video],
      isOffered: false),
    ExtensionCapability(
      uri: "urn:ietf:params:rtp-hdrext:sdes:repaired-rtp-stream-id", id: 11, kinds: [.video],
      isOffered: false),
  ]
}

// MARK: - NegotiatedCodec

/// A codec that both peers agreed on for an m-section.
package struct NegotiatedCodec: Hashable, Sendable {
  package var payloadType: UInt8
  /// The encoding name in lower case.
  package let name: String
  package var clockRate: UInt32
  package var channels: UInt8?
  /// The peer's fmtp value, stating what the peer accepts; empty if there is none.
  package var parameters: String {
    didSet { format = CodecFormat(name: name, parameters: parameters, clockRate: clockRate) }
  }
  /// The values that distinguish the codec from others in the section.
  package private(set) var format: CodecFormat?
  package var rtxPayloadType: UInt8?
  /// The feedback messages that both peers listed, among `nack`, `nack pli`, `ccm fir`,
  /// `goog-remb`, `transport-cc` and `rrtr`.
  package var feedback: [String]
  /// Whether the format can be encoded here in a way that the peer accepts.
  package private(set) var isEncoded: Bool

  package init(
    payloadType: UInt8, name: String, clockRate: UInt32, channels: UInt8?, parameters: String,
    rtxPayloadType: UInt8?, feedback: [String], isEncoded: Bool? = nil
  ) {
    self.payloadType = payloadType
    self.name = name
    self.clockRate = clockRate
    self.channels = channels
    self.parameters = parameters
    format = CodecFormat(name: name, parameters: parameters, clockRate: clockRate)
    self.rtxPayloadType = rtxPayloadType
    self.feedback = feedback
    self.isEncoded = isEncoded ?? !(Codec.named(name)?.isPassedThrough ?? false)
    if case .h264(_, let profile) = format?.variant,
      !H264Profile.constrainedBaseline.isDecoded(by: profile)
    {
      self.isEncoded = false
    }
  }

  /// The encoding name as spelled in MIME types and rtpmap lines.
  package var displayName: String { known?.spelling ?? name }

  /// The local fmtp value, stating what is accepted locally; empty if there is none.
  package var localParameters: String {
    known?.localParameters(answering: parameters) ?? ""
  }

  /// Whether frames usually pass through undecoded, see `Codec.isPassedThrough`; false for unknown
  /// codecs.
  package var isPassedThrough: Bool { known?.isPassedThrough ?? false }

  /// Whether the codec's packets contain audio or video frames rather than telephone events.
  package var carriesMedia: Bool { CodecName(rawValue: name).carriesMedia }

  private var known: Codec? { Codec.named(name) }
}
