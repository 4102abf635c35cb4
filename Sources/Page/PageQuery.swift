/// A question to a take whose answer the page draws; the page shows its SQL, so that whoever doubts
/// a curve can ask for the numbers with `retake sql`.
package struct PageQuery: Sendable {
  /// How the answer is drawn.
  package enum Form: Hashable, Sendable {
    /// Columns peer, name, seconds, value: a curve for each name; `unit` stands at its axis.
    /// `isCounted`: a second without a row counts as 0.
    case curves(unit: String, isCounted: Bool)
    /// Columns peer, name, from_s, to_s, text: a lane for each name with what lasted from when to
    /// when.
    case lanes
  }

  /// What the page calls it.
  package let title: String
  package let form: Form
  /// One statement.
  package let sql: String

  /// All queries in the order in which a page draws them.
  package static let all: [PageQuery] = [
    states, paths, channels, speakers, dominantSpeakers, freezes, pictureSizes,
    bitrate, allowedBitrate, frameRate, loss, roundTrip, jitter, jitterBuffer, concealment,
    loudness, data,
  ]

  /// When the take ends; one that was cut short has no ending.
  private static let end = "coalesce((SELECT at_ns FROM ending), (SELECT max(at_ns) FROM tape))"

  // MARK: - What lasted

  private static let states = PageQuery(
    title: "States", form: .lanes,
    sql: """
      SELECT peer, machine, from_ns / 1e9, to_ns / 1e9, state FROM state_time
      ORDER BY peer, machine, from_ns
      """)

  private static let paths = PageQuery(
    title: "Path", form: .lanes,
    sql: """
      SELECT peer, 'selected pair', from_ns / 1e9, to_ns / 1e9,
        local || ' (' || local_type || ') to ' || remote || ' (' || remote_type || ')'
      FROM selected_pair ORDER BY peer, from_ns
      """)

  private static let channels = PageQuery(
    title: "Data channels", form: .lanes,
    sql: """
      SELECT peer, iif(direction = 'in', 'channels of the peer', 'own channels'),
        open_ns / 1e9, coalesce(closed_ns, \(end)) / 1e9,
        channel || ' ' || label || ', ' || messages_sent || ' messages sent, '
          || messages_received || ' received'
      FROM channel_total WHERE open_ns IS NOT NULL ORDER BY peer, 2, open_ns
      """)

  private static let speakers = PageQuery(
    title: "Who spoke", form: .lanes,
    sql: """
      SELECT peer, participant, from_ns / 1e9, to_ns / 1e9, dbov || ' dBov' FROM speaker
      ORDER BY peer, participant, from_ns
      """)

  private static let dominantSpeakers = PageQuery(
    title: "Dominant speaker", form: .lanes,
    sql: """
      SELECT peer, 'dominant speaker', from_ns / 1e9, to_ns / 1e9, participant
      FROM dominant_speaker ORDER BY peer, from_ns
      """)

  private static let freezes = PageQuery(
    title: "Freezes", form: .lanes,
    sql: """
      SELECT peer, 'freezes of track ' || track, from_ns / 1e9, to_ns / 1e9,
        'no picture for ' || CAST(gap_ms AS INTEGER) || ' ms'
      FROM freeze ORDER BY peer, track, from_ns
      """)

  private static let pictureSizes = PageQuery(
    title: "Size of pictures", form: .lanes,
    sql: """
      SELECT peer, direction || ' track ' || track, at_ns / 1e9,
        coalesce(
          lead(at_ns) OVER (PARTITION BY peer, direction, track ORDER BY at_ns), \(end)) / 1e9,
        width || 'x' || height
      FROM resolution_change ORDER BY peer, direction, track, at_ns
      """)

  // MARK: - What went up and down

  private static let bitrate = PageQuery(
    title: "On the wire", form: .curves(unit: "kbit/s", isCounted: true),
    sql: """
      WITH named AS (
        SELECT peer, direction, stream.ssrc AS ssrc, max(kind) AS kind
        FROM stream JOIN track USING (peer, direction, payload_type)
        GROUP BY 1, 2, 3
      )
      SELECT bitrate.peer,
        bitrate.direction || ' ' || CASE protocol
          WHEN 'rtp' THEN coalesce(kind, 'retransmission') || ' ' || bitrate.ssrc
          ELSE protocol END AS name,
        second, sum(bits_per_second) / 1e3
      FROM bitrate LEFT JOIN named ON named.peer = bitrate.peer
        AND named.direction = bitrate.direction AND named.ssrc = bitrate.ssrc
      GROUP BY bitrate.peer, name, second ORDER BY bitrate.peer, name, second
      """)

  private static let allowedBitrate = PageQuery(
    title: "Bits allowed", form: .curves(unit: "kbit/s", isCounted: false),
    sql: """
      SELECT peer, 'target ' || kind || ' ' || ssrc AS name, at_ns / 1e9,
        target_bits_per_second / 1e3
      FROM outbound_rtp WHERE target_bits_per_second IS NOT NULL
      UNION ALL
      SELECT peer, 'available to send', at_ns / 1e9,
        (members ->> '$.availableOutgoingBitrate') / 1e3
      FROM stat
      WHERE type = 'candidate-pair' AND members ->> '$.availableOutgoingBitrate' IS NOT NULL
      ORDER BY 1, 2, 3
      """)

  private static let frameRate = PageQuery(
    title: "Pictures", form: .curves(unit: "per second", isCounted: true),
    sql: """
      SELECT peer, direction || ' track ' || track AS name, second, frames FROM frame_rate
      ORDER BY peer, name, second
      """)

  private static let loss = PageQuery(
    title: "Packets lost", form: .curves(unit: "since the sample before", isCounted: false),
    sql: """
      SELECT peer, way || ' ' || ssrc AS name, at_ns / 1e9,
        lost - lag(lost, 1, 0) OVER (PARTITION BY peer, way, ssrc ORDER BY at_ns)
      FROM (
        SELECT peer, at_ns, iif(type = 'inbound-rtp', 'in ', 'at the peer ')
          || (members ->> '$.kind') AS way, members ->> '$.ssrc' AS ssrc,
          members ->> '$.packetsLost' AS lost
        FROM stat WHERE type IN ('inbound-rtp', 'remote-inbound-rtp')
      )
      ORDER BY 1, 2, 3
      """)

  private static let roundTrip = PageQuery(
    title: "Round trip", form: .curves(unit: "ms", isCounted: false),
    sql: """
      SELECT peer, 'checks of the path' AS name, at_ns / 1e9, round_trip_ms FROM round_trip
      UNION ALL
      SELECT peer, 'reports ' || direction || ' ' || ssrc, at_ns / 1e9, round_trip_ms
      FROM media_round_trip
      ORDER BY 1, 2, 3
      """)

  private static let jitter = PageQuery(
    title: "Jitter", form: .curves(unit: "ms", isCounted: false),
    sql: """
      SELECT peer, 'in ' || kind || ' ' || ssrc AS name, at_ns / 1e9, jitter_ms FROM inbound_rtp
      UNION ALL
      SELECT peer, 'at the peer ' || (members ->> '$.kind') || ' ' || (members ->> '$.ssrc'),
        at_ns / 1e9, 1e3 * (members ->> '$.jitter')
      FROM stat WHERE type = 'remote-inbound-rtp'
      ORDER BY 1, 2, 3
      """)

  private static let jitterBuffer = PageQuery(
    title: "Wait in the jitter buffer", form: .curves(unit: "ms", isCounted: false),
    sql: """
      SELECT peer, name, at_ns / 1e9,
        1e3 * (delay - lag(delay, 1, 0) OVER stream)
          / nullif(emitted - lag(emitted, 1, 0) OVER stream, 0)
      FROM (
        SELECT peer, at_ns,
          'in ' || (members ->> '$.kind') || ' ' || (members ->> '$.ssrc') AS name,
          members ->> '$.jitterBufferDelay' AS delay,
          members ->> '$.jitterBufferEmittedCount' AS emitted
        FROM stat WHERE type = 'inbound-rtp'
      )
      WINDOW stream AS (PARTITION BY peer, name ORDER BY at_ns) ORDER BY 1, 2, 3
      """)

  private static let concealment = PageQuery(
    title: "Sound made up", form: .curves(unit: "%", isCounted: false),
    sql: """
      SELECT peer, name, at_ns / 1e9,
        100.0 * (concealed - lag(concealed, 1, 0) OVER stream)
          / nullif(samples - lag(samples, 1, 0) OVER stream, 0)
      FROM (
        SELECT peer, at_ns, 'in ' || (members ->> '$.ssrc') AS name,
          members ->> '$.concealedSamples' AS concealed,
          members ->> '$.totalSamplesReceived' AS samples
        FROM stat WHERE type = 'inbound-rtp' AND members ->> '$.kind' = 'audio'
      )
      WINDOW stream AS (PARTITION BY peer, name ORDER BY at_ns) ORDER BY 1, 2, 3
      """)

  private static let loudness = PageQuery(
    title: "Loudness", form: .curves(unit: "dBov", isCounted: false),
    sql: """
      SELECT peer, direction || ' track ' || track AS name, at_ns / 1e9, max(dbov, -90)
      FROM audio_level ORDER BY peer, name, at_ns
      """)

  private static let data = PageQuery(
    title: "Messages", form: .curves(unit: "kbit/s", isCounted: true),
    sql: """
      SELECT peer, iif(direction = 'in', 'received', 'sent') AS name, at_ns / 1000000000 AS second,
        sum(size) * 8 / 1e3
      FROM message WHERE error IS NULL GROUP BY peer, name, second ORDER BY peer, name, second
      """)
}
