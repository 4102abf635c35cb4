package import Tape
import Wire

/// The problems of a take as `retake findings` prints them: causes, each with its symptoms.
package struct TakeFindings: Sendable {
  /// The causes, worst first.
  package private(set) var findings: [Finding] = []
  /// All detections in time order, before they are divided into causes and symptoms.
  package private(set) var detections: [Detection] = []
  /// What the take did not record, by kind of gap; gaps make findings less certain.
  package private(set) var unseen: [String] = []
  /// A summary of what was examined, as in `2 peers, 4 streams of media, 900 packets of RTP over
  /// 12.000 s`.
  package private(set) var looked = ""
  /// The rules that were applied.
  package private(set) var rules: [FindingRule]
  let names: FindingNames
  let facts: CallFacts

  /// Applies rules to a take, and keeps the detections that overlap the selection.
  ///
  /// Rules that sum up packets, frames or statistics see only the selected part.
  package init(
    path: String, selection: TakeSelection = TakeSelection(),
    rules: [FindingRule] = FindingRule.all
  ) throws(TapeError) {
    let connection = try TakeFile.openForQueries(path)
    // In a take that is being recorded, a second connection would see more rows than the first.
    let asked =
      selection == TakeSelection() && !TakeFile.hasLog(path)
      ? ConcurrentWork<Asked?, Never>(named: "retake-findings") { Asked(path, rules) } : nil
    try self.init(path: path, connection, selection, rules, asked)
  }

  /// Facts and detections that a second thread reads from an entire take, because they depend on
  /// nothing else.
  private struct Asked: Sendable {
    let perception: PerceptionFacts
    /// The detections of each rule that is a query, by the rule's identifier.
    private(set) var detections: [String: [Detection]] = [:]

    /// Fails on an error; the first thread encounters the same error and reports it.
    init?(_ path: String, _ rules: [FindingRule]) {
      do {
        let connection = try TakeFile.openForQueries(path)
        perception = try PerceptionFacts(connection)
        for rule in rules where rule.detector == nil {
          detections[rule.id] = try TakeFindings.ask(rule, connection)
        }
      } catch {
        return nil
      }
    }
  }

  /// Applies rules through an open connection.
  ///
  /// If the selection limits the time, the connection is limited to that time afterwards.
  init(
    path: String, _ connection: borrowing SQLiteConnection,
    _ selection: TakeSelection = TakeSelection(), _ rules: [FindingRule] = FindingRule.all
  ) throws(TapeError) {
    try self.init(path: path, connection, selection, rules, nil)
  }

  private init(
    path: String, _ connection: borrowing SQLiteConnection, _ selection: TakeSelection,
    _ rules: [FindingRule], _ asked: ConcurrentWork<Asked?, Never>?
  ) throws(TapeError) {
    self.rules = rules
    do throws(SQLiteError) {
      facts = try CallFacts(connection) { connection throws(SQLiteError) in
        if let read = asked?.value() { return read.perception }
        return try PerceptionFacts(connection)
      }
      names = try FindingNames(connection, facts)
      let isPart = selection.fromNanoseconds > .min || selection.toNanoseconds < .max
      let ofPart = isPart ? try CallFacts(connection, selection) : facts
      for rule in rules where !(isPart && rule.sumsUp && rule.detector == nil) {
        let found =
          if let detector = rule.detector {
            try detector(rule.sumsUp ? ofPart : facts, rule.limits, connection)
          } else if let known = asked?.value()?.detections[rule.id] {
            known
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
      if isPart { for place in detections.indices { detections[place].limit(to: selection) } }
      unseen = facts.unseen
      looked = ofPart.looked(
        from: max(0, selection.fromNanoseconds), to: min(facts.end, selection.toNanoseconds))
      // Some detections end at the next tenth of a second, which may be after the take's end.
      for place in detections.indices where detections[place].fromNanoseconds < facts.end {
        detections[place].toNanoseconds = min(detections[place].toNanoseconds, facts.end)
      }
      detections.sort(by: <)
      findings = FindingTree(detections, rules: rules, facts: facts, names: names).findings
    } catch {
      throw TapeError(path: path, error)
    }
  }

  /// Adds explanations from replays with changes, by the index of the finding.
  package mutating func explain(_ texts: [Int: String]) {
    for place in findings.indices { findings[place].explanation = texts[place] }
  }

  /// Returns the rows of a rule's query as detections; a query with `FindingRule.window` sees only
  /// the selected part.
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

  /// Limits the packets, frames and statistics that later queries return to a part of the take.
  private static func limit(
    _ connection: borrowing SQLiteConnection, to selection: TakeSelection
  ) throws(SQLiteError) {
    let part = "at_ns BETWEEN \(selection.fromNanoseconds) AND \(selection.toNanoseconds)"
    let format = try connection.integer("PRAGMA user_version") ?? TakeHeader.currentFormat
    let views = [Table.packet, .frame, .stat].map { table in
      // The new view has all columns of the newest format, like the view that it replaces.
      """
      DROP VIEW IF EXISTS temp.\(table.storageName);
      CREATE TEMP VIEW \(table.storageName) AS
        SELECT * FROM (\(TakeSchema.rows(of: table, format: format))) WHERE \(part);
      """
    }
    try connection.execute(
      "PRAGMA query_only = OFF;\(views.joined())PRAGMA query_only = ON")
  }

  /// Adds the detections that overlap the selection.
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
  /// The streams without duplicates: a stream that the take has at both ends is listed at its
  /// sender.
  var onceSeen: [Stream] {
    streams.filter { $0.direction == .outbound || otherEnd(of: $0) == nil }
  }

  /// The number of RTP packets; a packet that the take has at both ends counts once.
  var packets: Int64 { onceSeen.reduce(0) { $0 +| $1.packets } }

  /// Returns a description of what the rules examined between two times.
  func looked(from: Int64, to: Int64) -> String {
    var parts = [counted(Int64(peers.count), "peer")]
    let media = Int64(onceSeen.count { $0.role == .media })
    let repairs = Int64(onceSeen.count) -| media
    parts.append(
      "\(counted(media, "stream")) of media"
        + (repairs > 0 ? " and \(counted(repairs, "stream")) of repairs" : ""))
    let isWhole = from <= 0 && to >= end
    func isOnce(_ peer: Int64, _ direction: WireDirection) -> Bool {
      guard let peer = self.peer(peer), peer.end == nil else { return false }
      return direction == .outbound || peer.other == nil
    }
    // RTCP packets were counted only for the entire take.
    let reports =
      isWhole
      ? network.ways.filter { isOnce($0.peer, $0.direction) }.reduce(Int64(0)) { $0 +| $1.reports }
      : 0
    parts.append(
      "\(counted(packets, "packet")) of RTP" + (reports > 0 ? " and \(reports) of RTCP" : ""))
    let shown = tracks.reduce(0) { $0 +| $1.pictures.count }
    if shown > 0 { parts.append(counted(Int64(shown), "video frame")) }
    let blocks = self.reports.count {
      ($0.direction == .inbound || peer($0.peer)?.other == nil) && $0.at >= from && $0.at <= to
    }
    if blocks > 0 { parts.append(counted(Int64(blocks), "report block")) }
    return parts.joined(separator: ", ")
      + (isWhole
        ? " over \(thousandths(end / 1_000_000)) s"
        : " from \(thousandths(from / 1_000_000)) to \(thousandths(to / 1_000_000)) s")
  }
}

// MARK: - FindingTree

/// Distinguishes causes from symptoms.
///
/// A detection is a symptom of a second detection if its rule names the second detection's rule as
/// a cause, both are about the same subject, and it began shortly before, during or soon after the
/// second detection. The remaining detections are causes; causes from the same rule about the same
/// subject form a finding.
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

  /// A symptom may begin up to this long before its cause, in nanoseconds.
  ///
  /// A value per second is timed from the start of its second, and a freeze from the frame before
  /// the lost one, so both can start before their cause.
  private static let lead: Int64 = 1_200_000_000
  /// A symptom may begin up to this long after its cause ended, in nanoseconds.
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

  /// Drops detections that a detection of another rule makes redundant.
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
    for place in detections.indices where !detections[place].isLossOfPath {
      let symptom = detections[place]
      for cause in rules[symptom.rule]?.allCauses ?? [] {
        let candidates = (places[cause] ?? []).filter {
          isCause($0, of: place) && !isHarmless(detections[$0], to: symptom)
        }
        let isExplained = !Self.stalls.contains(cause) || isExplained(symptom, by: candidates)
        guard isExplained else { continue }
        // A cause that overlaps the symptom is preferred, and then a cause that begins close to the
        // symptom.
        guard let best = candidates.max(by: { nearness($0, place) < nearness($1, place) }) else {
          continue
        }
        parents[place] = best
        break
      }
    }
  }

  /// Returns whether a cause cannot have caused a symptom, although it is about the same subject.
  ///
  /// Packets that were replayed, or came before the keys, can cause harm only at the time of their
  /// refusal. The loss of one stream's packets does not break a connection; the loss of packets of
  /// all protocols does.
  private func isHarmless(_ cause: Detection, to symptom: Detection) -> Bool {
    if cause.rule == FindingRule.loss.id, !cause.isLossOfPath {
      return FindingRule.brokenByLoss.contains(symptom.rule)
    }
    guard cause.rule == FindingRule.srtpRefused.id, cause.severity == .low else { return false }
    // Refused packets arrived, so they are not lost on the path.
    return symptom.fromNanoseconds > cause.toNanoseconds || symptom.rule.hasPrefix("loss")
  }

  /// The rules for stalls; a stall explains only harm that lasts about as long as the stall.
  private static let stalls: Set = ["process-starved", "peer-starved", "path-stalled"]

  /// Returns whether stalls lasted long enough to explain a symptom's harm; if not, something else,
  /// such as loss, caused most of it.
  private func isExplained(_ symptom: Detection, by stalls: [Int]) -> Bool {
    let length = stalls.reduce(0.0) { $0 + Double(detections[$1].length) / 1e9 }
    // A stall is followed by late packets and, for video, often by a wait for a key frame.
    return symptom.impact.harmSeconds <= 0.5 + 2 * length
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
    // A cause must not be a symptom of its own symptom.
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
    // Shares and counts of several detections cannot be added, so those of the worst detection are
    // used, as in the text.
    finding.impact.share = finding.worst?.impact.share ?? 0
    finding.impact.count = finding.worst?.impact.count ?? 0
    finding.doubts = doubts(of: own)
    if let rule { judge(&finding, rule) }
    finding.side = rule?.side
    finding.sideWords = names.side(of: finding)
    return finding
  }

  /// The shortest harm that participants notice, in seconds over all streams together.
  private static let leastNoticed = 0.5

  /// Returns the worst severity of the detections, or medium if the worst is high but the harm was
  /// too short to be noticed.
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

  /// Sets a finding's confidence to the confidence of its most certain detection.
  private func judge(_ finding: inout Finding, _ rule: FindingRule) {
    for detection in finding.detections {
      guard let basis = detection.basis ?? rule.basis else { continue }
      var (confidence, reservation) = basis.judge(detection, of: rule, ends)
      if gaps.contains(where: { $0.weakens(detection) }) { confidence = confidence.weakened }
      guard finding.confidence.map({ $0 < confidence }) ?? true else { continue }
      (finding.confidence, finding.reservation) = (confidence, reservation)
    }
  }

  /// Returns descriptions of the gaps in the recording that make the detections less certain.
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

  /// Orders findings: critical findings first, then by impact, severity and length.
  ///
  /// A problem that may be intended is listed after the others, however long it lasted.
  private func isWorse(_ one: Finding, _ other: Finding) -> Bool {
    func rank(_ finding: Finding) -> (Int, Double, Int, Int64) {
      let place = finding.severity == .critical ? 2 : finding.severity >= .medium ? 1 : 0
      // Harm is compared in steps of half a second.
      let harm = (finding.weight * 2).rounded(.down)
      return (place, harm, finding.severity.rawValue, finding.lengthNanoseconds)
    }
    let (first, second) = (rank(one), rank(other))
    if first != second { return first > second }
    return (one.fromNanoseconds, order[one.id] ?? 0, one.subject)
      < (other.fromNanoseconds, order[other.id] ?? 0, other.subject)
  }
}
