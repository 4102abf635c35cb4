-- Format 6: rooms of a service, as a participant sees them. A room is an actor of its own; its
-- media is sent and received by peers, several of which may carry the same participant. `row`,
-- `step` and `at_ns` are as in all other tables.

-- Who entered and left a room; query the view `participant`.
CREATE TABLE presence (
  row         INTEGER PRIMARY KEY,
  step        INTEGER GENERATED ALWAYS AS (row >> 16) VIRTUAL,
  actor       INTEGER NOT NULL,  -- the room
  at_ns       INTEGER NOT NULL,
  participant INTEGER NOT NULL,  -- the participant's number in the room, kept on re-entry
  id          TEXT,              -- the id that the service uses; NULL: see the previous row
  name        TEXT,              -- the display name; NULL: see the previous row
  local       INTEGER NOT NULL,  -- 1: the recorded participant
  present     INTEGER NOT NULL   -- 1: entered, 0: left
);

-- The transceivers that carry each participant's media over time; query the view
-- `participant_track`.
CREATE TABLE carriage (
  row         INTEGER PRIMARY KEY,
  step        INTEGER GENERATED ALWAYS AS (row >> 16) VIRTUAL,
  peer        INTEGER NOT NULL,  -- the peer that carries it
  at_ns       INTEGER NOT NULL,
  actor       INTEGER NOT NULL,  -- the room
  participant INTEGER NOT NULL,  -- as in `presence`
  media       INTEGER,           -- its number in the room; NULL: not published yet
  kind        TEXT NOT NULL,     -- audio, video
  direction   TEXT NOT NULL,     -- in: remote; out: local
  track       INTEGER NOT NULL,  -- the transceiver's number
  extra_value TEXT NOT NULL,     -- the publisher's remark, such as 'screen'
  carried     INTEGER NOT NULL   -- 1: begins, 0: ends
);

-- The participants of each room, with the times of their first entry and last exit.
CREATE VIEW participant AS
SELECT
  actor, participant, max(id) AS id, max(name) AS name, max(local) AS local,
  min(CASE WHEN present = 1 THEN at_ns END) AS entered_ns,
  -- NULL: present at the end of the take.
  CASE WHEN sum(CASE WHEN present = 1 THEN 1 ELSE -1 END) <= 0 THEN max(at_ns) END AS left_ns
FROM presence
GROUP BY actor, participant;

-- The participants whose media each peer's tracks carry over time; several at once if a server
-- mixes them.
CREATE VIEW participant_track AS
SELECT
  carriage.actor AS actor, carriage.participant AS participant, participant.id AS id,
  carriage.media AS media, carriage.kind AS kind, carriage.extra_value AS extra_value,
  carriage.peer AS peer, carriage.track AS track, carriage.direction AS direction,
  carriage.at_ns AS from_ns,
  coalesce(
    carriage.next_ns, (SELECT at_ns FROM ending), (SELECT max(at_ns) FROM tape)) AS to_ns
FROM (
  -- Independent of each other: a participant who joins a mix does not end the others.
  SELECT *, lead(at_ns) OVER (
    PARTITION BY peer, track, direction, actor, participant ORDER BY row) AS next_ns
  FROM carriage
) AS carriage JOIN participant
  ON participant.actor = carriage.actor AND participant.participant = carriage.participant
WHERE carriage.carried = 1;

-- Which participants of a room spoke when: like the view `speaker`, by participant instead of
-- track. If a track carries several at once, the speaker is unknown: participant and id are NULL.
CREATE VIEW participant_speaker AS
WITH
  carrier AS (
    SELECT actor, participant, id, peer, track, direction, from_ns, to_ns FROM participant_track
  ),
  spoken AS (
    SELECT
      carrier.actor AS actor, carrier.participant AS participant, carrier.id AS id,
      speaker.peer AS peer, speaker.track AS track, speaker.direction AS direction,
      speaker.contributor AS contributor,
      speaker.from_ns AS from_ns, speaker.to_ns AS to_ns, speaker.seconds AS seconds,
      speaker.dbov AS dbov,
      CASE WHEN carrier.from_ns > speaker.from_ns THEN carrier.from_ns ELSE speaker.from_ns END
        AS begin_ns,
      CASE WHEN carrier.to_ns < speaker.to_ns THEN carrier.to_ns ELSE speaker.to_ns END AS end_ns
    FROM speaker JOIN carrier
      ON carrier.peer = speaker.peer AND carrier.track = speaker.track
      AND carrier.direction = speaker.direction
      AND speaker.to_ns > carrier.from_ns AND speaker.from_ns < carrier.to_ns
  ),
  judged AS (
    -- Whether another participant begins before an earlier one ends.
    SELECT *, max(CASE WHEN begin_ns < former_ns THEN 1 ELSE 0 END) OVER (
      PARTITION BY peer, track, direction, contributor, from_ns) AS is_mixed
    FROM (
      SELECT *, max(end_ns) OVER (
        PARTITION BY peer, track, direction, contributor, from_ns ORDER BY begin_ns, end_ns
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS former_ns
      FROM spoken
    )
  )
SELECT DISTINCT
  actor, CASE WHEN is_mixed = 0 THEN participant END AS participant,
  CASE WHEN is_mixed = 0 THEN id END AS id,
  peer, track, from_ns, to_ns, seconds, dbov
FROM judged;

-- The getStats samples of each participant's streams; `members` is JSON.
CREATE VIEW participant_stat AS
WITH
  known AS (
    -- The latest mid of its m-section.
    SELECT track.peer AS peer, track.track AS track, track.mid AS mid
    FROM track JOIN (
      SELECT max("row") AS "row" FROM track WHERE mid IS NOT NULL GROUP BY peer, track
    ) AS newest ON newest."row" = track."row"
  ),
  moment AS (
    SELECT "row", NULL AS carriage, 0 AS more, peer, (members ->> '$.mid') AS mid,
      CASE WHEN type = 'inbound-rtp' THEN 'in' ELSE 'out' END AS direction, at_ns
    FROM stat WHERE type IN ('inbound-rtp', 'outbound-rtp')
    UNION ALL
    SELECT NULL, carriage."row", CASE WHEN carried = 1 THEN 1 ELSE -1 END, carriage.peer, known.mid, carriage.direction,
      carriage.at_ns
    FROM carriage JOIN known ON known.peer = carriage.peer AND known.track = carriage.track
  ),
  -- The carriage of each sample's stream, in one pass over both; a mix belongs to nobody.
  placed AS (
    SELECT "row", max(carriage) OVER past AS carriage, sum(more) OVER past AS carriers
    FROM moment WINDOW past AS (
      PARTITION BY peer, mid, direction ORDER BY at_ns, row IS NOT NULL
      ROWS UNBOUNDED PRECEDING)
  )
SELECT
  carriage.actor AS actor, carriage.participant AS participant, participant.id AS participant_id,
  carriage.media AS media, carriage.kind AS kind,
  stat."row" >> 16 AS step, stat.peer AS peer, stat.at_ns AS at_ns, stat.id AS id, stat.type AS type,
  stat.members AS members
FROM placed
  JOIN stat ON stat.row = placed.row
  JOIN carriage ON carriage.row = placed.carriage
  JOIN participant
    ON participant.actor = carriage.actor AND participant.participant = carriage.participant
WHERE carriage.carried = 1 AND carriers = 1 AND (stat.members ->> '$.kind') = carriage.kind
  AND stat.at_ns < coalesce((SELECT at_ns FROM ending), (SELECT max(at_ns) FROM tape));
