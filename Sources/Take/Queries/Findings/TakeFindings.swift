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

// MARK: - FindingTree

/// Tells causes and symptoms apart.
///
/// A detection is a symptom of another one when its rule names that one's as a cause, both are
/// about the same thing, and it began while the other one lasted or soon after. What is left are
/// causes; all that one rule found of one thing is one finding.
struct FindingTree {
  private(set) var findings: [Finding] = []

  private let rules: [String: FindingRule]
  private let order: [String: Int]
  private let detections: [Detection]
  private let ends: FindingEnds
  private let names: FindingNames
  private let gaps: [CallFacts.Unseen]
  /// The cause of each detection.
  private var parents: [Int?]

  /// How long before its cause a symptom may begin: what is counted by the second begins with it,
  /// and a picture stands still since the frame before the one that was lost.
  private static let lead: Int64 = 1_200_000_000
  /// How long after its cause a symptom may begin.
  private static let lag: Int64 = 3_000_000_000

  init(_ found: [Detection], rules: [FindingRule], facts: CallFacts, names: FindingNames) {
    var table: [String: FindingRule] = [:]
    var order: [String: Int] = [:]
    for (place, rule) in rules.enumerated() { (table[rule.id], order[rule.id]) = (rule, place) }
    self.rules = table
    self.order = order
    self.names = names
    gaps = facts.gapsOfSight
    ends = FindingEnds(facts)
    detections = FindingTree.unsilenced(found, table, ends)
    parents = Array(repeating: nil, count: detections.count)
    findParents()
    var children: [[Int]] = Array(repeating: [], count: detections.count)
    var roots: [Int] = []
    for place in detections.indices {
      if let parent = parents[place] { children[parent].append(place) }
    }
    for place in detections.indices where parents[place] == nil {
      let isLink = self.rules[detections[place].rule]?.isLink ?? false
      if !isLink || !children[place].isEmpty { roots.append(place) }
    }
    findings = grouped(roots, children)
  }

  // MARK: Relations

  /// Leaves out what a rule takes back where another one fired.
  private static func unsilenced(
    _ found: [Detection], _ rules: [String: FindingRule], _ ends: FindingEnds
  ) -> [Detection] {
    let guards = Set(rules.values.flatMap(\.silentUnder))
    let loud = found.filter { guards.contains($0.rule) }
    return found.filter { one in
      guard let rule = rules[one.rule], !rule.silentUnder.isEmpty else { return true }
      return !loud.contains { other in
        rule.silentUnder.contains(other.rule)
          && other.fromNanoseconds <= one.toNanoseconds
          && other.toNanoseconds >= one.fromNanoseconds
          && ends.isAbout(other, rules[other.rule]?.scope ?? .stream, one)
      }
    }
  }

  private mutating func findParents() {
    var places: [String: [Int]] = [:]
    for place in detections.indices { places[detections[place].rule, default: []].append(place) }
    for place in detections.indices {
      let symptom = detections[place]
      for cause in rules[symptom.rule]?.allCauses ?? [] {
        let candidates = (places[cause] ?? []).filter { isCause($0, of: place) }
        // The one that began last before it is the nearest.
        guard let best = candidates.max(by: { nearness($0, place) < nearness($1, place) }) else {
          continue
        }
        parents[place] = best
        break
      }
    }
  }

  private func nearness(_ cause: Int, _ symptom: Int) -> Int64 {
    let (cause, symptom) = (detections[cause], detections[symptom])
    let overlap =
      min(cause.toNanoseconds, symptom.toNanoseconds)
      &- max(cause.fromNanoseconds, symptom.fromNanoseconds)
    return min(overlap, 0)
      &- abs(symptom.fromNanoseconds &- cause.fromNanoseconds) / 1000
  }

  private func isCause(_ one: Int, of other: Int) -> Bool {
    let (cause, symptom) = (detections[one], detections[other])
    guard one != other, cause.fromNanoseconds &- symptom.fromNanoseconds <= Self.lead,
      symptom.fromNanoseconds &- cause.toNanoseconds <= Self.lag,
      symptom.toNanoseconds >= cause.fromNanoseconds,
      ends.isAbout(cause, rules[cause.rule]?.scope ?? .stream, symptom)
    else { return false }
    // Nothing is its own cause, by whatever way round.
    var above = parents[one]
    var steps = 0
    while let place = above, steps < 100 {
      if place == other { return false }
      above = parents[place]
      steps +|= 1
    }
    return true
  }

  // MARK: Groups

  private struct Group: Hashable {
    var rule: String
    var subject: FindingEnds.Subject
  }

  private func grouped(_ places: [Int], _ children: [[Int]]) -> [Finding] {
    var groups: [(name: Group, places: [Int])] = []
    var index: [Group: Int] = [:]
    for place in places {
      let detection = detections[place]
      let scope = rules[detection.rule]?.scope ?? .stream
      let name = Group(rule: detection.rule, subject: ends.subject(of: detection, scope))
      if let group = index[name] {
        groups[group].places.append(place)
      } else {
        index[name] = groups.count
        groups.append((name, [place]))
      }
    }
    let findings = groups.map { group in
      finding(group.places, grouped(group.places.flatMap { children[$0] }, children))
    }
    return findings.sorted(by: isWorse)
  }

  private func finding(_ places: [Int], _ symptoms: [Finding]) -> Finding {
    let own = places.map { detections[$0] }
    let rule = rules[own[0].rule]
    let all = own + symptoms.flatMap { Self.all(of: $0) }
    let severity = all.map { $0.severity ?? rules[$0.rule]?.severity ?? .medium }.max()
    var finding = Finding(
      id: own[0].rule, title: rule?.title ?? own[0].rule, severity: severity ?? .medium,
      scope: rule?.scope ?? .stream, subject: "", detections: own, impact: ends.impact(of: all),
      symptoms: symptoms)
    finding.subject = names.subject(of: finding, rule?.scope ?? .stream, ends)
    finding.worstStream = finding.worst.map(names.stream)
    finding.doubts = doubts(of: own)
    return finding
  }

  /// What could not be seen while it was found.
  private func doubts(of found: [Detection]) -> [String] {
    var doubts: [String] = []
    for gap in gaps where found.contains(where: { gap.weakens($0) }) && !doubts.contains(gap.text) {
      doubts.append(gap.text)
    }
    return doubts
  }

  private static func all(of finding: Finding) -> [Detection] {
    finding.detections + finding.symptoms.flatMap { all(of: $0) }
  }

  /// By what it cost; then by severity and length.
  ///
  /// What may be meant stands behind what is wrong, however long it lasted.
  private func isWorse(_ one: Finding, _ other: Finding) -> Bool {
    func rank(_ finding: Finding) -> (Int, Double, Int, Int64) {
      let place = finding.severity == .critical ? 2 : finding.severity >= .medium ? 1 : 0
      // Tenths of a second decide nothing.
      let harm = (finding.impact.harmSeconds * 2).rounded(.down)
      return (place, harm, finding.severity.rawValue, finding.lengthNanoseconds)
    }
    let (first, second) = (rank(one), rank(other))
    if first != second { return first > second }
    return (one.fromNanoseconds, order[one.id] ?? 0, one.subject)
      < (other.fromNanoseconds, order[other.id] ?? 0, other.subject)
  }
}
