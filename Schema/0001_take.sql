-- A take: one recorded WebRTC session, from which the client stack can be replayed bit for bit.
--
-- A take contains the keys and the media of a call. Treat it like the call itself.
--
-- Common to all tables:
--
-- * A step is one input applied to one peer at an instant, with all outputs that resulted. Steps
--   are counted from 1 over all peers of the take, in chronological order.
-- * Every table below except `take`, `tape` and `ending` holds rows of steps. `row` is
--   step * 65536 + the position of the row within its step, counted from 0 and over all tables, so
--   ordering by `row` gives the exact order of events, and
--       WHERE row BETWEEN n * 65536 AND n * 65536 + 65535
--   finds the rows of step n in every table without a scan. `step` is computed from it.
-- * `peer` is the number of a peer, counted from 1: see the table `peer`.
-- * `at_ns` is in nanoseconds since the take began. It is the time of the step, except for received
--   datagrams, where it is the kernel's receive time.
-- * `direction` is 'in' for received and 'out' for sent.
-- * A replay produces every row again and compares it, value by value. `tape.digest` covers all
--   rows, so a changed value or a missing or additional row is detected at its step.
-- * Storage tables with names ending in `_store` are compact; query the view of the same name.

-- One row that describes the file.
CREATE TABLE take (
  format        INTEGER NOT NULL,  -- version of this schema
  start_utc     TEXT NOT NULL,     -- UTC at at_ns = 0, as 2026-11-21T10:39:00.123456789Z
  start_unix_ns INTEGER NOT NULL,  -- the same in nanoseconds since 1970-01-01
  tool_version  TEXT NOT NULL,     -- the version of Retake that recorded
  toolchain     TEXT NOT NULL,     -- JSON: libraries and CPU features that bit-exact replay needs
  label         TEXT NOT NULL,     -- free text
  redaction     INTEGER NOT NULL,  -- 0: nothing was removed
  keeps_media   INTEGER NOT NULL,  -- 1: frame.bytes and message.bytes hold decrypted media and data
  digest        BLOB NOT NULL      -- SHA-256 over the values above; the chain begins here
);

-- The steps, one row per transaction (100 ms), with the headers of its steps in a compact form.
-- `retake timeline` and `retake replay --until` expand it.
CREATE TABLE tape (
  first_step INTEGER PRIMARY KEY,  -- the number of the first step in this row
  steps      INTEGER NOT NULL,     -- the number of steps in `body`
  at_ns      INTEGER NOT NULL,     -- the time of the first step
  -- Per step: kind of input, peer, time, deadline, random bytes drawn, number of rows, checksum.
  body       BLOB NOT NULL,
  digest     BLOB NOT NULL         -- SHA-256 chained from step to step, after the last in `body`
);

-- One row if the recording was finished; none if the recorder was killed.
CREATE TABLE ending (
  steps  INTEGER NOT NULL,  -- the number of steps
  at_ns  INTEGER NOT NULL,  -- the time of the last step
  digest BLOB NOT NULL      -- the digest after the last step
);

-- One row per peer, written by its first step (genesis).
CREATE TABLE peer (
  row           INTEGER PRIMARY KEY,
  step          INTEGER GENERATED ALWAYS AS (row >> 16) VIRTUAL,
  peer          INTEGER NOT NULL,  -- its number
  at_ns         INTEGER NOT NULL,
  label         TEXT NOT NULL,     -- its display name
  role          TEXT NOT NULL,     -- its role in the session, such as caller or observed
  seed          BLOB NOT NULL,     -- secret: 32 bytes from which all its random values derive
  wall_clock_ns INTEGER NOT NULL,  -- Unix time at at_ns = 0, the peer's only wall clock
  configuration TEXT NOT NULL      -- JSON
);

-- The offset of a peer whose take was merged onto the clock of another (retake merge --out). A
-- replay runs the peer in its own time. Peers without a row have no offset.
CREATE TABLE clock (
  row      INTEGER PRIMARY KEY,
  step     INTEGER GENERATED ALWAYS AS (row >> 16) VIRTUAL,
  peer     INTEGER NOT NULL,
  at_ns    INTEGER NOT NULL,
  added_ns INTEGER NOT NULL  -- at_ns of the peer's rows minus this is the peer's own time
);

-- The pairs of addresses that datagrams were sent between, stored once each.
CREATE TABLE path (
  path      INTEGER PRIMARY KEY,  -- its number, in order of first use
  row       INTEGER NOT NULL,
  step      INTEGER GENERATED ALWAYS AS (row >> 16) VIRTUAL,
  peer      INTEGER NOT NULL,
  direction TEXT NOT NULL,
  local     TEXT NOT NULL,        -- 192.0.2.1:5000 or [2001:db8::1]:5000
  remote    TEXT NOT NULL
);

-- Datagrams; query the view `packet`. Unsigned integers of the wire are stored as signed integers
-- of the same width. The bytes are in `wire`, so that counting packets reads no payload.
CREATE TABLE packet_store (
  row                INTEGER PRIMARY KEY,
  at_ns              INTEGER NOT NULL,
  path               INTEGER NOT NULL,  -- path.path
  ssrc               INTEGER,           -- 32 bits; of RTP, or the sender of an RTCP compound
  marker_type        INTEGER,           -- 8 bits: RTP marker and payload type
  sequence           INTEGER,           -- 16 bits
  rtp_time           INTEGER,           -- 32 bits
  transport_sequence INTEGER,           -- 16 bits; transport-wide-cc-01
  size               INTEGER NOT NULL,  -- bytes of UDP payload
  position           INTEGER NOT NULL   -- their offset in `wire`
);

-- The bytes of all datagrams concatenated, in pieces that fill a page each.
CREATE TABLE wire (
  piece INTEGER PRIMARY KEY,  -- counted from 0; begins at the offset piece * 8152
  bytes BLOB NOT NULL         -- 8152 bytes, fewer in the last piece
);

-- The peers of each path. A local peer's path belongs to that peer. An observed path belongs to the
-- two peers whose candidate pairs have its addresses: it is 'out' for one and 'in' for the other.
-- `local` and `remote` are the pair's final addresses, since a relayed address may become known
-- only after the first packet.
CREATE VIEW path_end AS
WITH pair AS (
  SELECT named.peer AS peer, named.local AS seen_local, named.remote AS seen_remote,
    last.local AS local, last.remote AS remote
  FROM (
    SELECT peer, local, remote, max(pair) AS pair FROM candidate_pair GROUP BY peer, local, remote
  ) AS named
  JOIN (
    SELECT candidate_pair.peer AS peer, pair, local, remote FROM candidate_pair JOIN (
      SELECT max("row") AS "row" FROM candidate_pair GROUP BY peer, pair
    ) AS newest ON newest."row" = candidate_pair."row"
  ) AS last ON last.peer = named.peer AND last.pair = named.pair
)
SELECT path, peer, direction, local, remote FROM path WHERE peer > 0
UNION ALL
SELECT seen.path, pair.peer, 'out', pair.local, pair.remote
FROM path AS seen JOIN pair ON pair.seen_local = seen.local AND pair.seen_remote = seen.remote
WHERE seen.peer = 0
UNION ALL
SELECT seen.path, pair.peer, 'in', pair.local, pair.remote
FROM path AS seen JOIN pair ON pair.seen_local = seen.remote AND pair.seen_remote = seen.local
WHERE seen.peer = 0;

