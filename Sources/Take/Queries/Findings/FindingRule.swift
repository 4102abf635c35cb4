package import Tape
import Wire

/// A problem that an engineer would look for in a take, with the query that finds or shows it.
package struct FindingRule: Sendable {
  /// The subject of a rule's detections.
  ///
  /// Detections of one rule about the same subject form one finding, and a cause explains only
  /// symptoms within its subject.
  package enum Scope: Sendable {
    /// One stream in one direction, seen by either end.
    case stream
    /// Everything sent from one end of a connection to the other.
    case flow
    /// A connection, with both of its ends.
    case connection
    /// One end: its process, microphone, camera or interfaces.
    case end
    /// The entire take.
    case call
  }

  /// A number with which a rule compares its measurements.
  package struct Threshold: Sendable {
    /// The name in the query after a colon, as in `:least_share`.
    ///
    /// Lower case with underscores.
    package let name: String
    package let value: Double
    /// `ms`, `s`, `%`, `packets` and so on; empty for a ratio.
    package let unit: String
    /// The threshold's meaning and origin, as in `more is loss; RKB networkaudiolossout`.
    package let source: String

    package init(_ name: String, _ value: Double, _ unit: String, _ source: String) {
      self.name = name
      self.value = value
      self.unit = unit
      self.source = source
    }
  }

  /// The effective thresholds, for a rule in Swift.
  package struct Limits: Sendable {
    var values: [String: Double] = [:]
    /// A threshold's value; 0 for an unknown name.
    package subscript(name: String) -> Double { values[name] ?? 0 }
    /// A threshold that counts something: at least 1, even if a rule file says 0.
    func count(_ name: String) -> Int { max(1, Int(saturating: self[name])) }
  }

  /// Finds detections in Swift.
  ///
  /// The result must not depend on a dictionary's order.
  package typealias Detector =
    @Sendable (CallFacts, Limits, borrowing SQLiteConnection) throws(SQLiteError) -> [Detection]

  /// The id: lower case with hyphens.
  ///
  /// It never changes.
  package let id: String
  package var severity: FindingSeverity
  /// A noun phrase in plain words without the subject, as in `Packet loss`.
  package let title: String
  package let scope: Scope
  package let thresholds: [Threshold]
  /// The ids of rules whose detections can cause this rule's detections, most likely first.
  package let causes: [String]
  /// The ids of rules that suppress this rule's detections if they fired about the same subject at
  /// the same time.
  package let silentUnder: [String]
  /// Whether the rule aggregates packet, frame or statistics rows, in which case it must see only
  /// the rows of the selected part of a take.
  package let sumsUp: Bool
  /// Whether the rule only links a cause to a symptom, in which case it makes no finding without a
  /// symptom.
  package let isLink: Bool
  /// Whether a detection ends when the participant sees or hears media again, in which case it
  /// cannot cause anything that begins later.
  ///
  /// Other detections end on the wire, and their effects lag by the delay of the jitter buffer.
  package let endsForPeople: Bool
  /// One statement, with thresholds as `:name`.
  ///
  /// If `detector` is nil, the statement returns `peer`, `from_ns`, `to_ns`, `evidence` and
  /// optionally `Detection.optionalColumns`; otherwise, it returns rows that illustrate the
  /// detection.
  let template: String
  let detector: Detector?
  /// Where the cause of the rule's findings lies; nil if the rule does not determine it.
  package var side: FindingSide?
  /// How much the rule's evidence shows of the cause; nil if a rule file does not state it.
  package var basis: FindingBasis?
  /// Thresholds that a rule file overrides.
  var moved: [String: Double] = [:]

  package init(
    id: String, severity: FindingSeverity, title: String, scope: Scope = .stream,
    thresholds: [Threshold] = [], causes: [String] = [], silentUnder: [String] = [],
    sumsUp: Bool = false, isLink: Bool = false, endsForPeople: Bool = false, sql: String,
    detector: Detector? = nil
  ) {
    self.id = id
    self.severity = severity
    self.title = title
    self.scope = scope
    self.thresholds = thresholds
    self.causes = causes
    self.silentUnder = silentUnder
    self.sumsUp = sumsUp
    self.isLink = isLink
    self.endsForPeople = endsForPeople
    self.template = sql
    self.detector = detector
    side = FindingSide.of(id)
    basis = FindingBasis.of(id)
  }

  var limits: Limits {
    var limits = Limits()
    for threshold in thresholds {
      limits.values[threshold.name] = moved[threshold.name] ?? threshold.value
    }
    return limits
  }

  /// The query with its thresholds as numbers, ready to run.
  package var sql: String {
    // Longest names first, because one may be a prefix of another.
    thresholds.sorted { $0.name.utf8.count > $1.name.utf8.count }.reduce(template) {
      let value = moved[$1.name] ?? $1.value
      let isWhole = value == value.rounded() && abs(value) < 9e15
      return $0.replacing(":" + $1.name, with: isWhole ? "\(Int64(saturating: value))" : "\(value)")
    }
  }

  /// Marks where an aggregating query is restricted to a part of the take; see `sql(of:)`.
  static let window = "/* only a part */"

  /// Returns the query restricted to a part of the take.
  func sql(of selection: TakeSelection) -> String {
    let (from, to) = (selection.fromNanoseconds, selection.toNanoseconds)
    return from == .min && to == .max
      ? sql : sql.replacing(Self.window, with: "AND at_ns BETWEEN \(from) AND \(to)")
  }

  /// SQL for the end of the take, even if the recording was cut off.
  static let end = TakeInfo.end
}

