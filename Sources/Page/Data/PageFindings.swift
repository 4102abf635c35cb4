import Queries
import Stats
import Tape

/// What went wrong, worst first and one for each cause: all that one rule found of one peer is one
/// finding.
struct PageFindings {
  private struct Finding {
    var rule: String
    var peer: Int64
    /// 3: somebody noticed; 2: it costs quality; 1: worth knowing.
    var severity: Int
    var spans: [(from: Int64, to: Int64, evidence: String)]

    /// How long it lasted in all, which ranks findings of one severity.
    var length: Int64 { spans.reduce(0) { $0 &+ max(0, $1.to &- $1.from) } }
  }

  private var findings: [Finding] = []
  private let rules: [ProblemRule]

  /// Rules that are not here cost quality.
  private static let severities: [String: Int] = [
    "never-connected": 3, "disconnected": 3, "one-way-media": 3, "no-key-frame": 3, "freeze": 3,
    "silent-while-speaking": 3, "speech-while-muted": 3, "relay-in-use": 1, "silent-audio": 1,
    "encoder-limited": 1,
  ]

  /// How many spans of a finding are drawn.
  private static let spanMaximum = 500

  init(_ found: TakeProblems) {
    rules = found.rules
    for problem in found.problems {
      let span = (problem.fromNanoseconds, problem.toNanoseconds, problem.evidence)
      if let place = findings.firstIndex(where: {
        $0.rule == problem.name && $0.peer == problem.peer
      }) {
        findings[place].spans.append(span)
      } else {
        findings.append(
          Finding(
            rule: problem.name, peer: problem.peer,
            severity: Self.severities[problem.name] ?? 2, spans: [span]))
      }
    }
    // Stable, so that what is equal stays in the order of its beginning.
    findings.sort { ($0.severity, $0.length) > ($1.severity, $1.length) }
  }

  /// The findings as a JSON array; `spans` has seconds and the evidence, longest first.
  var json: String {
    let objects = findings.map { finding in
      let longest = finding.spans.sorted { $0.to &- $0.from > $1.to &- $1.from }
      let spans = longest.prefix(Self.spanMaximum).map { span in
        "[\(seconds(span.from)),\(seconds(span.to)),\(jsonString(span.evidence))]"
      }
      let sql = rules.first { $0.name == finding.rule }?.sql ?? ""
      return """
        {"rule":\(jsonString(finding.rule)),"peer":\(finding.peer),\
        "severity":\(finding.severity),"count":\(finding.spans.count),\
        "seconds":\(seconds(finding.length)),"spans":[\(spans.joined(separator: ","))],\
        "sql":\(jsonString(sql))}
        """
    }
    return "[" + objects.joined(separator: ",\n") + "]"
  }

  /// The worst of them, and how many matter.
  var summary: String {
    DetailText([
      ("count", .integer(Int64(findings.count { $0.severity > 1 }))),
      ("severity", .integer(Int64(findings.first?.severity ?? 0))),
      ("worst", findings.first.map { .text($0.rule) }),
      ("evidence", findings.first?.spans.first.map { .text($0.evidence) }),
    ]).json
  }

  private func seconds(_ nanoseconds: Int64) -> String {
    StatsValue.number((Double(nanoseconds) / 1e4).rounded() / 1e5).json
  }
}
