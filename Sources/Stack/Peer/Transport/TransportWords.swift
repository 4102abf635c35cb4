import Secure

extension SRTPContext.Refusal {
  /// The refusal as a sentence.
  var reason: String {
    switch self {
    case .authentication: "authentication failed"
    case .replayed: "replayed packet"
    case .malformed(let status): "malformed packet (status \(status))"
    }
  }
}
