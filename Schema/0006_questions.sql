-- Views for typical questions about a call. This file changes no table, so that takes of every
-- format have these views. They are plain SQL without functions of Retake, so that sqlite3 and
-- DuckDB's scanner can read them too. `retake sql` computes the larger ones in one pass over the
-- packets, and uses the take's keys for `arrival` and for the originals of all retransmissions in
-- `repair`.

-- RTP packets without their bytes.
CREATE VIEW rtp AS
SELECT
  packet_store."row" AS "row",
  packet_store."row" >> 16 AS step,
  path_end.peer AS peer,
  packet_store.at_ns AS at_ns,
  path_end.direction AS direction,
  packet_store.size AS size,                             -- bytes of UDP payload
  packet_store.ssrc & 4294967295 AS ssrc,
  packet_store.marker_type & 127 AS payload_type,
  packet_store.sequence & 65535 AS sequence,
  packet_store.rtp_time & 4294967295 AS rtp_time,
  (packet_store.marker_type >> 7) & 1 AS marker,
  packet_store.transport_sequence & 65535 AS transport_sequence
FROM packet_store CROSS JOIN path_end
WHERE path_end.path = packet_store.path AND packet_store.marker_type IS NOT NULL;

-- What each peer's payload types carry: `track`, and for the legs of a relay the tracks of the ends
-- with which they talk, in the other direction.
CREATE VIEW payload AS
SELECT track."row" AS "row", track.peer AS peer, track.at_ns AS at_ns, track.track AS track,
  track.mid AS mid, track.kind AS kind, track.direction AS direction, track.ssrc AS ssrc,
  track.codec AS codec, track.payload_type AS payload_type, track.clock_rate AS clock_rate
FROM track
UNION ALL
SELECT track."row", leg.peer, track.at_ns, track.track, track.mid, track.kind,
  CASE track.direction WHEN 'in' THEN 'out' ELSE 'in' END, track.ssrc, track.codec,
  track.payload_type, track.clock_rate
FROM track JOIN peer AS far ON far.peer = track.peer AND far.role = 'observed'
-- A relay names its legs `near 1` and `far 1`, and the ends `near end 1` and `far end 1`.
JOIN peer AS leg ON leg.role = 'relay' AND replace(leg.label, ' ', ' end ') = far.label;

-- Sequence numbers in NACKs (RFC 4585 section 6.2.1), one row each.
CREATE VIEW nack AS
SELECT
  rtcp."row" AS "row", rtcp."row" >> 16 AS step, rtcp.peer AS peer, rtcp.at_ns AS at_ns,
  rtcp.direction AS direction,                           -- 'out': requested by this peer
  rtcp.ssrc AS ssrc,                                     -- the stream that lacks the packet
  CAST(asked.value AS BIGINT) AS sequence
FROM rtcp, json_each(rtcp.fields, '$.sequences') AS asked
WHERE rtcp.type = 'nack';

-- Report blocks (RFC 3550 section 6.4.1): a receiver's statistics of one stream, one row each.
CREATE VIEW report_block AS
SELECT
  rtcp."row" AS "row", rtcp."row" >> 16 AS step, rtcp.peer AS peer, rtcp.at_ns AS at_ns,
  rtcp.direction AS direction,                           -- 'in': about a stream it sends
  CAST((block.value ->> '$.ssrc') AS BIGINT) AS ssrc,
  CAST((block.value ->> '$.fraction_lost') AS BIGINT) * 100 / 256.0 AS lost_percent,
  CAST((block.value ->> '$.lost') AS BIGINT) AS lost,
  CAST((block.value ->> '$.highest') AS BIGINT) AS highest_sequence,
  CAST((block.value ->> '$.jitter') AS BIGINT) AS jitter,          -- ticks of the stream's clock
  CAST((block.value ->> '$.dlsr') AS BIGINT) / 65.536 AS since_sender_report_ms
FROM rtcp, json_each(rtcp.fields, '$.blocks') AS block
WHERE rtcp.type IN ('sr', 'rr');

-- Session descriptions: each distinct one once, when the peer first created it ('out') or received
-- it ('in'). For observed calls, the descriptions that were seen in signaling.
CREATE VIEW description AS
WITH
  said AS (
    SELECT call_request."row" AS "row", call_request.peer AS peer, call_request.at_ns AS at_ns,
      CASE WHEN call_request.name = 'setRemoteDescription' THEN 'in' ELSE 'out' END AS direction,
      -- Calls that another stack reported have W3C's argument itself.
      coalesce(call_request.arguments ->> '$._0.type', call_request.arguments ->> '$.type',
        call_reply.reply ->> '$.type') AS type,
      coalesce(call_request.arguments ->> '$._0.sdp', call_request.arguments ->> '$.sdp',
        call_reply.reply ->> '$.sdp') AS sdp
    FROM call_request LEFT JOIN call_reply
      ON call_reply.peer = call_request.peer AND call_reply.call = call_request.call
    WHERE call_request.name IN (
      'createOffer', 'createAnswer', 'setLocalDescription', 'localDescription',
      'setRemoteDescription')
    UNION ALL
    SELECT signaling."row", signaling.peer, signaling.at_ns, signaling.direction,
      signaling.type, signaling.message
    FROM signaling JOIN peer ON peer.peer = signaling.peer
    WHERE peer.role = 'observed' AND substr(signaling.message, 1, 3) = 'v=0'
  ),
  first_said AS (
    SELECT min("row") AS "row", peer, direction, sdp FROM said WHERE sdp IS NOT NULL
    GROUP BY peer, direction, sdp
  )
SELECT
  said."row" AS "row", said."row" >> 16 AS step, said.peer AS peer, said.at_ns AS at_ns,
  said.direction AS direction,
  said.type AS type,                                     -- offer, answer, pranswer
  said.sdp AS sdp
