/// The constraint that makes an offer receive audio.
public let kRTCMediaConstraintsOfferToReceiveAudio = "OfferToReceiveAudio"
/// The constraint that makes an offer receive video.
public let kRTCMediaConstraintsOfferToReceiveVideo = "OfferToReceiveVideo"
/// The constraint that makes an offer restart ICE.
public let kRTCMediaConstraintsIceRestart = "IceRestart"
/// The constraint for comfort noise, which is not offered here.
public let kRTCMediaConstraintsVoiceActivityDetection = "VoiceActivityDetection"
/// The constraint for echo cancellation of an audio source.
public let kRTCMediaConstraintsEchoCancellation = "googEchoCancellation"
/// The constraint for gain control of an audio source.
public let kRTCMediaConstraintsAutoGainControl = "googAutoGainControl"
/// The constraint for noise suppression of an audio source.
public let kRTCMediaConstraintsNoiseSuppression = "googNoiseSuppression"
/// The value that enables a constraint.
public let kRTCMediaConstraintsValueTrue = "true"
/// The value that disables a constraint.
public let kRTCMediaConstraintsValueFalse = "false"

/// Constraints by name; unknown ones are ignored.
public final class RTCMediaConstraints: Sendable {
  private let mandatory: [String: String]
  private let optional: [String: String]

  /// Creates constraints.
  public init(
    mandatoryConstraints: [String: String]?, optionalConstraints: [String: String]?
  ) {
    mandatory = mandatoryConstraints ?? [:]
    optional = optionalConstraints ?? [:]
  }

  /// Whether a constraint is enabled, the mandatory ones first; nil when it is not mentioned.
  func wants(_ name: String) -> Bool? {
    switch (mandatory[name] ?? optional[name])?.lowercased() {
    case kRTCMediaConstraintsValueTrue: true
    case kRTCMediaConstraintsValueFalse: false
    default: nil
    }
  }
}
