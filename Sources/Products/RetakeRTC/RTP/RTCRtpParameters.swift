public import Foundation
import JSEP
import Live
import Media
import Peer
import Wire

/// What is reduced first when the encoder is overloaded, numbered as in the Objective-C header.
public enum RTCDegradationPreference: Int, Sendable {
  /// Nothing is reduced, unless the source is a screen.
  case disabled
  /// The resolution is reduced.
  case maintainFramerate
  /// The frame rate is reduced.
  case maintainResolution
  /// Both are reduced.
  case balanced

  init(_ preference: DegradationPreference) {
    self =
      switch preference {
      case .maintainFramerate: .maintainFramerate
      case .maintainResolution: .maintainResolution
      case .balanced: .balanced
      }
  }

  var native: DegradationPreference? {
    switch self {
    case .disabled: nil
    case .maintainFramerate: .maintainFramerate
    case .maintainResolution: .maintainResolution
    case .balanced: .balanced
    }
  }
}

/// The network priority of packets, numbered as in the Objective-C header.
public enum RTCPriority: Int, Sendable {
  /// Below best effort.
  case veryLow
  /// Best effort.
  case low
  /// Above best effort.
  case medium
  /// Above medium.
  case high

  init(_ priority: NetworkPriority?) {
    self =
      switch priority {
      case .veryLow: .veryLow
      case .low, nil: .low
      case .medium: .medium
      case .high: .high
      }
  }

  /// Converts to the stack's type; nil for the default.
  var native: NetworkPriority? {
    switch self {
    case .veryLow: .veryLow
    case .low: nil
    case .medium: .medium
    case .high: .high
    }
  }
}

/// The parameters of one encoding, which may be one of several simulcast layers.
public final class RTCRtpEncodingParameters {
  /// Whether the encoding is sent.
  public var isActive = true
  /// The maximum bitrate in bits per second; nil for no limit.
  public var maxBitrateBps: NSNumber?
  /// The maximum frame rate; nil for no limit.
  public var maxFramerate: NSNumber?
  /// The factor by which a video frame's width and height are divided; nil for audio.
  public var scaleResolutionDownBy: NSNumber?
  /// The simulcast layer's name; nil for a single encoding.
  public var rid: String?
  /// The number of VP8 temporal layers, 1 to 3; nil for one.
  public var numTemporalLayers: NSNumber?
  /// The packets' network priority, which needs `enableDscp` in the configuration.
  public var networkPriority = RTCPriority.low

  /// Creates an encoding without limits.
  public init() {}

  convenience init(_ encoding: RTPEncoding) {
    self.init()
    isActive = encoding.active
    maxBitrateBps = encoding.maxBitrate.map { NSNumber(value: $0) }
    maxFramerate = encoding.maxFramerate.map { NSNumber(value: $0) }
    scaleResolutionDownBy = encoding.scaleResolutionDownBy.map { NSNumber(value: $0) }
    rid = encoding.rid
    networkPriority = RTCPriority(encoding.networkPriority)
    numTemporalLayers = encoding.scalabilityMode.flatMap { mode in
      (1...3).first { mode == "L1T\($0)" }.map { NSNumber(value: $0) }
    }
  }

  var native: RTPEncoding {
    RTPEncoding(
      rid: rid, active: isActive, maxBitrate: maxBitrateBps?.uint64Value,
      maxFramerate: maxFramerate?.doubleValue,
      scaleResolutionDownBy: scaleResolutionDownBy?.doubleValue,
      scalabilityMode: numTemporalLayers.map { "L1T\($0.intValue)" },
      networkPriority: networkPriority.native)
  }
}

/// A negotiated codec.
public final class RTCRtpCodecParameters {
  /// The payload type, 0 to 127.
  public let payloadType: Int32
  /// The encoding name: `opus`, `VP8`, ...
  public let name: String
  /// The kind of media, `audio` or `video`.
  public let kind: String
  /// The RTP clock rate in Hz.
  public let clockRate: NSNumber?
  /// The number of audio channels, if there are several.
  public let numChannels: NSNumber?

  init(_ codec: RTPSendParameters.Codec) {
    let parts = codec.codec.mimeType.split(separator: "/").map(String.init)
    payloadType = Int32(codec.payloadType)
    kind = parts.first ?? ""
    name = parts.dropFirst().joined(separator: "/")
    clockRate = NSNumber(value: codec.codec.clockRate)
    numChannels = codec.codec.channels.map { NSNumber(value: $0) }
  }
}

/// A negotiated header extension.
public final class RTCRtpHeaderExtension {
  /// The URI that identifies the extension (RFC 8285 section 5).
  public let uri: String
  /// The local identifier, 1 to 14.
  public let id: Int32
  /// Whether the extension is encrypted (RFC 6904); always false.
  public var isEncrypted: Bool { false }

  init(_ header: RTPSendParameters.HeaderExtension) {
    uri = header.uri
    id = Int32(header.id)
  }
}

/// The negotiated RTCP parameters.
public final class RTCRtcpParameters {
  /// The CNAME used in all sent RTCP.
  public let cname: String
  /// Whether reduced-size RTCP was negotiated (RFC 5506).
  public let isReducedSize: Bool

  init(cname: String, isReducedSize: Bool) {
    self.cname = cname
    self.isReducedSize = isReducedSize
  }
}