FROM first_said JOIN said ON said."row" = first_said."row" AND said.sdp = first_said.sdp;

-- The lines of session descriptions (RFC 8866), one row each.
CREATE VIEW sdp_line AS
WITH RECURSIVE
  ending AS (SELECT '"\n"' ->> '$' AS newline, '"\r"' ->> '$' AS carriage_return),
  split ("row", line, text, rest, section) AS (
    SELECT "row", 0, '', replace(sdp, carriage_return, '') || newline, 0 FROM description, ending
    UNION ALL
    SELECT "row", line + 1, substr(rest, 1, instr(rest, newline) - 1),
      substr(rest, instr(rest, newline) + 1),
      section + CASE WHEN substr(rest, 1, 2) = 'm=' THEN 1 ELSE 0 END
    FROM split, ending WHERE instr(rest, newline) > 0 AND line < 10000
  )
SELECT
  description."row" AS "row", description.step AS step, description.peer AS peer,
  description.at_ns AS at_ns, description.direction AS direction, description.type AS type,
  split.line AS line,                                    -- counted from 1
  split.section AS section,                              -- m-section, from 1; 0: session part
  max(CASE WHEN substr(split.text, 1, 6) = 'a=mid:' THEN substr(split.text, 7) END)
    OVER (PARTITION BY split."row", split.section) AS mid,
  substr(split.text, 1, 1) AS letter,
  -- The name of an attribute, such as rtpmap; NULL for other lines.
  CASE
    WHEN substr(split.text, 1, 2) <> 'a=' THEN NULL
    WHEN instr(split.text, ':') > 0 THEN substr(split.text, 3, instr(split.text, ':') - 3)
    ELSE substr(split.text, 3)
  END AS attribute,
  -- The text after the name or letter; NULL: none.
  CASE
    WHEN substr(split.text, 1, 2) <> 'a=' THEN substr(split.text, 3)
    WHEN instr(split.text, ':') > 0 THEN substr(split.text, instr(split.text, ':') + 1)
  END AS value,
  split.text AS text
FROM split JOIN description ON description."row" = split."row"
WHERE split.line > 0 AND split.text <> '';

-- What changed from one description of a peer and direction to the next: a row for each line that
-- was added or removed. The lines `o=`, which only count versions, are left out.
CREATE VIEW sdp_change AS
WITH
  numbered AS (
    SELECT "row", peer, direction,
      row_number() OVER (PARTITION BY peer, direction ORDER BY "row") AS number
    FROM description
  ),
  -- A copy, for which SQLite builds an index.
  said AS MATERIALIZED (
    SELECT sdp_line."row" AS "row", sdp_line.peer AS peer, sdp_line.direction AS direction,
      numbered.number AS number, sdp_line.at_ns AS at_ns, sdp_line.type AS type,
      sdp_line.line AS line, sdp_line.section AS section, sdp_line.mid AS mid,
      sdp_line.text AS text
    FROM sdp_line JOIN numbered ON numbered."row" = sdp_line."row"
      AND numbered.peer = sdp_line.peer AND numbered.direction = sdp_line.direction
    WHERE sdp_line.letter <> 'o'
  ),
  changed AS (
    SELECT later."row" AS "row", later.peer AS peer, later.at_ns AS at_ns,
      later.direction AS direction, later.type AS type, 'added' AS change, later.line AS line,
      later.section AS section, later.mid AS mid, later.text AS text
    FROM said AS later LEFT JOIN said AS former ON former.peer = later.peer
      AND former.direction = later.direction AND former.number = later.number - 1
      AND former.section = later.section AND former.text = later.text
    WHERE later.number > 1 AND former.peer IS NULL
    UNION ALL
    SELECT numbered."row", former.peer, description.at_ns, former.direction, description.type,
      'removed', former.line, former.section, former.mid, former.text
    FROM said AS former
    JOIN numbered ON numbered.peer = former.peer AND numbered.direction = former.direction
      AND numbered.number = former.number + 1
    JOIN description ON description."row" = numbered."row" AND description.peer = numbered.peer
      AND description.direction = numbered.direction
    LEFT JOIN said AS later ON later.peer = former.peer AND later.direction = former.direction
      AND later.number = former.number + 1 AND later.section = former.section
      AND later.text = former.text
    WHERE later.peer IS NULL
  )
SELECT
  "row", "row" >> 16 AS step, peer, at_ns,
  direction, type,                                       -- of the later description
  change,                                                -- added, removed
  line,                                                  -- in the description that has it
  section, mid, text
FROM changed;

-- The phases of a call's setup and their results, each when it first happened. Phases that did not
-- happen have no row.
CREATE VIEW milestone AS
WITH happened AS (
  SELECT peer, 'begins' AS name, min(at_ns) AS at_ns FROM peer GROUP BY peer
  UNION ALL
  SELECT peer, CASE WHEN direction = 'out' THEN 'local ' ELSE 'remote ' END || type, min(at_ns)
  FROM description WHERE type IN ('offer', 'answer') GROUP BY peer, direction, type
  UNION ALL
  SELECT peer, type, min(at_ns) FROM candidate GROUP BY peer, type
  UNION ALL
  SELECT peer, 'gathered', min(at_ns) FROM state
  WHERE machine = 'ice-gathering' AND to_state = 'complete' GROUP BY peer
  UNION ALL
  SELECT peer, 'pair answered', min(at_ns) FROM candidate_pair WHERE responses_received > 0
  GROUP BY peer
  UNION ALL
  SELECT peer, 'pair selected', min(at_ns) FROM candidate_pair WHERE selected = 1 GROUP BY peer
  UNION ALL
  SELECT peer, machine || ' ' || to_state, min(at_ns) FROM state
  WHERE machine = 'ice-connection' AND to_state IN ('checking', 'connected', 'failed')
    OR machine = 'dtls' AND to_state IN ('connecting', 'connected', 'failed')
    OR machine = 'sctp' AND to_state = 'connected'
    OR machine = 'connection' AND to_state IN ('connected', 'disconnected', 'failed', 'closed')
  GROUP BY peer, machine, to_state
  UNION ALL
  SELECT peer, 'channel open', min(at_ns) FROM channel WHERE state = 'open' GROUP BY peer
  UNION ALL
  SELECT peer, CASE WHEN direction = 'out' THEN 'first packet sent' ELSE 'first packet received' END,
    min(first_ns)
  FROM stream GROUP BY peer, direction
  UNION ALL
  SELECT format.peer,
    CASE WHEN direction = 'out' THEN 'first ' || kind || ' encoded'
      ELSE 'first ' || kind || ' decoded' END,
    min(framed.at_ns)
  -- Grouped by format number first, so that names are composed once per format and not per frame.
  FROM (SELECT format, min(at_ns) AS at_ns FROM frame_store GROUP BY format) AS framed
  JOIN format ON format.format = framed.format
  WHERE kind IN ('audio', 'video')
    AND (direction = 'out' AND outcome = 'encoded'
      OR direction = 'in' AND outcome IN ('decoded', 'not decoded'))
  GROUP BY format.peer, direction, kind
)
SELECT
  happened.peer AS peer, peer.label AS label, happened.name AS name, happened.at_ns AS at_ns,
  (happened.at_ns - peer.at_ns) / 1e6 AS since_begin_ms
