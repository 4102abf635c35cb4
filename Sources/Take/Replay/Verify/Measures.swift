import Queries
package import Tape

/// A session's outcome, measured from its take: states, frames, freezes, bit rates, loss and more.
package struct Measures: Hashable, Sendable {
  /// The measures, ordered by peer and then as in `MeasureRule.all`, followed by the peers'
  /// findings.
  package private(set) var all: [Measure] = []

  /// Measures a take; it is neither verified nor replayed.
  ///
  /// - Parameters:
  ///   - isForPin: whether to leave out superseded measures and include findings.
  ///   - hasFindings: whether to include findings.
  package init(path: String, isForPin: Bool = false, hasFindings: Bool = false)
    throws(TapeError)
  {
    let connection = try TakeFile.openForQueries(path)
    var found: [(peer: Int64, rule: Int, measure: Measure)] = []
    do throws(SQLiteError) {
      for (index, rule) in MeasureRule.all.enumerated() where !isForPin || !rule.isSuperseded {
        let statement = try connection.prepare(rule.sql)
        while try statement.step() {
          let (peer, about, value) = statement.values(Int64.self, String.self, Value?.self)
          let name = "peer \(peer)\(about.isEmpty ? "" : " " + about): \(rule.name)"
          guard let measure = Measures.measure(name, value, rule) else { continue }
          found.append((peer, index, measure))
        }
      }
    } catch {
      throw TapeError(path: path, place: "measures", error)
    }
    found.sort { ($0.peer, $0.rule, $0.measure.name) < ($1.peer, $1.rule, $1.measure.name) }
    all = found.map(\.measure)
    if isForPin || hasFindings { all += try Measures.findings(path) }
  }

  /// The suffix of the name of a measure that lists a peer's findings.
  static let findings = ": findings"

  /// Returns a measure for each peer that lists the ids of its findings of at least medium
  /// severity, worst first.
  private static func findings(_ path: String) throws(TapeError) -> [Measure] {
    let found = try TakeFindings(path: path).findings.filter { $0.severity >= .medium }
    return try TakePeers.all(in: path).map { peer in
      var ids: [String] = []
      for finding in found where finding.worst?.peer == peer.number && !ids.contains(finding.id) {
        ids.append(finding.id)
      }
      return Measure(
        name: "peer \(peer.number)\(findings)",
        value: .words(ids.isEmpty ? "none" : ids.joined(separator: ", ")))
    }
  }

  private static func measure(_ name: String, _ value: Value?, _ rule: MeasureRule) -> Measure? {
    switch value {
    case .integer(let number): numeric(name, Double(number), rule)
    case .real(let number): numeric(name, number, rule)
    case .text(let words): Measure(name: name, value: .words(words))
    default: nil
    }
  }

  private static func numeric(_ name: String, _ number: Double, _ rule: MeasureRule) -> Measure {
    Measure(name: name, value: .number(number), tolerance: rule.tolerance(of: number))
  }

  /// The value of the measure with the given name; nil if the take has no such measure.
  package subscript(name: String) -> MeasuredValue? { all.first { $0.name == name }?.value }
}

// MARK: - Measure

/// A measured value: a number or a string.
package enum MeasuredValue: Hashable, Sendable, Codable, CustomStringConvertible {
  case number(Double)
  case words(String)

  /// Decodes a JSON number or string.
  package init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    if let number = try? container.decode(Double.self) {
      self = .number(number)
    } else {
      self = .words(try container.decode(String.self))
    }
  }

  /// Encodes the value as a JSON number or string.
  package func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    switch self {
    case .number(let number):
      if let whole = Int64(exactly: number) {
        try container.encode(whole)
      } else {
        try container.encode(number)
      }
    case .words(let words): try container.encode(words)
    }
  }

  /// The value as text; whole numbers have no decimal point.
  package var description: String {
    switch self {
    case .number(let number): Int64(exactly: number).map { String($0) } ?? String(number)
    case .words(let words): words
    }
  }
}

/// A value measured from a take, with its name.
package struct Measure: Hashable, Sendable, Codable {
  /// The name, such as `peer 1 track 2 video in: frames`.
  package var name: String
  package var value: MeasuredValue
  /// The largest difference at which a number still counts as equal; nil for strings.
  package var tolerance: Double?
}

// MARK: - MeasureRule

/// A quantity that is measured in every take, with its SQL.
///
/// Each row of the result has a peer, a subject such as a track (empty for the entire peer), and a
/// value.
struct MeasureRule: Sendable {
  let name: String
  let sql: String
  /// The default tolerance is `least`, or `part` of the value if that is larger.
  let least: Double
  let part: Double
  /// Whether a better rule replaced this one; pins that contain it still work, but new pins leave
  /// it out.
  let isSuperseded: Bool

  init(
    _ name: String, least: Double = 0, part: Double = 0, isSuperseded: Bool = false, _ sql: String
  ) {
    self.name = name
    self.isSuperseded = isSuperseded
    self.sql = sql
    self.least = least
    self.part = part
  }

  /// Returns the tolerance for a value that is pinned.
  func tolerance(of value: Double) -> Double {
    let tolerance = max(least, value.magnitude * part)
    // People read and edit the tolerance, so it has at most three decimals.
    return (tolerance * 1_000).rounded() / 1_000
  }

  /// All rules, in the order in which a session usually proceeds.
  static let all: [MeasureRule] = [
    states, connectedAfter, pair, streams, bitrate("in"), bitrate("out"), sumOfBitrates("in"),
    sumOfBitrates("out"), lost, nacks, keyFrameRequests,
    frames, firstFrame, concealed, freezes, frozen, pictureSize, level, messages, refused,
  ]

