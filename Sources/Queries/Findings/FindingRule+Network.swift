// Rules about negotiation, ICE, TURN, DTLS, the transport and data channels.

extension FindingRule {
  static let networkRules: [FindingRule] = []

  /// Causes of other rules' detections among these, before those that they name themselves.
  static let networkCauses: [String: [String]] = [:]
}
