import Queries
package import Tape

/// The outcome of a session, measured in its take: states, frames, freezes, bit rates, loss,
/// levels.
package struct Measures: Hashable, Sendable {
  /// In the order of the peers, then in the order in which a session goes.
  package private(set) var all: [Measure] = []

  /// Measures a take; nothing is verified or replayed.
  ///
  /// - Parameters:
  ///   - isForPin: whether what better rules took the place of is left out, and findings are in.
  ///   - hasFindings: whether what went wrong is measured, too.
  package init(path: String, isForPin: Bool = false, hasFindings: Bool = false)
    throws(TapeError)
  {
    let connection = try TakeFile.openForQueries(path)
    var found: [(peer: Int64, rule: Int, measure: Measure)] = []
    do throws(SQLiteError) {
      for (index, rule) in MeasureRule.all.enumerated() where !isForPin || !rule.isSuperseded {
        let statement = try connection.prepare(rule.sql)
        while try statement.step() {
          let (peer, about, value) = statement.values(Int64.self, String.self, Value?.self)
          let name = "peer \(peer)\(about.isEmpty ? "" : " " + about): \(rule.name)"
          guard let measure = Measures.measure(name, value, rule) else { continue }
          found.append((peer, index, measure))
        }
      }
    } catch {
      throw TapeError(path: path, place: "measures", error)
    }
    found.sort { ($0.peer, $0.rule, $0.measure.name) < ($1.peer, $1.rule, $1.measure.name) }
    all = found.map(\.measure)
    if isForPin || hasFindings { all += try Measures.findings(path) }
  }

  /// The end of the name of what went wrong.
  static let findings = ": findings"

  /// The ids of what went wrong at each peer, worst first; what is only worth knowing is left out.
  private static func findings(_ path: String) throws(TapeError) -> [Measure] {
    let found = try TakeFindings(path: path).findings.filter { $0.severity >= .medium }
    return try TakePeers.all(in: path).map { peer in
      var ids: [String] = []
      for finding in found where finding.worst?.peer == peer.number && !ids.contains(finding.id) {
        ids.append(finding.id)
      }
      return Measure(
        name: "peer \(peer.number)\(findings)",
        value: .words(ids.isEmpty ? "none" : ids.joined(separator: ", ")))
    }
  }

  private static func measure(_ name: String, _ value: Value?, _ rule: MeasureRule) -> Measure? {
    switch value {
    case .integer(let number): numeric(name, Double(number), rule)
    case .real(let number): numeric(name, number, rule)
    case .text(let words): Measure(name: name, value: .words(words))
    default: nil
    }
  }

  private static func numeric(_ name: String, _ number: Double, _ rule: MeasureRule) -> Measure {
    Measure(name: name, value: .number(number), tolerance: rule.tolerance(of: number))
  }

  /// The value of a measure; nil when the take has none of it.
  package subscript(name: String) -> MeasuredValue? { all.first { $0.name == name }?.value }
}
