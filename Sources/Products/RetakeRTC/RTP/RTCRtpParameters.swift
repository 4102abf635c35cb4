public import Foundation
import JSEP
import Media
import Peer

/// What is given up first where video frames take too much, numbered as in the Objective-C header.
public enum RTCDegradationPreference: Int, Sendable {
  /// Nothing, unless the source is a screen.
  case disabled
  /// The size.
  case maintainFramerate
  /// Video frames.
  case maintainResolution
  /// Some of both.
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

/// How important what is sent is to the network, numbered as in the Objective-C header.
public enum RTCPriority: Int, Sendable {
  /// Below everything else.
  case veryLow
  /// As everything else.
  case low
  /// Above everything else.
  case medium
  /// Above all that is medium.
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

  /// nil for the default.
  var native: NetworkPriority? {
    switch self {
    case .veryLow: .veryLow
    case .low: nil
    case .medium: .medium
    case .high: .high
    }
  }
}

/// How one encoding is sent.
public final class RTCRtpEncodingParameters {
  /// Whether anything is sent.
  public var isActive = true
  /// The most that is spent, in bits per second; nil for no limit.
  public var maxBitrateBps: NSNumber?
  /// The most video frames per second; nil for no limit.
  public var maxFramerate: NSNumber?
  /// By how much both sides of a video frame are made smaller; nil for audio.
  public var scaleResolutionDownBy: NSNumber?
  /// The name of the layer where several are sent; nil for the only encoding.
  public var rid: String?
  /// How many temporal layers VP8 has: 1 to 3; nil for one.
  public var numTemporalLayers: NSNumber?
  /// How important the packets are to the network, where the configuration has `enableDscp`.
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

/// A codec that was agreed on.
public final class RTCRtpCodecParameters {
  /// 0 to 127.
  public let payloadType: Int32
  /// `opus`, `VP8`, ...
  public let name: String
  /// `audio` or `video`.
  public let kind: String
  /// In Hz.
  public let clockRate: NSNumber?
  /// The number of audio channels, when there are several.
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

/// A header extension that was agreed on.
public final class RTCRtpHeaderExtension {
  /// What the extension is.
  public let uri: String
  /// 1 to 14.
  public let id: Int32
  /// Whether it is encrypted (RFC 6904); it never is.
  public var isEncrypted: Bool { false }

  init(_ header: RTPSendParameters.HeaderExtension) {
    uri = header.uri
    id = Int32(header.id)
  }
}

/// What was agreed about RTCP.
public final class RTCRtcpParameters {
  /// The name of all that is sent.
  public let cname: String
  /// Whether packets of reduced size were agreed on (RFC 5506).
  public let isReducedSize: Bool

  init(cname: String, isReducedSize: Bool) {
    self.cname = cname
    self.isReducedSize = isReducedSize
  }
}

/// How a sender sends, as it was read; the encodings and the preference can be changed.
public final class RTCRtpParameters {
  /// Ties what is set to what was read.
  public let transactionId: String
  /// What was agreed about RTCP.
  public let rtcp: RTCRtcpParameters
  /// The agreed header extensions.
  public let headerExtensions: [RTCRtpHeaderExtension]
  /// How the encodings are sent: one, or one for each layer.
  public var encodings: [RTCRtpEncodingParameters]
  /// The agreed codecs, the one that is sent first.
  public let codecs: [RTCRtpCodecParameters]
  /// An `RTCDegradationPreference`: what is given up first; nil leaves it to the content.
  public var degradationPreference: NSNumber?

  private let read: RTPSendParameters?

  /// Creates parameters that no sender takes.
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

  /// What was read, with what can be changed.
  var native: RTPSendParameters? {
    var native = read
    native?.encodings = encodings.map(\.native)
    native?.degradationPreference =
      degradationPreference.flatMap { RTCDegradationPreference(rawValue: $0.intValue) }?.native
    return native
  }
}