  private static let states = MeasureRule(
    "states",
    """
    SELECT peer, machine, group_concat(to_state, ' > ')
    FROM (SELECT * FROM state ORDER BY row)
    WHERE machine <> 'signaling'
    GROUP BY peer, machine ORDER BY peer, min(row)
    """)

  private static let connectedAfter = MeasureRule(
    "connected after, ms", least: 100, part: 0.2,
    """
    SELECT state.peer, '', round((min(state.at_ns) - peer.at_ns) / 1e6, 1)
    FROM state JOIN peer USING (peer)
    WHERE machine = 'connection' AND to_state = 'connected'
    GROUP BY state.peer
    """)

  private static let pair = MeasureRule(
    "selected pair",
    """
    SELECT peer, '', local_type || ' to ' || remote_type FROM (
      SELECT peer, local_type, remote_type, max(from_ns) FROM selected_pair GROUP BY peer)
    """)

  private static let streams = MeasureRule(
    "codecs",
    """
    SELECT peer, '', group_concat(what, ', ') FROM (
      SELECT DISTINCT peer, track || ' ' || kind || ' ' || direction || ' ' || codec AS what
      FROM track ORDER BY peer, track, direction)
    GROUP BY peer
    """)

  /// Returns a rule for a peer's bit rate, measured from its first packet in a direction to its
  /// last.
  private static func bitrate(_ direction: String) -> MeasureRule {
    MeasureRule(
      "bit rate \(direction), bit/s", least: 8_000, part: 0.1,
      """
      SELECT peer, '', round(sum(bytes) * 8e9 / nullif(max(last_ns) - min(first_ns), 0))
      FROM stream WHERE direction = '\(direction)' GROUP BY peer HAVING sum(packets) > 20
      """)
  }

  /// Returns a rule for the sum of the bit rates of a peer's streams.
  ///
  /// Each stream is measured from its own first packet to its last, so the sum is too large if
  /// streams follow one another.
  private static func sumOfBitrates(_ direction: String) -> MeasureRule {
    MeasureRule(
      "bits per second \(direction)", least: 8_000, part: 0.1, isSuperseded: true,
      """
      SELECT peer, '', round(sum(bits_per_second)) FROM stream
      WHERE direction = '\(direction)' AND packets > 20 GROUP BY peer
      """)
  }

  private static let lost = MeasureRule(
    "lost in, %", least: 1,
    """
    SELECT peer, '', round(100.0 * sum(lost) / sum(expected), 2) FROM loss
    WHERE direction = 'in' GROUP BY peer
    """)

  private static let nacks = MeasureRule(
    "packets asked for again", least: 5, part: 0.25,
    "SELECT peer, '', count(*) FROM rtcp WHERE type = 'nack' AND direction = 'out' GROUP BY peer")

  private static let keyFrameRequests = MeasureRule(
    "key frames asked for", least: 1, part: 0.25,
    """
    SELECT peer, '', count(*) FROM rtcp
    WHERE type IN ('pli', 'fir') AND direction = 'out' GROUP BY peer
    """)

  private static let frames = MeasureRule(
    "frames", least: 2, part: 0.03,
    """
    SELECT peer, \(track), count(*) FROM frame
    WHERE outcome IN ('encoded', 'decoded', 'recovered', 'not decoded', 'passed on')
    GROUP BY peer, track, direction
    """)

  private static let firstFrame = MeasureRule(
    "first frame after, ms", least: 150, part: 0.25,
    """
    SELECT peer, 'track ' || track || ' ' || kind || ' in', round(since_genesis_ms, 1)
    FROM first_frame
    """)

  private static let concealed = MeasureRule(
    "made up, ms", least: 60, part: 0.2,
    """
    SELECT peer, \(track), round(sum(CASE outcome WHEN 'concealed' THEN samples END) / 48.0, 1)
    FROM frame WHERE kind = 'audio' AND direction = 'in' GROUP BY peer, track
    """)

  private static let freezes = MeasureRule(
    "freezes", part: 0.2,
    """
    SELECT shown.peer, \(track), count(freeze.step) FROM (
      SELECT DISTINCT peer, track, kind, direction FROM frame
      WHERE kind = 'video' AND direction = 'in') AS shown
    LEFT JOIN freeze ON freeze.peer = shown.peer AND freeze.track = shown.track
    GROUP BY shown.peer, shown.track
    """.replacing("track ' || track", with: "track ' || shown.track"))

  private static let frozen = MeasureRule(
    "frozen, ms", least: 100, part: 0.2,
    """
    SELECT peer, 'track ' || track || ' video in', round(sum(gap_ms), 1) FROM freeze
    GROUP BY peer, track
    """)

  private static let pictureSize = MeasureRule(
    "picture size",
    """
    SELECT peer, \(track), width || 'x' || height FROM (
      SELECT peer, track, kind, direction, width, height, max(row) FROM frame
      WHERE kind = 'video' AND width > 0 GROUP BY peer, track, direction)
    """)

  private static let level = MeasureRule(
    "mean level, dBov", least: 2,
    """
    SELECT peer, 'track ' || track || ' audio ' || direction, round(avg(dbov), 1)
    FROM audio_level GROUP BY peer, track, direction
    """)

  private static let messages = MeasureRule(
    "messages",
    """
    SELECT peer, 'data channel ' || channel || ' ' || direction, count(*) FROM message
    GROUP BY peer, channel, direction
    """)

  private static let refused = MeasureRule(
    "refused",
    """
    SELECT peer, '', group_concat(what, ', ') FROM (
      SELECT DISTINCT peer, detail ->> '$.layer' || ': ' || (detail ->> '$.reason') AS what
      FROM event WHERE type = 'refused' ORDER BY peer, what)
    GROUP BY peer
    """)

  private static let track = "'track ' || track || ' ' || kind || ' ' || direction"
}
