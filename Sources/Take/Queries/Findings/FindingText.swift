import Tape
import Wire

extension TakeFindings {
  /// Returns the findings as text, each with its symptoms indented; optionally followed by the
  /// queries that found them.
  package func text(_ look: TableLook = TableLook(), showsQueries: Bool = false) -> String {
    guard !findings.isEmpty else { return look.paragraph(nothing, indent: 2) + "\n" }
    var text = table(rows, look)
    if mayExplain {
      let offer =
        "--explain replays the call with the lost packets and with longer buffers, and says what "
        + "would have helped."
      text += "\n" + look.paragraph(offer, indent: 2) + "\n"
    }
    guard showsQueries else {
      return text + (mayExplain ? "" : "\n") + "--queries prints the SQL behind them.\n"
    }
    text += "\nThe queries behind them, for retake sql or sqlite3:\n"
    for rule in foundRules { text += "\n-- \(rule.id)\n\(rule.sql);\n" }
    return text
  }

  /// Whether `explain` could add explanations, because no finding has one yet, and a freeze or
  /// concealment occurred at an end whose stack the take can run.
  var mayExplain: Bool {
    guard findings.allSatisfy({ $0.explanation == nil }) else { return false }
    let harmed = Set(detections.filter { Self.explained.contains($0.rule) }.map(\.peer))
    return facts.peers.contains {
      harmed.contains($0.number) && !$0.isObserved && !$0.isReported
    }
  }

  /// The rules whose detections a replay can explain.
  package static let explained: Set = ["freeze", "video-stopped", "concealed-audio"]

  /// The text if nothing was found: what was examined, and what could not be seen.
  package var nothing: String {
    unseen.isEmpty
      ? "Nothing seems wrong. Looked at: \(looked)."
      : "Nothing seems wrong in what could be seen. Looked at: \(looked). Not seen: "
        + "\(unseen.joined(separator: "; "))"
  }

  /// Returns a table of the worst findings, to be shown together with other output.
  ///
  /// - Parameter take: the take's path, for the command that shows all of them.
  func shortText(_ look: TableLook, take: String) -> String {
    guard !findings.isEmpty else { return look.paragraph(nothing, indent: 2) + "\n" }
    var count = min(rows.count, 12)
    func rest() -> String {
      guard rows.count > count else { return "" }
      // Only a finding's own row has a severity; the others are of its symptoms.
      let more = Int64(rows[count...].count { !$0[0].isEmpty })
      let words =
        more > 0
        ? counted(more, "more finding") : counted(Int64(rows.count - count), "more symptom")
      return "and \(words): \(ShellText.command("retake", "findings", take))\n"
    }
    func text() -> String { table(Array(rows.prefix(count)), look, rest: rest()) }
    // Wrapped sentences have several lines each.
    while count > 1, text().count(where: \.isNewline) > Self.screenLines { count -= 1 }
    return text()
  }

  /// The maximum number of lines in a table that is shown together with other output.
  private static let screenLines = 24

  /// Returns rows as a table, followed by what could not be seen.
  private func table(_ rows: [[String]], _ look: TableLook, rest: String = "") -> String {
    let text = TextTable(
      columns: Self.columns, rows: rows, alignsRight: Self.areNumbers, wraps: true
    ).text(look.reading) { row, column in column == 0 ? Self.ink(of: row[0]) : nil }
    let doubts =
      unseen.isEmpty
      ? "" : "\n" + look.paragraph("Not seen: \(unseen.joined(separator: "; "))", indent: 2) + "\n"
    return text + rest + doubts
  }

  /// The columns of a table of findings; the last has the finding's id in brackets.
  static let columns = ["severity", "from", "to", "side", "finding"]
  static let areNumbers = [false, true, true, false, false]

  static func ink(of severity: String) -> Ink? {
    severity == "critical" || severity == "high" ? .bad : nil
  }

