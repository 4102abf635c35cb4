// Example queries; each runs on every take, but may return no rows.

export const examples = [
  { name: "round trips", sql: "SELECT at_ns, round_trip_ms FROM round_trip" },
  {
    name: "key frames",
    sql: "SELECT at_ns, kind || ' of ' || size FROM frame WHERE key = 1 AND kind = 'video'",
  },
  { name: "freezes", sql: "SELECT from_ns, to_ns, gap_ms || ' ms' FROM freeze" },
  { name: "states", sql: "SELECT from_ns, to_ns, machine || ': ' || state FROM state_time" },
  {
    name: "packets lost, stream by stream",
    sql: "SELECT peer, direction, ssrc, expected, lost,\n"
      + "  round(100.0 * lost / expected, 2) AS percent\nFROM loss ORDER BY lost DESC",
  },
  {
    name: "bit rates",
    sql: "SELECT peer, direction, ssrc, second * 1000000000 AS at_ns, bits_per_second\n"
      + "FROM bitrate WHERE protocol = 'rtp' ORDER BY at_ns",
  },
  {
    name: "who speaks",
    sql: "SELECT from_ns, to_ns, participant, dbov FROM speaker ORDER BY from_ns",
  },
  {
    name: "NACKs and key frame requests",
    sql: "SELECT at_ns, peer, direction, type, fields FROM rtcp\n"
      + "WHERE type IN ('nack', 'pli', 'fir') ORDER BY row",
  },
  {
    name: "candidate pairs in use",
    sql: "SELECT peer, from_ns, to_ns, local, local_type, remote, remote_type\n"
      + "FROM selected_pair ORDER BY from_ns",
  },
  { name: "descriptions", sql: "SELECT at_ns, peer, direction, type, message FROM signaling" },
];