-- Paths of packets that an observer extracted from TURN or TCP: they belong to no peer and have the
-- direction 'out'. Their carrier is the input of the step that first used them.
CREATE VIEW carried_path AS
WITH
  found AS (
    SELECT path.path AS path, path.local AS local, path.remote AS remote,
      (
        SELECT outside.local || ' ' || outside.remote
        FROM packet_store JOIN path AS outside USING (path)
        WHERE packet_store.row BETWEEN path.row & ~65535 AND path.row
        ORDER BY packet_store.row LIMIT 1
      ) AS datagram,
      (
        -- Parsed as text, because JSON functions are not allowed in views of untrusted files
        -- (PRAGMA trusted_schema).
        SELECT substr(source, 1, instr(source, '"') - 1)
          || ' ' || substr(destination, 1, instr(destination, '"') - 1)
        FROM (
          SELECT substr(arguments, instr(arguments, '"source":"') + 10) AS source,
            substr(arguments, instr(arguments, '"destination":"') + 15) AS destination
          FROM call_request
          WHERE call_request.row BETWEEN path.row & ~65535 AND path.row AND name = 'segment'
        )
      ) AS segment
    FROM path WHERE path.peer = 0 AND path.direction = 'out'
  ),
  ended AS (
    SELECT path, local, remote, segment IS NOT NULL AS is_stream,
      substr(coalesce(segment, datagram), 1, instr(coalesce(segment, datagram), ' ') - 1) AS one,
      substr(coalesce(segment, datagram), instr(coalesce(segment, datagram), ' ') + 1) AS other
    FROM found
  ),
  -- Packets that waited together are released by a packet that may go in the other direction.
  turned AS MATERIALIZED (
    SELECT *, EXISTS (
      SELECT 1 FROM candidate_pair AS pair
      WHERE pair.local = ended.local AND pair.remote = ended.remote AND pair.base = ended.other
        OR pair.local = ended.remote AND pair.remote = ended.local AND pair.base = ended.one
    ) AS is_turned
    FROM ended
  )
SELECT
  path,
  CASE                                   -- a TURN server over UDP or TCP, or TCP between the ends
    WHEN NOT is_stream THEN 'turn'
    WHEN local IN (one, other) AND remote IN (one, other) THEN 'tcp'
    ELSE 'turn-tcp'
  END AS carrier,
  iif(is_turned, other, one) AS source,
  iif(is_turned, one, other) AS destination
FROM turned WHERE one IS NOT NULL;

-- Datagrams. For a local peer, channel data of a TURN server has the fields of the packet inside;
-- its bytes begin with the channel's header (RFC 8656 section 12.4), and its protocol is 'turn' if
-- the packet inside is neither RTP nor RTCP. For observed calls the row is the packet inside,
-- between the addresses of its candidates, however it was carried: in TURN channels or indications
-- over UDP or TCP, or over TCP between the ends (RFC 6544).
CREATE VIEW packet AS
SELECT
  packet_store.row AS "row",
  packet_store.row >> 16 AS step,
  path_end.peer AS peer,
  packet_store.at_ns AS at_ns,           -- kernel receive time ('in'), send time ('out')
  path_end.direction AS direction,
  path_end.local AS local,
  path_end.remote AS remote,
  packet_store.size AS size,             -- bytes of UDP payload
  CASE                                   -- by the first bytes (RFC 7983, RFC 5761)
    WHEN packet_store.marker_type IS NOT NULL THEN 'rtp'
    WHEN packet_store.ssrc IS NOT NULL THEN 'rtcp'
    WHEN packet_store.size = 0 THEN 'other'
    ELSE (
      SELECT CASE
        WHEN "first" < '04' THEN 'stun'
        WHEN "first" >= '14' AND "first" < '40' THEN 'dtls'
        WHEN "first" >= '40' AND "first" < '50' THEN 'turn'
        ELSE 'other'
      END
      FROM (
        SELECT hex(substr(wire.bytes, packet_store.position % 8152 + 1, 1)) AS "first"
        FROM wire WHERE wire.piece = packet_store.position / 8152
      )
    )
  END AS protocol,
  packet_store.ssrc & 4294967295 AS ssrc,
  packet_store.marker_type & 127 AS payload_type,
  packet_store.sequence & 65535 AS sequence,
  packet_store.rtp_time & 4294967295 AS rtp_time,
  (packet_store.marker_type >> 7) & 1 AS marker,
  packet_store.transport_sequence & 65535 AS transport_sequence,
  CASE                                   -- as on the wire; most are in one piece, some in two
    WHEN packet_store.size = 0 THEN CAST('' AS BLOB)
    WHEN packet_store.position % 8152 + packet_store.size <= 8152 THEN (
      SELECT substr(wire.bytes, packet_store.position % 8152 + 1, packet_store.size)
      FROM wire WHERE wire.piece = packet_store.position / 8152
    )
    ELSE substr((
      SELECT CAST(group_concat(part, '') AS BLOB) FROM (
        SELECT wire.bytes AS part FROM wire
        WHERE wire.piece BETWEEN packet_store.position / 8152
          AND (packet_store.position + packet_store.size - 1) / 8152
        ORDER BY wire.piece
      )
    ), packet_store.position % 8152 + 1, packet_store.size)
  END AS bytes,
  -- For an observed packet within TURN or TCP: 'turn', 'turn-tcp' or 'tcp', and the addresses of
  -- the carrier.
  (SELECT carrier FROM carried_path WHERE carried_path.path = packet_store.path) AS carrier,
  (SELECT source FROM carried_path WHERE carried_path.path = packet_store.path) AS outer_source,
  (
    SELECT destination FROM carried_path WHERE carried_path.path = packet_store.path
  ) AS outer_destination,
  packet_store.ecn AS ecn                -- 0 to 3; NULL: unknown (format 7)
-- A cross join, so that packets are in their order unless a query asks for another.
FROM packet_store CROSS JOIN path_end WHERE path_end.path = packet_store.path;

-- RTCP blocks, decrypted.
CREATE TABLE rtcp (
  row       INTEGER PRIMARY KEY,
  step      INTEGER GENERATED ALWAYS AS (row >> 16) VIRTUAL,
  peer      INTEGER NOT NULL,
  at_ns     INTEGER NOT NULL,
  direction TEXT NOT NULL,
  -- sr, rr, sdes, bye, nack, pli, fir, remb, transport-cc, xr, or type-format in numbers.
  type      TEXT NOT NULL,
  ssrc      INTEGER NOT NULL,  -- the media source it is about, or its sender if there is none
  fields    TEXT NOT NULL      -- JSON
);

-- One direction of a track, each time it is negotiated.
CREATE TABLE track (
  row                   INTEGER PRIMARY KEY,
  step                  INTEGER GENERATED ALWAYS AS (row >> 16) VIRTUAL,
  peer                  INTEGER NOT NULL,
  at_ns                 INTEGER NOT NULL,
  track                 INTEGER NOT NULL,  -- the transceiver's number in its peer
  mid                   TEXT NOT NULL,     -- the m-section
  kind                  TEXT NOT NULL,     -- audio, video
  direction             TEXT NOT NULL,
  ssrc                  INTEGER,           -- NULL: not announced
  codec                 TEXT NOT NULL,
  payload_type          INTEGER NOT NULL,  -- of its RTP packets
  clock_rate            INTEGER NOT NULL,  -- Hz, of rtp_time
  transport_sequence_id INTEGER NOT NULL   -- the id of the header extension, 0: not negotiated
);

-- Properties that many frames share, stored once. Blocks of an audio session (peer 0) have the kind
-- 'pcm' and no bytes: captured, mixed or filler (silence in place of an idle source) on their way
-- to senders, played or silence on their way to the device.
CREATE TABLE format (
  format    INTEGER PRIMARY KEY,  -- its number, in order of first use
  row       INTEGER NOT NULL,
  step      INTEGER GENERATED ALWAYS AS (row >> 16) VIRTUAL,
  peer      INTEGER NOT NULL,
  track     INTEGER NOT NULL,     -- the transceiver's number
  kind      TEXT NOT NULL,        -- audio, video
  direction TEXT NOT NULL,
  codec     TEXT NOT NULL,        -- opus, vp8, vp9, h264
  ssrc      INTEGER NOT NULL,
  -- encoded, decoded, recovered (from in-band FEC), concealed, undecodable; 'not decoded' and
  -- 'passed on' for codecs without a library, whose frames stay encoded.
  outcome   TEXT NOT NULL,
  key       INTEGER NOT NULL,     -- 1: a decoder can start here
  voice     INTEGER NOT NULL,     -- 1: speech
  width     INTEGER,              -- pixels
  height    INTEGER,              -- pixels
  channels  INTEGER,              -- of the decoded audio
  samples   INTEGER               -- of the decoded block and channel, at 48 kHz
);

