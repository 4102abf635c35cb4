package import Tape
import Wire

/// Something that an engineer would look for in a take, with the query that finds or shows it.
package struct FindingRule: Sendable {
  /// What a detection of a rule is about.
  ///
  /// Detections of one rule about the same thing are one finding, and a cause explains only
  /// symptoms of what it is about.
  package enum Scope: Sendable {
    /// One stream in one direction, seen by either end.
    case stream
    /// Everything that goes from one end of a connection to the other.
    case flow
    /// A connection, with both of its ends.
    case connection
    /// One end: its process, microphone, camera or interfaces.
    case end
    /// The take as a whole.
    case call
  }

  /// A number that a rule decides by.
  package struct Threshold: Sendable {
    /// As the query names it after a colon: `:least_share`.
    ///
    /// Lower case with underscores.
    package let name: String
    package let value: Double
    /// `ms`, `s`, `%`, `packets`, ...; empty for a ratio.
    package let unit: String
    /// What it bounds, and where it comes from: `more is loss; RKB networkaudiolossout`.
    package let source: String

    package init(_ name: String, _ value: Double, _ unit: String, _ source: String) {
      self.name = name
      self.value = value
      self.unit = unit
      self.source = source
    }
  }

  /// What a rule in Swift looks at, besides the facts: its thresholds, as they are in force.
  package struct Limits: Sendable {
    var values: [String: Double] = [:]
    /// The value of a threshold of the rule; 0 for a name that it does not have.
    package subscript(name: String) -> Double { values[name] ?? 0 }
  }

  /// Detects in Swift.
  ///
  /// It must not depend on the order of a dictionary.
  package typealias Detector =
    @Sendable (CallFacts, Limits, borrowing SQLiteConnection) throws(SQLiteError) -> [Detection]

  /// The id: lower case with hyphens.
  ///
  /// It stays valid for ever.
  package let id: String
  package var severity: FindingSeverity
  /// A noun phrase in the words of a person, without the subject: `Packet loss`.
  package let title: String
  package let scope: Scope
  package let thresholds: [Threshold]
  /// The ids of rules that may stand above this one, the likeliest cause first.
  package let causes: [String]
  /// The ids of rules that take this one back where they fired about the same thing at that time.
  package let silentUnder: [String]
  /// Whether it adds up rows of packets, frames or statistics, so that of a part of a take it must
  /// see the rows of that part alone.
  package let sumsUp: Bool
  /// Whether it only explains: it stands between a cause and a symptom, and is no finding alone.
  package let isLink: Bool
  /// One statement, with thresholds as `:name`.
  ///
  /// Without `detector` it gives `peer`, `from_ns`, `to_ns`, `evidence` and optionally the columns
  /// of `Detection`; with it, the rows that show it.
  let template: String
  let detector: Detector?
  /// Thresholds that a file of rules moved.
  var moved: [String: Double] = [:]

  package init(
    id: String, severity: FindingSeverity, title: String, scope: Scope = .stream,
    thresholds: [Threshold] = [], causes: [String] = [], silentUnder: [String] = [],
    sumsUp: Bool = false, isLink: Bool = false, sql: String, detector: Detector? = nil
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
    self.template = sql
    self.detector = detector
  }

  var limits: Limits {
    var limits = Limits()
    for threshold in thresholds {
      limits.values[threshold.name] = moved[threshold.name] ?? threshold.value
    }
    return limits
  }

  /// The query with its thresholds as numbers, which anyone can run.
  package var sql: String {
    // The longest names first, as one may begin like another.
    thresholds.sorted { $0.name.utf8.count > $1.name.utf8.count }.reduce(template) {
      let value = moved[$1.name] ?? $1.value
      let isWhole = value == value.rounded() && abs(value) < 9e15
      return $0.replacing(":" + $1.name, with: isWhole ? "\(Int64(saturating: value))" : "\(value)")
    }
  }

  /// Where a query that needs all rows adds up those of a part of the take: see `sql(of:)`.
  static let window = "/* only a part */"

  /// The query for a part of the take.
  func sql(of selection: TakeSelection) -> String {
    let (from, to) = (selection.fromNanoseconds, selection.toNanoseconds)
    return from == .min && to == .max
      ? sql : sql.replacing(Self.window, with: "AND at_ns BETWEEN \(from) AND \(to)")
  }

  /// When the take ends; one that was cut short has no ending.
  static let end = TakeInfo.end
}

// MARK: - Finding

