/// A query whose result the page draws; the page shows the SQL so that users can check the numbers
/// with `retake sql`.
package struct PageQuery: Sendable {
  /// The columns that a query returns, which determine how the page draws its result.
  package enum Form: Hashable, Sendable {
    /// Columns peer, subject, from_s, to_s, text: time spans.
    case spans
    /// Columns peer, direction, kind, ssrc, at_ns, value: the value divided by `divisor` is in
    /// `unit`.
    case curves(unit: String, divisor: Double)
    /// Columns peer, direction, type, ssrc, at_ns, value.
    case events
    /// Columns peer, direction, channel, at_ns, value.
    case messages
  }

  package let name: String
  package let form: Form
  /// A single SQL statement.
  package let sql: String

  /// All queries; the page does not depend on their order.
  package static let all: [PageQuery] = spans + inSeries

  /// The queries whose results are series.
  static let inSeries: [PageQuery] = curves + [reports, messages]

  /// SQL for the time at which the take ends; if it was cut off, the time of its last step.
  private static let end = "coalesce((SELECT at_ns FROM ending), (SELECT max(at_ns) FROM tape))"

  // MARK: - Spans

  package static let spans: [PageQuery] = [
    PageQuery(
      name: "states", form: .spans,
      sql: """
        SELECT peer, machine, from_ns / 1e9, to_ns / 1e9, state FROM state_time
        ORDER BY peer, machine, from_ns
        """),
    PageQuery(
      name: "path", form: .spans,
      sql: """
        SELECT peer, local_type || ' ' || remote_type, from_ns / 1e9, to_ns / 1e9,
          local || ' → ' || remote
        FROM selected_pair ORDER BY peer, from_ns
        """),
    PageQuery(
      name: "channels", form: .spans,
      sql: """
        SELECT peer, channel, coalesce(open_ns, from_ns) / 1e9, coalesce(closed_ns, \(end)) / 1e9,
          iif(open_ns IS NULL, 'connecting', 'open')
        FROM channel_total ORDER BY peer, channel
        """),
    PageQuery(
      name: "speakers", form: .spans,
      sql: """
        SELECT peer, participant, from_ns / 1e9, to_ns / 1e9, dbov || ' dBov' FROM speaker
        ORDER BY peer, participant, from_ns
        """),
    PageQuery(
      name: "dominant", form: .spans,
      sql: """
        SELECT peer, participant, from_ns / 1e9, to_ns / 1e9, participant
        FROM dominant_speaker ORDER BY peer, from_ns
        """),
    PageQuery(
      name: "limits", form: .spans,
      sql: """
        SELECT peer, ssrc, at_ns / 1e9,
          coalesce(lead(at_ns) OVER (PARTITION BY peer, ssrc ORDER BY at_ns), \(end)) / 1e9, reason
        FROM (
          SELECT peer, ssrc, at_ns, quality_limitation AS reason,
            lag(quality_limitation) OVER (PARTITION BY peer, ssrc ORDER BY at_ns) AS before
          FROM outbound_rtp WHERE kind = 'video' AND quality_limitation IS NOT NULL
        )
        WHERE reason IS NOT before ORDER BY peer, ssrc, at_ns
        """),
  ]

  // MARK: - Curves

  package static let curves: [PageQuery] = [
    PageQuery(
      name: "target", form: .curves(unit: "kbit/s", divisor: 1e3),
      sql: """
        SELECT peer, 'out', kind, ssrc, at_ns, target_bits_per_second
        FROM outbound_rtp WHERE target_bits_per_second IS NOT NULL ORDER BY 1, 4, 5
        """),
    PageQuery(
      name: "estimate", form: .curves(unit: "kbit/s", divisor: 1e3),
      sql: """
        SELECT peer, 'out', NULL, NULL, at_ns, members ->> '$.availableOutgoingBitrate'
        FROM stat
        WHERE type = 'candidate-pair' AND members ->> '$.availableOutgoingBitrate' IS NOT NULL
        ORDER BY 1, 5
        """),
    PageQuery(
      name: "path-round-trip", form: .curves(unit: "ms", divisor: 1e3),
      sql: """
        SELECT peer, NULL, NULL, NULL, at_ns, 1e3 * round_trip_ms FROM round_trip ORDER BY 1, 5
        """),
    PageQuery(
      name: "round-trip", form: .curves(unit: "ms", divisor: 1e3),
      sql: """
        SELECT peer, direction, NULL, ssrc, at_ns, 1e3 * round_trip_ms FROM media_round_trip
        ORDER BY 1, 2, 4, 5
        """),
    PageQuery(
      name: "jitter", form: .curves(unit: "ms", divisor: 1e3),
      sql: """
        SELECT peer, iif(type = 'inbound-rtp', 'in', 'out'), members ->> '$.kind',
          members ->> '$.ssrc', at_ns, 1e6 * (members ->> '$.jitter')
        FROM stat WHERE type IN ('inbound-rtp', 'remote-inbound-rtp')
          AND members ->> '$.jitter' IS NOT NULL
        ORDER BY 1, 2, 4, 5
        """),
    PageQuery(
      name: "fraction-lost", form: .curves(unit: "%", divisor: 1e3),
      sql: """
        SELECT peer, 'out', members ->> '$.kind', members ->> '$.ssrc', at_ns,
          1e5 * (members ->> '$.fractionLost')
        FROM stat WHERE type = 'remote-inbound-rtp' AND members ->> '$.fractionLost' IS NOT NULL
        ORDER BY 1, 4, 5
        """),
    PageQuery(
      name: "encode-time", form: .curves(unit: "ms", divisor: 1e3),
      sql: """
        SELECT peer, 'out', 'video', ssrc, at_ns,
          1e6 * (seconds - lag(seconds, 1, 0) OVER stream)
            / nullif(frames - lag(frames, 1, 0) OVER stream, 0)
        FROM (
          SELECT peer, at_ns, members ->> '$.ssrc' AS ssrc, members ->> '$.framesEncoded' AS frames,
            members ->> '$.totalEncodeTime' AS seconds
          FROM stat WHERE type = 'outbound-rtp' AND members ->> '$.totalEncodeTime' IS NOT NULL
        )
        WINDOW stream AS (PARTITION BY peer, ssrc ORDER BY at_ns) ORDER BY 1, 4, 5
        """),
    PageQuery(
      name: "decode-time", form: .curves(unit: "ms", divisor: 1e3),
      sql: """
        SELECT peer, 'in', 'video', ssrc, at_ns,
          1e6 * (seconds - lag(seconds, 1, 0) OVER stream)
            / nullif(frames - lag(frames, 1, 0) OVER stream, 0)
        FROM (
          SELECT peer, at_ns, members ->> '$.ssrc' AS ssrc, members ->> '$.framesDecoded' AS frames,
            members ->> '$.totalDecodeTime' AS seconds
          FROM stat WHERE type = 'inbound-rtp' AND members ->> '$.totalDecodeTime' IS NOT NULL
        )
        WINDOW stream AS (PARTITION BY peer, ssrc ORDER BY at_ns) ORDER BY 1, 4, 5
        """),
    PageQuery(
      name: "buffer-target", form: .curves(unit: "ms", divisor: 1e3),
      sql: """
        SELECT peer, 'in', kind, ssrc, at_ns,
          1e6 * (delay - lag(delay, 1, 0) OVER stream)
            / nullif(emitted - lag(emitted, 1, 0) OVER stream, 0)
        FROM (
          SELECT peer, at_ns, members ->> '$.kind' AS kind, members ->> '$.ssrc' AS ssrc,
            members ->> '$.jitterBufferTargetDelay' AS delay,
            members ->> '$.jitterBufferEmittedCount' AS emitted
          FROM stat WHERE type = 'inbound-rtp'
        )
        WHERE delay IS NOT NULL
        WINDOW stream AS (PARTITION BY peer, ssrc ORDER BY at_ns) ORDER BY 1, 4, 5
        """),
    PageQuery(
      name: "level", form: .curves(unit: "dBov", divisor: 10),
      sql: """
        SELECT peer, direction, 'track', track, at_ns, 10 * max(dbov, -90)
        FROM audio_level ORDER BY 1, 2, 4, 5
        """),
  ]

  // MARK: - Events

  package static let reports = PageQuery(
    name: "rtcp", form: .events,
    sql: """
      SELECT peer, direction, type, ssrc, at_ns,
        CASE type
          WHEN 'nack' THEN json_array_length(fields, '$.sequences')
          WHEN 'remb' THEN fields ->> '$.bitrate'
          WHEN 'transport-cc' THEN (fields ->> '$.count') - (fields ->> '$.received')
          ELSE 1
        END
      FROM rtcp WHERE type IN ('nack', 'pli', 'fir', 'remb', 'transport-cc', 'bye')
      ORDER BY 1, 2, 3, 4, row
      """)

  package static let messages = PageQuery(
    name: "messages", form: .messages,
    sql: """
      SELECT peer, direction, channel, at_ns, size FROM message WHERE error IS NULL
      ORDER BY 1, 3, 2, row
      """)

  // MARK: - Equivalents

  /// Queries that return what the page computes from every packet and frame; bit rates are per
  /// second.
  package static let equivalents: [(name: String, sql: String)] = [
    (
      "packets",
      """
      SELECT peer, direction, ssrc, second, bits_per_second FROM bitrate ORDER BY 1, 2, 3, 4
      """
    ),
    ("lost", "SELECT peer, direction, ssrc, expected, received, lost FROM loss"),
    ("freezes", "SELECT peer, track, from_ns, to_ns, gap_ms FROM freeze ORDER BY 1, 2, 3"),
    (
      "frames",
      """
      SELECT peer, direction, track, at_ns, size, key, width, height, outcome, quantiser
      FROM frame ORDER BY row
      """
    ),
  ]
}