-- Frames; query the view `frame`. Their bytes are in `media`: rows of a few kilobytes would leave a
-- quarter of their pages unused.
CREATE TABLE frame_store (
  row         INTEGER PRIMARY KEY,
  at_ns       INTEGER NOT NULL,
  format      INTEGER NOT NULL,  -- format.format
  rtp_time    INTEGER NOT NULL,  -- 32 bits, stored signed
  size        INTEGER NOT NULL,  -- bytes before packetization
  quantiser   INTEGER NOT NULL,
  audio_level INTEGER,
  peak        INTEGER NOT NULL,
  energy      INTEGER NOT NULL,
  digest      BLOB,
  position    INTEGER            -- the offset of the bytes in `media`; NULL: the take has no media
);

-- The bytes of all frames concatenated, in pieces like `wire`; empty if the take has no media.
CREATE TABLE media (
  piece INTEGER PRIMARY KEY,  -- counted from 0; begins at the offset piece * 8152
  bytes BLOB NOT NULL         -- 8152 bytes, fewer in the last piece
);

-- Encoded frames (a video frame, or the payload of an audio packet) with their decoded result, one
-- row per codec call.
CREATE VIEW frame AS
SELECT
  frame_store.row AS "row",
  frame_store.row >> 16 AS step,
  format.peer AS peer,
  frame_store.at_ns AS at_ns,
  format.track AS track,
  format.kind AS kind,
  format.direction AS direction,
  format.codec AS codec,
  format.ssrc AS ssrc,
  -- As on the wire ('in'), or without the stream's random offset ('out').
  frame_store.rtp_time & 4294967295 AS rtp_time,
  format.key AS key,
  format.width AS width,
  format.height AS height,
  format.outcome AS outcome,
  frame_store.size AS size,
  frame_store.quantiser AS quantiser,      -- of a video frame; 0 to 127 for VP8
  frame_store.audio_level AS audio_level,  -- as in RFC 6464: 0 is the loudest, 127 silent
  format.voice AS voice,
  format.channels AS channels,
  format.samples AS samples,
  frame_store.peak AS peak,                -- the largest absolute sample of the block
  frame_store.energy AS energy,            -- the sum of the squared samples of the loudest channel
  -- XXH3 (128 bits, canonical form) of the I420 planes or of the little-endian samples; `xxhsum`
  -- computes it from the decoded data.
  frame_store.digest AS digest,
  CASE                                     -- decrypted; most are in one or two pieces
    WHEN frame_store.position IS NULL THEN NULL
    WHEN frame_store.size = 0 THEN CAST('' AS BLOB)
    WHEN frame_store.position % 8152 + frame_store.size <= 8152 THEN (
      SELECT substr(media.bytes, frame_store.position % 8152 + 1, frame_store.size)
      FROM media WHERE media.piece = frame_store.position / 8152
    )
    ELSE substr((
      SELECT CAST(group_concat(part, '') AS BLOB) FROM (
        SELECT media.bytes AS part FROM media
        WHERE media.piece BETWEEN frame_store.position / 8152
          AND (frame_store.position + frame_store.size - 1) / 8152
        ORDER BY media.piece
      )
    ), frame_store.position % 8152 + 1, frame_store.size)
  END AS bytes
FROM frame_store JOIN format USING (format);

-- State transitions. An audio session (peer 0) has the machines audio-session, audio-unit,
-- audio-recording, audio-playout, audio-interruption, audio-permission, audio-lock, audio-server
-- and audio-route, and one for each source.
CREATE TABLE state (
  row        INTEGER PRIMARY KEY,
  step       INTEGER GENERATED ALWAYS AS (row >> 16) VIRTUAL,
  peer       INTEGER NOT NULL,
  at_ns      INTEGER NOT NULL,
  -- signaling, ice-connection, ice-gathering, connection, dtls, sctp, establishment
  machine    TEXT NOT NULL,
  from_state TEXT NOT NULL,  -- the previous state, as W3C spells it
  to_state   TEXT NOT NULL   -- the new state
);

-- ICE candidates, when they became known.
CREATE TABLE candidate (
  row               INTEGER PRIMARY KEY,
  step              INTEGER GENERATED ALWAYS AS (row >> 16) VIRTUAL,
  peer              INTEGER NOT NULL,
  at_ns             INTEGER NOT NULL,
  type              TEXT NOT NULL,     -- local-candidate, remote-candidate
  candidate_type    TEXT NOT NULL,     -- host, srflx, prflx, relay
  foundation        TEXT NOT NULL,     -- equal ones share fate (RFC 8445 section 5.1.1.3)
  component         INTEGER NOT NULL,  -- 1: RTP, with RTCP if multiplexed
  protocol          TEXT NOT NULL,     -- udp, tcp
  priority          INTEGER NOT NULL,  -- RFC 8445 section 5.1.2
  address           TEXT NOT NULL,     -- an IP address, or an mDNS name
  port              INTEGER NOT NULL,  -- UDP or TCP port
  related_address   TEXT,              -- the base of a reflexive or relayed candidate
  related_port      INTEGER,           -- its port
  username_fragment TEXT,              -- of its ICE generation, if signaled
  extensions        TEXT NOT NULL      -- the rest of the attribute: name value name value
);

-- ICE candidate pairs: a row each time one was formed or changed.
CREATE TABLE candidate_pair (
  row                      INTEGER PRIMARY KEY,
  step                     INTEGER GENERATED ALWAYS AS (row >> 16) VIRTUAL,
  peer                     INTEGER NOT NULL,
  at_ns                    INTEGER NOT NULL,
  pair                     INTEGER NOT NULL,  -- its number in the agent, never reused
  local                    TEXT NOT NULL,     -- address and port of the local candidate
  local_type               TEXT NOT NULL,     -- host, srflx, prflx, relay
  remote                   TEXT NOT NULL,     -- address or name, and port, of the remote candidate
  remote_type              TEXT NOT NULL,     -- host, srflx, prflx, relay
  base                     TEXT NOT NULL,     -- the local socket of the pair
  state                    TEXT NOT NULL,     -- frozen, waiting, in-progress, failed, succeeded
  nominated                INTEGER NOT NULL,  -- 1: nominated by the controlling side
  selected                 INTEGER NOT NULL,  -- 1: used for media
  priority                 INTEGER NOT NULL,  -- RFC 8445 section 6.1.2.3
  requests_sent            INTEGER NOT NULL,  -- connectivity checks, without retransmissions
  requests_received        INTEGER NOT NULL,  -- checks of the remote peer, with retransmissions
  responses_sent           INTEGER NOT NULL,  -- responses to them
  responses_received       INTEGER NOT NULL,  -- responses to local checks
  consent_requests_sent    INTEGER NOT NULL,  -- consent checks (RFC 7675)
  current_round_trip_time  REAL,              -- seconds
  total_round_trip_time    REAL NOT NULL      -- seconds
);

-- Messages of the application's signaling channel.
CREATE TABLE signaling (
  row       INTEGER PRIMARY KEY,
  step      INTEGER GENERATED ALWAYS AS (row >> 16) VIRTUAL,
  peer      INTEGER NOT NULL,
  at_ns     INTEGER NOT NULL,
  direction TEXT NOT NULL,
  transport TEXT NOT NULL,  -- http, loopback, whip, whep, ...
  type      TEXT NOT NULL,  -- offer, answer, candidate, restart (of ICE), bye, ...
  message   TEXT NOT NULL   -- as on the channel
);

-- API calls.
CREATE TABLE call_request (
  row       INTEGER PRIMARY KEY,
  step      INTEGER GENERATED ALWAYS AS (row >> 16) VIRTUAL,
  peer      INTEGER NOT NULL,
  at_ns     INTEGER NOT NULL,
  call      INTEGER NOT NULL,  -- its number in its peer
  name      TEXT NOT NULL,     -- createOffer, setRemoteDescription, ...
  arguments TEXT NOT NULL      -- JSON
);

-- Replies to API calls, possibly in a later step.
CREATE TABLE call_reply (
  row    INTEGER PRIMARY KEY,
  step   INTEGER GENERATED ALWAYS AS (row >> 16) VIRTUAL,
  peer   INTEGER NOT NULL,
  at_ns  INTEGER NOT NULL,
  call   INTEGER NOT NULL,  -- the number of the call
  -- JSON. For getStats, whose objects are in `stat`, only their number, and the ids of objects that
  -- disappeared since the last report, if any.
  reply  TEXT,
  error  TEXT               -- the name of the W3C exception, and a message
);

