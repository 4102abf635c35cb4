package import Tape
import Wire

/// A take's problems: causes with their symptoms, as `retake findings` prints them.
package struct TakeFindings: Sendable {
  /// The causes, most costly first.
  package private(set) var findings: [Finding] = []
  /// All detections in time order, without causes and symptoms.
  package private(set) var detections: [Detection] = []
  /// The kinds of things that could not be seen, which weaken the findings.
  package private(set) var unseen: [String] = []
  /// A summary of what was examined, as in `4 streams of RTP over 12.0 s`.
  package private(set) var looked = ""
  /// The rules that were applied.
  package private(set) var rules: [FindingRule]
  let names: FindingNames
  /// The data that the rules examined.
  let facts: CallFacts

  /// Applies rules to a take and keeps the detections that touch a part of it.
  package init(
    path: String, selection: TakeSelection = TakeSelection(),
    rules: [FindingRule] = FindingRule.all
  ) throws(TapeError) {
    try self.init(path: path, try TakeFile.openForQueries(path), selection, rules)
  }

  /// Applies rules through an open connection; with a selection, the connection is restricted to
  /// the selection's rows afterwards.
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
      // Some detections are made in tenths of a second, the last of which may reach beyond the end.
      for place in detections.indices where detections[place].fromNanoseconds < facts.end {
        detections[place].toNanoseconds = min(detections[place].toNanoseconds, facts.end)
      }
      detections.sort(by: <)
      findings = FindingTree(detections, rules: rules, facts: facts, names: names).findings
    } catch {
      throw TapeError(path: path, error)
    }
  }

  /// Adds the results of replaying with changes, by finding index.
  package mutating func explain(_ texts: [Int: String]) {
    for place in findings.indices { findings[place].explanation = texts[place] }
  }

  /// Runs a rule's query.
  static func ask(
    _ rule: FindingRule, _ connection: borrowing SQLiteConnection,
    _ selection: TakeSelection = TakeSelection()
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

  /// The maximum number of detections per rule.
  private static let mostOfRule = 20_000

  /// Restricts the packets, frames and statistics that later queries see to a part of the take.
  private static func limit(
    _ connection: borrowing SQLiteConnection, to selection: TakeSelection
  ) throws(SQLiteError) {
    let part = "at_ns BETWEEN \(selection.fromNanoseconds) AND \(selection.toNanoseconds)"
    let format = try connection.integer("PRAGMA user_version") ?? TakeHeader.currentFormat
    let views = [Table.packet, .frame, .stat].map { table in
      // Has all columns of the newest format, like the view that it replaces.
      """
      DROP VIEW IF EXISTS temp.\(table.storageName);
      CREATE TEMP VIEW \(table.storageName) AS
        SELECT * FROM (\(TakeSchema.rows(of: table, format: format))) WHERE \(part);
      """
    }
    try connection.execute(
      "PRAGMA query_only = OFF;\(views.joined())PRAGMA query_only = ON")
  }

  /// Adds the detections that touch the selection.
  private mutating func add(_ found: [Detection], _ selection: TakeSelection) {
    detections += found.prefix(Self.mostOfRule).filter {
      selection.holds(peer: $0.peer, from: $0.fromNanoseconds, to: $0.toNanoseconds)
    }
  }

  package var foundRules: [FindingRule] {
    let ids = Set(detections.map(\.rule))
    return rules.filter { ids.contains($0.id) }
  }
}

extension CallFacts {
  /// The streams, those of which the take has both ends as they were sent.
  var onceSeen: [Stream] {
    streams.filter { $0.direction == .outbound || otherEnd(of: $0) == nil }
  }

  /// The RTP packets, each counted once.
  var packets: Int64 { onceSeen.reduce(0) { $0 +| $1.packets } }

  /// A description of what was examined.
  var looked: String {
    var parts = [counted(Int64(peers.count), "peer")]
    let media = Int64(onceSeen.count { $0.role == .media })
    let repairs = Int64(onceSeen.count) -| media
    parts.append(
      "\(counted(media, "stream")) of media"
        + (repairs > 0 ? " and \(counted(repairs, "stream")) of repairs" : ""))
    let reports = network.ways
      .filter { $0.direction == .outbound || peer($0.peer)?.other == nil }
      .reduce(Int64(0)) { $0 +| $1.reports }
    parts.append(
      "\(counted(packets, "packet")) of RTP" + (reports > 0 ? " and \(reports) of RTCP" : ""))
    let shown = tracks.reduce(0) { $0 +| $1.pictures.count }
    if shown > 0 { parts.append(counted(Int64(shown), "video frame")) }
    let blocks = self.reports.count { $0.direction == .inbound || peer($0.peer)?.other == nil }
    if blocks > 0 { parts.append(counted(Int64(blocks), "report block")) }
    return parts.joined(separator: ", ") + " over \(thousandths(end / 1_000_000)) s"
  }
}

