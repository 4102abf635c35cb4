import Tape

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