-- API calls with their replies.
CREATE VIEW call AS
SELECT
  call_request.row AS "row",
  call_request.step AS step,
  call_request.peer AS peer,
  call_request.at_ns AS at_ns,
  call_request.call AS call,
  call_request.name AS name,
  call_request.arguments AS arguments,
  call_reply.reply AS reply,
  call_reply.error AS error,
  call_reply.step AS reply_step,    -- NULL: no reply
  call_reply.at_ns AS reply_at_ns
FROM call_request
LEFT JOIN call_reply ON call_reply.peer = call_request.peer AND call_reply.call = call_request.call;

-- Requests of a peer to the operating system ('out') and their results ('in').
CREATE TABLE network (
  row       INTEGER PRIMARY KEY,
  step      INTEGER GENERATED ALWAYS AS (row >> 16) VIRTUAL,
  peer      INTEGER NOT NULL,
  at_ns     INTEGER NOT NULL,
  direction TEXT NOT NULL,
  -- interfaces, bind, bound, bind-failed, close, resolve, resolved, send-failed; publish registers
  -- an mDNS name. connect and connect-tls request a connection to a TURN server, connect-peer one
  -- to the remote peer, listen a port for these; bound or bind-failed is the result, and messages
  -- are rows of `packet`, decrypted.
  kind      TEXT NOT NULL,
  request   INTEGER,        -- links a result with its request
  address   TEXT,           -- addresses or names, separated by spaces
  remote    TEXT,           -- the destination of a refused datagram or of a connection
  code      INTEGER,        -- errno
  packets   INTEGER,        -- the number of datagrams that the system refused
  bytes     INTEGER         -- their bytes
);

-- Audio and video that the application passed to a sender. For an audio session (peer 0), `kind` is
-- JSON with the source, format and capture time of a piece of audio, and `samples` are at its own
-- rate; 'rendered' is received audio to be played, 'pull' a request for units of 10 ms.
CREATE TABLE capture (
  row      INTEGER PRIMARY KEY,
  step     INTEGER GENERATED ALWAYS AS (row >> 16) VIRTUAL,
  peer     INTEGER NOT NULL,
  at_ns    INTEGER NOT NULL,
  track    INTEGER NOT NULL,  -- the transceiver's number
  kind     TEXT NOT NULL,     -- audio, video; h264: an encoded video frame (H.264 annex B)
  width    INTEGER,           -- pixels
  height   INTEGER,           -- pixels
  channels INTEGER,
  samples  INTEGER,           -- of each channel, at 48 kHz
  content  INTEGER            -- content.content; NULL: only the length is stored
);

-- The samples of `capture`, stored once if they are equal.
CREATE TABLE content (
  content INTEGER PRIMARY KEY,  -- its number, in order of first use
  row     INTEGER NOT NULL,
  step    INTEGER GENERATED ALWAYS AS (row >> 16) VIRTUAL,
  digest  BLOB NOT NULL,        -- SHA-256 of `bytes`
  bytes   BLOB NOT NULL         -- I420 planes, interleaved 16-bit samples, or a byte stream
);

-- Objects that getStats returned (W3C RTCStats). An object that did not change since the peer's
-- last report has no new row.
CREATE TABLE stat (
  row          INTEGER PRIMARY KEY,
  step         INTEGER GENERATED ALWAYS AS (row >> 16) VIRTUAL,
  peer         INTEGER NOT NULL,
  at_ns        INTEGER NOT NULL,
  call         INTEGER NOT NULL,  -- the number of the getStats call
  id           TEXT NOT NULL,     -- the object's identity across reports
  type         TEXT NOT NULL,     -- inbound-rtp, candidate-pair, ...
  timestamp_ms REAL NOT NULL,     -- Unix time of the sample
  members      TEXT NOT NULL      -- JSON; members ->> '$.bytesReceived' returns one
);

-- Data channels: a row each time one was created by either side, or changed state.
CREATE TABLE channel (
  row                  INTEGER PRIMARY KEY,
  step                 INTEGER GENERATED ALWAYS AS (row >> 16) VIRTUAL,
  peer                 INTEGER NOT NULL,
  at_ns                INTEGER NOT NULL,
  channel              INTEGER NOT NULL,  -- its number in its peer, from 0, never reused
  state                TEXT NOT NULL,     -- connecting, open, closing, closed
  remote               INTEGER NOT NULL,  -- 1: created by the remote peer
  label                TEXT NOT NULL,     -- as passed to createDataChannel
  protocol             TEXT NOT NULL,     -- the subprotocol, often empty
  id                   INTEGER,           -- the SCTP stream; NULL: the DTLS roles are not known yet
  ordered              INTEGER NOT NULL,  -- 1: messages arrive in order
  max_packet_life_time INTEGER,           -- ms for which a message is retransmitted; NULL: no limit
  max_retransmits      INTEGER,           -- retransmissions per message; NULL: no limit
  negotiated           INTEGER NOT NULL,  -- 1: created by the applications on both sides
  priority             INTEGER NOT NULL,  -- 128, 256 (default), 512, 1024 (RFC 8831 section 6.4)
  messages_sent        INTEGER NOT NULL,  -- passed to send so far
  bytes_sent           INTEGER NOT NULL,  -- their bytes
  messages_received    INTEGER NOT NULL,  -- delivered so far
  bytes_received       INTEGER NOT NULL   -- their bytes
);

-- Messages of data channels; query the view `message`.
CREATE TABLE message_store (
  row       INTEGER PRIMARY KEY,
  step      INTEGER GENERATED ALWAYS AS (row >> 16) VIRTUAL,
  peer      INTEGER NOT NULL,
  at_ns     INTEGER NOT NULL,
  direction TEXT NOT NULL,
  channel   INTEGER NOT NULL,  -- channel.channel
  call      INTEGER,           -- the number of the send call; NULL: received
  binary    INTEGER NOT NULL,  -- 1: bytes, 0: text
  size      INTEGER NOT NULL,  -- bytes; for text, in UTF-8
  digest    BLOB,              -- SHA-256 of a message without bytes
  bytes     BLOB               -- NULL: received, and the take has no media
);

-- Messages of data channels: sent ('out') when send was called, received ('in') when complete.
CREATE VIEW message AS
SELECT
  message_store.row AS "row",
  message_store."row" >> 16 AS step,
  message_store.peer AS peer,
  message_store.at_ns AS at_ns,
  message_store.channel AS channel,
  message_store.direction AS direction,
  message_store.binary AS binary,
  CASE message_store.binary WHEN 0 THEN 'text' ELSE 'binary' END AS kind,
  message_store.size AS size,
  message_store.bytes AS bytes,
  CASE message_store.binary WHEN 0 THEN CAST(message_store.bytes AS TEXT) END AS text,
  message_store.digest AS digest,
  call_reply.error AS error              -- why sending failed; NULL: it did not
FROM message_store LEFT JOIN call_reply ON call_reply.call = message_store.call
  AND call_reply.row BETWEEN message_store.row AND message_store.row | 65535;

-- Other events that a peer reported to its application.
CREATE TABLE event (
  row    INTEGER PRIMARY KEY,
  step   INTEGER GENERATED ALWAYS AS (row >> 16) VIRTUAL,
  peer   INTEGER NOT NULL,
  at_ns  INTEGER NOT NULL,
  -- negotiationneeded, icecandidate, track, trackended, addstream, removestream, secured,
  -- speaker, loudest, audiosubscribed, audiounsubscribed, bufferedamountlow, datachannelerror,
  -- refused; enabled, disabled, mute, unmute, ended (of tracks), candidateremoved,
  -- icecandidateerror, selectedcandidatepairchange, mutedspeech, connectionend; and for the take
  -- only, certificate (a local one) and keylog (secret: from which all keys of a DTLS association
  -- derive).
  type   TEXT NOT NULL,
  detail TEXT NOT NULL   -- JSON
);