  /// The table rows: one per finding, followed by one per symptom and one for an explanation.
  var rows: [[String]] {
    var rows: [[String]] = []
    func add(_ finding: Finding, _ depth: Int) {
      let mark = depth == 0 ? "" : String(repeating: "  ", count: depth -| 1) + "-> "
      rows.append([
        depth == 0 ? finding.severity.name : "",
        thousandths(finding.fromNanoseconds / 1_000_000),
        thousandths(finding.toNanoseconds / 1_000_000), depth == 0 ? finding.sideWords : "",
        "\(mark)\(finding.text) [\(finding.id)]",
      ])
      for symptom in finding.symptoms { add(symptom, depth +| 1) }
      if let explanation = finding.explanation {
        let reason = "not explained: "
        let words =
          explanation.hasPrefix(reason)
          ? "Not replayed: \(explanation.dropFirst(reason.utf8.count))" : "Replayed: \(explanation)"
        rows.append(["", "", "", "", "   \(words)"])
      }
    }
    for finding in findings { add(finding, 0) }
    return rows
  }

  /// Returns a sentence such as `Packet loss from caller to callee: 36 of 128 packets lost (28.1
  /// %)`.
  package func sentence(of finding: Finding) -> String { finding.text }

  /// Returns the findings as a JSON object.
  package func json(take: String) -> String {
    JSONText.object([
      ("take", .text(take)),
      ("findings", .list(findings.map { json($0, take: take) }, separator: ",\n")),
      ("looked_at", .text(looked)), ("unseen", .list(unseen.map { .text($0) })),
    ]).text
  }

  /// All detections, without causes and symptoms, as a JSON array: the form of `stats --problems`.
  package var detectionsJSON: String {
    let objects = detections.map { detection in
      JSONText.object([
        ("problem", .text(detection.rule)), ("peer", .integer(detection.peer)),
        ("from_ns", .integer(detection.fromNanoseconds)),
        ("to_ns", .integer(detection.toNanoseconds)), ("evidence", .text(detection.evidence)),
        ("ssrc", detection.ssrc.map { .integer($0) }),
        ("sql", rule(detection.rule).map { .text($0.sql) }),
      ])
    }
    return JSONText.list(objects, separator: ",\n").text
  }

  private static let spanMaximum = 50

  private func rule(_ id: String) -> FindingRule? { rules.first { $0.id == id } }

  private func json(_ finding: Finding, take: String?) -> JSONText {
    let spans = finding.detections.prefix(Self.spanMaximum).map { span in
      JSONText.object([
        ("peer", .integer(span.peer)), ("from_ns", .integer(span.fromNanoseconds)),
        ("to_ns", .integer(span.toNanoseconds)), ("evidence", .text(span.evidence)),
        ("ssrc", span.ssrc.map { .integer($0) }), ("track", span.track.map { .integer($0) }),
        ("direction", span.direction.map { .text($0.rawValue) }),
      ])
    }
    return JSONText.object([
      ("id", .text(finding.id)), ("severity", .text(finding.severity.name)),
      ("text", .text(finding.text)), ("title", .text(finding.title)),
      ("subject", .text(finding.subject)),
      ("side", finding.side.map { .text($0.rawValue) }),
      ("side_name", finding.sideWords.isEmpty ? nil : .text(finding.sideWords)),
      ("confidence", finding.confidence.map { .text($0.name) }),
      ("reservation", finding.reservation.isEmpty ? nil : .text(finding.reservation)),
      ("peer", finding.worst.map { .integer($0.peer) }),
      ("kind", finding.worst.flatMap { $0.kind.isEmpty ? nil : .text($0.kind) }),
      ("from_ns", .integer(finding.fromNanoseconds)), ("to_ns", .integer(finding.toNanoseconds)),
      ("duration_ns", .integer(finding.lengthNanoseconds)),
      ("count", .integer(finding.detections.count)), ("impact", impact(finding.impact)),
      ("spans", .list(spans)),
      ("doubts", finding.doubts.isEmpty ? nil : .list(finding.doubts.map { .text($0) })),
      ("command", take.map { .text(finding.command(take: $0)) }),
      ("sql", rule(finding.id).map { .text($0.sql) }),
      ("explanation", finding.explanation.map { .text($0) }),
      ("symptoms", .list(finding.symptoms.map { json($0, take: nil) })),
    ])
  }

