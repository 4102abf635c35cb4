-- Format 7: ECN marks of received datagrams, and the types of networks.

-- The ECN field of the IP header of a received datagram (RFC 3168 section 5): 0 not ECN-capable, 1
-- ECT(1), 2 ECT(0), 3 congestion experienced. NULL: sent, received over TCP, or not known. For
-- observed calls it is the field as the capture saw it.
ALTER TABLE packet_store ADD COLUMN ecn INTEGER;

-- In rows 'interfaces': the network type of each address (W3C networkType: ethernet, wifi,
-- cellular, bluetooth, vpn, unknown), separated by spaces. NULL: not known.
ALTER TABLE network ADD COLUMN network_types TEXT;

-- Conversations. The following views are about persons, not tracks: a person on several peers, as
-- in a room with several connections, counts once, and so does a voice that the take has both sent
-- and received. They are plain SQL.

-- Whose voice an audio track carries over time. In a room it is the participant; for a track that
-- another peer of the take sends (with the same SSRC), that peer; otherwise the peer for sent
-- tracks, and the track itself for received ones. In a mix of several participants the speaker is
-- unknown, so the mix is a voice of its own.
CREATE VIEW voice AS
WITH
  spoken AS (
    SELECT peer, track, direction, coalesce(contributor, -1) AS mixed
    FROM speech GROUP BY peer, track, direction, coalesce(contributor, -1)
  ),
  -- The display name, with the service's id if several share it.
  somebody AS (
    SELECT actor, participant, max(id) AS id, max(name) AS name
    FROM presence GROUP BY actor, participant
  ),
  named AS (
    SELECT coalesce(name, id) AS name, count(DISTINCT coalesce(id, name)) AS holders
    FROM somebody GROUP BY coalesce(name, id)
  ),
  person AS (
    SELECT somebody.actor AS actor, somebody.participant AS participant,
      CASE WHEN named.holders > 1
        THEN coalesce(somebody.name, somebody.id) || ' (' || somebody.id || ')'
        ELSE coalesce(somebody.name, somebody.id) END AS person
    FROM somebody JOIN named ON named.name = coalesce(somebody.name, somebody.id)
  ),
  -- The participants that a track carries over time.
  span AS (
    SELECT actor, participant, peer, track, direction, carried, at_ns AS from_ns,
      coalesce(
        lead(at_ns) OVER (PARTITION BY peer, track, direction, actor, participant ORDER BY row),
        9223372036854775807) AS to_ns
    FROM carriage WHERE kind = 'audio'
  ),
  carrier AS (
    SELECT person.person AS person, span.peer AS peer, span.track AS track,
      span.direction AS direction, span.from_ns AS from_ns, span.to_ns AS to_ns
    FROM span JOIN person
      ON person.actor = span.actor AND person.participant = span.participant
    WHERE span.carried = 1
  ),
  placed AS (
    SELECT person, peer, track, direction, from_ns, to_ns,
      max(to_ns) OVER (
        PARTITION BY peer, track, direction ORDER BY from_ns, person
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS former_ns,
      lead(from_ns) OVER (PARTITION BY peer, track, direction ORDER BY from_ns, person) AS next_ns
    FROM carrier
  ),
  alone AS (
    SELECT person, peer, track, direction, from_ns, to_ns FROM placed
    WHERE coalesce(former_ns, from_ns) <= from_ns AND coalesce(next_ns, to_ns) >= to_ns
  ),
  sender AS (
    SELECT ssrc, min(peer) AS peer FROM track
    WHERE direction = 'out' AND kind = 'audio' AND ssrc IS NOT NULL
    GROUP BY ssrc HAVING count(DISTINCT peer) = 1
  ),
  -- Tracks that one peer of the take receives from another.
  heard AS (
    SELECT track.peer AS peer, track.track AS track, min(sender.peer) AS sender
    FROM track JOIN sender ON sender.ssrc = track.ssrc
    WHERE track.direction = 'in' AND track.kind = 'audio' AND sender.peer <> track.peer
    GROUP BY track.peer, track.track HAVING count(DISTINCT sender.peer) = 1
  )
SELECT
  spoken.peer AS peer, spoken.track AS track, spoken.direction AS direction,
  CASE WHEN spoken.mixed < 0 THEN NULL ELSE spoken.mixed END AS contributor,
  alone.person AS person, alone.from_ns AS from_ns, alone.to_ns AS to_ns
FROM spoken JOIN alone
  ON alone.peer = spoken.peer AND alone.track = spoken.track
  AND alone.direction = spoken.direction
WHERE spoken.mixed < 0
UNION ALL
SELECT
  spoken.peer, spoken.track, spoken.direction,
  CASE WHEN spoken.mixed < 0 THEN NULL ELSE spoken.mixed END,
  CASE
    WHEN spoken.mixed >= 0
      THEN peer.label || '/' || spoken.direction || '/' || CAST(spoken.track AS TEXT)
        || '/' || CAST(spoken.mixed AS TEXT)
    WHEN spoken.direction = 'out' THEN peer.label
    WHEN other.label IS NOT NULL THEN other.label
    ELSE peer.label || '/in/' || CAST(spoken.track AS TEXT)
  END,
  0, 9223372036854775807
FROM spoken
JOIN peer ON peer.peer = spoken.peer
LEFT JOIN heard
  ON heard.peer = spoken.peer AND heard.track = spoken.track AND spoken.direction = 'in'
LEFT JOIN peer AS other ON other.peer = heard.sender
WHERE spoken.mixed >= 0 OR NOT EXISTS (
  SELECT 1 FROM alone
  WHERE alone.peer = spoken.peer AND alone.track = spoken.track
    AND alone.direction = spoken.direction);

-- When each person spoke, over all tracks and connections: if the take has a voice as it was sent,
-- that takes precedence over the received one. Speech is that of the view `speaker`.
CREATE VIEW person_speech AS
WITH
  uttered AS (
    SELECT peer, track, direction, coalesce(contributor, -1) AS mixed, from_ns,
      max(to_ns) AS to_ns
    FROM speech GROUP BY peer, track, direction, coalesce(contributor, -1), from_ns
  ),
  said AS (
    SELECT voice.person AS person, voice.direction AS direction,
      CASE WHEN uttered.from_ns > voice.from_ns THEN uttered.from_ns ELSE voice.from_ns END
        AS from_ns,
      CASE WHEN uttered.to_ns < voice.to_ns THEN uttered.to_ns ELSE voice.to_ns END AS to_ns
    FROM uttered JOIN voice
      ON voice.peer = uttered.peer AND voice.track = uttered.track
      AND voice.direction = uttered.direction
      AND coalesce(voice.contributor, -1) = uttered.mixed
    WHERE uttered.to_ns > voice.from_ns AND uttered.from_ns < voice.to_ns
  ),
  first_hand AS (SELECT person FROM said WHERE direction = 'out' GROUP BY person),
  chosen AS (
    SELECT person, from_ns, to_ns FROM said
    WHERE direction = 'out' OR person NOT IN (SELECT person FROM first_hand)
  ),
  ordered AS (
    SELECT person, from_ns, to_ns,
      max(to_ns) OVER (
        PARTITION BY person ORDER BY from_ns, to_ns
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS former_ns
    FROM chosen
  ),
  numbered AS (
    SELECT person, from_ns, to_ns,
      sum(CASE WHEN former_ns >= from_ns THEN 0 ELSE 1 END) OVER (
        PARTITION BY person ORDER BY from_ns, to_ns
        ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS number
    FROM ordered
  )
SELECT
  person, min(from_ns) AS from_ns, max(to_ns) AS to_ns,
  (max(to_ns) - min(from_ns)) / 1e9 AS seconds
FROM numbered GROUP BY person, number;

-- How many people spoke at once over time: a row for each span in which nobody began or ended, from
-- the first audio to the last.
CREATE VIEW talk AS
WITH
  change AS (
    SELECT from_ns AS at_ns, 1 AS speakers FROM person_speech
    UNION ALL SELECT to_ns, -1 FROM person_speech
    -- Levels cover the tenth of a second before their time.
    UNION ALL SELECT min(at_ns) - 100000000, 0 FROM level HAVING count(*) > 0
    UNION ALL SELECT max(at_ns), 0 FROM level HAVING count(*) > 0
  ),
  moment AS (SELECT at_ns, sum(speakers) AS speakers FROM change GROUP BY at_ns),
  part AS (
    SELECT at_ns AS from_ns, lead(at_ns) OVER (ORDER BY at_ns) AS to_ns,
      sum(speakers) OVER (
        ORDER BY at_ns ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS speakers
    FROM moment
  )
SELECT from_ns, to_ns, (to_ns - from_ns) / 1e9 AS seconds, speakers
FROM part WHERE to_ns IS NOT NULL;

-- When nobody spoke, between the first audio and the last.
CREATE VIEW silence AS
SELECT from_ns, to_ns, seconds FROM talk WHERE speakers = 0;

-- Times when two people spoke at once: `person` began, at from_ns, while `other` was speaking. The
-- other's whole turn lasts from other_from_ns to other_to_ns; the person's ends at person_to_ns.
CREATE VIEW overlap AS
WITH
  somebody AS (SELECT DISTINCT person FROM person_speech),
  -- For each other person, all turns in order with that person's latest turn: turns of one person
  -- never overlap, so the largest times belong to the same turn.
  seen AS (
    SELECT turn.person AS person, somebody.person AS other, turn.from_ns AS from_ns,
      turn.to_ns AS to_ns,
      CASE WHEN turn.person = somebody.person THEN turn.from_ns ELSE NULL END AS own_from_ns,
      CASE WHEN turn.person = somebody.person THEN turn.to_ns ELSE NULL END AS own_to_ns
    FROM somebody CROSS JOIN person_speech AS turn
  ),
  placed AS (
    SELECT person, other, from_ns, to_ns,
      max(own_from_ns) OVER before AS other_from_ns, max(own_to_ns) OVER before AS other_to_ns
    FROM seen
    WINDOW before AS (
      PARTITION BY other ORDER BY from_ns, CASE WHEN person = other THEN 0 ELSE 1 END
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)
  )
SELECT
  person, other, from_ns,
  CASE WHEN to_ns < other_to_ns THEN to_ns ELSE other_to_ns END AS to_ns,
  (CASE WHEN to_ns < other_to_ns THEN to_ns ELSE other_to_ns END - from_ns) / 1e9 AS seconds,
  to_ns AS person_to_ns, other_from_ns, other_to_ns
FROM placed
WHERE person <> other AND other_to_ns > from_ns
  -- If two begin at the same time, one of them counts as the first.
  AND (other_from_ns < from_ns OR other < person);

-- Who interrupted whom: a person begins while another has been speaking for at least half a second;
-- the other continues for a quarter of a second to three seconds and falls silent, and the first
-- continues for at least a second after that. Short words of assent do not count, nor turns that
-- end slightly late.
CREATE VIEW interruption AS
SELECT from_ns AS at_ns, person, other AS interrupted, seconds AS overlap_seconds
FROM overlap
WHERE from_ns - other_from_ns >= 500000000
  AND other_to_ns - from_ns BETWEEN 250000000 AND 3000000000
  AND person_to_ns - other_to_ns >= 1000000000;

-- How much each person spoke: turns, total seconds, seconds alone and seconds together with others,
-- the share of all speaking time, and interruptions made and suffered.
CREATE VIEW talk_share AS
WITH
  whole AS (SELECT sum(to_ns - from_ns) AS ns FROM person_speech),
  -- The starts and ends of turns; between them, the time for which one person or several spoke.
  event AS (
    SELECT person, from_ns AS at_ns, -1 AS sign, 0 AS alone_ns, 0 AS overlap_ns FROM person_speech
    UNION ALL SELECT person, to_ns, 1, 0, 0 FROM person_speech
    UNION ALL SELECT NULL, to_ns, 0,
      CASE WHEN speakers = 1 THEN to_ns - from_ns ELSE 0 END,
      CASE WHEN speakers > 1 THEN to_ns - from_ns ELSE 0 END
    FROM talk
  ),
  past AS (
    SELECT person, at_ns, sign, sum(alone_ns) OVER before AS alone_ns,
      sum(overlap_ns) OVER before AS overlap_ns
    FROM event
    WINDOW before AS (
      ORDER BY at_ns, CASE WHEN sign = 0 THEN 0 ELSE 1 END
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)
  ),
  turn AS (
    SELECT person, sum(CASE WHEN sign > 0 THEN 1 ELSE 0 END) AS turns, sum(sign * at_ns) AS ns,
      sum(sign * alone_ns) AS alone_ns, sum(sign * overlap_ns) AS overlap_ns
    FROM past WHERE sign <> 0 GROUP BY person
  ),
  made AS (SELECT person, count(*) AS number FROM interruption GROUP BY person),
  suffered AS (
    SELECT interrupted AS person, count(*) AS number FROM interruption GROUP BY interrupted
  )
SELECT
  turn.person AS person, turn.turns AS turns,
  turn.ns / 1e9 AS seconds, turn.alone_ns / 1e9 AS alone_seconds,
  turn.overlap_ns / 1e9 AS overlap_seconds,
  CASE WHEN whole.ns > 0 THEN turn.ns * 1.0 / whole.ns ELSE 0.0 END AS share,
  coalesce(made.number, 0) AS interruptions, coalesce(suffered.number, 0) AS interrupted
FROM turn CROSS JOIN whole
LEFT JOIN made ON made.person = turn.person
LEFT JOIN suffered ON suffered.person = turn.person;
