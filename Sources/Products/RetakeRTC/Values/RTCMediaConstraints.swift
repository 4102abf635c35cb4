/// The constraint by which an offer asks to receive audio.
public let kRTCMediaConstraintsOfferToReceiveAudio = "OfferToReceiveAudio"
/// The constraint by which an offer asks to receive video frames.
public let kRTCMediaConstraintsOfferToReceiveVideo = "OfferToReceiveVideo"
/// The constraint that restarts ICE with an offer.
public let kRTCMediaConstraintsIceRestart = "IceRestart"
/// The constraint about comfort noise, which is not offered here.
public let kRTCMediaConstraintsVoiceActivityDetection = "VoiceActivityDetection"
/// The constraint about echo cancellation of an audio source.
public let kRTCMediaConstraintsEchoCancellation = "googEchoCancellation"
/// The constraint about gain control of an audio source.
public let kRTCMediaConstraintsAutoGainControl = "googAutoGainControl"
/// The constraint about noise suppression of an audio source.
public let kRTCMediaConstraintsNoiseSuppression = "googNoiseSuppression"
/// The value of a constraint that is wanted.
public let kRTCMediaConstraintsValueTrue = "true"
/// The value of a constraint that is not wanted.
public let kRTCMediaConstraintsValueFalse = "false"

/// Wishes by name; those that mean nothing to a call are passed over.
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

  /// Whether a constraint is wanted, the mandatory ones first; nil when nothing is said of it.
  func wants(_ name: String) -> Bool? {
    switch (mandatory[name] ?? optional[name])?.lowercased() {
    case kRTCMediaConstraintsValueTrue: true
    case kRTCMediaConstraintsValueFalse: false
    default: nil
    }
  }
}
