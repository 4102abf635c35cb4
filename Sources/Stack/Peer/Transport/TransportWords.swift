import Secure

extension SRTPContext.Refusal {
  /// The refusal in words.
  var reason: String {
    switch self {
    case .authentication: "authentication failed"
    case .replayed: "replayed packet"
    case .malformed(let status): "malformed packet (status \(status))"
    }
  }
}
