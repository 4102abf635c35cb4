package import Tape
import Wire

// The output of subcommands for many takes, read from the catalogue: one or a few lines per take.
extension TakeCatalogue {
  /// Returns the findings of all takes, grouped by take; each finding is followed by the ids of its
  /// symptoms.
  package func findingsText(_ look: TableLook = TableLook()) throws(TapeError) -> String {
    let found = try read { (connection) throws(SQLiteError) in
      try Self.causes(connection)
    }
    guard !found.isEmpty else { return "Nothing seems wrong in \(counted(takeCount, "take")).\n" }
    var rows: [[String]] = []
    for (place, one) in found.enumerated() {
      if place == 0 || found[place - 1].take != one.take {
        if place > 0 { rows.append([""]) }
        rows.append([one.take])
      }
      let symptoms =
        one.symptoms.isEmpty ? "" : ", which led to: \(one.symptoms.joined(separator: ", "))"
      rows.append([
        one.severity, thousandths(one.from / 1_000_000), thousandths(one.to / 1_000_000), one.side,
        "\(one.text) [\(one.id)]\(symptoms)",
      ])
    }
    let affected = Set(found.map(\.take)).count
    return TextTable(
      columns: TakeFindings.columns, rows: rows, alignsRight: TakeFindings.areNumbers, wraps: true
    ).text(look.reading) { row, column in column == 0 ? TakeFindings.ink(of: row[0]) : nil }
      + "\nFindings in \(affected) of \(counted(takeCount, "take")).\n"
  }

  private struct Cause {
    var take: String
    var severity: String
    var from: Int64
    var to: Int64
    var side: String
    var text: String
    var id: String
    /// The ids of the finding's symptoms, each once.
    var symptoms: [String] = []
  }

  private static func causes(
    _ connection: borrowing SQLiteConnection
  ) throws(SQLiteError) -> [Cause] {
    let rows = try connection.prepare(
      "SELECT take, severity, from_ns, to_ns, text, id, parent, side_name FROM finding")
    var causes: [Cause] = []
    while try rows.step() {
      let (take, severity, from, to) = rows.values(
        String.self, String.self, Int64.self, Int64.self)
      let (text, id, parent, side) = rows.values(
        from: 4, String.self, String.self, Int64?.self, String?.self)
      if parent == nil {
        causes.append(
          Cause(
            take: take, severity: severity, from: from, to: to, side: side ?? "", text: text,
            id: id))
      } else if let last = causes.indices.last, causes[last].take == take,
        !causes[last].symptoms.contains(id)
      {
        // Symptoms follow their cause.
        causes[last].symptoms.append(id)
      }
    }
    return causes
  }

  /// Returns a table with one row per take: its worst finding, participants, state and the quality
  /// of its worst stream.
  package func summaryText(_ look: TableLook = TableLook()) throws(TapeError) -> String {
    let rows = try read { (connection) throws(SQLiteError) in
      let found = try connection.prepare(
        """
        SELECT take, label, duration_ns, names, codecs, state, round_trip_ms, loss_share,
          frozen_ns, freezes, concealed_share, relay, severity, finding, findings, packets,
          packets_refused FROM take
        """)
      var rows: [[String]] = []
      while try found.step() { rows.append(Self.summaryCells(found)) }
      return rows
    }
    return TextTable(
      columns: [
        "take", "finding", "seconds", "who", "codecs", "state", "round trip", "loss", "frozen",
        "concealed", "relay",
      ],
      rows: rows,
      alignsRight: [
        false, false, true, false, false, false, true, true, true, true, false,
      ], wraps: true
    ).text(look) { row, column in
      column == 1 ? TakeFindings.ink(of: String(row[1].prefix { $0 != ":" })) : nil
    } + "\nThe worst stream of each take; retake summary TAKE has all of them.\n"
  }

  private static func summaryCells(_ row: borrowing SQLiteStatement) -> [String] {
    let (take, label, duration, names) = row.values(
      String.self, String.self, Int64.self, String.self)
    let (codecs, state, trip, loss) = row.values(
      from: 4, String.self, String.self, Double?.self, Double?.self)
    let (frozen, freezes, concealed, isRelayed) = row.values(
      from: 8, Int64.self, Int64.self, Double?.self, Bool.self)
    let (severity, finding, count, packets, refused) = row.values(
      from: 12, String?.self, String.self, Int64.self, Int64.self, Int64.self)
    let more = count > 1 ? ", \(count - 1) more" : ""
    return [
      label.isEmpty ? take : "\(take) (\(label))",
      severity.map { "\($0): \(finding)\(more)" } ?? "none", thousandths(duration / 1_000_000),
      names, codecs, state, trip.map { "\(decimal($0)) ms" } ?? "",
      packets > 0 ? TakeSummary.lossText(loss, refused: refused) : "",
      freezes > 0 ? "\(decimal(Double(frozen) / 1e9)) s (\(freezes))" : "",
      concealed.map { "\(decimal($0 * 100)) %" } ?? "", isRelayed ? "relay" : "",
    ]
  }

