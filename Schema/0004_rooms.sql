-- Format 6: rooms of a service, as an application is in them. A room is an actor of its own; what it
-- sends and receives goes over peers, and several of them may carry the same person. `row`, `step`
-- and `at_ns` are as in all other tables.

-- Who entered and left a room; query the view `participant`.
CREATE TABLE presence (
  row         INTEGER PRIMARY KEY,
  step        INTEGER GENERATED ALWAYS AS (row >> 16) VIRTUAL,
  actor       INTEGER NOT NULL,  -- the room
  at_ns       INTEGER NOT NULL,
  participant INTEGER NOT NULL,  -- the number of the person in the room; who comes back keeps it
  id          TEXT,              -- what the service calls it; null: see the row before
  name        TEXT,              -- the name for people; null: see the row before
  local       INTEGER NOT NULL,  -- 1: the side that was recorded
  present     INTEGER NOT NULL   -- 1: entered, 0: left
);

-- Which transceiver of which peer carries whose media, from when to when; query the view
-- `participant_track`.
CREATE TABLE carriage (
  row         INTEGER PRIMARY KEY,
  step        INTEGER GENERATED ALWAYS AS (row >> 16) VIRTUAL,
  peer        INTEGER NOT NULL,  -- the number of the peer that carries it
  at_ns       INTEGER NOT NULL,
  actor       INTEGER NOT NULL,  -- the room
  participant INTEGER NOT NULL,  -- as in `presence`
  media       INTEGER,           -- the number of the media in the room; null: not published yet
  kind        TEXT NOT NULL,     -- audio, video
  direction   TEXT NOT NULL,     -- in: of others; out: own
  track       INTEGER NOT NULL,  -- the transceiver's number
  extra_value TEXT NOT NULL,     -- what its owner says of it: 'screen', ...
  carried     INTEGER NOT NULL   -- 1: from now on, 0: no longer
);

-- The people of each room, with the times of their first coming and last going.
CREATE VIEW participant AS
SELECT
  actor, participant, max(id) AS id, max(name) AS name, max(local) AS local,
  min(CASE WHEN present = 1 THEN at_ns END) AS entered_ns,
  -- NULL: still there at the end of the take.
  CASE WHEN sum(CASE WHEN present = 1 THEN 1 ELSE -1 END) <= 0 THEN max(at_ns) END AS left_ns
FROM presence
GROUP BY actor, participant;

-- Whose media which track of which peer carries, from when to when; several at once where a server
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
  -- Each ends by itself: who comes to a mix ends nobody else's part in it.
  SELECT *, lead(at_ns) OVER (
    PARTITION BY peer, track, direction, actor, participant ORDER BY row) AS next_ns
  FROM carriage
) AS carriage JOIN participant
  ON participant.actor = carriage.actor AND participant.participant = carriage.participant
WHERE carriage.carried = 1;

-- Who of a room spoke when: as the view `speaker`, by person instead of track. Of a track that
-- carries several people at once, nobody knows who it was: participant and id are NULL.
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
    -- Whether somebody else's part begins before one before it ends.
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

-- What getStats said of the streams of each person, sample by sample; `members` is its JSON.
CREATE VIEW participant_stat AS
WITH
  known AS (
    -- The last name of its m-section.
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
  -- What carried the stream of each sample, in one pass over both; a mix is nobody's own.
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