-- The audio of each track over 100 ms; query the view `audio_level`.
CREATE TABLE level (
  row          INTEGER PRIMARY KEY,
  step         INTEGER GENERATED ALWAYS AS (row >> 16) VIRTUAL,
  peer         INTEGER NOT NULL,
  at_ns        INTEGER NOT NULL,  -- the end of the 100 ms
  track        INTEGER NOT NULL,  -- the transceiver's number
  direction    TEXT NOT NULL,
  energy       INTEGER NOT NULL,  -- the sum of the squared samples of the loudest channel
  samples      INTEGER NOT NULL,  -- of one channel, at 48 kHz
  peak         INTEGER NOT NULL,  -- the largest absolute sample
  meter        INTEGER NOT NULL,  -- the peak, or a quarter of the meter 100 ms before if larger
  sender_level INTEGER,           -- the loudest RFC 6464 level of the packets; NULL: none
  voice        INTEGER NOT NULL   -- 1: at least one packet is marked as speech
);

-- The voices in a mix, for each 100 ms of `level`.
CREATE TABLE contribution (
  row         INTEGER PRIMARY KEY,
  step        INTEGER GENERATED ALWAYS AS (row >> 16) VIRTUAL,
  peer        INTEGER NOT NULL,
  at_ns       INTEGER NOT NULL,  -- the end of the 100 ms
  track       INTEGER NOT NULL,  -- the transceiver's number
  direction   TEXT NOT NULL,     -- 'out': voices that this peer received and forwards
  contributor INTEGER NOT NULL,  -- the CSRC in the packets
  dbov        INTEGER            -- the loudest level in the packets (RFC 6465); NULL: none
);

-- Speech as the peer detected it: a row when it has lasted 0.2 s, one every second while it lasts,
-- and one at its end; query the view `speaker`.
CREATE TABLE speech (
  row         INTEGER PRIMARY KEY,
  step        INTEGER GENERATED ALWAYS AS (row >> 16) VIRTUAL,
  peer        INTEGER NOT NULL,
  at_ns       INTEGER NOT NULL,
  track       INTEGER NOT NULL,  -- the transceiver's number
  direction   TEXT NOT NULL,
  contributor INTEGER,           -- the voice in a mix (CSRC); NULL: the whole track
  phase       TEXT NOT NULL,     -- began, lasts, ended
  from_ns     INTEGER NOT NULL,  -- the first block of -47 dBov or more
  to_ns       INTEGER NOT NULL,  -- the end of the last one
  blocks      INTEGER NOT NULL,  -- the number of these blocks, of 20 ms
  decibels    INTEGER NOT NULL   -- the sum of their levels in dBov
);

-- The traffic of every data channel, from its creation to its end or to the end of the take.
CREATE VIEW channel_total AS
SELECT
  made.peer AS peer, made.channel AS channel, made.label AS label,
  max(made.id) AS id,
  CASE made.remote WHEN 0 THEN 'out' ELSE 'in' END AS direction,   -- 'in': by the remote peer
  min(made.at_ns) AS from_ns,
  min(iif(made.state = 'open', made.at_ns, NULL)) AS open_ns,      -- NULL: never open
  min(iif(made.state = 'closed', made.at_ns, NULL)) AS closed_ns,  -- NULL: not closed
  coalesce(total.messages_sent, 0) AS messages_sent,
  coalesce(total.bytes_sent, 0) AS bytes_sent,
  coalesce(total.messages_received, 0) AS messages_received,
  coalesce(total.bytes_received, 0) AS bytes_received
FROM channel AS made LEFT JOIN (
  SELECT peer, channel,
    sum(direction = 'out') AS messages_sent,
    sum(iif(direction = 'out', size, 0)) AS bytes_sent,
    sum(direction = 'in') AS messages_received,
    sum(iif(direction = 'in', size, 0)) AS bytes_received
  FROM message WHERE error IS NULL
  GROUP BY peer, channel
) AS total ON total.peer = made.peer AND total.channel = made.channel
GROUP BY made.peer, made.channel;

-- RTP streams on the wire, from the first to the last packet. Loss is counted over all payload
-- types of the SSRC, and is the number that `retake summary` and the page show.
CREATE VIEW stream AS
WITH
  weight AS (
    SELECT peer, direction, ssrc, payload_type,
      count("row") AS packets,
      sum(size) AS bytes,
      min(at_ns) AS first_ns,
      max(at_ns) AS last_ns
    FROM rtp
    GROUP BY peer, direction, ssrc, payload_type
  )
SELECT
  weight.peer AS peer, weight.direction AS direction, weight.ssrc AS ssrc,
  weight.payload_type AS payload_type, weight.packets AS packets, weight.bytes AS bytes,
  weight.first_ns AS first_ns, weight.last_ns AS last_ns,
  CASE
    WHEN last_ns - first_ns > 100000000 THEN round(bytes * 8e9 / (last_ns - first_ns))
  END AS bits_per_second,                                -- NULL: of 0.1 s and less
  -- Received: missing on the wire. Sent: as its receiver's reports count them; NULL: no report.
  CASE weight.direction WHEN 'in' THEN loss.lost ELSE loss.reported_lost END AS packets_lost,
  CASE weight.direction
    WHEN 'in' THEN 1.0 * loss.lost / loss.expected
    ELSE 1.0 * loss.reported_lost / loss.reported_expected
  END AS loss_share,                                     -- 0 to 1
  loss.refused AS packets_refused                        -- arrived but refused by SRTP; not in loss
FROM weight
LEFT JOIN loss ON loss.peer = weight.peer AND loss.direction = weight.direction
  AND loss.ssrc = weight.ssrc;

-- The bit rate of UDP payload on the wire, for every second of the take.
CREATE VIEW bitrate AS
SELECT
  peer, direction, at_ns / 1000000000 AS second, protocol, ssrc,
  count("row") AS packets,
  sum(size) * 8 AS bits_per_second
FROM packet
GROUP BY peer, direction, second, protocol, ssrc;

