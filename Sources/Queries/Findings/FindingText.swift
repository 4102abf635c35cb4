import Tape
import Wire

extension TakeFindings {
  /// The findings for people, then the queries that found them, where they are wanted.
  package func text(_ look: TableLook = TableLook(), showsQueries: Bool = false) -> String {
    let unseenText = unseen.joined(separator: "; ")
    guard !findings.isEmpty else {
      return "Nothing seems wrong. Looked at: \(looked)."
        + (unseen.isEmpty ? "" : " Not seen: \(unseenText).") + "\n"
    }
    var rows: [[String]] = []
    func add(_ finding: Finding, _ depth: Int) {
      rows.append([
        depth == 0 ? finding.severity.name : "",
        thousandths(finding.fromNanoseconds / 1_000_000),
        thousandths(finding.toNanoseconds / 1_000_000),
        String(repeating: "  ", count: depth) + (depth > 0 ? "-> " : "") + sentence(of: finding),
        finding.id,
      ])
      for symptom in finding.symptoms { add(symptom, depth + 1) }
    }
    for finding in findings { add(finding, 0) }
    var text = TextTable(
      columns: ["severity", "from", "to", "finding", "id"], rows: rows,
      alignsRight: [false, true, true, false, false], wraps: true
    ).text(look) { _, column in column == 0 ? .bad : nil }
    if !unseen.isEmpty { text += "\nNot seen: \(unseenText)\n" }
    guard showsQueries else { return text + "\n--queries prints the SQL that found them.\n" }
    text += "\nThe queries that found them, for retake sql or sqlite3:\n"
    for rule in foundRules { text += "\n-- \(rule.id)\n\(rule.sql);\n" }
    return text
  }

  /// `Packet loss from caller to callee: 36 of 128 packets lost (28.1 %)`.
  package func sentence(of finding: Finding) -> String {
    let subject = finding.subject.isEmpty ? "" : " \(finding.subject)"
    let times = finding.detections.count > 1 ? " (\(finding.detections.count) times)" : ""
    return "\(finding.title)\(times)\(subject): \(finding.worst?.evidence ?? "")"
  }

  /// The findings as a JSON array, each with its query.
  package var json: String {
    JSONText.list(findings.map(json), separator: ",\n").text
  }

  private func json(_ finding: Finding) -> JSONText {
    JSONText.object([
      ("id", .text(finding.id)), ("severity", .text(finding.severity.name)),
      ("text", .text(sentence(of: finding))),
      ("from_ns", .integer(finding.fromNanoseconds)), ("to_ns", .integer(finding.toNanoseconds)),
      ("symptoms", .list(finding.symptoms.map(json))),
    ])
  }
}