FROM happened JOIN peer ON peer.peer = happened.peer;

-- Runs of lost packets: those missing between two that arrived. Streams that restart their numbers
-- are split there, as in `loss`.
CREATE VIEW loss_burst AS
WITH
  numbered AS (
    SELECT "row", peer, direction, ssrc, sequence, rtp_time, at_ns,
      row_number() OVER (PARTITION BY peer, direction, ssrc ORDER BY "row") AS number
    FROM rtp
  ),
  again AS (
    SELECT "row", peer, direction, ssrc, sequence, rtp_time, at_ns, number,
      CASE WHEN number - lag(number) OVER same_number <= 128
        AND rtp_time <> lag(rtp_time) OVER same_number THEN 1 ELSE 0 END AS is_reused
    FROM numbered
    WINDOW same_number AS (PARTITION BY peer, direction, ssrc, sequence ORDER BY "row")
  ),
  spaced AS (
    SELECT "row", peer, direction, ssrc, sequence, at_ns, is_reused,
      lag(is_reused) OVER stream AS was_reused,
      ((sequence - lag(sequence) OVER stream + 32768) & 65535) - 32768 AS step_size,
      ((lead(sequence) OVER stream - sequence + 32768) & 65535) - 32768 AS next_step,
      ((rtp_time - lag(rtp_time) OVER stream + 2147483648) & 4294967295) - 2147483648 AS ticks,
      at_ns - lag(at_ns) OVER stream AS pause,
      lag(at_ns) OVER stream - first_value(at_ns) OVER stream AS lasted,
      number - 1.0 AS packets
    FROM again
    WINDOW stream AS (PARTITION BY peer, direction, ssrc ORDER BY "row")
  ),
  marked AS (
    SELECT "row", peer, direction, ssrc, sequence, at_ns, coalesce(step_size, 0) AS step_size,
      CASE
        WHEN step_size IS NULL THEN 0
        WHEN is_reused = 1 AND step_size BETWEEN -99 AND 0 AND (ticks > 0 OR was_reused = 0)
          AND (next_step = 1 OR next_step BETWEEN -99 AND -step_size) THEN 1
        WHEN abs(step_size) < 3000 AND (step_size > -100 OR ticks <= 0) THEN 0
        WHEN step_size > 0 AND step_size * 1.0 * lasted >= packets * pause / 2
          AND step_size * 1.0 * lasted <= packets * pause * 2 THEN 0
        ELSE 1
      END AS begins
    FROM spaced
  ),
  parted AS (
    SELECT "row", peer, direction, ssrc, sequence, at_ns,
      CASE WHEN begins = 1 THEN 0 ELSE step_size END AS step_size,
      sum(begins) OVER (PARTITION BY peer, direction, ssrc ORDER BY "row") AS part
    FROM marked
  ),
  placed AS (
    SELECT "row", peer, direction, ssrc, sequence, at_ns, part,
      sum(step_size) OVER (PARTITION BY peer, direction, ssrc, part ORDER BY "row") AS place
    FROM parted
  ),
  met AS (
    SELECT peer, direction, ssrc, part, place, min("row") AS "row", min(at_ns) AS at_ns,
      min(sequence) AS sequence
    FROM placed GROUP BY peer, direction, ssrc, part, place
  ),
  followed AS (
    SELECT "row", peer, direction, ssrc, sequence, at_ns,
      lag(at_ns) OVER part_order AS from_ns,
      place - lag(place) OVER part_order - 1 AS packets
    FROM met
    WINDOW part_order AS (PARTITION BY peer, direction, ssrc, part ORDER BY place)
  )
SELECT
  "row", "row" >> 16 AS step, peer, direction, ssrc,
  from_ns,                                               -- the last packet before the run
  at_ns AS to_ns,                                        -- the first packet after it
  (sequence - packets) & 65535 AS first_sequence,
  packets                                                -- the number of missing packets
FROM followed WHERE packets > 0;