-- Packets missing from RTP streams at the recorder; duplicates count once. A sender that restarts
-- its sequence numbers starts a new part, and the numbers between two parts are not lost: a restart
-- is a step of 3,000 or more, or of 100 back while the RTP time advances, unless the stream was
-- silent for about as long as it takes to send as many packets.
CREATE VIEW loss AS
WITH
  numbered AS (
    SELECT peer, direction, ssrc, row, at_ns, sequence, rtp_time,
      row_number() OVER (PARTITION BY peer, direction, ssrc ORDER BY row) AS number
    FROM rtp
  ),
  met AS (
    SELECT peer, direction, ssrc, row, at_ns, sequence, rtp_time, number,
      CASE WHEN number - lag(number) OVER again <= 128
        AND rtp_time <> lag(rtp_time) OVER again THEN 1 ELSE 0 END AS is_reused
    FROM numbered
    WINDOW again AS (PARTITION BY peer, direction, ssrc, sequence ORDER BY row)
  ),
  spaced AS (
    SELECT peer, direction, ssrc, row, at_ns, is_reused,
      lag(is_reused) OVER stream AS was_reused,
      ((sequence - lag(sequence) OVER stream + 32768) & 65535) - 32768 AS step_size,
      ((lead(sequence) OVER stream - sequence + 32768) & 65535) - 32768 AS next_step,
      ((rtp_time - lag(rtp_time) OVER stream + 2147483648) & 4294967295) - 2147483648 AS ticks,
      at_ns - lag(at_ns) OVER stream AS pause,
      lag(at_ns) OVER stream - first_value(at_ns) OVER stream AS lasted,
      number - 1.0 AS packets
    FROM met
    WINDOW stream AS (PARTITION BY peer, direction, ssrc ORDER BY row)
  ),
  marked AS (
    SELECT peer, direction, ssrc, row, at_ns, coalesce(step_size, 0) AS step_size,
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
    SELECT *, sum(begins) OVER (PARTITION BY peer, direction, ssrc ORDER BY row) AS part
    FROM marked
  ),
  extended AS (
    SELECT peer, direction, ssrc, part, row, at_ns,
      sum(CASE WHEN begins = 1 THEN 0 ELSE step_size END)
        OVER (PARTITION BY peer, direction, ssrc, part ORDER BY row) AS position
    FROM parted
  ),
  -- The last sample of each received stream at peers where SRTP refused packets. The amount by
  -- which its packetsLost exceeds the loss on the wire until then was refused.
  refusing AS (
    SELECT DISTINCT peer FROM event WHERE type = 'refused' AND (detail ->> '$.layer') = 'srtp'
  ),
  counted AS (
    SELECT stat.peer AS peer, CAST((members ->> '$.ssrc') AS BIGINT) & 4294967295 AS ssrc,
      stat."row" AS "row", CAST((members ->> '$.packetsLost') AS BIGINT) AS lost,
      row_number() OVER (
        PARTITION BY stat.peer, members ->> '$.ssrc' ORDER BY stat."row" DESC) AS age
    FROM stat JOIN refusing ON refusing.peer = stat.peer
    WHERE stat.type = 'inbound-rtp' AND (members ->> '$.packetsLost') IS NOT NULL
  ),
  -- How much each of the receiver's reports adds to a sent stream's loss. The reported count starts
  -- over when a stream restarts, and falls by one when a packet arrives late.
  stated AS (
    SELECT peer, ssrc, at_ns, lost,
      coalesce(lag(CASE WHEN lost > 0 THEN lost ELSE 0 END) OVER (
        PARTITION BY peer, ssrc ORDER BY "row"), 0) AS former
    FROM report_block WHERE direction = 'in'
  ),
  reported AS (
    SELECT peer, ssrc, max(at_ns) AS at_ns,
      sum(CASE WHEN lost < 0 OR former - lost > 1000 THEN 0 ELSE lost - former END) AS lost
    FROM stated GROUP BY peer, ssrc
  ),
  part_loss AS (
    SELECT extended.peer AS peer, extended.direction AS direction, extended.ssrc AS ssrc,
      max(position) - min(position) + 1 AS expected,
      count(DISTINCT position) AS received,
      coalesce(
        max(CASE WHEN extended.row < counted."row" THEN position END)
          - min(CASE WHEN extended.row < counted."row" THEN position END) + 1
          - count(DISTINCT CASE WHEN extended.row < counted."row" THEN position END), 0)
        AS missed,                                       -- until the sample
      sum(CASE WHEN extended.at_ns <= reported.at_ns THEN 1 ELSE 0 END) AS sent,
      max(counted.lost) AS counted_lost,
      max(CASE WHEN reported.lost < 0 THEN 0 ELSE reported.lost END) AS reported_lost
    FROM extended
    LEFT JOIN counted ON extended.direction = 'in' AND counted.peer = extended.peer
      AND counted.ssrc = extended.ssrc AND counted.age = 1
    LEFT JOIN reported ON extended.direction = 'out' AND reported.peer = extended.peer
      AND reported.ssrc = extended.ssrc
    GROUP BY extended.peer, extended.direction, extended.ssrc, part
  )
SELECT
  peer, direction, ssrc,
  sum(expected) AS expected,
  sum(received) AS received,
  sum(expected - received) AS lost,
  -- Packets that arrived but that SRTP refused, which packetsLost of getStats counts as lost; NULL
  -- for sent streams.
  CASE
    WHEN direction = 'out' THEN NULL
    WHEN max(counted_lost) > sum(missed) THEN max(counted_lost) - sum(missed)
    ELSE 0
  END AS refused,
  -- Of a sent stream: the packets before the last report of its receiver, and those of them that
  -- the reports count as lost; NULL: no report.
  CASE
    WHEN max(reported_lost) > sum(sent) THEN max(reported_lost)
    WHEN max(reported_lost) IS NOT NULL THEN sum(sent)
  END AS reported_expected,
  max(reported_lost) AS reported_lost
FROM part_loss
GROUP BY peer, direction, ssrc;

-- The one-way delay of RTP packets between two peers of a take (of `merge --out`, or of a local
-- call). It is as accurate as the common clock; a packet that arrived twice has two rows.
CREATE VIEW one_way_delay AS
SELECT
  sent.step AS step, sent.peer AS from_peer, came.peer AS to_peer, sent.at_ns AS at_ns,
  sent.ssrc AS ssrc, sent.sequence AS sequence, sent.size AS size,
  (came.at_ns - sent.at_ns) / 1e6 AS delay_ms  -- NULL: lost
FROM (
  SELECT packet_store.row >> 16 AS step, path.peer AS peer, at_ns, size, marker_type, rtp_time,
    ssrc & 4294967295 AS ssrc, sequence & 65535 AS sequence
  FROM packet_store JOIN path USING (path)
  WHERE path.direction = 'out' AND marker_type IS NOT NULL
) AS sent LEFT JOIN (
  SELECT path.peer AS peer, at_ns, size, marker_type, rtp_time,
    ssrc & 4294967295 AS ssrc, sequence & 65535 AS sequence
  FROM packet_store JOIN path USING (path)
  WHERE path.direction = 'in' AND marker_type IS NOT NULL
) AS came
  ON came.ssrc = sent.ssrc AND came.sequence = sent.sequence AND came.rtp_time = sent.rtp_time
    AND came.size = sent.size AND came.marker_type = sent.marker_type AND came.peer <> sent.peer;

-- The jitter per second: the mean difference between the spacing of packets and of their RTP times,
-- |D(i-1, i)| of RFC 3550 section 6.4.1.
CREATE VIEW jitter AS
WITH
  -- Inferred clock rates of observed streams may be revised: the last row counts.
  clock AS (
    SELECT track.peer AS peer, track.direction AS direction, track.payload_type AS payload_type,
      track.clock_rate AS clock_rate
    FROM payload AS track JOIN (
      -- Retransmissions are sent when they are requested, whatever their timestamps.
      SELECT peer, max("row") AS "row" FROM payload WHERE clock_rate > 0 AND codec <> 'rtx'
      GROUP BY peer, direction, payload_type
    ) AS newest ON newest."row" = track."row" AND newest.peer = track.peer
  ),
  spaced AS (
    SELECT rtp.peer AS peer, rtp.ssrc AS ssrc, at_ns, clock_rate,
      at_ns - lag(at_ns) OVER stream AS arrival_ns,
      ((rtp_time - lag(rtp_time) OVER stream + 2147483648) & 4294967295) - 2147483648 AS ticks
    FROM rtp JOIN clock ON clock.peer = rtp.peer AND clock.direction = rtp.direction
      AND clock.payload_type = rtp.payload_type
    WHERE rtp.direction = 'in'
    WINDOW stream AS (PARTITION BY rtp.peer, rtp.ssrc ORDER BY rtp."row")
  )
SELECT
  peer, ssrc, (at_ns - at_ns % 1000000000) / 1000000000 AS second,
  avg(abs(arrival_ns / 1e6 - ticks * 1e3 / clock_rate)) AS jitter_ms
FROM spaced WHERE arrival_ns IS NOT NULL
GROUP BY peer, ssrc, second;