// MARK: - Finding

/// A cause with its symptoms.
package struct Finding: Sendable {
  package var id: String
  package var title: String
  /// The worst severity among the cause and its symptoms, but medium instead of high if the harm
  /// was too short to be noticed.
  package var severity: FindingSeverity
  package var scope: FindingRule.Scope
  /// The affected stream or direction, as in `caller's video to callee` or `from caller to callee`.
  package var subject: String
  /// The detections in time order, from one stream or from several that the same fault affected.
  package var detections: [Detection]
  /// The joint impact of the cause and its symptoms.
  package var impact: FindingImpact
  /// The finding's symptoms, worst first.
  package var symptoms: [Finding]
  /// The worst detection's stream, as in `callee's audio`; only the end's name if the detection has
  /// no direction.
  package var worstStream: String?
  /// The gaps in coverage during the detections, which weaken the finding.
  package var doubts: [String] = []
  /// How certain the cause and its side are; nil if a rule file does not state it.
  package var confidence: FindingConfidence?
  /// Why the finding is not certain, in a few words; empty if it is certain, or if only `doubts`
  /// weaken it.
  package var reservation = ""
  /// The result of replaying the take with changes, if requested.
  package var explanation: String?
  /// The harm in seconds, summed over all affected streams; findings are ordered by this sum.
  package var weight = 0.0
  /// Where the cause lies; nil if the rule does not determine it.
  package var side: FindingSide?
  /// The side's name to display, such as `network` or an end's name.
  package var sideWords = ""
  /// The severity of detections that do not state their own.
  package var usualSeverity = FindingSeverity.medium

  package var fromNanoseconds: Int64 { detections.map(\.fromNanoseconds).min() ?? 0 }
  package var toNanoseconds: Int64 { detections.map(\.toNanoseconds).max() ?? 0 }

  package var worst: Detection? {
    detections.max {
      let (one, other) = ($0.severity ?? usualSeverity, $1.severity ?? usualSeverity)
      return one != other
        ? one < other
        : ($0.impact.harmSeconds, $0.impact.share, $0.length, $1.fromNanoseconds)
          < ($1.impact.harmSeconds, $1.impact.share, $1.length, $0.fromNanoseconds)
    }
  }

  /// The total duration; overlapping times count once.
  package var lengthNanoseconds: Int64 {
    Finding.union(detections.map { ($0.fromNanoseconds, $0.toNanoseconds) })
  }

  /// The ids of the cause and of all its symptoms; the cause's id comes first.
  package var ids: [String] { [id] + symptoms.flatMap(\.ids) }

  static func union(_ spans: [(from: Int64, to: Int64)]) -> Int64 {
    var sum: Int64 = 0
    var end = Int64.min
    for span in spans.sorted(by: { $0.from < $1.from }) where span.to > end {
      sum &+= max(0, span.to &- max(span.from, end))
      end = span.to
    }
    return sum
  }
}

extension Detection {
  /// Whether the detection is a loss of packets of all protocols, rather than of one stream.
  var isLossOfPath: Bool { rule == FindingRule.loss.id && ssrc == nil }

  package var length: Int64 { toNanoseconds &- fromNanoseconds }

  /// Adapts a detection that reaches beyond a selected part of the take.
  ///
  /// The evidence then states the full period, and each harm is at most the time within the part.
  mutating func limit(to part: TakeSelection) {
    let (from, to) = (fromNanoseconds, toNanoseconds)
    guard from < part.fromNanoseconds || to > part.toNanoseconds else { return }
    let most = Double(max(0, min(to, part.toNanoseconds) -| max(from, part.fromNanoseconds))) / 1e9
    impact.frozenSeconds = min(impact.frozenSeconds, most)
    impact.concealedSeconds = min(impact.concealedSeconds, most)
    impact.withoutMediaSeconds = min(impact.withoutMediaSeconds, most)
    evidence += " (from \(thousandths(from / 1_000_000)) to \(thousandths(to / 1_000_000)) s)"
  }
}

/// A finding's severity, in rtcstats' terms.
package enum FindingSeverity: Int, Sendable, Hashable, Comparable, CaseIterable {
  /// Informational; nothing is wrong.
  case info = 1
  /// May be intended: a removed microphone, an encoder limited by its application.
  case low
  /// Reduces quality, perhaps noticeably.
  case medium
  /// Was noticed: a frozen picture, a voice that was not heard.
  case high
  /// The call, or one side's media, failed altogether.
  case critical

  package static func < (one: Self, other: Self) -> Bool { one.rawValue < other.rawValue }

  package var name: String { "\(self)" }

  /// Creates the severity with the given name; fails if there is none.
  package init?(name: String) {
    guard let found = Self.allCases.first(where: { $0.name == name }) else { return nil }
    self = found
  }
}