-- Retransmissions (RTX, RFC 4588) with the packet that each repeats. The number of that packet is
-- encrypted: `retake sql` decrypts it; here it is inferred from NACKed packets with the same RTP
-- time, if the take has the sender.
CREATE VIEW repair AS
WITH
  media AS (
    SELECT DISTINCT peer, direction, payload_type FROM payload WHERE codec <> 'rtx'
  ),
  again AS (
    SELECT rtp."row" AS "row", rtp.step AS step, rtp.peer AS peer, rtp.at_ns AS at_ns,
      rtp.direction AS direction, rtp.ssrc AS ssrc, rtp.payload_type AS payload_type,
      rtp.sequence AS sequence, rtp.rtp_time AS rtp_time, rtp.size AS size
    FROM rtp LEFT JOIN media ON media.peer = rtp.peer AND media.direction = rtp.direction
      AND media.payload_type = rtp.payload_type
    WHERE media.peer IS NULL
  ),
  asked AS (
    SELECT ssrc, sequence, min("row") AS "row" FROM nack GROUP BY ssrc, sequence
  ),
  original AS (
    SELECT rtp.rtp_time AS rtp_time, rtp.ssrc AS ssrc, rtp.sequence AS sequence,
      row_number() OVER (PARTITION BY rtp.rtp_time ORDER BY min(asked."row"), rtp.sequence)
        AS place,
      count(rtp.ssrc) OVER (PARTITION BY rtp.rtp_time) AS places
    FROM asked JOIN rtp ON rtp.ssrc = asked.ssrc AND rtp.sequence = asked.sequence
      AND rtp.direction = 'out'
    GROUP BY rtp.rtp_time, rtp.ssrc, rtp.sequence
  ),
  -- The first of several equal ones represents them.
  alike AS (
    SELECT again.*, min("row") OVER (PARTITION BY rtp_time, ssrc, sequence) AS first_row
    FROM again
  ),
  numbered AS (
    SELECT alike.*, dense_rank() OVER (PARTITION BY rtp_time ORDER BY first_row) AS place
    FROM alike
  )
SELECT
  numbered."row" AS "row", numbered.step AS step, numbered.peer AS peer, numbered.at_ns AS at_ns,
  numbered.direction AS direction,
  numbered.ssrc AS ssrc, numbered.payload_type AS payload_type, numbered.sequence AS sequence,
  numbered.rtp_time AS rtp_time, numbered.size AS size,
  original.ssrc AS original_ssrc,                        -- NULL: unknown
  original.sequence AS original_sequence
FROM numbered
LEFT JOIN original ON original.rtp_time = numbered.rtp_time
  AND original.place = (numbered.place - 1) % original.places + 1;

-- The packets of `loss_burst` one by one: when each was missed, requested and repaired.
CREATE VIEW lost_packet AS
WITH RECURSIVE
  -- A copy, for which SQLite builds an index.
  sent_again AS MATERIALIZED (
    SELECT "row", peer, direction, at_ns, ssrc, sequence, original_ssrc, original_sequence
    FROM repair WHERE original_ssrc IS NOT NULL
  ),
  missing ("row", peer, direction, ssrc, from_ns, to_ns, sequence, remaining) AS (
    SELECT "row", peer, direction, ssrc, from_ns, to_ns, first_sequence, packets - 1
    FROM loss_burst
    UNION ALL
    SELECT "row", peer, direction, ssrc, from_ns, to_ns, (sequence + 1) & 65535, remaining - 1
    FROM missing WHERE remaining > 0
  ),
  -- Sequence numbers recur after 65,536 packets; a NACK within 10 s means this one.
  asked AS (
    SELECT missing."row" AS "row", missing.peer AS peer, missing.sequence AS sequence,
      min(nack.at_ns) AS asked_ns, count(nack.sequence) AS requests
    FROM missing JOIN nack ON nack.peer = missing.peer AND nack.ssrc = missing.ssrc
      AND nack.sequence = missing.sequence AND nack.direction <> missing.direction
      AND nack.at_ns BETWEEN missing.to_ns - 10000000000 AND missing.to_ns + 10000000000
    -- A packet of an observed call is in the same row for both ends.
    GROUP BY missing."row", missing.peer, missing.sequence
  ),
  repaired AS (
    SELECT missing."row" AS "row", missing.sequence AS sequence, min(sent_again."row") AS repair_row
    FROM missing JOIN sent_again ON sent_again.peer = missing.peer
      AND sent_again.direction = missing.direction AND sent_again.original_ssrc = missing.ssrc
      AND sent_again.original_sequence = missing.sequence
      AND sent_again.at_ns BETWEEN missing.to_ns - 10000000000 AND missing.to_ns + 10000000000
    GROUP BY missing."row", missing.sequence
  )
SELECT
  missing."row" AS "row", missing."row" >> 16 AS step, missing.peer AS peer,
  missing.direction AS direction, missing.ssrc AS ssrc, missing.sequence AS sequence,
  missing.from_ns AS from_ns,                            -- the packet before the gap
  missing.to_ns AS to_ns,                                -- the packet after the gap
  asked.asked_ns AS asked_ns,                            -- NULL: not requested
  coalesce(asked.requests, 0) AS requests,
  sent_again.at_ns AS repaired_ns,                       -- NULL: never
  sent_again.ssrc AS repair_ssrc, sent_again.sequence AS repair_sequence,
  (sent_again.at_ns - missing.to_ns) / 1e6 AS repair_ms
FROM missing
LEFT JOIN asked ON asked."row" = missing."row" AND asked.peer = missing.peer
  AND asked.sequence = missing.sequence
LEFT JOIN repaired ON repaired."row" = missing."row" AND repaired.sequence = missing.sequence
LEFT JOIN sent_again ON sent_again."row" = repaired.repair_row
  AND sent_again.peer = missing.peer;

-- Pauses of an RTP stream: at least 200 ms, and at least three times the usual interval between its
-- frames.
CREATE VIEW gap AS
WITH
  spaced AS (
    SELECT "row", peer, direction, ssrc, at_ns,
      lag(at_ns) OVER stream AS from_ns,
      ((sequence - lag(sequence) OVER stream + 32768) & 65535) - 32768 AS step_size,
      CASE WHEN rtp_time = lag(rtp_time) OVER stream THEN 0 ELSE 1 END AS is_frame
    FROM rtp
    WINDOW stream AS (PARTITION BY peer, direction, ssrc ORDER BY "row")
  ),
  usual AS (
    SELECT peer, direction, ssrc, (max(at_ns) - min(at_ns)) * 1.0 / sum(is_frame) AS frame_ns
    FROM spaced GROUP BY peer, direction, ssrc
  )
