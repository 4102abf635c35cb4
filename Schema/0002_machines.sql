-- Format 4: a take holds machines of several kinds. Each is an actor: a local peer (an endpoint),
-- or another machine with inputs and outputs, such as an observer of calls between others. Actors
-- share the order of steps and the clock; each is replayed by itself. `row`, `step` and `at_ns` are
-- as in all other tables.

-- The revision of the stack that made the take: it is raised when the stack produces different
-- outputs from the same inputs. NULL: not stored.
ALTER TABLE take ADD COLUMN revision INTEGER;

-- The actor that the peer belongs to; usually one of its own with the same number.
ALTER TABLE peer ADD COLUMN actor INTEGER;

-- Actors that are not endpoints; query the view `actor`, which includes endpoints.
CREATE TABLE actor_store (
  row           INTEGER PRIMARY KEY,
  actor         INTEGER NOT NULL,  -- its number
  at_ns         INTEGER NOT NULL,
  kind          INTEGER NOT NULL,  -- its kind of machine
  label         TEXT NOT NULL,     -- its display name
  configuration TEXT NOT NULL,     -- JSON
  seed          BLOB NOT NULL      -- secret: from which its random values derive; may be empty
);

-- Gaps in what an actor could see; its rows lack what happened in them.
CREATE TABLE coverage (
  row     INTEGER PRIMARY KEY,
  step    INTEGER GENERATED ALWAYS AS (row >> 16) VIRTUAL,
  actor   INTEGER NOT NULL,
  at_ns   INTEGER NOT NULL,
  peer    INTEGER,           -- the affected peer; NULL: the actor as a whole
  from_ns INTEGER NOT NULL,  -- the start of the gap, on the clock of at_ns
  to_ns   INTEGER NOT NULL,  -- its end
  what    TEXT NOT NULL,     -- what is missing: 'keys', 'direction', 'packets', 'beginning', ...
  reason  TEXT NOT NULL      -- the reason in words
);

-- One row per actor, written by its first step (genesis).
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
