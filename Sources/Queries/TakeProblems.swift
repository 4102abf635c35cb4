package import Tape
import Wire

/// The signals in a take that something went wrong: what `retake stats --problems` prints.
package struct TakeProblems: Sendable {
  /// One problem of one peer.
  package struct Problem: Sendable, Hashable {
    /// The name of its rule.
    package var name: String
    package var peer: Int64
    package var fromNanoseconds: Int64
    package var toNanoseconds: Int64
    /// What was measured, as a sentence.
    package var evidence: String
  }

  /// In the order of their beginnings.
  package private(set) var problems: [Problem] = []
  /// What could not be seen, each kind once: it weakens what is said here.
  package private(set) var unseen: [String] = []
  private var labels = PeerLabels()

  /// Runs every rule over a take, and keeps what touches a part of it.
  ///
  /// - Parameter asksAlways: whether each rule's query is run, also where there is a quicker way.
  package init(
    path: String, selection: TakeSelection = TakeSelection(), asksAlways: Bool = false
  ) throws(TapeError) {
    let connection = try TakeFile.openForQueries(path)
    do throws(SQLiteError) {
      labels = try PeerLabels(connection)
      let shortcuts = asksAlways ? nil : try ProblemShortcuts(connection)
      let isPart = selection.fromNanoseconds > .min || selection.toNanoseconds < .max
      for rule in ProblemRule.all where !(isPart && rule.sumsUp) {
        if let found = try shortcuts?.found(by: rule.name, connection) {
          for problem in found { add(problem, selection) }
          continue
        }
        try ask(rule, connection, selection)
      }
      if isPart {
        try TakeProblems.limit(connection, to: selection)
        for rule in ProblemRule.all where rule.sumsUp { try ask(rule, connection, selection) }
      }
      let missing = try connection.prepare(
        // A later row of a kind counts what the earlier ones did, and more.
        """
        SELECT what, reason FROM coverage WHERE row IN (SELECT max(row) FROM coverage GROUP BY what)
        ORDER BY row LIMIT 20
        """)
      while try missing.step() {
        let (what, reason) = missing.values(String.self, String.self)
        if let text = CoverageText.text(what: what, reason: reason) { unseen.append(text) }
      }
    } catch {
      throw TapeError(path: path, error)
    }
    problems.sort {
      ($0.fromNanoseconds, $0.peer, $0.name, $0.evidence)
        < ($1.fromNanoseconds, $1.peer, $1.name, $1.evidence)
    }
  }

  private mutating func ask(
    _ rule: ProblemRule, _ connection: borrowing SQLiteConnection, _ selection: TakeSelection
  ) throws(SQLiteError) {
    let rows = try connection.prepare(rule.sql(of: selection))
    while try rows.step() {
      let (peer, from, to, evidence) = rows.values(
        Int64.self, Int64.self, Int64.self, String.self)
      add(
        Problem(
          name: rule.name, peer: peer, fromNanoseconds: from, toNanoseconds: to,
          evidence: evidence),
        selection)
    }
  }

  /// Lets what follows see the packets, frames and statistics of a part of the take alone.
  private static func limit(
    _ connection: borrowing SQLiteConnection, to selection: TakeSelection
  ) throws(SQLiteError) {
    let part = "at_ns BETWEEN \(selection.fromNanoseconds) AND \(selection.toNanoseconds)"
    let views = ["packet_store", "frame_store", "stat"].map {
      "CREATE TEMP VIEW \($0) AS SELECT * FROM main.\($0) WHERE \(part);"
    }
    try connection.execute(
      "PRAGMA query_only = OFF;\(views.joined())PRAGMA query_only = ON")
  }

  /// Adds a problem that touches the selection; none ends before it begins, whatever the rows say.
  private mutating func add(_ problem: Problem, _ selection: TakeSelection) {
    var problem = problem
    (problem.fromNanoseconds, problem.toNanoseconds) = (
      min(problem.fromNanoseconds, problem.toNanoseconds),
      max(problem.fromNanoseconds, problem.toNanoseconds)
    )
    guard
      selection.holds(
        peer: problem.peer, from: problem.fromNanoseconds, to: problem.toNanoseconds)
    else { return }
    problems.append(problem)
  }

  /// The rules that found something.
  package var rules: [ProblemRule] {
    ProblemRule.all.filter { rule in problems.contains { $0.name == rule.name } }
  }

  /// The problems as aligned columns, then the queries that found them, where they are wanted.
  package func text(_ look: TableLook = TableLook(), showsQueries: Bool = false) -> String {
    let unseenText = unseen.joined(separator: "; ")
    guard !problems.isEmpty else {
      return unseen.isEmpty
        ? "Nothing seems wrong.\n"
        : "Nothing seems wrong in what could be seen. Not seen: \(unseenText)\n"
    }
    let rows = problems.map { problem in
      [
        thousandths(problem.fromNanoseconds / 1_000_000),
        thousandths(problem.toNanoseconds / 1_000_000), label(of: problem.peer), problem.name,
        problem.evidence,
      ]
    }
    var text = TextTable(
      columns: ["from", "to", "peer", "problem", "evidence"], rows: rows,
      alignsRight: [true, true, false, false, false], wraps: true
    ).text(look) { _, column in column == 3 ? .bad : nil }
    if !unseen.isEmpty { text += "\nNot seen: \(unseenText)\n" }
    guard showsQueries else {
      return text + "\n--queries prints the SQL that found them.\n"
    }
    text += "\nThe queries that found them, for retake sql or sqlite3:\n"
    for rule in rules { text += "\n-- \(rule.name)\n\(rule.sql);\n" }
    return text
  }

  private func label(of peer: Int64) -> String {
    let label = labels[peer] ?? ""
    return label.isEmpty ? String(peer) : "\(peer) \(label)"
  }

  /// The problems as a JSON array, each with its query.
  package var json: String {
    let objects = problems.map { problem in
      JSONText.object([
        ("problem", .text(problem.name)), ("peer", .integer(problem.peer)),
        ("from_ns", .integer(problem.fromNanoseconds)),
        ("to_ns", .integer(problem.toNanoseconds)), ("evidence", .text(problem.evidence)),
        ("sql", ProblemRule.all.first { $0.name == problem.name }.map { .text($0.sql) }),
      ])
    }
    return JSONText.list(objects, separator: ",\n").text
  }
}