SELECT
  "row", "row" >> 16 AS step, spaced.peer AS peer, spaced.direction AS direction,
  spaced.ssrc AS ssrc, from_ns, at_ns AS to_ns, (at_ns - from_ns) / 1e6 AS gap_ms,
  -- Sequence numbers missing across it; 0: the sender paused, or all packets arrived late.
  CASE WHEN step_size > 1 THEN step_size - 1 ELSE 0 END AS missing
FROM spaced JOIN usual ON usual.peer = spaced.peer AND usual.direction = spaced.direction
  AND usual.ssrc = spaced.ssrc
WHERE at_ns - from_ns >= 200000000 AND at_ns - from_ns >= 3 * frame_ns;

-- Frames with the packets that carried them, one row per packet, including retransmitted ones.
CREATE VIEW frame_packet AS
WITH
  first_frame_row AS (
    SELECT format.peer AS peer, format.ssrc AS ssrc, min(frame_store."row") AS "row"
    FROM frame_store JOIN format ON format.format = frame_store.format
    WHERE format.direction = 'out' AND (
      format.outcome = 'encoded' OR format.outcome = 'passed on' AND format.kind = 'video')
    GROUP BY format.peer, format.ssrc
  ),
  first_packet_row AS (
    SELECT peer, ssrc, min("row") AS "row" FROM rtp WHERE direction = 'out' GROUP BY peer, ssrc
  ),
  -- The offset that a stream adds to the RTP times of its sent frames.
  shift AS (
    SELECT first_frame_row.peer AS peer, first_frame_row.ssrc AS ssrc,
      packet_store.rtp_time - frame_store.rtp_time AS ticks
    FROM first_frame_row
    JOIN first_packet_row ON first_packet_row.peer = first_frame_row.peer
      AND first_packet_row.ssrc = first_frame_row.ssrc
    JOIN frame_store ON frame_store."row" = first_frame_row."row"
    JOIN packet_store ON packet_store."row" = first_packet_row."row"
  ),
  placed AS (
    SELECT frame_store."row" AS frame_row, format.peer AS peer, format.direction AS direction,
      format.track AS track, format.kind AS kind, format.ssrc AS ssrc,
      (frame_store.rtp_time + coalesce(shift.ticks, 0)) & 4294967295 AS rtp_time
    FROM frame_store JOIN format ON format.format = frame_store.format
    LEFT JOIN shift ON format.direction = 'out' AND shift.peer = format.peer
      AND shift.ssrc = format.ssrc
    WHERE format.outcome NOT IN ('concealed', 'recovered') AND format.kind IN ('audio', 'video')
  )
SELECT
  placed.frame_row AS frame_row, rtp."row" AS packet_row,
  placed.peer AS peer, placed.direction AS direction, placed.track AS track,
  placed.kind AS kind, placed.ssrc AS ssrc, rtp.sequence AS sequence,
  placed.rtp_time AS rtp_time,                           -- as on the wire
  rtp.at_ns AS at_ns, rtp.size AS size, rtp.marker AS marker,
  0 AS is_repair                                         -- 1: carried by a retransmission
FROM placed JOIN rtp ON rtp.peer = placed.peer AND rtp.direction = placed.direction
  AND rtp.ssrc = placed.ssrc AND rtp.rtp_time = placed.rtp_time
UNION ALL
SELECT
  placed.frame_row, repair."row", placed.peer, placed.direction, placed.track, placed.kind,
  placed.ssrc, repair.original_sequence, placed.rtp_time, repair.at_ns, repair.size, NULL, 1
FROM placed JOIN repair ON repair.peer = placed.peer AND repair.direction = placed.direction
  AND repair.original_ssrc = placed.ssrc AND repair.rtp_time = placed.rtp_time;

-- The journey of sent frames: captured, encoded, sent, received by another peer of the take (of
-- `merge --out`, of a local call, or of an observed call), decoded and so displayed.
CREATE VIEW frame_journey AS
WITH
  carried AS (
    SELECT frame_row, peer, direction, track, kind, ssrc, rtp_time,
      count(DISTINCT sequence) AS packets, min(at_ns) AS first_ns, max(at_ns) AS last_ns,
      sum(is_repair) AS repairs
    FROM frame_packet
    GROUP BY frame_row, peer, direction, track, kind, ssrc, rtp_time
  ),
  captured AS (
    SELECT peer, track, "row" >> 16 AS step, min(at_ns) AS at_ns FROM capture
    GROUP BY peer, track, "row" >> 16
  )
SELECT
  sent.frame_row AS frame_row, sent.peer AS from_peer, came.peer AS to_peer,
  sent.track AS track, sent.kind AS kind, sent.ssrc AS ssrc, sent.rtp_time AS rtp_time,
  format.key AS key, frame_store.size AS size,
  captured.at_ns AS captured_ns,                         -- NULL: no captured frame
  frame_store.at_ns AS encoded_ns,
  sent.packets AS packets, sent.first_ns AS first_sent_ns, sent.last_ns AS last_sent_ns,
  came.packets AS arrived_packets, came.repairs AS repairs,
  came.first_ns AS first_arrived_ns, came.last_ns AS last_arrived_ns,
  came.frame_row AS decoded_row,
  decoded.at_ns AS decoded_ns,                           -- NULL: not decoded, or not known
  (decoded.at_ns - coalesce(captured.at_ns, frame_store.at_ns)) / 1e6 AS delay_ms
FROM carried AS sent
JOIN frame_store ON frame_store."row" = sent.frame_row
JOIN format ON format.format = frame_store.format
LEFT JOIN captured ON captured.peer = sent.peer AND captured.track = sent.track
  AND captured.step = sent.frame_row >> 16