-- Round trips of the selected ICE pairs: of the checks before their selection, and then of consent
-- checks (RFC 7675), which are in the samples of getStats.
CREATE VIEW round_trip AS
WITH
  -- The ids of selected pairs in getStats, and when each was selected.
  name AS (
    SELECT peer, (members ->> '$.selectedCandidatePairId') AS id, min("row") AS since
    FROM stat WHERE type = 'transport' AND (members ->> '$.selectedCandidatePairId') IS NOT NULL
    GROUP BY peer, (members ->> '$.selectedCandidatePairId')
  ),
  -- The first sample of each pair and of each local candidate.
  first_sample AS (
    SELECT peer, type, id, min("row") AS "row" FROM stat
    WHERE type IN ('candidate-pair', 'local-candidate') GROUP BY peer, type, id
  ),
  own AS (
    SELECT stat.peer AS peer, stat.type AS type, stat.id AS id,
      (members ->> '$.localCandidateId') AS candidate,
      (members ->> '$.address') AS address, (members ->> '$.port') AS port
    FROM first_sample JOIN stat ON stat."row" = first_sample."row"
  ),
  -- The last row of each of these pairs before that; with several transports, the local address
  -- distinguishes them.
  chosen AS (
    SELECT name.peer AS peer, name.id AS id, max(candidate_pair."row") AS "row"
    FROM name
    JOIN own AS pair
      ON pair.type = 'candidate-pair' AND pair.peer = name.peer AND pair.id = name.id
    JOIN own AS local ON local.type = 'local-candidate' AND local.peer = name.peer
      AND local.id = pair.candidate
    JOIN candidate_pair ON candidate_pair.peer = name.peer AND candidate_pair.selected = 1
      AND candidate_pair."row" < name.since
      AND candidate_pair.local IN (
        local.address || ':' || local.port, '[' || local.address || ']:' || local.port)
    GROUP BY name.peer, name.id
  ),
  -- When each pair was selected and deselected.
  spell AS (
    SELECT peer, pair, local, remote, selected, "row",
      lead("row") OVER (PARTITION BY peer, pair ORDER BY "row") AS next_row
    FROM candidate_pair
  ),
  seen AS (
    SELECT "row", peer, at_ns, pair, local, remote, responses_received AS responses,
      total_round_trip_time AS total, current_round_trip_time AS recent
    FROM candidate_pair WHERE selected = 1
    UNION ALL
    SELECT stat."row", stat.peer, stat.at_ns, spell.pair, spell.local, spell.remote,
      CAST((stat.members ->> '$.responsesReceived') AS BIGINT),
      CAST((stat.members ->> '$.totalRoundTripTime') AS DOUBLE),
      CAST((stat.members ->> '$.currentRoundTripTime') AS DOUBLE)
    FROM chosen
    JOIN candidate_pair AS numbered ON numbered."row" = chosen."row"
    JOIN stat ON stat.type = 'candidate-pair' AND stat.peer = chosen.peer AND stat.id = chosen.id
    JOIN spell ON spell.peer = chosen.peer AND spell.pair = numbered.pair
      AND spell."row" < stat."row" AND (spell.next_row IS NULL OR spell.next_row >= stat."row")
    WHERE spell.selected = 1
  ),
  measured AS (
    SELECT "row", peer, at_ns, local, remote, recent,
      responses - lag(responses, 1, 0) OVER (PARTITION BY peer, pair ORDER BY "row") AS checks,
      total - lag(total, 1, 0.0) OVER (PARTITION BY peer, pair ORDER BY "row") AS seconds
    FROM seen
  )
SELECT
  "row" >> 16 AS step, peer, at_ns, local, remote,
  checks,  -- successful checks since the previous row; the round trip is their mean
  1e3 * CASE WHEN checks = 1 THEN recent ELSE seconds / checks END AS round_trip_ms
FROM measured WHERE checks > 0;

-- The time of each track's first decoded frame, also relative to the peer's genesis and to
-- `connected`.
CREATE VIEW first_frame AS
SELECT
  frame.peer AS peer, frame.track AS track, frame.kind AS kind,
  min(frame.at_ns) AS at_ns,
  (min(frame.at_ns) - peer.at_ns) / 1e6 AS since_genesis_ms,
  (min(frame.at_ns) - (
    SELECT min(at_ns) FROM state
    WHERE state.peer = frame.peer AND machine = 'connection' AND to_state = 'connected'
  )) / 1e6 AS since_connected_ms
FROM frame JOIN peer ON peer.peer = frame.peer
WHERE frame.direction = 'in' AND frame.outcome IN ('decoded', 'not decoded')
GROUP BY frame.peer, frame.track;

-- The level of every track for every 100 ms, on the common scales.
CREATE VIEW audio_level AS
SELECT
  "row" >> 16 AS step, peer, at_ns, track, direction, voice,
  -- The RMS in dB relative to full scale, at least -127.
  CASE WHEN decibels < -127 THEN -127.0 ELSE round(decibels, 1) END AS dbov,
  -- From 0 to 1, as in W3C's audioLevel.
  CASE WHEN amplitude > 32767 THEN 1.0 ELSE round(amplitude / 32767, 6) END AS level,
  -- As on a meter: -60 dBov and less is 0, comfortable speech is 50 to 70.
  CAST(CASE
    WHEN decibels <= -60 THEN 0
    WHEN decibels >= 0 THEN 100
    ELSE round(100 * (decibels + 60) / 60)
  END AS INTEGER) AS percent,
  -sender_level AS sender_dbov,  -- the loudest level in the sender's packets (RFC 6464)
  meter / 32767.0 AS libwebrtc_level  -- computed like audioLevel in libwebrtc's getStats
FROM (
  SELECT *,
    CASE WHEN energy = 0 THEN -127.0 ELSE 10 * log10(energy / (samples * 1073741824.0)) END
      AS decibels,
    sqrt(energy * 1.0 / samples) AS amplitude
  FROM level
) AS measured;

-- Who spoke when: audio of -47 dBov or more for at least 0.2 s, joined over pauses of up to half a
-- second. Levels are the sender's (RFC 6464) or the mixer's (RFC 6465) if packets have them,
-- otherwise those of the decoded audio. If the take ends during speech, its end is known only to
-- the second.
CREATE VIEW speaker AS
SELECT
  speech.peer AS peer,
  -- The label of the peer, in or out, the track, and the CSRC of a voice in a mix.
  peer.label || '/' || speech.direction || '/' || speech.track
    || coalesce('/' || speech.contributor, '') AS participant,
  speech.track AS track,
  speech.direction AS direction,
  speech.contributor AS contributor,
  speech.from_ns AS from_ns,
  speech.to_ns AS to_ns,
  (speech.to_ns - speech.from_ns) / 1e9 AS seconds,
  round(speech.decibels * 1.0 / speech.blocks, 1) AS dbov  -- the mean level while speaking
FROM (
  SELECT max("row") AS "row" FROM speech GROUP BY peer, track, direction, contributor, from_ns
) AS newest
JOIN speech ON speech."row" = newest."row"
JOIN peer ON peer.peer = speech.peer;

-- The dominant speaker of each peer over time, as the peer reported to its application.
CREATE VIEW dominant_speaker AS
SELECT
  peer, participant, track, direction, contributor, from_ns, to_ns,
  (to_ns - from_ns) / 1e9 AS seconds
FROM (
  SELECT
    event.peer AS peer,
    peer.label || '/' || (detail ->> '$.direction') || '/' || (detail ->> '$.track')
      || coalesce('/' || (detail ->> '$.contributor'), '') AS participant,
    detail ->> '$.track' AS track,
    detail ->> '$.direction' AS direction,
    detail ->> '$.contributor' AS contributor,
    event.at_ns AS from_ns,
    coalesce(
      lead(event.at_ns) OVER (PARTITION BY event.peer ORDER BY event.row),
      (SELECT at_ns FROM ending), (SELECT max(at_ns) FROM tape)) AS to_ns
  FROM event JOIN peer ON peer.peer = event.peer
  WHERE event.type = 'speaker'
)
WHERE participant IS NOT NULL;

-- The getStats samples of received streams.
CREATE VIEW inbound_rtp AS
SELECT
  step, peer, at_ns, id,
  members ->> '$.kind' AS kind,
  members ->> '$.ssrc' AS ssrc,
  members ->> '$.packetsReceived' AS packets_received,
  members ->> '$.packetsLost' AS packets_lost,
  members ->> '$.bytesReceived' AS bytes_received,
  1e3 * (members ->> '$.jitter') AS jitter_ms,
  members ->> '$.nackCount' AS nack_count,
  members ->> '$.framesDecoded' AS frames_decoded,
  members ->> '$.framesPerSecond' AS frames_per_second,
  members ->> '$.freezeCount' AS freeze_count,
  -- The mean time of frames or samples in the jitter buffer since the previous sample.
  1e3 * CASE WHEN emitted > 0 THEN delay / emitted END AS jitter_buffer_ms,
  members ->> '$.concealedSamples' AS concealed_samples,
  members ->> '$.audioLevel' AS audio_level
FROM (
  SELECT "row" >> 16 AS step, peer, at_ns, id, members,
    CAST((members ->> '$.jitterBufferDelay') AS DOUBLE)
      - lag(CAST((members ->> '$.jitterBufferDelay') AS DOUBLE), 1, 0.0) OVER (
        PARTITION BY peer, id ORDER BY "row") AS delay,
    CAST((members ->> '$.jitterBufferEmittedCount') AS BIGINT)
      - lag(CAST((members ->> '$.jitterBufferEmittedCount') AS BIGINT), 1, 0) OVER (
        PARTITION BY peer, id ORDER BY "row") AS emitted
  FROM stat WHERE type = 'inbound-rtp'
) AS sampled;

