// Rules about audio and video as people hear and see them.

extension FindingRule {
  static let perceptionRules: [FindingRule] = []

  /// Causes of other rules' detections among these, before those that they name themselves.
  static let perceptionCauses: [String: [String]] = [:]
}