LEFT JOIN carried AS came ON came.direction = 'in' AND came.peer <> sent.peer
  AND came.ssrc = sent.ssrc AND came.rtp_time = sent.rtp_time
LEFT JOIN frame_store AS decoded ON decoded."row" = came.frame_row
WHERE sent.direction = 'out';

-- Concealed audio: runs of played blocks that had no packet, from the last block before each.
CREATE VIEW concealment AS
WITH
  block AS (
    SELECT frame_store."row" AS "row", frame_store.at_ns AS at_ns, format.peer AS peer,
      format.track AS track, format.ssrc AS ssrc, format.samples / 48.0 AS milliseconds,
      CASE format.outcome WHEN 'concealed' THEN NULL ELSE frame_store.rtp_time & 4294967295 END
        AS rtp_time,
      CASE format.outcome WHEN 'concealed' THEN 1 ELSE 0 END AS is_concealed
    FROM frame_store JOIN format ON format.format = frame_store.format
    WHERE format.kind = 'audio' AND format.direction = 'in'
      AND format.outcome IN ('decoded', 'recovered', 'concealed')
  ),
  -- Each other block begins a run, to which the concealed blocks after it belong.
  numbered AS (
    SELECT block.*, sum(1 - is_concealed) OVER (PARTITION BY peer, track ORDER BY "row") AS number
    FROM block
  ),
  run AS (
    SELECT peer, track, number, max(ssrc) AS ssrc,
      min(CASE WHEN is_concealed = 1 THEN "row" END) AS "row",
      min(CASE WHEN is_concealed = 1 THEN at_ns END) AS at_ns,
      sum(is_concealed) AS blocks,
      sum(CASE WHEN is_concealed = 1 THEN milliseconds ELSE 0 END) AS concealed_ms,
      max(CASE WHEN is_concealed = 0 THEN milliseconds END) AS before_ms,
      min(CASE WHEN is_concealed = 0 THEN at_ns END) AS begin_ns,
      max(rtp_time) AS rtp_time
    FROM numbered GROUP BY peer, track, number
  ),
  followed AS (
    SELECT run.*, lead(begin_ns) OVER track_order AS to_ns,
      ((lead(rtp_time) OVER track_order - rtp_time + 2147483648) & 4294967295) - 2147483648
        AS ticks
    FROM run WINDOW track_order AS (PARTITION BY peer, track ORDER BY number)
  ),
  clock AS (
    SELECT peer, track, max(clock_rate) AS clock_rate FROM track
    WHERE direction = 'in' AND kind = 'audio' AND clock_rate > 0 GROUP BY peer, track
  )
SELECT
  followed."row" AS "row", followed."row" >> 16 AS step, followed.peer AS peer,
  followed.track AS track, followed.ssrc AS ssrc,
  followed.at_ns AS from_ns,
  followed.to_ns AS to_ns,                               -- NULL: to the end
  followed.blocks AS blocks, followed.concealed_ms AS concealed_ms,
  -- Audio between the blocks around it that was never played: lost, too late or not sent (DTX).
  -- 0: all of it was played, because playout waited for it.
  CASE WHEN ticks * 1000.0 / clock.clock_rate - before_ms > 0
    THEN ticks * 1000.0 / clock.clock_rate - before_ms ELSE 0 END AS missing_ms
FROM followed LEFT JOIN clock ON clock.peer = followed.peer AND clock.track = followed.track
WHERE followed.blocks > 0;

-- The arrival of sent packets according to transport-wide feedback, one row per packet. Feedback is
-- encrypted: `retake sql` decrypts it; in other programs the view has no rows.
CREATE VIEW arrival AS
SELECT
  rtcp."row" AS "row", rtcp."row" >> 16 AS step, rtcp.peer AS peer, rtcp.at_ns AS at_ns,
  rtcp.direction AS direction,                           -- 'in': about packets that this peer sent
  rtp.ssrc AS ssrc, rtp.sequence AS sequence,
  rtp.transport_sequence AS transport_sequence,
  rtp."row" AS packet_row,                               -- NULL: not in the take
  1 AS arrived,                                          -- 0: reported as not received
  CAST(NULL AS DOUBLE) AS arrival_ms                     -- on the receiver's clock
FROM rtcp JOIN rtp ON rtp."row" = rtcp."row" WHERE rtcp.type = 'none';