// MARK: - Detection

/// Whether a peer received or sent something.
package enum WireDirection: String, Sendable, Hashable, Comparable {
  case inbound = "in"
  case outbound = "out"

  package static func < (one: Self, other: Self) -> Bool { one.rawValue < other.rawValue }
}

/// A fault's known impact.
///
/// Overlapping times of the same subject count once.
package struct FindingImpact: Sendable, Hashable {
  /// Seconds of frozen video.
  package var frozenSeconds = 0.0
  /// Seconds of concealed audio.
  package var concealedSeconds = 0.0
  /// Seconds without expected media.
  package var withoutMediaSeconds = 0.0
  /// The longest delay that the fault added, on the path or elsewhere.
  package var delayMilliseconds = 0.0
  /// The affected share, from 0 to 1: packets lost, frames dropped.
  package var share = 0.0
  /// The number of affected packets, frames or requests.
  package var count: Int64 = 0

  package init() {}

  package init(
    frozen: Double = 0, concealed: Double = 0, withoutMedia: Double = 0, delay: Double = 0,
    share: Double = 0, count: Int64 = 0
  ) {
    frozenSeconds = frozen
    concealedSeconds = concealed
    withoutMediaSeconds = withoutMedia
    delayMilliseconds = delay
    self.share = share
    self.count = count
  }

  /// Seconds in which a participant saw or heard less than was sent.
  package var harmSeconds: Double { frozenSeconds + concealedSeconds + withoutMediaSeconds }
}

/// One occurrence of a problem, at a peer and time.
package struct Detection: Sendable, Hashable {
  /// The id of the rule that fired.
  package var rule: String
  package var peer: Int64
  package var fromNanoseconds: Int64
  package var toNanoseconds: Int64
  /// The measurement as a sentence, without a subject if the rule's title has one.
  package var evidence: String
  /// The affected stream, if any; for a repair stream, the media stream's SSRC.
  package var ssrc: Int64?
  /// The transceiver's number, if known.
  package var track: Int64?
  /// Whether the affected media is received or sent by the peer; nil for detections without a
  /// direction.
  package var direction: WireDirection?
  /// The affected kind of media: `audio`, `video` or `data`; empty for all.
  package var kind = ""
  package var impact = FindingImpact()
  /// The detection's own severity; nil if the rule's severity applies.
  package var severity: FindingSeverity?
  /// How much the evidence shows of the cause; nil if the rule's basis applies.
  package var basis: FindingBasis?

  package init(
    _ rule: String, peer: Int64, from: Int64, to: Int64, _ evidence: String, ssrc: Int64? = nil,
    track: Int64? = nil, direction: WireDirection? = nil, kind: String = "",
    impact: FindingImpact = FindingImpact(), severity: FindingSeverity? = nil,
    basis: FindingBasis? = nil
  ) {
    self.rule = rule
    self.peer = peer
    // A detection never ends before it begins, whatever the rows say.
    fromNanoseconds = min(from, to)
    toNanoseconds = max(from, to)
    self.evidence = evidence
    self.ssrc = ssrc
    self.track = track
    self.direction = direction
    self.kind = kind
    self.impact = impact
    self.severity = severity
    self.basis = basis
  }

  package static func < (one: Self, other: Self) -> Bool {
    (one.fromNanoseconds, one.peer, one.rule, one.evidence)
      < (other.fromNanoseconds, other.peer, other.rule, other.evidence)
  }
}

extension Detection {
  /// A query's optional columns; further columns are only displayed.
  static let optionalColumns = [
    "ssrc", "track", "direction", "kind", "severity", "frozen_s", "concealed_s",
    "without_media_s", "delay_ms", "share", "count", "confidence",
  ]

  /// Reads a row from a rule's query.
  init(_ rule: String, _ row: borrowing SQLiteStatement, _ columns: [String: Int]) {
    func number(_ name: String) -> Int64? {
      guard let column = columns[name], !row.isNull(column) else { return nil }
      return row.integer(column)
    }
    func real(_ name: String) -> Double { columns[name].map { row.real($0) } ?? 0 }
    func text(_ name: String) -> String { columns[name].flatMap { row.text($0) } ?? "" }
    self.init(
      rule, peer: number("peer") ?? 0, from: number("from_ns") ?? 0, to: number("to_ns") ?? 0,
      text("evidence"), ssrc: number("ssrc"), track: number("track"),
      direction: WireDirection(rawValue: text("direction")), kind: text("kind"),
      impact: FindingImpact(
        frozen: real("frozen_s"), concealed: real("concealed_s"),
        withoutMedia: real("without_media_s"), delay: real("delay_ms"), share: real("share"),
        count: number("count") ?? 0),
      severity: FindingSeverity(name: text("severity")),
      basis: FindingConfidence(name: text("confidence")).map(FindingBasis.init))
  }
}
