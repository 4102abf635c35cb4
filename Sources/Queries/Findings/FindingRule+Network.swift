// Rules about negotiation, ICE, TURN, DTLS, the transport and data channels.

extension FindingRule {
  static let networkRules: [FindingRule] = []
}
