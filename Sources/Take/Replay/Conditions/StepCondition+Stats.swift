package import Stats
import Tape

// Conditions about members of stats objects.
extension StepCondition {
  /// Returns the types of stats objects that have all the members named in the tests.
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

  /// Returns whether a peer's stats satisfy the condition.
  package func matches(_ report: StatsReport, of peer: UInt32) -> Bool {
    tests.allSatisfy { $0.field != "peer" || $0.holds(String(peer)) }
      && report.objects.contains(where: matches)
  }

  /// A threshold that a cumulative member has to reach.
  struct Growth {
    var member: String
    var threshold: Double
    /// How far the member may fall between samples, although it is cumulative.
    var slack: Double
    /// Further tests of members that never change while an object exists.
    var others: [Test]
  }

  /// The threshold of a condition that only growth can satisfy; nil for other conditions.
  ///
  /// The samples just below and above the threshold show when the condition became true.
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

  /// The members that never change while an object exists.
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
  func check() throws(ConditionError) {
    guard !value.isEmpty else { throw ConditionError("\(field)\(comparison) needs a value") }
    let isOrder = comparison.hasPrefix("<") || comparison.hasPrefix(">")
    let isNumber = Double(value) != nil
    guard isNumber || !isOrder && !Self.numbers.contains(field) || comparison == "~" else {
      throw ConditionError("\(field)\(comparison) needs a number, not \(value)")
    }
  }

  private static let numbers: Set<String> = [
    "at_ns", "channel", "height", "marker", "payload_type", "peer", "rtp_time", "sequence", "size",
    "ssrc", "step", "track", "transport_sequence", "width",
  ]

  /// Returns whether a value satisfies the test; numbers are compared by value.
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

// MARK: - Completion

// Completion of conditions.
extension StepCondition {
  /// Returns words that may complete the last word of a condition.
  ///
  /// A condition begins with its subject; the words that may follow depend on it.
  package static func completions(after words: [String], _ last: String) -> [String] {
    guard let subject = words.first else {
      return Table.allCases.map(\.name) + subjects
    }
    if subject == "stat" {
      let members = Set(StatsMembers.all.flatMap(\.given)).sorted()
      let kinds = words.count > 1 ? ["kind=audio", "kind=video", "peer=", "type="] : []
      return kinds + members.map { $0 + ">" }
    }
    var rest = Array(words.dropFirst())
    guard let tables = try? Self.tables(subject, words: &rest, tests: []) else { return [] }
    if let field = last.firstIndex(of: "=").map({ last[..<$0] }) {
      return values(of: String(field), tables).map { "\(field)=\($0)" }
    }
    return vocabulary(of: tables, after: words).filter { !rest.contains($0) }
      + Self.fields(of: tables).map { $0 + "=" }
  }

  /// Returns the words that describe rows of the tables without naming a field.
  private static func vocabulary(of tables: [Table], after words: [String]) -> [String] {
    let directions = ["in", "out"]
    return tables.flatMap { table -> [String] in
      switch table {
      case .state: words.lazy.compactMap { stateNames[$0] }.first ?? states
      case .packet where words.contains("rtcp"): directions + RTCPRow.types
      case .packet where words.contains(where: protocols.contains): directions
      case .packet: directions + protocols
      case .rtcp: directions + RTCPRow.types
      case .frame:
        directions + ["audio", "video", "key", "decoded", "encoded", "concealed", "recovered"]
      case .track: directions + ["audio", "video"]
      case .candidate: ["host", "srflx", "prflx", "relay", "udp", "tcp"]
      case .signaling: directions + ["offer", "pranswer", "answer", "rollback", "candidate"]
      case .channel: ["connecting", "open", "closing", "closed"]
      default: []
      }
    }
  }

  private static let protocols = ["stun", "dtls", "rtp", "rtcp"]

  /// The states of each state machine, with the names that W3C and RFC 9429 use.
  private static let stateNames = [
    "signaling": [
      "stable", "have-local-offer", "have-remote-offer", "have-local-pranswer",
      "have-remote-pranswer", "closed",
    ],
    "ice-connection": [
      "new", "checking", "connected", "completed", "disconnected", "failed", "closed",
    ],
    "ice-gathering": ["new", "gathering", "complete"],
    "connection": ["new", "connecting", "connected", "disconnected", "failed", "closed"],
    "dtls": ["new", "connecting", "connected", "closed", "failed"],
    "sctp": ["connecting", "connected", "closed"],
    "establishment": ["establishing", "established", "timed-out"],
  ]

  private static func values(of field: String, _ tables: [Table]) -> [String] {
    switch field {
    case "machine": stateNames.keys.sorted()
    case "from_state", "to_state": Set(stateNames.values.joined()).sorted()
    case "direction": ["in", "out"]
    case "kind": ["audio", "video"]
    case "protocol": protocols
    case "type" where tables.contains(.rtcp): RTCPRow.types
    default: []
    }
  }
}

// MARK: - Nearest

/// Suggests known words for a misspelt one.
package enum Nearest {
  /// Returns up to three similar words of a list, most similar first.
  ///
  /// Words are similar if one begins with the other, or if few letters are missing, added, replaced
  /// or swapped with their neighbours.
  package static func words(to word: String, among known: some Sequence<String>) -> [String] {
    let wanted = Array(word.lowercased().unicodeScalars.prefix(longest + 1))
    guard (1...longest).contains(wanted.count) else { return [] }
    var found: [(distance: Int, word: String)] = []
    var seen: Set<String> = []
    for candidate in known where seen.insert(candidate).inserted {
      let letters = Array(candidate.lowercased().unicodeScalars)
      let limit = max(1, min(wanted.count, letters.count) / 3)
      let distance = distance(wanted, letters)
      if distance <= limit {
        found.append((distance, candidate))
      } else if wanted.count > 2, letters.starts(with: wanted) || wanted.starts(with: letters) {
        found.append((limit + 1, candidate))
      }
    }
    // Words at equal distance keep their order in the list.
    return found.enumerated().sorted {
      ($0.element.distance, $0.offset) < ($1.element.distance, $1.offset)
    }.prefix(3).map(\.element.word)
  }

  /// Returns the end of a message that rejects a word: similar words, as in `; did you mean a or
  /// b?`, or the whole list if none is similar.
  package static func hint(_ word: String, among known: some Sequence<String>) -> String {
    let near = words(to: word, among: known)
    return near.isEmpty
      ? ", only \(known.joined(separator: ", "))"
      : "; did you mean \(near.joined(separator: " or "))?"
  }

  /// The maximum length of words to compare.
  private static let longest = 40

  /// Returns the edit distance between two words (optimal string alignment).
  private static func distance(_ left: [Unicode.Scalar], _ right: [Unicode.Scalar]) -> Int {
    var rows = [Array(0...right.count)]
    for (i, letter) in left.enumerated() {
      var row = [i + 1]
      for (j, other) in right.enumerated() {
        var least = min(rows[i][j + 1], row[j]) + 1
        least = min(least, rows[i][j] + (letter == other ? 0 : 1))
        if i > 0, j > 0, letter == right[j - 1], left[i - 1] == other {
          least = min(least, rows[i - 1][j - 1] + 1)
        }
        row.append(least)
      }
      rows.append(row)
    }
    return rows[left.count][right.count]
  }
}