-- The getStats samples of sent streams.
CREATE VIEW outbound_rtp AS
SELECT
  step, peer, at_ns, id,
  members ->> '$.kind' AS kind,
  members ->> '$.ssrc' AS ssrc,
  members ->> '$.packetsSent' AS packets_sent,
  members ->> '$.bytesSent' AS bytes_sent,
  members ->> '$.retransmittedPacketsSent' AS retransmitted_packets_sent,
  members ->> '$.targetBitrate' AS target_bits_per_second,
  members ->> '$.framesEncoded' AS frames_encoded,
  members ->> '$.framesPerSecond' AS frames_per_second,
  members ->> '$.qualityLimitationReason' AS quality_limitation
FROM stat WHERE type = 'outbound-rtp';

-- Round trips measured by RTCP: of sent streams by report blocks, of received ones by extended
-- reports, at the time of the report.
CREATE VIEW media_round_trip AS
SELECT
  stat.step AS step, stat.peer AS peer,
  CAST(timestamp_ms * 1e6 AS INTEGER) - (SELECT start_unix_ns FROM take) AS at_ns,
  CASE type WHEN 'remote-inbound-rtp' THEN 'out' ELSE 'in' END AS direction,
  members ->> '$.ssrc' AS ssrc,
  1e3 * (members ->> '$.roundTripTime') AS round_trip_ms
FROM stat
WHERE type IN ('remote-inbound-rtp', 'remote-outbound-rtp')
  AND (members ->> '$.roundTripTime') IS NOT NULL;

-- Video frames per second: encoded ('out'), or decoded and displayed ('in').
CREATE VIEW frame_rate AS
SELECT
  peer, track, direction, at_ns / 1000000000 AS second,
  count("row") AS frames,
  sum(key) AS key_frames,
  max(width) AS width,
  max(height) AS height
FROM frame
WHERE kind = 'video' AND outcome IN ('encoded', 'decoded', 'not decoded', 'passed on')
GROUP BY peer, track, direction, second;

-- Changes of a track's video size; the first row of a track has no previous size.
CREATE VIEW resolution_change AS
SELECT step, peer, at_ns, track, direction, from_width, from_height, width, height
FROM (
  SELECT step, peer, at_ns, track, direction, width, height,
    lag(width) OVER pictures AS from_width, lag(height) OVER pictures AS from_height
  FROM frame WHERE kind = 'video' AND outcome IN ('encoded', 'decoded')
  WINDOW pictures AS (PARTITION BY peer, track, direction ORDER BY row)
)
WHERE coalesce(width, -1) <> coalesce(from_width, -1)
  OR coalesce(height, -1) <> coalesce(from_height, -1);

-- Freezes, by the rule of freezeCount: after 5 gaps between displayed video frames, a gap of at
-- least three times the mean of the last 30 gaps and at least 150 ms longer than that mean. Gaps of
-- more than 5 s are pauses and do not count.
CREATE VIEW "freeze" AS
WITH
  shown AS (
    SELECT frame_store.row AS "row", format.peer AS peer, format.track AS track,
      frame_store.at_ns AS at_ns,
      frame_store.at_ns - lag(frame_store.at_ns) OVER (
        PARTITION BY format.peer, format.track ORDER BY frame_store.row) AS gap_ns
    FROM frame_store JOIN format USING (format)
    WHERE kind = 'video' AND direction = 'in' AND outcome IN ('decoded', 'not decoded')
  ),
  averaged AS (
    SELECT *, avg(gap_ns) OVER before AS mean_ns, count(*) OVER before AS gaps
    FROM shown WHERE gap_ns <= 5000000000
    WINDOW before AS (
      PARTITION BY peer, track ORDER BY row ROWS BETWEEN 30 PRECEDING AND 1 PRECEDING)
  )
SELECT
  row >> 16 AS step, peer, track,
  at_ns - gap_ns AS from_ns,  -- the last video frame before the freeze
  at_ns AS to_ns,             -- the first video frame after it
  gap_ns / 1e6 AS gap_ms,
  mean_ns / 1e6 AS mean_ms    -- the mean gap before it
FROM averaged
WHERE gaps >= 5 AND gap_ns >= 3 * mean_ns AND gap_ns >= mean_ns + 150000000;

-- The duration of each state of each machine; the last state lasts to the end of the take.
CREATE VIEW state_time AS
SELECT step, peer, machine, state, from_ns, to_ns, (to_ns - from_ns) / 1e9 AS seconds
FROM (
  SELECT step, peer, machine, to_state AS state, at_ns AS from_ns,
    coalesce(
      lead(at_ns) OVER (PARTITION BY peer, machine ORDER BY row),
      (SELECT at_ns FROM ending), (SELECT max(at_ns) FROM tape)) AS to_ns
  FROM state
);

-- The ICE pairs that carried media over time; the last one lasts to the end of the take. Ends of
-- observed calls may use one per component and transport at a time.
CREATE VIEW selected_pair AS
WITH
  change AS (
    SELECT row, peer, at_ns, pair, local, local_type, remote, remote_type, selected,
      lag(selected, 1, 0) OVER (PARTITION BY peer, pair ORDER BY row) AS before,
      -- When the pair was deselected; computed backwards, which SQLite does in one pass.
      min(iif(selected = 0, at_ns, NULL)) OVER (
        PARTITION BY peer, pair ORDER BY row DESC
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS left_ns
    FROM candidate_pair
  ),
  -- Consecutive rows that select the same pair.
  run AS (
    SELECT *, sum(is_other) OVER (PARTITION BY peer ORDER BY row) AS number
    FROM (
      SELECT *, iif(pair = lag(pair) OVER (PARTITION BY peer ORDER BY "row"), 0, 1) AS is_other
      FROM change WHERE selected = 1
    )
  ),
  -- When another pair replaced it.
  followed AS (
    SELECT *, min(at_ns) OVER (
      PARTITION BY peer ORDER BY number DESC
      GROUPS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS other_ns
    FROM run
  )
SELECT
  followed.row >> 16 AS step, followed.peer AS peer, followed.pair AS pair,
  coalesce(last.local, followed.local) AS local,
  coalesce(last.local_type, followed.local_type) AS local_type,
  coalesce(last.remote, followed.remote) AS remote,
  coalesce(last.remote_type, followed.remote_type) AS remote_type,
  followed.at_ns AS from_ns,
  coalesce(
    iif(last.pair IS NULL, min(left_ns, other_ns), NULL), left_ns,
    iif(last.pair IS NULL, other_ns, NULL),
    (SELECT at_ns FROM ending), (SELECT max(at_ns) FROM tape)) AS to_ns
FROM followed
-- For observed calls, the final addresses; their pairs state when their use ended.
LEFT JOIN (
  SELECT candidate_pair.peer AS peer, pair, local, local_type, remote, remote_type
  FROM candidate_pair
  JOIN (
    SELECT max("row") AS "row" FROM candidate_pair GROUP BY peer, pair
  ) AS newest ON newest."row" = candidate_pair."row"
  JOIN peer ON peer.peer = candidate_pair.peer AND peer.role = 'observed'
) AS last ON last.peer = followed.peer AND last.pair = followed.pair
WHERE before = 0 ORDER BY followed.peer, followed.pair, followed.row;

-- Retransmitted packets per second (RTX, RFC 4588): RTP whose payload type belongs to no track.
CREATE VIEW retransmission AS
SELECT
  peer, direction, ssrc, payload_type, (at_ns - at_ns % 1000000000) / 1000000000 AS second,
  count("row") AS packets,
  sum(size) AS bytes
FROM rtp
WHERE NOT EXISTS (
  SELECT 1 FROM payload
  WHERE payload.peer = rtp.peer AND payload.direction = rtp.direction
    AND payload.payload_type = rtp.payload_type AND payload.codec <> 'rtx'
)
GROUP BY peer, direction, ssrc, payload_type, second;