  /// Returns a table with one row per take: when, how long and with which version it was recorded,
  /// and how much it contains.
  package func infoText(_ look: TableLook = TableLook()) throws(TapeError) -> String {
    let rows = try read { (connection) throws(SQLiteError) in
      let found = try connection.prepare(
        """
        SELECT take, label, start_utc, duration_ns, complete, format, tool_version, bytes, steps,
          names, packets FROM take
        """)
      var rows: [[String]] = []
      while try found.step() {
        let (take, label, start, duration, isComplete) = found.values(
          String.self, String.self, String.self, Int64.self, Bool.self)
        let (format, tool, bytes) = found.values(from: 5, Int64.self, String.self, Int64.self)
        let (steps, names, packets) = found.values(from: 8, Int64.self, String.self, Int64.self)
        rows.append([
          take, label, String(start.prefix(19)).replacing("T", with: " "),
          thousandths(duration / 1_000_000), isComplete ? "complete" : "cut short", "\(format)",
          tool, "\(bytes)", "\(steps)", "\(packets)", names,
        ])
      }
      return rows
    }
    return TextTable(
      columns: [
        "take", "label", "start", "seconds", "recording", "format", "Retake", "bytes", "steps",
        "RTP", "peers",
      ],
      rows: rows,
      alignsRight: [
        false, false, false, true, false, true, false, true, true, true, false,
      ], wraps: true
    ).text(look)
  }

  /// Returns a table with one row per voice of each take: its speaking times and levels.
  package func speakersText(_ look: TableLook = TableLook()) throws(TapeError) -> String {
    let rows = try read { (connection) throws(SQLiteError) in
      let found = try connection.prepare(
        """
        SELECT take, name, person, speaking_ns, dominant_ns, dbov, loudest_dbov, silent_ns,
          heard_ns FROM voice_total
        """)
      var rows: [[String]] = []
      while try found.step() {
        let (take, name, person, speaking, dominant) = found.values(
          String.self, String.self, String?.self, Int64.self, Int64.self)
        let (level, loudest, silent, heard) = found.values(
          from: 5, Double?.self, Int64.self, Int64.self, Int64.self)
        rows.append([
          take, person.map { "\($0) (\(name))" } ?? name, thousandths(speaking / 1_000_000),
          thousandths(dominant / 1_000_000), level.map { decimal($0) } ?? "", "\(loudest)",
          "\(thousandths(silent / 1_000_000)) of \(thousandths(heard / 1_000_000))",
        ])
      }
      return rows
    }
    guard !rows.isEmpty else { return "There is no audio in \(counted(takeCount, "take")).\n" }
    return TextTable(
      columns: ["take", "who", "speaks", "dominates", "dBov", "loudest", "silent"], rows: rows,
      alignsRight: [false, false, true, true, true, true, true], wraps: true
    ).text(look)
  }

  /// Returns the rules that found something in at least one take.
  package func foundRules(_ rules: [FindingRule]) throws(TapeError) -> [FindingRule] {
    let ids = try read { (connection) throws(SQLiteError) in
      let found = try connection.prepare("SELECT DISTINCT id FROM finding")
      var ids: Set<String> = []
      while try found.step() { ids.insert(found.text(0) ?? "") }
      return ids
    }
    return rules.filter { ids.contains($0.id) }
  }

  /// Returns the takes that have findings with one of the ids, or with at least the lowest of the
  /// severities.
  ///
  /// A symptom matches by its id but not by its severity. Each take is returned with the number of
  /// its matching findings, where a cause and its symptoms count once, and with the text of the
  /// first such cause.
  package func offences(severities: [FindingSeverity], ids: [String]) throws(TapeError)
    -> [(take: String, count: Int, first: String)]
  {
    let least = severities.min()
    return try read { (connection) throws(SQLiteError) in
      let found = try connection.prepare(
        "SELECT take, parent, severity, id, text FROM finding")
      var offences: [(take: String, count: Int, first: String)] = []
      var (cause, isCounted) = ("", false)
      while try found.step() {
        let (take, parent, severity) = found.values(String.self, Int64?.self, String.self)
        let (id, text) = found.values(from: 3, String.self, String.self)
        // A cause and its symptoms count once.
        if parent == nil { (cause, isCounted) = (text, false) }
        let isSevere =
          if let least, parent == nil, let severity = FindingSeverity(name: severity) {
            severity >= least
          } else {
            false
          }
        let isBad = isSevere || ids.contains(id)
        guard isBad, !isCounted else { continue }
        isCounted = true
        if offences.last?.take == take {
          offences[offences.count - 1].count += 1
        } else {
          offences.append((take, 1, cause))
        }
      }
      return offences
    }
  }
}
