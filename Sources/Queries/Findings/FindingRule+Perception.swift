// Rules about audio and video as people hear and see them.

extension FindingRule {
  static let perceptionRules: [FindingRule] = []
}
