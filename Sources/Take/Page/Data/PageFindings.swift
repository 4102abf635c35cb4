import Queries
import Stats
import Tape
import Wire

/// What went wrong, as the page and a catalogue of takes show it: the same list, words and
/// severities that `retake findings` prints.
struct PageFindings {
  private let found: TakeFindings

  /// How many spans of a finding are drawn.
  private static let spanMaximum = 500

  init(_ found: TakeFindings) { self.found = found }

  /// The findings as a JSON array; `spans` has seconds and the evidence, longest first.
  var json: String { "[" + found.findings.map { json($0) }.joined(separator: ",\n") + "]" }

  private func json(_ finding: Finding) -> String {
    // The longest first, wherever one stands for all.
    let sorted = finding.detections.sorted {
      ($0.length, $1.fromNanoseconds) > ($1.length, $0.fromNanoseconds)
    }
    let spans = sorted.prefix(Self.spanMaximum).map { span in
      "[\(seconds(span.fromNanoseconds)),\(seconds(span.toNanoseconds)),"
        + "\(jsonString(span.evidence))]"
    }
    let sql = found.rules.first { $0.id == finding.id }?.sql ?? ""
    let symptoms = finding.symptoms.map { json($0) }.joined(separator: ",")
    return """
      {"rule":\(jsonString(finding.id)),"peer":\(finding.worst?.peer ?? 0),\
      "severity":\(finding.severity.rawValue),"level":\(jsonString(finding.severity.name)),\
      "text":\(jsonString(finding.text)),"count":\(finding.detections.count),\
      "seconds":\(seconds(finding.lengthNanoseconds)),"spans":[\(spans.joined(separator: ","))],\
      "symptoms":[\(symptoms)],"sql":\(jsonString(sql))}
      """
  }

  private func seconds(_ nanoseconds: Int64) -> String {
    StatsValue.number((Double(nanoseconds) / 1e4).rounded() / 1e5).json
  }
}
