import Queries
import Stats
import Tape
import Wire

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
    ///
    /// What went on at the same time, as losses of several streams do, counts once.
    var length: Int64 {
      var sum: Int64 = 0
      var end = Int64.min
      for span in spans.sorted(by: { $0.from < $1.from }) where span.to > end {
        sum &+= max(0, span.to &- max(span.from, end))
        end = span.to
      }
      return sum
    }
  }

  private var findings: [Finding] = []
  private let rules: [FindingRule]

  /// How many spans of a finding are drawn.
  private static let spanMaximum = 500

  init(_ found: TakeFindings) {
    rules = found.foundRules
    for problem in found.detections {
      let span = (problem.fromNanoseconds, problem.toNanoseconds, problem.evidence)
      if let place = findings.firstIndex(where: {
        $0.rule == problem.rule && $0.peer == problem.peer
      }) {
        findings[place].spans.append(span)
      } else {
        findings.append(
          Finding(
            rule: problem.rule, peer: problem.peer,
            severity: min(
              3, max(1, (FindingRule.named(problem.rule)?.severity ?? .medium).rawValue - 1)),
            spans: [span]))
      }
    }
    leaveOutRepetitions()
    // The longest first, wherever one stands for all.
    for place in findings.indices {
      findings[place].spans.sort { ($0.to &- $0.from, $1.from) > ($1.to &- $1.from, $0.from) }
    }
    // Stable, so that what is equal stays in the order of its beginning.
    findings.sort { ($0.severity, $0.length) > ($1.severity, $1.length) }
  }

  /// Leaves one finding of a cause.
  ///
  /// A connection that never came about was not lost; and what a peer of the take missed is told by
  /// itself, not by the reports to its other side.
  private mutating func leaveOutRepetitions() {
    let unconnected = Set(findings.filter { $0.rule == "never-connected" }.map(\.peer))
    findings.removeAll { $0.rule == "disconnected" && unconnected.contains($0.peer) }
    let missed = findings.filter { $0.rule == "loss" }
    for place in findings.indices where findings[place].rule == "loss-at-peer" {
      let peer = findings[place].peer
      let streams = Set(
        missed.filter { $0.peer != peer }.flatMap(\.spans)
          .compactMap { Self.stream(in: $0.evidence) })
      findings[place].spans.removeAll { span in
        Self.stream(in: span.evidence).map(streams.contains) ?? false
      }
    }
    findings.removeAll(where: \.spans.isEmpty)
  }

  /// The stream that the words of a problem are about.
  private static func stream(in evidence: String) -> Substring? {
    guard let word = evidence.firstRange(of: "ssrc ") else { return nil }
    return evidence[word.upperBound...].prefix(while: \.isNumber)
  }

  /// The findings as a JSON array; `spans` has seconds and the evidence, longest first.
  var json: String {
    let objects = findings.map { finding in
      let spans = finding.spans.prefix(Self.spanMaximum).map { span in
        "[\(seconds(span.from)),\(seconds(span.to)),\(jsonString(span.evidence))]"
      }
      let sql = rules.first { $0.id == finding.rule }?.sql ?? ""
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
    JSONText.object([
      ("count", .integer(Int64(findings.count { $0.severity > 1 }))),
      ("severity", .integer(Int64(findings.first?.severity ?? 0))),
      ("worst", findings.first.map { .text($0.rule) }),
      ("evidence", findings.first?.spans.first.map { .text($0.evidence) }),
    ]).text
  }

  private func seconds(_ nanoseconds: Int64) -> String {
    StatsValue.number((Double(nanoseconds) / 1e4).rounded() / 1e5).json
  }
}