// MARK: - FindingTree

/// Distinguishes causes from symptoms.
///
/// A detection is a symptom of another if its rule names the other's as a cause, both are about the
/// same subject, and it began while the other lasted or soon after. The remaining detections are
/// causes; those from the same rule about the same subject form a finding.
struct FindingTree {
  private(set) var findings: [Finding] = []

  private let rules: [String: FindingRule]
  private let order: [String: Int]
  private let detections: [Detection]
  private let ends: FindingEnds
  private let names: FindingNames
  private let gaps: [CallFacts.Unseen]
  /// The index of each detection's cause.
  private var parents: [Int?]

  /// The maximum time by which a symptom may begin before its cause: per-second values begin with
  /// the second, and a freeze begins with the frame before the lost one.
  private static let lead: Int64 = 1_200_000_000
  /// The maximum time by which a symptom may begin after its cause.
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

  /// Drops detections that another rule suppresses.
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
        // Prefers a cause that overlaps the symptom, and then one that begins close to it.
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
    let isOver =
      rules[cause.rule]?.endsForPeople == true
      ? symptom.fromNanoseconds >= cause.toNanoseconds
      : symptom.fromNanoseconds &- cause.toNanoseconds > Self.lag
    guard one != other, cause.fromNanoseconds &- symptom.fromNanoseconds <= Self.lead, !isOver,
      symptom.toNanoseconds >= cause.fromNanoseconds,
      ends.isAbout(cause, rules[cause.rule]?.scope ?? .stream, symptom)
    else { return false }
    // Avoids cycles.
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
    let severity = severity(of: all)
    var finding = Finding(
      id: own[0].rule, title: rule?.title ?? own[0].rule, severity: severity,
      scope: rule?.scope ?? .stream, subject: "", detections: own, impact: ends.impact(of: all),
      symptoms: symptoms)
    finding.usualSeverity = rule?.severity ?? .medium
    finding.weight = ends.weight(of: all)
    finding.subject = names.subject(of: finding, rule?.scope ?? .stream, ends)
    finding.worstStream = finding.worst.map(names.stream)
    finding.doubts = doubts(of: own)
    if let rule { judge(&finding, rule) }
    finding.side = rule?.side
    finding.sideWords = names.side(of: finding)
    return finding
  }

  /// The shortest harm that participants notice, in seconds of all streams.
  private static let leastNoticed = 0.5

  /// Returns the worst severity of detections, but medium instead of high if the harm was too short
  /// to be noticed.
  private func severity(of all: [Detection]) -> FindingSeverity {
    func severity(_ one: Detection) -> FindingSeverity {
      one.severity ?? rules[one.rule]?.severity ?? .medium
    }
    let worst = all.map(severity).max() ?? .medium
    guard worst == .high else { return worst }
    let high = all.filter { severity($0) == .high }
    let isShort =
      high.allSatisfy { $0.impact.harmSeconds > 0 } && ends.weight(of: all) < Self.leastNoticed
    return isShort ? .medium : .high
  }

  /// Sets the confidence of a finding: that of its surest detection.
  private func judge(_ finding: inout Finding, _ rule: FindingRule) {
    for detection in finding.detections {
      guard let basis = detection.basis ?? rule.basis else { continue }
      var (confidence, reservation) = basis.judge(detection, of: rule, ends)
      if gaps.contains(where: { $0.weakens(detection) }) { confidence = confidence.weakened }
      guard finding.confidence.map({ $0 < confidence }) ?? true else { continue }
      (finding.confidence, finding.reservation) = (confidence, reservation)
    }
  }

  /// Returns descriptions of what could not be seen while they lasted.
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

  /// Orders findings by impact, then by severity and length.
  ///
  /// A problem that may be intended comes after the others, however long it lasted.
  private func isWorse(_ one: Finding, _ other: Finding) -> Bool {
    func rank(_ finding: Finding) -> (Int, Double, Int, Int64) {
      let place = finding.severity == .critical ? 2 : finding.severity >= .medium ? 1 : 0
      // Differences below half a second do not decide.
      let harm = (finding.weight * 2).rounded(.down)
      return (place, harm, finding.severity.rawValue, finding.lengthNanoseconds)
    }
    let (first, second) = (rank(one), rank(other))
    if first != second { return first > second }
    return (one.fromNanoseconds, order[one.id] ?? 0, one.subject)
      < (other.fromNanoseconds, order[other.id] ?? 0, other.subject)
  }
}