-- The life of each media packet: sent, lost, requested, repaired and by which packet, arrived,
-- decoded. One row per packet and receiver. If the sender or receiver is not in the take, its
-- columns are NULL; without the receiver, a packet that was requested counts as lost. Packets of
-- observed calls that were lost before the observer have a row without the times of their sender.
CREATE VIEW packet_life AS
WITH
  media AS (
    SELECT DISTINCT peer, direction, payload_type FROM track WHERE codec <> 'rtx'
  ),
  carried AS (
    SELECT rtp."row" AS "row", rtp.peer AS peer, rtp.direction AS direction, rtp.at_ns AS at_ns,
      rtp.ssrc AS ssrc, rtp.sequence AS sequence, rtp.rtp_time AS rtp_time, rtp.size AS size
    FROM rtp JOIN media ON media.peer = rtp.peer AND media.direction = rtp.direction
      AND media.payload_type = rtp.payload_type
  ),
  sender AS (SELECT DISTINCT peer, ssrc FROM carried WHERE direction = 'out'),
  receiver AS (SELECT DISTINCT peer, ssrc FROM carried WHERE direction = 'in'),
  came AS (
    SELECT peer, ssrc, sequence, rtp_time, min("row") AS "row", min(at_ns) AS at_ns,
      count("row") AS copies
    FROM carried WHERE direction = 'in' GROUP BY peer, ssrc, sequence, rtp_time
  ),
  -- Packets sent after the last one that arrived were still in transit.
  newest AS (SELECT peer, ssrc, max(at_ns) AS at_ns FROM came GROUP BY peer, ssrc),
  again AS (
    SELECT peer, direction, original_ssrc AS ssrc, original_sequence AS sequence, rtp_time,
      min("row") AS "row", min(at_ns) AS at_ns
    FROM repair WHERE original_ssrc IS NOT NULL
    GROUP BY peer, direction, original_ssrc, original_sequence, rtp_time
  ),
  shown AS (
    SELECT format.peer AS peer, format.ssrc AS ssrc, frame_store.rtp_time & 4294967295 AS rtp_time,
      min(frame_store."row") AS "row", min(frame_store.at_ns) AS at_ns
    FROM frame_store JOIN format ON format.format = frame_store.format
    WHERE format.direction = 'in' AND format.outcome IN ('decoded', 'not decoded', 'passed on')
    GROUP BY format.peer, format.ssrc, frame_store.rtp_time & 4294967295
  ),
  way AS (
    SELECT sent."row" AS sent_row, sent.peer AS peer, receiver.peer AS to_peer, sent.ssrc AS ssrc,
      sent.sequence AS sequence, sent.rtp_time AS rtp_time, sent.size AS size,
      sent.at_ns AS sent_ns, NULL AS noticed_ns
    FROM carried AS sent
    LEFT JOIN receiver ON receiver.ssrc = sent.ssrc AND receiver.peer <> sent.peer
    WHERE sent.direction = 'out'
    UNION ALL
    SELECT NULL, NULL, came.peer, came.ssrc, came.sequence, came.rtp_time, stored.size, NULL, NULL
    FROM came JOIN packet_store AS stored ON stored."row" = came."row"
    LEFT JOIN sender ON sender.ssrc = came.ssrc AND sender.peer <> came.peer
    WHERE sender.peer IS NULL
    UNION ALL
    SELECT NULL, min(sender.peer), lost_packet.peer, lost_packet.ssrc, lost_packet.sequence,
      min(again.rtp_time), NULL, NULL, lost_packet.to_ns
    FROM lost_packet
    JOIN receiver ON receiver.peer = lost_packet.peer AND receiver.ssrc = lost_packet.ssrc
    JOIN peer ON peer.peer = lost_packet.peer
    LEFT JOIN sender ON sender.ssrc = lost_packet.ssrc AND sender.peer <> lost_packet.peer
    LEFT JOIN again ON again.peer = lost_packet.peer AND again.direction = 'in'
      AND again.ssrc = lost_packet.ssrc AND again.sequence = lost_packet.sequence
      AND again.at_ns = lost_packet.repaired_ns
    -- An observer sees a packet once, as sent and received: it lacks what was lost before it.
    WHERE lost_packet.direction = 'in' AND (sender.peer IS NULL OR peer.role = 'observed')
    GROUP BY lost_packet.peer, lost_packet.ssrc, lost_packet.sequence, lost_packet.to_ns
  ),
  -- Sequence numbers recur after 65,536 packets; a NACK within 10 s means this one.
  asked AS (
    SELECT way.peer AS peer, way.to_peer AS to_peer, way.ssrc AS ssrc, way.sequence AS sequence,
      way.rtp_time AS rtp_time, way.noticed_ns AS noticed_ns, min(nack.at_ns) AS at_ns,
      count(nack."row") AS requests
    FROM way
    LEFT JOIN came ON came.peer = way.to_peer AND came.ssrc = way.ssrc
      AND came.sequence = way.sequence AND came.rtp_time = way.rtp_time
    JOIN nack ON nack.ssrc = way.ssrc AND nack.sequence = way.sequence
      AND nack.peer = coalesce(way.to_peer, way.peer)
      AND nack.direction = CASE WHEN way.to_peer IS NULL THEN 'in' ELSE 'out' END
      AND abs(nack.at_ns - coalesce(way.sent_ns, came.at_ns, way.noticed_ns)) <= 10000000000
    GROUP BY way.peer, way.to_peer, way.ssrc, way.sequence, way.rtp_time, way.noticed_ns
  )
SELECT
  way.peer AS peer, way.to_peer AS to_peer, way.ssrc AS ssrc, way.sequence AS sequence,
  way.rtp_time AS rtp_time, way.size AS size,
  way.sent_row AS sent_row, way.sent_ns AS sent_ns,
  came."row" AS arrived_row,
  came.at_ns AS arrived_ns,                              -- NULL: the packet itself never did
  coalesce(came.copies, 0) AS copies,
  CASE
    WHEN came."row" IS NOT NULL THEN 0
    WHEN asked.at_ns IS NOT NULL OR way.sent_ns IS NULL THEN 1
    WHEN way.sent_ns < newest.at_ns THEN 1
    ELSE 0
  END AS lost,
  asked.at_ns AS asked_ns, coalesce(asked.requests, 0) AS requests,
  again_sent."row" AS repair_row,                        -- its first retransmission
  again_sent.at_ns AS repair_sent_ns,
  again_came."row" AS repaired_row,                      -- the first retransmission that arrived
  again_came.at_ns AS repaired_ns,                       -- NULL: no retransmission arrived
  shown."row" AS frame_row,
  shown.at_ns AS decoded_ns                              -- NULL: its frame was not decoded
FROM way
LEFT JOIN came ON came.peer = way.to_peer AND came.ssrc = way.ssrc
  AND came.sequence = way.sequence AND came.rtp_time = way.rtp_time
LEFT JOIN newest ON newest.peer = way.to_peer AND newest.ssrc = way.ssrc
LEFT JOIN asked ON asked.ssrc = way.ssrc AND asked.sequence = way.sequence
  AND coalesce(asked.peer, -1) = coalesce(way.peer, -1)
  AND coalesce(asked.to_peer, -1) = coalesce(way.to_peer, -1)
  AND coalesce(asked.rtp_time, -1) = coalesce(way.rtp_time, -1)
  AND coalesce(asked.noticed_ns, -1) = coalesce(way.noticed_ns, -1)
