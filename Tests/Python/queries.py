"""Fifty queries of a take, which must return the same rows from published tables."""

QUERIES = [
    "SELECT label, start_utc, start_unix_ns, format, tool_version, redaction, keeps_media "
    "FROM take",
    "SELECT key, value FROM tag",
    "SELECT peer, label, role, at_ns, actor FROM peer",
    "SELECT actor, kind, label, at_ns FROM actor",
    "SELECT * FROM state",
    "SELECT machine, count(*), min(at_ns), max(at_ns) FROM state GROUP BY machine",
    "SELECT peer, to_state FROM state WHERE machine = 'connection' ORDER BY row",
    "SELECT * FROM state_time",
    "SELECT machine, state, sum(seconds) FROM state_time GROUP BY machine, state",
    "SELECT * FROM candidate",
    "SELECT candidate_type, protocol, count(*) FROM candidate GROUP BY candidate_type, protocol",
    "SELECT * FROM candidate_pair",
    "SELECT * FROM selected_pair",
    "SELECT peer, local_type, remote_type, to_ns - from_ns FROM selected_pair",
    "SELECT peer, direction, transport, type FROM signaling",
    "SELECT type, count(*) FROM signaling GROUP BY type",
    "SELECT * FROM track",
    "SELECT DISTINCT codec, clock_rate FROM track",
    "SELECT * FROM stream",
    "SELECT direction, sum(packets), sum(bytes) FROM stream GROUP BY direction",
    "SELECT * FROM media_stream",
    "SELECT kind, direction, max(lost_percent), sum(packets) FROM media_stream "
    "GROUP BY kind, direction",
    "SELECT * FROM loss",
    "SELECT peer, 100.0 * sum(lost) / sum(expected) FROM loss WHERE direction = 'in' GROUP BY peer",
    "SELECT * FROM round_trip",
    "SELECT peer, count(*), avg(round_trip_ms), max(round_trip_ms) FROM round_trip GROUP BY peer",
    "SELECT * FROM media_round_trip",
    "SELECT * FROM bitrate",
    "SELECT protocol, direction, sum(packets) FROM bitrate GROUP BY protocol, direction",
    "SELECT peer, median(bits_per_second) FROM bitrate WHERE protocol = 'rtp' GROUP BY peer",
    "SELECT * FROM first_frame",
    "SELECT * FROM milestone",
    "SELECT peer, max(since_begin_ms) FROM milestone GROUP BY peer",
    "SELECT * FROM gap",
    "SELECT * FROM \"freeze\"",
    "SELECT * FROM frame_rate",
    "SELECT * FROM resolution_change",
    "SELECT * FROM retransmission",
    "SELECT peer, at_ns, id, type, timestamp_ms FROM stat",
    "SELECT type, count(*) FROM stat GROUP BY type",
    "SELECT id, members ->> '$.kind' FROM stat WHERE type IN ('inbound-rtp', 'outbound-rtp')",
    "SELECT * FROM inbound_rtp",
    "SELECT ssrc, max(packets_received), max(packets_lost) FROM inbound_rtp GROUP BY ssrc",
    "SELECT * FROM outbound_rtp",
    "SELECT * FROM speaker",
    "SELECT participant, sum(seconds) FROM dominant_speaker GROUP BY participant",
    "SELECT * FROM participant",
    "SELECT * FROM participant_track",
    "SELECT kind, name, bytes_sent, bytes_received, speaking_seconds, turns FROM person",
    "SELECT what, reason, from_ns, to_ns FROM coverage",
    "SELECT * FROM channel_total",
    "SELECT id, severity, text, parent, depth, duration_ns FROM finding",
    "SELECT id, side, side_name, confidence, reservation FROM finding",
    "SELECT name, kind, codec, loss_share, concealed_share, freezes FROM quality",
    "SELECT name, packets, packets_lost, packets_refused FROM quality",
    "SELECT direction, packets_lost, loss_share, packets_refused FROM stream",
    "SELECT name, state, connected_ns, local_type, round_trip_ms FROM connection",
    "SELECT name, track, speaking_ns, dbov FROM voice_total",
    "SELECT p.label, s.to_state FROM peer AS p JOIN state AS s ON s.peer = p.peer "
    "WHERE s.machine = 'dtls'",
]

# Tables that are published on request.
PACKET_QUERIES = [
    "SELECT protocol, direction, count(*), sum(size) FROM packet GROUP BY protocol, direction",
    "SELECT * FROM rtcp",
    "SELECT kind, direction, outcome, count(*), sum(size) FROM frame "
    "GROUP BY kind, direction, outcome",
    "SELECT * FROM audio_level",
    "SELECT * FROM lost_packet",
    "SELECT * FROM loss_burst",
]

# Ten queries of a fleet, each of which must be answered within a second.
FLEET_QUERIES = {
    "worst audio by day":
        "SELECT day, max(concealed_share) AS worst, arg_max(take, concealed_share) AS take "
        "FROM quality WHERE kind = 'audio' GROUP BY day ORDER BY day",
    "share of relayed calls":
        "SELECT avg(relay) AS share FROM take",
    "findings by tag":
        "SELECT tag_site, id, count(DISTINCT take) AS takes FROM finding JOIN take USING (take) "
        "WHERE depth = 0 GROUP BY tag_site, id ORDER BY takes DESC",
    "setup-time percentiles by tag":
        "SELECT tag_build, quantile_cont(connected_ns / 1e6, [0.5, 0.9, 0.99]) AS ms FROM take "
        "GROUP BY tag_build ORDER BY tag_build",
    "calls that did not connect":
        "SELECT day, count(*) FILTER (WHERE connected_ns IS NULL) AS failed, count(*) AS calls "
        "FROM take GROUP BY day ORDER BY day",
    "round trips by network":
        "SELECT tag_network, median(round_trip_ms) AS ms FROM take GROUP BY tag_network",
    "loss by site and day":
        "SELECT tag_site, day, avg(loss_share) AS loss FROM take GROUP BY tag_site, day",
    "bit rates of codecs":
        "SELECT codec, direction, median(bits_per_second) AS bits FROM quality "
        "GROUP BY codec, direction",
    "the slowest steps of the setup":
        "SELECT name, quantile_cont(since_begin_ms, 0.95) AS ms FROM milestone GROUP BY name "
        "ORDER BY ms DESC",
    "pairs in use":
        "SELECT local_type, remote_type, count(DISTINCT take) AS takes FROM selected_pair "
        "GROUP BY local_type, remote_type",
}
