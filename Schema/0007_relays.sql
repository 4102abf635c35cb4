-- Format 8: the packets that a relay forwards. `row` and `at_ns` are as in all other tables.
--
-- A relay's packet in the clear is an input of the leg that sends it and of the observer that sees
-- it. Its bytes are stored once: `position` in `packet_store` or `relayed_store` may be that of an
-- earlier row with the same bytes.

-- Packets that a leg of a relay received from the other leg, decrypted, to protect and send; query
-- the view `relayed`, which has those of all formats.
CREATE TABLE relayed_store (
  row       INTEGER PRIMARY KEY,
  peer      INTEGER NOT NULL,  -- the leg that sends the packet
  at_ns     INTEGER NOT NULL,
  protocol  TEXT NOT NULL,     -- rtp, rtcp, sctp
  transport INTEGER NOT NULL,  -- the number of the transport, the same on both legs
  size      INTEGER NOT NULL,  -- bytes
  position  INTEGER NOT NULL   -- their offset in `wire`
);

-- Packets that a leg of a relay received from the other leg, decrypted, to protect and send.
--
-- Before format 8 these were rows of `capture`. Two left joins replace a full join or a union:
-- DuckDB's scanner cannot read a union whose columns it cannot type, and if a schema has a full
-- join, it cannot read the take at all.
CREATE VIEW relayed AS
SELECT
  coalesce(relayed_store.row, capture.row) AS "row",
  coalesce(relayed_store.row, capture.row) >> 16 AS step,
  coalesce(relayed_store.peer, capture.peer) AS peer,  -- the leg that sends the packet
  coalesce(relayed_store.at_ns, capture.at_ns) AS at_ns,
  coalesce(relayed_store.protocol, substr(capture.kind, 9)) AS protocol,  -- rtp, rtcp, sctp
  -- The number of the transport, the same on both legs.
  coalesce(relayed_store.transport, capture.track) AS transport,
  coalesce(relayed_store.size, length(content.bytes)) AS size,  -- bytes
  CASE  -- most are in one piece, some in two
    WHEN relayed_store.row IS NULL THEN content.bytes
    WHEN relayed_store.size = 0 THEN CAST('' AS BLOB)
    WHEN relayed_store.position % 8152 + relayed_store.size <= 8152 THEN (
      SELECT substr(wire.bytes, relayed_store.position % 8152 + 1, relayed_store.size)
      FROM wire WHERE wire.piece = relayed_store.position / 8152
    )
    ELSE substr((
      SELECT CAST(group_concat(part, '') AS BLOB) FROM (
        SELECT wire.bytes AS part FROM wire
        WHERE wire.piece BETWEEN relayed_store.position / 8152
          AND (relayed_store.position + relayed_store.size - 1) / 8152
        ORDER BY wire.piece
      )
    ), relayed_store.position % 8152 + 1, relayed_store.size)
  END AS bytes
FROM json_each('[0, 1]') AS side
LEFT JOIN relayed_store ON side.value = 0
LEFT JOIN capture
  ON side.value = 1 AND capture.kind IN ('relayed rtp', 'relayed rtcp', 'relayed sctp')
LEFT JOIN content ON content.content = capture.content
WHERE coalesce(relayed_store.row, capture.row) IS NOT NULL;