LEFT JOIN again AS again_sent ON again_sent.peer = way.peer AND again_sent.direction = 'out'
  AND again_sent.ssrc = way.ssrc AND again_sent.sequence = way.sequence
  AND again_sent.rtp_time = way.rtp_time
LEFT JOIN again AS again_came ON again_came.peer = way.to_peer AND again_came.direction = 'in'
  AND again_came.ssrc = way.ssrc AND again_came.sequence = way.sequence
  AND again_came.rtp_time = way.rtp_time
LEFT JOIN shown ON shown.peer = way.to_peer AND shown.ssrc = way.ssrc
  AND shown.rtp_time = way.rtp_time;

-- One row per media stream: its track, codec and participant, its duration, volume and loss.
CREATE VIEW media_stream AS
WITH
  -- Streams are matched by SSRC, or else by payload type; the last agreement counts.
  named AS (
    SELECT stream.peer AS peer, stream.direction AS direction, stream.ssrc AS ssrc,
      stream.payload_type AS payload_type, max(track."row") AS "row"
    FROM stream JOIN payload AS track ON track.peer = stream.peer AND track.direction = stream.direction
      AND track.payload_type = stream.payload_type
      AND (track.ssrc = stream.ssrc OR track.ssrc IS NULL OR NOT EXISTS (
        SELECT 1 FROM payload AS other
        WHERE other.peer = stream.peer AND other.direction = stream.direction
          AND other.ssrc = stream.ssrc))
    GROUP BY stream.peer, stream.direction, stream.ssrc, stream.payload_type
  ),
  person AS (
    SELECT peer, track, direction, max(id) AS id FROM participant_track
    GROUP BY peer, track, direction HAVING count(DISTINCT participant) = 1
  )
SELECT
  stream.peer AS peer, peer.label AS label, stream.direction AS direction, stream.ssrc AS ssrc,
  track.track AS track, track.mid AS mid, track.kind AS kind,
  coalesce(nullif(track.codec, ''), CASE WHEN track."row" IS NULL THEN 'rtx' END) AS codec,
  stream.payload_type AS payload_type,
  person.id AS participant,                              -- the participant of a room
  stream.first_ns AS first_ns, stream.last_ns AS last_ns,
  (stream.last_ns - stream.first_ns) / 1e9 AS seconds,
  stream.packets AS packets, stream.bytes AS bytes, stream.bits_per_second AS bits_per_second,
  loss.lost AS lost,                                     -- over all payload types of the SSRC
  100.0 * loss.lost / loss.expected AS lost_percent,
  stream.packets_lost AS packets_lost,                   -- if sent: by its receiver's reports
  stream.loss_share AS loss_share, stream.packets_refused AS packets_refused
FROM stream
JOIN peer ON peer.peer = stream.peer
LEFT JOIN named ON named.peer = stream.peer AND named.direction = stream.direction
  AND named.ssrc = stream.ssrc AND named.payload_type = stream.payload_type
LEFT JOIN payload AS track ON track."row" = named."row" AND track.peer = named.peer
LEFT JOIN loss ON loss.peer = stream.peer AND loss.direction = stream.direction
  AND loss.ssrc = stream.ssrc
LEFT JOIN person ON person.peer = stream.peer AND person.track = track.track
  AND person.direction = stream.direction;

-- One row for everyone in the call: each recorded peer, and each participant of rooms. The legs of
-- a relay are nobody.
CREATE VIEW person AS
WITH
  spoken AS (
    SELECT peer, direction, sum(to_ns - from_ns) / 1e9 AS seconds, count(from_ns) AS turns
    FROM speaker WHERE contributor IS NULL GROUP BY peer, direction
  ),
  turn AS (
    SELECT actor, participant, sum(to_ns - from_ns) / 1e9 AS seconds, count(from_ns) AS turns
    FROM participant_speaker WHERE participant IS NOT NULL GROUP BY actor, participant
  ),
  weight AS (
    SELECT peer,
      sum(CASE WHEN direction = 'out' THEN bytes ELSE 0 END) AS bytes_sent,
      sum(CASE WHEN direction = 'in' THEN bytes ELSE 0 END) AS bytes_received
    FROM stream GROUP BY peer
  )
SELECT
  'peer' AS kind, peer.peer AS peer, NULL AS actor, NULL AS participant, peer.label AS name,
  peer.at_ns AS from_ns, coalesce((SELECT at_ns FROM ending), (SELECT max(at_ns) FROM tape)) AS to_ns,
  weight.bytes_sent AS bytes_sent, weight.bytes_received AS bytes_received,
  coalesce(spoken.seconds, 0) AS speaking_seconds, coalesce(spoken.turns, 0) AS turns
FROM peer
LEFT JOIN weight ON weight.peer = peer.peer
LEFT JOIN spoken ON spoken.peer = peer.peer AND spoken.direction = 'out'
WHERE peer.role <> 'relay'
UNION ALL
SELECT
  'participant', NULL, participant.actor, participant.participant,
  coalesce(participant.name, participant.id), participant.entered_ns,
  coalesce(
    participant.left_ns, (SELECT at_ns FROM ending), (SELECT max(at_ns) FROM tape)),
  NULL, NULL, coalesce(turn.seconds, 0), coalesce(turn.turns, 0)
FROM participant LEFT JOIN turn
  ON turn.actor = participant.actor AND turn.participant = participant.participant;

-- Facts about the take stated at recording (--tag KEY=VALUE): the site, the build, the customer.
CREATE VIEW tag AS
SELECT said."key" AS "key", said.value AS value
FROM take, json_each(
  CASE WHEN json_valid(take.toolchain) THEN take.toolchain ELSE '{}' END, '$.tags') AS said
WHERE said.type = 'text';
