import FoundationEssentials
package import Tape

/// Custom rules, and overrides of thresholds and severities.
///
/// A JSON file:
///
///     {"rules": [{"id": "small-video", "severity": "low", "title": "Small video",
///        "sql": "SELECT peer, at_ns AS from_ns, at_ns AS to_ns, ... AS evidence FROM frame ...",
///        "thresholds": {"least_width": 320}, "causes": ["loss"], "scope": "stream"}],
///      "thresholds": {"loss": {"least_share": 5}}, "severities": {"relay-in-use": "medium"},
///      "off": ["audio-paused"]}
package enum FindingRuleFile {
  private struct Content: Decodable {
    var rules: [Entry]?
    var thresholds: [String: [String: Double]]?
    var severities: [String: String]?
    var off: [String]?
  }

  private struct Entry: Decodable {
    var id: String
    var severity: String?
    var title: String?
    /// An alias of `title`.
    var text: String?
    var scope: String?
    var sql: String?
    /// An alias of `sql`.
    var query: String?
    var thresholds: [String: Double]?
    var causes: [String]?
    var silent_under: [String]?
    var side: String?
    var confidence: String?
  }

  private static let largest = 4 << 20

  /// Returns all rules, as changed and extended by a file.
  package static func rules(path: String) throws(TapeError) -> [FindingRule] {
    let bytes: [UInt8]
    switch FileBytes.read(path, atMost: largest) {
    case .success(let found): bytes = found
    case .failure(let error): throw TapeError(path: path, place: "rules", reason: "\(error)")
    }
    let content: Content
    do {
      content = try JSONDecoder().decode(Content.self, from: Data(bytes))
    } catch let error as DecodingError {
      throw TapeError(path: path, place: "rules", reason: reason(error))
    } catch {
      throw TapeError(path: path, place: "rules", reason: "it is not JSON")
    }
    var rules = FindingRule.all
    for entry in content.rules ?? [] {
      let rule = try rule(entry, path)
      rules.removeAll { $0.id == rule.id }
      rules.append(rule)
    }
    try change(&rules, content, path)
    return rules
  }

  /// The largest threshold that a file may set: beyond any time or count in a take, but small
  /// enough for the rules' integer arithmetic.
  static let most = 1e9

  private static func change(_ rules: inout [FindingRule], _ content: Content, _ path: String)
    throws(TapeError)
  {
    for (id, values) in (content.thresholds ?? [:]).sorted(by: { $0.key < $1.key }) {
      let place = try place(of: id, rules, path)
      for (name, value) in values.sorted(by: { $0.key < $1.key }) {
        guard let threshold = rules[place].thresholds.first(where: { $0.name == name }) else {
          let known = rules[place].thresholds.map(\.name).joined(separator: ", ")
          throw TapeError(
            path: path, place: "thresholds.\(id)",
            reason: "it has no threshold \(name)\(known.isEmpty ? "" : "; it has \(known)")")
        }
        let range = threshold.value < 0 ? -Self.most...Self.most : 0...Self.most
        guard range.contains(value) else {
          throw TapeError(
            path: path, place: "thresholds.\(id).\(name)",
            reason: "it must be between \(Int(range.lowerBound)) and \(Int(range.upperBound))")
        }
        rules[place].moved[name] = value
      }
    }
    for (id, word) in (content.severities ?? [:]).sorted(by: { $0.key < $1.key }) {
      let place = try place(of: id, rules, path)
      rules[place].severity = try severity(word, "severities.\(id)", path)
    }
    for id in content.off ?? [] {
      let place = try place(of: id, rules, path)
      rules.remove(at: place)
    }
  }

  private static func place(of id: String, _ rules: [FindingRule], _ path: String)
    throws(TapeError) -> Int
  {
    if let place = rules.firstIndex(where: { $0.id == id }) { return place }
    throw TapeError(
      path: path, place: "rules",
      reason: "there is no rule \(id); retake findings --rules lists all")
  }

  private static func severity(_ word: String, _ place: String, _ path: String)
    throws(TapeError) -> FindingSeverity
  {
    if let found = FindingSeverity(name: word) { return found }
    throw TapeError(
      path: path, place: place,
      reason: "\(word) is not a severity; give critical, high, medium, low or info")
  }

  private static func rule(_ entry: Entry, _ path: String) throws(TapeError) -> FindingRule {
    let place = "rules.\(entry.id)"
    let isName = entry.id.utf8.allSatisfy {
      (UInt8(ascii: "a")...UInt8(ascii: "z")).contains($0)
        || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) || $0 == UInt8(ascii: "-")
    }
    guard isName, !entry.id.isEmpty, entry.id.utf8.count <= 100 else {
      throw TapeError(
        path: path, place: place, reason: "an id has only lower case letters, digits and hyphens")
    }
    guard let sql = entry.sql ?? entry.query, !sql.isEmpty else {
      throw TapeError(path: path, place: place, reason: "it has no sql; add its query")
    }
    let scopes: [String: FindingRule.Scope] = [
      "stream": .stream, "flow": .flow, "connection": .connection, "end": .end, "call": .call,
    ]
    guard let scope = scopes[entry.scope ?? "connection"] else {
      throw TapeError(
        path: path, place: place,
        reason: "\(entry.scope ?? "") is not a scope; give stream, flow, connection, end or call")
    }
    let thresholds = (entry.thresholds ?? [:]).sorted { $0.key < $1.key }.map {
      FindingRule.Threshold($0.key, $0.value, "", path)
    }
    var rule = FindingRule(
      id: entry.id, severity: try severity(entry.severity ?? "medium", place, path),
      title: entry.title ?? entry.text ?? entry.id, scope: scope, thresholds: thresholds,
      causes: entry.causes ?? [], silentUnder: entry.silent_under ?? [], sql: sql)
    let sides = FindingSide.allCases.map { ($0.rawValue, $0) }
    let confidences = FindingConfidence.allCases.reversed().map { ($0.name, $0) }
    rule.side = try known(entry.side, sides, "a side", place, path) ?? rule.side
    rule.basis = try known(entry.confidence, confidences, "a confidence", place, path)
      .map(FindingBasis.init)
    return rule
  }

  /// Returns the value with the name `word`, or nil if `word` is nil; throws for an unknown name.
  private static func known<Value>(
    _ word: String?, _ values: [(name: String, value: Value)], _ what: String, _ place: String,
    _ path: String
  ) throws(TapeError) -> Value? {
    guard let word else { return nil }
    if let found = values.first(where: { $0.name == word }) { return found.value }
    let names = values.map(\.name)
    throw TapeError(
      path: path, place: place,
      reason: "\(word) is not \(what); give \(names.dropLast().joined(separator: ", ")) or "
        + (names.last ?? ""))
  }

  private static func reason(_ error: DecodingError) -> String {
    switch error {
    case .keyNotFound(let key, _): "a rule has no \(key.stringValue)"
    case .typeMismatch(_, let context), .valueNotFound(_, let context):
      "\(context.codingPath.map(\.stringValue).joined(separator: ".")) has the wrong type"
    default: "it is not JSON with rules"
    }
  }
}
