/// A typical question about a call, with the query that answers it.
///
/// The examples are shown at the prompt of `retake sql` and in `retake open`; tests run them.
package struct QueryExample: Sendable, Hashable {
  package var question: String
  package var sql: String

  init(_ question: String, _ sql: String) {
    self.question = question
    self.sql = sql
  }

  package static let all: [QueryExample] = [
    QueryExample(
      "Which packets were lost, and how long until they were repaired?",
      """
      SELECT peer, ssrc, sequence, to_ns / 1e6 AS missed_ms, requests, repair_ms
      FROM lost_packet WHERE direction = 'in' ORDER BY peer, missed_ms
      """),
    QueryExample(
      "Which packet repaired which?",
      """
      SELECT peer, at_ns, ssrc, sequence, original_ssrc, original_sequence
      FROM repair WHERE direction = 'in' ORDER BY row
      """),
    QueryExample(
      "What was the worst burst of loss?",
      """
      SELECT peer, ssrc, packets, from_ns / 1e6 AS from_ms, (to_ns - from_ns) / 1e6 AS ms
      FROM loss_burst WHERE direction = 'in' ORDER BY packets DESC, from_ns LIMIT 1
      """),
    QueryExample(
      "Which frame froze the picture, and was it waiting for repairs?",
      """
      SELECT freeze.peer, freeze.gap_ms, frame.row AS frame_row,
        (max(frame_packet.at_ns) - freeze.from_ns) / 1e6 AS last_packet_ms,
        sum(is_repair) AS repairs
      FROM freeze JOIN frame ON frame.peer = freeze.peer AND frame.track = freeze.track
        AND frame.direction = 'in' AND frame.kind = 'video' AND frame.at_ns = freeze.to_ns
      JOIN frame_packet ON frame_packet.frame_row = frame.row
      GROUP BY freeze.peer, freeze.from_ns
      """),
    QueryExample(
      "What bit rate does each layer have, second by second?",
      """
      SELECT bitrate.peer, second, mid, bitrate.ssrc, bitrate.bits_per_second
      FROM bitrate JOIN media_stream USING (peer, direction, ssrc)
      WHERE direction = 'out' AND kind = 'video' ORDER BY bitrate.peer, bitrate.ssrc, second
      """),
    QueryExample(
      "How long did it take from the offer to the first picture?",
      """
      SELECT peer, max(at_ns) FILTER (WHERE name = 'first video decoded') / 1e6
        - min(at_ns) FILTER (WHERE name LIKE '% offer') / 1e6 AS ms
      FROM milestone GROUP BY peer
      """),
    QueryExample(
      "Which pair carried the media when?",
      """
      SELECT peer, local, local_type, remote, remote_type, from_ns / 1e9 AS since,
        to_ns / 1e9 AS until
      FROM selected_pair ORDER BY peer, from_ns
      """),
    QueryExample(
      "Who spoke over whom, and for how long?",
      """
      SELECT one.participant, other.participant AS over,
        sum(min(one.to_ns, other.to_ns) - max(one.from_ns, other.from_ns)) / 1e9 AS seconds
      FROM speaker AS one JOIN speaker AS other ON other.from_ns < one.from_ns
        AND other.to_ns > one.from_ns AND other.participant <> one.participant
      WHERE one.direction = 'out' AND other.direction = 'out' GROUP BY 1, 2
      """),
    QueryExample(
      "What does a peer's second offer have that the first did not?",
      """
      WITH offer AS (SELECT peer, row, row_number() OVER (PARTITION BY peer ORDER BY row) AS n
        FROM description WHERE direction = 'out' AND type = 'offer')
      SELECT peer, section, text FROM offer JOIN sdp_line USING (peer, row) WHERE n = 2
      EXCEPT SELECT peer, section, text FROM offer JOIN sdp_line USING (peer, row) WHERE n = 1
      """),
    QueryExample(
      "What was the round-trip time of media, second by second?",
      """
      SELECT peer, at_ns / 1000000000 AS second, median(round_trip_ms) AS ms
      FROM media_round_trip GROUP BY peer, second
      """),
    QueryExample(
      "How long did frames take from the encoder to the screen?",
      """
      SELECT from_peer, to_peer, kind, count(*) AS frames, median(delay_ms) AS median,
        percentile(delay_ms, 95) AS p95, max(delay_ms) AS most
      FROM frame_journey WHERE decoded_ns IS NOT NULL GROUP BY from_peer, to_peer, kind
      """),
    QueryExample(
      "Which packets does transport-wide feedback report as lost?",
      """
      SELECT peer, ssrc, sequence, transport_sequence FROM arrival
      WHERE direction = 'in' AND arrived = 0 ORDER BY row, transport_sequence
      """),
    QueryExample(
      "How fast was each request for a key frame answered?",
      """
      SELECT rtcp.peer, rtcp.type, rtcp.at_ns, (min(frame.at_ns) - rtcp.at_ns) / 1e6 AS ms
      FROM rtcp LEFT JOIN frame ON frame.peer = rtcp.peer AND frame.ssrc = rtcp.ssrc
        AND frame.direction = 'out' AND frame.key = 1 AND frame.at_ns >= rtcp.at_ns
      WHERE rtcp.type IN ('pli', 'fir') AND rtcp.direction = 'in' GROUP BY rtcp.row
      """),
    QueryExample(
      "When did a stream pause, and was it the sender or the network?",
      """
      SELECT peer, ssrc, from_ns / 1e9 AS since, gap_ms,
        iif(missing = 0, 'sender', 'network') AS cause
      FROM gap WHERE direction = 'in' ORDER BY gap_ms DESC
      """),
    QueryExample(
      "Which codecs were offered and answered, by section?",
      """
      SELECT peer, direction, type, mid, value FROM sdp_line
      WHERE attribute = 'rtpmap' ORDER BY row, line
      """),
    QueryExample(
      "What did the remote peer report about the sent media?",
      """
      SELECT peer, at_ns, ssrc, lost_percent, lost FROM report_block
      WHERE direction = 'in' ORDER BY row
      """),
    QueryExample(
      "Which packets carried the largest frame?",
      """
      SELECT frame_packet.* FROM frame_packet WHERE frame_row = (
        SELECT row FROM frame WHERE kind = 'video' AND direction = 'out' ORDER BY size DESC LIMIT 1)
      """),
    QueryExample(
      "How long did frames wait in the jitter buffer, second by second?",
      """
      SELECT peer, kind, at_ns / 1000000000 AS second, jitter_buffer_ms FROM inbound_rtp
      WHERE jitter_buffer_ms IS NOT NULL ORDER BY peer, kind, second
      """),
    QueryExample(
      "How much of what was sent arrived, stream by stream?",
      """
      SELECT label, direction, kind, codec, packets, lost, round(lost_percent, 2) AS percent
      FROM media_stream ORDER BY peer, direction, kind
      """),
    QueryExample(
      "Who took part, and how much did they speak?",
      "SELECT kind, name, speaking_seconds, turns, bytes_sent, bytes_received FROM person"),
  ]
}