  private func impact(_ impact: FindingImpact) -> JSONText {
    func length(_ seconds: Double) -> JSONText? {
      seconds > 0 && seconds < 9e8 ? .integer(Int64((seconds * 1e9).rounded())) : nil
    }
    return .object([
      ("frozen_ns", length(impact.frozenSeconds)),
      ("concealed_ns", length(impact.concealedSeconds)),
      ("without_media_ns", length(impact.withoutMediaSeconds)),
      ("delay_ns", length(impact.delayMilliseconds / 1e3)),
      ("share", impact.share > 0 ? .number((impact.share * 1e4).rounded() / 1e4) : nil),
      ("count", impact.count > 0 ? .integer(impact.count) : nil),
    ])
  }
}

extension Finding {
  /// The finding as a sentence: the problem, its subject and extent, and what weakens it.
  package var text: String {
    guard let worst else { return title }
    let head = subject.isEmpty ? title : "\(title)\(scope == .stream ? "," : "") \(subject)"
    let streams = Set(detections.compactMap { $0.ssrc ?? $0.track }).count
    let cost = FindingWords.cost(impact)
    var more = ""
    if detections.count > 1 {
      // A finding with symptoms states its cost at the end of the sentence.
      let sum = cost.isEmpty || !symptoms.isEmpty ? "" : ", \(cost) in all"
      more =
        streams > 1
        ? " on \(FindingWords.number(streams)) streams\(sum); worst: "
          + (worstStream.map { "\($0), " } ?? "")
        : isAtBothEnds
          ? ", at both ends\(sum); worst: "
          : ", \(FindingWords.number(times)) times\(sum); worst: "
    }
    // A flow's subject does not name the affected stream.
    let only =
      scope == .flow && streams == 1 && !worst.kind.isEmpty && worst.kind != "data"
      ? worstStream.map { "\($0), " } ?? "" : ""
    var text = head + (more.isEmpty ? ": " : more) + only + worst.evidence
    if !cost.isEmpty, !symptoms.isEmpty { text += "; \(cost)" }
    return text + weakness
  }

  /// How certain the finding is, and why, in parentheses; empty if it is certain and not weakened.
  private var weakness: String {
    var words = confidence.map { $0 == .certain ? "" : $0.name } ?? ""
    if !reservation.isEmpty { words += ": \(reservation)" }
    if !doubts.isEmpty {
      words += (words.isEmpty ? "" : "; ") + "weakened: \(doubts.joined(separator: "; "))"
    }
    return words.isEmpty ? "" : " (\(words))"
  }

  /// Whether the problem occurred once at each of two ends.
  private var isAtBothEnds: Bool {
    detections.count == 2 && detections[0].peer != detections[1].peer
  }

  /// How many times the problem occurred; a sample of counters may include several freezes.
  private var times: Int {
    id == "freeze"
      ? Int(clamping: detections.reduce(Int64(0)) { $0 +| max(1, $1.impact.count) })
      : detections.count
  }

  /// Returns a command that shows the worst part of the finding.
  package func command(take: String) -> String {
    let from = max(0, (worst?.fromNanoseconds ?? 0) / 1_000_000 -| 500)
    let to = (worst?.toNanoseconds ?? 0) / 1_000_000 +| 500
    return "retake timeline \(ShellText.word(take)) --from \(thousandths(from)) --to "
      + "\(thousandths(to))"
  }
}

/// Wording that findings share.
enum FindingWords {
  /// Returns a number as text: numbers below ten as words.
  static func number(_ count: Int) -> String {
    let words = ["no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
    return words.indices.contains(count) ? words[count] : "\(count)"
  }

  /// Describes the impact, as in `2.1 s frozen, 0.6 s concealed`.
  static func cost(_ impact: FindingImpact) -> String {
    [
      (impact.frozenSeconds, "frozen"), (impact.concealedSeconds, "concealed"),
      (impact.withoutMediaSeconds, "without media"),
    ].filter { $0.0 >= 0.05 }.map { "\(decimal($0.0)) s \($0.1)" }.joined(separator: ", ")
  }
}
