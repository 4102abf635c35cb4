package import Tape
import Wire

/// What went wrong in a take: causes with their symptoms, as `retake findings` prints them.
package struct TakeFindings: Sendable {
  /// The causes, the one that cost most first.
  package private(set) var findings: [Finding] = []
  /// Everything that rules found, in the order of time, before causes and symptoms were told apart.
  package private(set) var detections: [Detection] = []
  /// What could not be seen, each kind once: it weakens what is said here.
  package private(set) var unseen: [String] = []
  /// What was looked at, for who finds nothing: `4 streams of RTP over 12.0 s`.
  package private(set) var looked = ""
  /// The rules that were asked.
  package private(set) var rules: [FindingRule]
  let names: FindingNames
  /// What the rules looked at.
  let facts: CallFacts

  /// Runs rules over a take, and keeps what touches a part of it.
  package init(
    path: String, selection: TakeSelection = TakeSelection(),
    rules: [FindingRule] = FindingRule.all
  ) throws(TapeError) {
    try self.init(path: path, try TakeFile.openForQueries(path), selection, rules)
  }

  /// The same through a connection that is there; one with a selection has its rows alone then.
  init(
    path: String, _ connection: borrowing SQLiteConnection,
    _ selection: TakeSelection = TakeSelection(), _ rules: [FindingRule] = FindingRule.all
  ) throws(TapeError) {
    self.rules = rules
    do throws(SQLiteError) {
      facts = try CallFacts(connection)
      names = try FindingNames(connection, facts)
      let isPart = selection.fromNanoseconds > .min || selection.toNanoseconds < .max
      let ofPart = isPart ? try CallFacts(connection, selection) : facts
      for rule in rules where !(isPart && rule.sumsUp && rule.detector == nil) {
        let found =
          if let detector = rule.detector {
            try detector(rule.sumsUp ? ofPart : facts, rule.limits, connection)
          } else {
            try TakeFindings.ask(rule, connection, selection)
          }
        add(found, selection)
      }
      if isPart {
        try TakeFindings.limit(connection, to: selection)
        for rule in rules where rule.sumsUp && rule.detector == nil {
          add(try TakeFindings.ask(rule, connection, selection), selection)
        }
      }
      let reported = Set(facts.peers.filter(\.isReported).map(\.number))
      detections.removeAll {
        reported.contains($0.peer) && ReportedDetectors.unreported.contains($0.rule)
      }
      add(ReportedDetectors.found(ofPart, rules: rules), selection)
      unseen = facts.unseen
      looked = facts.looked
      detections.sort(by: <)
      findings = FindingTree(detections, rules: rules, facts: facts, names: names).findings
    } catch {
      throw TapeError(path: path, error)
    }
  }

  /// Adds what replaying it otherwise showed to findings, by their places.
  package mutating func explain(_ texts: [Int: String]) {
    for place in findings.indices { findings[place].explanation = texts[place] }
  }

  private static func ask(
    _ rule: FindingRule, _ connection: borrowing SQLiteConnection, _ selection: TakeSelection
  ) throws(SQLiteError) -> [Detection] {
    let rows = try connection.prepare(rule.sql(of: selection))
    var columns: [String: Int] = [:]
    for column in 0..<rows.columnCount { columns[rows.columnName(column)] = column }
    var found: [Detection] = []
    while try rows.step(), found.count < mostOfRule {
      found.append(Detection(rule.id, rows, columns))
    }
    return found
  }

  /// How much one rule finds at most.
  private static let mostOfRule = 20_000

  /// Lets what follows see the packets, frames and statistics of a part of the take alone.
  private static func limit(
    _ connection: borrowing SQLiteConnection, to selection: TakeSelection
  ) throws(SQLiteError) {
    let part = "at_ns BETWEEN \(selection.fromNanoseconds) AND \(selection.toNanoseconds)"
    let format = try connection.integer("PRAGMA user_version") ?? TakeHeader.currentFormat
    let views = [Table.packet, .frame, .stat].map { table in
      // What stands there in an older take has the columns that its format lacks.
      """
      DROP VIEW IF EXISTS temp.\(table.storageName);
      CREATE TEMP VIEW \(table.storageName) AS
        SELECT * FROM (\(TakeSchema.rows(of: table, format: format))) WHERE \(part);
      """
    }
    try connection.execute(
      "PRAGMA query_only = OFF;\(views.joined())PRAGMA query_only = ON")
  }

  /// Adds what touches the selection.
  private mutating func add(_ found: [Detection], _ selection: TakeSelection) {
    detections += found.prefix(Self.mostOfRule).filter {
      selection.holds(peer: $0.peer, from: $0.fromNanoseconds, to: $0.toNanoseconds)
    }
  }

  /// The rules that found something.
  package var foundRules: [FindingRule] {
    let ids = Set(detections.map(\.rule))
    return rules.filter { ids.contains($0.id) }
  }
}

extension CallFacts {
  /// What there was to look at.
  var looked: String {
    var parts = [counted(Int64(peers.count), "peer")]
    let media = streams.count { $0.role == .media }
    parts.append("\(counted(Int64(media), "stream")) of media")
    let packets = streams.reduce(0) { $0 +| $1.packets }
    parts.append("\(counted(packets, "packet")) of RTP")
    let shown = tracks.reduce(0) { $0 +| $1.pictures.count }
    if shown > 0 { parts.append(counted(Int64(shown), "video frame")) }
    if !reports.isEmpty { parts.append(counted(Int64(reports.count), "report block")) }
    return parts.joined(separator: ", ") + " over \(thousandths(end / 1_000_000)) s"
  }
}
