-- Format 4: a take holds machines of several kinds. Each is an actor: a peer that Retake itself was
-- (an endpoint), or something else that takes inputs and gives outputs, like an observer of other
-- people's calls. Actors share the order of steps and the clock; each replays by itself. `row`,
-- `step` and `at_ns` are as in all other tables.

-- Which revision of the stack made the take: it moves when the stack makes other outputs of the
-- same inputs. Null where the take does not say.
ALTER TABLE take ADD COLUMN revision INTEGER;

-- Which actor the peer belongs to; most often its own, with the same number.
ALTER TABLE peer ADD COLUMN actor INTEGER;

-- Actors that are no endpoints; query the view `actor`, which has the endpoints too.
CREATE TABLE actor_store (
  row           INTEGER PRIMARY KEY,
  actor         INTEGER NOT NULL,  -- its number
  at_ns         INTEGER NOT NULL,
  kind          INTEGER NOT NULL,  -- what kind of machine it is
  label         TEXT NOT NULL,     -- its name for people
  configuration TEXT NOT NULL,     -- JSON
  seed          BLOB NOT NULL      -- secret: from which its random values come; empty for none
);

-- What an actor could not see, and so what its rows say nothing about.
CREATE TABLE coverage (
  row     INTEGER PRIMARY KEY,
  step    INTEGER GENERATED ALWAYS AS (row >> 16) VIRTUAL,
  actor   INTEGER NOT NULL,
  at_ns   INTEGER NOT NULL,
  peer    INTEGER,           -- whose side it is; null for the actor as a whole
  from_ns INTEGER NOT NULL,  -- since when it could not be seen, on the clock of at_ns
  to_ns   INTEGER NOT NULL,  -- until when
  what    TEXT NOT NULL,     -- what is missing: 'keys', 'direction', 'packets', 'beginning', ...
  reason  TEXT NOT NULL      -- why, in words
);

-- One row per actor, made by its first step (genesis).
CREATE VIEW actor AS
SELECT
  row,
  row >> 16 AS step,
  actor,
  at_ns,
  'endpoint' AS kind,
  label,
  configuration,
  seed
FROM peer
UNION ALL
SELECT
  row,
  row >> 16,
  actor,
  at_ns,
  CASE kind
    WHEN 1 THEN 'observer'
    WHEN 2 THEN 'relay leg'
    WHEN 3 THEN 'room'
    WHEN 4 THEN 'audio session'
    WHEN 5 THEN 'reported'
    ELSE 'kind ' || kind
  END,
  label,
  configuration,
  seed
FROM actor_store;