/// A sender's parameters as they were read; the encodings and the degradation preference can be
/// changed.
public final class RTCRtpParameters {
  /// Identifies the call that read the parameters, so that they can be set only once.
  public let transactionId: String
  /// The negotiated RTCP parameters.
  public let rtcp: RTCRtcpParameters
  /// The negotiated header extensions.
  public let headerExtensions: [RTCRtpHeaderExtension]
  /// The encodings: a single encoding, or one encoding per layer.
  public var encodings: [RTCRtpEncodingParameters]
  /// The negotiated codecs, with the one in use first.
  public let codecs: [RTCRtpCodecParameters]
  /// What is reduced first, as an `RTCDegradationPreference`; nil chooses by the kind of content.
  public var degradationPreference: NSNumber?

  private let read: RTPSendParameters?

  /// Creates parameters that no sender accepts.
  public init() {
    transactionId = ""
    rtcp = RTCRtcpParameters(cname: "", isReducedSize: false)
    headerExtensions = []
    encodings = []
    codecs = []
    read = nil
  }

  init(_ parameters: RTPSendParameters) {
    transactionId = parameters.transactionId
    rtcp = RTCRtcpParameters(
      cname: parameters.cname, isReducedSize: parameters.reducedSizeRTCP)
    headerExtensions = parameters.headerExtensions.map { RTCRtpHeaderExtension($0) }
    encodings = parameters.encodings.map { RTCRtpEncodingParameters($0) }
    codecs = parameters.codecs.map { RTCRtpCodecParameters($0) }
    degradationPreference = parameters.degradationPreference.map {
      NSNumber(value: RTCDegradationPreference($0).rawValue)
    }
    read = parameters
  }

  /// The parameters as the stack's type, with the application's changes.
  var native: RTPSendParameters? {
    var native = read
    native?.encodings = encodings.map(\.native)
    native?.degradationPreference =
      degradationPreference.flatMap { RTCDegradationPreference(rawValue: $0.intValue) }?.native
    return native
  }
}

// MARK: - RTCRtpCapabilities

/// A codec that can be negotiated.
public final class RTCRtpCodecCapability: Sendable {
  let native: RTPCodec
  private let mediaKind: MediaKind

  init(_ native: RTPCodec, _ kind: MediaKind) {
    self.native = native
    mediaKind = kind
  }

  /// The encoding name: `opus`, `VP8`, ...
  public var name: String {
    native.mimeType.split(separator: "/").last.map(String.init) ?? native.mimeType
  }
  /// The kind of media, `audio` or `video`.
  public var kind: String {
    mediaKind == .audio ? kRTCMediaStreamTrackKindAudio : kRTCMediaStreamTrackKindVideo
  }
  /// The MIME type, such as `video/VP8`.
  public var mimeType: String { native.mimeType }
  /// The RTP clock rate in Hz.
  public var clockRate: NSNumber? { NSNumber(value: native.clockRate) }
  /// The number of audio channels, if there are several.
  public var numChannels: NSNumber? { native.channels.map { NSNumber(value: $0) } }
  /// The fmtp parameters by name; the name is empty for a parameter that has none.
  public var parameters: [String: String] {
    let pairs = (native.sdpFmtpLine ?? "").split(separator: ";").map { part in
      let sides = part.split(separator: "=", maxSplits: 1).map { side in
        side.trimmingCharacters(in: .whitespaces)
      }
      return sides.count == 2 ? (sides[0], sides[1]) : ("", sides.first ?? "")
    }
    return Dictionary(pairs) { first, _ in first }
  }
}

/// The RTP capabilities of senders and receivers for a media kind.
public final class RTCRtpCapabilities: Sendable {
  /// The codecs, in the order in which offers list them.
  public let codecs: [RTCRtpCodecCapability]

  init(_ kind: MediaKind) {
    codecs = RTPCodec.capabilities(kind).map { RTCRtpCodecCapability($0, kind) }
  }
}

extension RTCPeerConnectionFactory {
  /// Returns the sender capabilities for `kRTCMediaStreamTrackKindAudio` or
  /// `kRTCMediaStreamTrackKindVideo`.
  public func rtpSenderCapabilities(forKind kind: String) -> RTCRtpCapabilities {
    RTCRtpCapabilities(kind == kRTCMediaStreamTrackKindAudio ? .audio : .video)
  }

  /// Returns the receiver capabilities for a kind, which equal the sender capabilities.
  public func rtpReceiverCapabilities(forKind kind: String) -> RTCRtpCapabilities {
    rtpSenderCapabilities(forKind: kind)
  }
}

extension RTCRtpTransceiver {
  /// Sets the codecs for the next negotiation, the preferred one first; nil or an empty list
  /// restores the defaults.
  /// - Throws: `RTCPeerConnectionError` for codecs that are not among the capabilities, or if none
  ///   of them carries media.
  public func setCodecPreferences(_ codecs: [RTCRtpCodecCapability]?) throws {
    let call = PeerCall.setCodecPreferences(
      transceiver: sender.transceiver, (codecs ?? []).map(\.native))
    do throws(PeerError) {
      try sender.connection.performAndWait(call)
    } catch {
      throw RTCPeerConnectionError(error)
    }
  }
}
