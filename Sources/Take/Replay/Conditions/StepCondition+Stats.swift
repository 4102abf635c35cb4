package import Stats

// Conditions about members of stats objects.
extension StepCondition {
  /// The types of objects that may meet comparisons of their members.
  static func statsTypes(of tests: [Test]) throws(ConditionError) -> Set<String> {
    let members = tests.map(\.field).filter { !["type", "id", "peer"].contains($0) }
    for member in members where StatsMembers.types(with: [member]).isEmpty {
      let reason = StatsMembers.absence(of: member)
      let near = Nearest.words(to: member, among: StatsMembers.all.flatMap(\.given))
      throw ConditionError(
        "no stats here have a member \(member)" + (reason.map { ": \($0)" } ?? "")
          + (near.isEmpty || reason != nil
            ? "; retake sql --schema lists all"
            : "; did you mean \(near.joined(separator: " or "))?"))
    }
    var types = StatsMembers.types(with: members)
    for test in tests where test.field == "type" { types = types.filter(test.holds) }
    guard !types.isEmpty else {
      throw ConditionError(
        "no stats object has all of \(tests.map(\.field).joined(separator: ", "))")
    }
    return types
  }

  /// Whether the stats of a peer meet the condition.
  package func matches(_ report: StatsReport, of peer: UInt32) -> Bool {
    tests.allSatisfy { $0.field != "peer" || $0.holds(String(peer)) }
      && report.objects.contains(where: matches)
  }

  /// A threshold that only growth passes.
  struct Growth {
    var member: String
    var threshold: Double
    /// By how much the member may fall for a moment.
    var slack: Double
    /// What else must hold; it does not change while an object lives.
    var others: [Test]
  }

  /// What a condition about stats compares when only growth can make it true: then the samples that
  /// a take has tell between which two of them that happens.
  var growth: Growth? {
    guard subject == .stat else { return nil }
    let thresholds = tests.filter { $0.comparison.hasPrefix(">") }
    let others = tests.filter { !$0.comparison.hasPrefix(">") }
    guard thresholds.count == 1, let threshold = Double(thresholds[0].value),
      let slack = StatsMembers.slack(of: thresholds[0].field),
      others.allSatisfy({ StepCondition.lasting.contains($0.field) && $0.comparison == "=" })
    else { return nil }
    return Growth(
      member: thresholds[0].field, threshold: threshold, slack: slack, others: others)
  }

  /// Members that an object keeps as long as it lives.
  private static let lasting: Set<String> = ["type", "id", "peer", "kind", "ssrc", "mid"]

  private func matches(_ object: StatsObject) -> Bool {
    tests.allSatisfy { test in
      if test.field == "peer" { return true }
      let value: String?
      switch object[test.field] {
      case .integer(let number)?: value = String(number)
      case .number(let number)?: value = String(number)
      case .text(let text)?: value = text
      case .flag(let flag)?: value = flag ? "true" : "false"
      case .record?, nil:
        value = test.field == "type" ? object.type : test.field == "id" ? object.id : nil
      }
      return value.map(test.holds) ?? false
    }
  }
}

extension StepCondition.Test {
  /// Refuses what cannot be compared.
  func check() throws(ConditionError) {
    guard !value.isEmpty else { throw ConditionError("\(field)\(comparison) takes a value") }
    let isOrder = comparison.hasPrefix("<") || comparison.hasPrefix(">")
    let isNumber = Double(value) != nil
    guard isNumber || !isOrder && !Self.numbers.contains(field) || comparison == "~" else {
      throw ConditionError("\(field)\(comparison) takes a number, not \(value)")
    }
  }

  private static let numbers: Set<String> = [
    "at_ns", "channel", "height", "marker", "payload_type", "peer", "rtp_time", "sequence", "size",
    "ssrc", "step", "track", "transport_sequence", "width",
  ]

  /// Whether a value stands to the wanted one as it should; numbers are compared as such.
  func holds(_ actual: String) -> Bool {
    if comparison == "~" { return actual.contains(value) }
    if let left = Double(actual), let right = Double(value) {
      switch comparison {
      case "=": return left == right
      case "!=": return left != right
      case "<": return left < right
      case "<=": return left <= right
      case ">": return left > right
      default: return left >= right
      }
    }
    switch comparison {
    case "=": return actual == value
    case "!=": return actual != value
    default: return false
    }
  }
}