/// A cause, with what it led to.
package struct Finding: Sendable {
  /// The id of its rule.
  package var id: String
  package var title: String
  /// The worst of its own and its symptoms'.
  package var severity: FindingSeverity
  package var scope: FindingRule.Scope
  /// Of whom: `caller's video to callee`, `from caller to callee`.
  package var subject: String
  /// What of it was found, in the order of time: of one stream, or of several that one fault hit.
  package var detections: [Detection]
  /// What the cause and its symptoms cost together.
  package var impact: FindingImpact
  /// What it led to, the worst first.
  package var symptoms: [Finding]
  /// Which stream its worst detection is of, where several were hit: `callee's audio`.
  package var worstStream: String?
  /// What could not be seen at that time and weakens it.
  package var doubts: [String] = []
  /// What replaying it otherwise showed, where that was asked for.
  package var explanation: String?

  package var fromNanoseconds: Int64 { detections.map(\.fromNanoseconds).min() ?? 0 }
  package var toNanoseconds: Int64 { detections.map(\.toNanoseconds).max() ?? 0 }

  /// Its worst detection.
  package var worst: Detection? {
    detections.max {
      ($0.impact.harmSeconds, $0.impact.share, $0.length, $1.fromNanoseconds)
        < ($1.impact.harmSeconds, $1.impact.share, $1.length, $0.fromNanoseconds)
    }
  }

  /// How long it lasted in all; what went on at the same time counts once.
  package var lengthNanoseconds: Int64 {
    Finding.union(detections.map { ($0.fromNanoseconds, $0.toNanoseconds) })
  }

  /// The ids of the cause and all of its symptoms, from the cause down.
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
  package var length: Int64 { toNanoseconds &- fromNanoseconds }
}

/// How much a finding matters, in the words of rtcstats.
package enum FindingSeverity: Int, Sendable, Hashable, Comparable, CaseIterable {
  /// Worth knowing; nothing is wrong.
  case info = 1
  /// May be meant: a microphone taken away, an encoder held down by its application.
  case low
  /// Costs quality that somebody may notice.
  case medium
  /// Somebody noticed: a picture that stood still, a voice that was not heard.
  case high
  /// The call, or the media of one side, did not happen.
  case critical

  package static func < (one: Self, other: Self) -> Bool { one.rawValue < other.rawValue }

  package var name: String { "\(self)" }

  /// The severity of a name; nil for another word.
  package init?(name: String) {
    guard let found = Self.allCases.first(where: { $0.name == name }) else { return nil }
    self = found
  }
}

// MARK: - Detection

/// Whether something was received by a peer or sent by it.
package enum WireDirection: String, Sendable, Hashable, Comparable {
  case inbound = "in"
  case outbound = "out"

  package static func < (one: Self, other: Self) -> Bool { one.rawValue < other.rawValue }
}

/// What one fault cost, as far as a rule knows.
///
/// Seconds of one thing at one time count once.
package struct FindingImpact: Sendable, Hashable {
  /// Seconds in which a picture stood still.
  package var frozenSeconds = 0.0
  /// Seconds of audio that were concealed.
  package var concealedSeconds = 0.0
  /// Seconds without media that somebody waited for.
  package var withoutMediaSeconds = 0.0
  /// Delay that was added on the way, at its worst.
  package var delayMilliseconds = 0.0
  /// The share of what was affected, from 0 to 1: packets lost, frames dropped.
  package var share = 0.0
  /// How many packets, frames or requests it was.
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

  /// Seconds in which somebody saw or heard less than was sent.
  package var harmSeconds: Double { frozenSeconds + concealedSeconds + withoutMediaSeconds }
}

/// What a rule found, once: of one peer, at one time.
package struct Detection: Sendable, Hashable {
  /// The id of its rule.
  package var rule: String
  package var peer: Int64
  package var fromNanoseconds: Int64
  package var toNanoseconds: Int64
  /// What was measured, as a sentence without a subject where the rule's title has it.
  package var evidence: String
  /// The stream, where it is about one; the media's, also where its repair shows it.
  package var ssrc: Int64?
  /// The transceiver's number, where it is known.
  package var track: Int64?
  /// Of the media that suffers: received by the peer, or sent by it.
  package var direction: WireDirection?
  /// `audio`, `video`, `data`; empty for all.
  package var kind = ""
  package var impact = FindingImpact()
  /// Where it is worse or milder than its rule says.
  package var severity: FindingSeverity?

  package init(
    _ rule: String, peer: Int64, from: Int64, to: Int64, _ evidence: String, ssrc: Int64? = nil,
    track: Int64? = nil, direction: WireDirection? = nil, kind: String = "",
    impact: FindingImpact = FindingImpact(), severity: FindingSeverity? = nil
  ) {
    self.rule = rule
    self.peer = peer
    // None ends before it begins, whatever the rows say.
    fromNanoseconds = min(from, to)
    toNanoseconds = max(from, to)
    self.evidence = evidence
    self.ssrc = ssrc
    self.track = track
    self.direction = direction
    self.kind = kind
    self.impact = impact
    self.severity = severity
  }

  package static func < (one: Self, other: Self) -> Bool {
    (one.fromNanoseconds, one.peer, one.rule, one.evidence)
      < (other.fromNanoseconds, other.peer, other.rule, other.evidence)
  }
}

extension Detection {
  /// The columns that a query may give besides those that it must; others are for people.
  static let optionalColumns = [
    "ssrc", "track", "direction", "kind", "severity", "frozen_s", "concealed_s",
    "without_media_s", "delay_ms", "share", "count",
  ]

  /// A row of the query of a rule.
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
      severity: FindingSeverity(name: text("severity")))
  }
}
