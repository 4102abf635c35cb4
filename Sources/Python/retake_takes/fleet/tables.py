"""The published tables: a take's own tables under the same names, and verbs' results for it.

Each table starts with the columns `take` (the take's id) and `day` (the UTC day on which it began).
Columns are only ever added. `VERSION` is raised with every change, including these, so that takes
published before it are published again.
"""

from dataclasses import dataclass

VERSION = 3
"""The version of these tables, which lakes store."""


@dataclass(frozen=True)
class Table:
    """One published table."""

    name: str
    columns: tuple[tuple[str, str], ...]
    """Names and SQL types, without `take` and `day`."""
    where: str = ""
    """The condition for rows to publish; others are left out."""
    hides: tuple[str, ...] = ()
    """Text columns in which secrets are replaced."""
    of_catalogue: bool = False
    """Whether `retake sql` computes the rows, since they need Retake's rules and statistics."""
    on_request: bool = False
    """Whether the table is published only with --packets: a row per packet or frame."""

    @property
    def names(self) -> tuple[str, ...]:
        """The column names."""
        return tuple(name for name, _ in self.columns)


def _of(
    name: str, columns: str, *, where: str = "", hides: tuple[str, ...] = (),
    of_catalogue: bool = False, on_request: bool = False,
) -> Table:
    pairs = []
    for part in columns.split(", "):
        column, _, kind = part.rpartition(" ")
        pairs.append((column, kind))
    return Table(name, tuple(pairs), where, hides, of_catalogue, on_request)


TAKE_FRONT = (
    ("source", "VARCHAR"), ("stamp", "VARCHAR"), ("tags", "VARCHAR"), ("tables_version", "BIGINT"),
    ("has_packets", "BIGINT"),
)
"""Columns that precede those of the table `take`: how and from which file it was published."""
SOURCE_FILE = (("source", "VARCHAR"), ("stamp", "VARCHAR"), ("take", "VARCHAR"))
"""The columns of `source_file`, the files that were seen and the take in each."""

TABLES: tuple[Table, ...] = (
    # Computed by retake sql for each take in a folder.
    _of("take",
        "label VARCHAR, start_utc VARCHAR, start_unix_ns BIGINT, duration_ns BIGINT, "
        "complete BIGINT, format BIGINT, tool_version VARCHAR, redaction BIGINT, "
        "keeps_media BIGINT, bytes BIGINT, steps BIGINT, peers BIGINT, names VARCHAR, "
        "packets BIGINT, codecs VARCHAR, relay BIGINT, state VARCHAR, connected_ns BIGINT, "
        "round_trip_ms DOUBLE, bits_per_second DOUBLE, loss_share DOUBLE, packets_lost BIGINT, "
        "jitter_ms DOUBLE, frozen_ns BIGINT, freezes BIGINT, concealed_share DOUBLE, "
        "findings BIGINT, severity VARCHAR, finding VARCHAR, finding_text VARCHAR, "
        "packets_refused BIGINT, side VARCHAR, confidence VARCHAR",
        of_catalogue=True),
    _of("finding",
        "number BIGINT, parent BIGINT, depth BIGINT, id VARCHAR, severity VARCHAR, "
        "title VARCHAR, subject VARCHAR, text VARCHAR, peer BIGINT, kind VARCHAR, ssrc BIGINT, "
        "track BIGINT, direction VARCHAR, from_ns BIGINT, to_ns BIGINT, duration_ns BIGINT, "
        "count BIGINT, frozen_ns BIGINT, concealed_ns BIGINT, without_media_ns BIGINT, "
        "delay_ns BIGINT, share DOUBLE, side VARCHAR, side_name VARCHAR, confidence VARCHAR, "
        "reservation VARCHAR",
        of_catalogue=True),
    _of("quality",
        "peer BIGINT, name VARCHAR, direction VARCHAR, kind VARCHAR, codec VARCHAR, ssrc BIGINT, "
        "track BIGINT, width BIGINT, height BIGINT, frames_per_second DOUBLE, "
        "bits_per_second DOUBLE, packets_lost BIGINT, loss_share DOUBLE, jitter_ms DOUBLE, "
        "frozen_ns BIGINT, freezes BIGINT, concealed_share DOUBLE, level_dbov DOUBLE, "
        "packets BIGINT, packets_refused BIGINT",
        of_catalogue=True),
    _of("connection",
        "peer BIGINT, name VARCHAR, other VARCHAR, observed BIGINT, state VARCHAR, "
        "connected_ns BIGINT, local VARCHAR, local_type VARCHAR, remote VARCHAR, "
        "remote_type VARCHAR, pair_changes BIGINT, round_trip_ms DOUBLE, "
        "longest_round_trip_ms DOUBLE",
        of_catalogue=True),
    _of("voice_total",
        "peer BIGINT, name VARCHAR, person VARCHAR, track BIGINT, direction VARCHAR, "
        "contributor BIGINT, speaking_ns BIGINT, dominant_ns BIGINT, dbov DOUBLE, "
        "loudest_dbov DOUBLE, loudest_percent DOUBLE, heard_ns BIGINT, silent_ns BIGINT",
        of_catalogue=True),
    # Stored in each take.
    _of("tag",
        "key VARCHAR, value VARCHAR"),
    _of("peer",
        "row BIGINT, step BIGINT, peer BIGINT, at_ns BIGINT, label VARCHAR, role VARCHAR, "
        "wall_clock_ns BIGINT, actor BIGINT"),
    _of("actor",
        "row BIGINT, step BIGINT, actor BIGINT, at_ns BIGINT, kind VARCHAR, label VARCHAR"),
    _of("state",
        "row BIGINT, step BIGINT, peer BIGINT, at_ns BIGINT, machine VARCHAR, "
        "from_state VARCHAR, to_state VARCHAR"),
    _of("candidate",
        "row BIGINT, step BIGINT, peer BIGINT, at_ns BIGINT, type VARCHAR, "
        "candidate_type VARCHAR, foundation VARCHAR, component BIGINT, protocol VARCHAR, "
        "priority BIGINT, address VARCHAR, port BIGINT, related_address VARCHAR, "
        "related_port BIGINT, username_fragment VARCHAR, extensions VARCHAR"),
    _of("candidate_pair",
        "row BIGINT, step BIGINT, peer BIGINT, at_ns BIGINT, pair BIGINT, local VARCHAR, "
        "local_type VARCHAR, remote VARCHAR, remote_type VARCHAR, base VARCHAR, state VARCHAR, "
        "nominated BIGINT, selected BIGINT, priority BIGINT, requests_sent BIGINT, "
        "requests_received BIGINT, responses_sent BIGINT, responses_received BIGINT, "
        "consent_requests_sent BIGINT, current_round_trip_time DOUBLE, "
        "total_round_trip_time DOUBLE"),
    _of("selected_pair",
        "step BIGINT, peer BIGINT, pair BIGINT, local VARCHAR, local_type VARCHAR, "
        "remote VARCHAR, remote_type VARCHAR, from_ns BIGINT, to_ns BIGINT"),
    _of("signaling",
        "row BIGINT, step BIGINT, peer BIGINT, at_ns BIGINT, direction VARCHAR, "
        "transport VARCHAR, type VARCHAR, message VARCHAR",
        hides=("message",)),
    _of("track",
        "row BIGINT, step BIGINT, peer BIGINT, at_ns BIGINT, track BIGINT, mid VARCHAR, "
        "kind VARCHAR, direction VARCHAR, ssrc BIGINT, codec VARCHAR, payload_type BIGINT, "
        "clock_rate BIGINT, transport_sequence_id BIGINT"),
    _of("stream",
        "peer BIGINT, direction VARCHAR, ssrc BIGINT, payload_type BIGINT, packets BIGINT, "
        "bytes BIGINT, first_ns BIGINT, last_ns BIGINT, bits_per_second DOUBLE, "
        "packets_lost BIGINT, loss_share DOUBLE, packets_refused BIGINT"),
    _of("loss",
        "peer BIGINT, direction VARCHAR, ssrc BIGINT, expected BIGINT, received BIGINT, "
        "lost BIGINT, refused BIGINT, reported_expected BIGINT, reported_lost BIGINT"),
    _of("round_trip",
        "step BIGINT, peer BIGINT, at_ns BIGINT, local VARCHAR, remote VARCHAR, checks BIGINT, "
        "round_trip_ms DOUBLE"),
    _of("bitrate",
        "peer BIGINT, direction VARCHAR, second BIGINT, protocol VARCHAR, ssrc BIGINT, "
        "packets BIGINT, bits_per_second BIGINT"),
    _of("first_frame",
        "peer BIGINT, track BIGINT, kind VARCHAR, at_ns BIGINT, since_genesis_ms DOUBLE, "
        "since_connected_ms DOUBLE"),
    _of("milestone",
        "peer BIGINT, label VARCHAR, name VARCHAR, at_ns BIGINT, since_begin_ms DOUBLE"),
    _of("gap",
        "row BIGINT, step BIGINT, peer BIGINT, direction VARCHAR, ssrc BIGINT, from_ns BIGINT, "
        "to_ns BIGINT, gap_ms DOUBLE, missing BIGINT"),
    _of("freeze",
        "step BIGINT, peer BIGINT, track BIGINT, from_ns BIGINT, to_ns BIGINT, gap_ms DOUBLE, "
        "mean_ms DOUBLE"),
    _of("frame_rate",
        "peer BIGINT, track BIGINT, direction VARCHAR, second BIGINT, frames BIGINT, "
        "key_frames BIGINT, width BIGINT, height BIGINT"),
    _of("resolution_change",
        "step BIGINT, peer BIGINT, at_ns BIGINT, track BIGINT, direction VARCHAR, "
        "from_width BIGINT, from_height BIGINT, width BIGINT, height BIGINT"),
    _of("state_time",
        "step BIGINT, peer BIGINT, machine VARCHAR, state VARCHAR, from_ns BIGINT, "
        "to_ns BIGINT, seconds DOUBLE"),
    _of("retransmission",
        "peer BIGINT, direction VARCHAR, ssrc BIGINT, payload_type BIGINT, second BIGINT, "
        "packets BIGINT, bytes BIGINT"),
    _of("stat",
        "row BIGINT, step BIGINT, peer BIGINT, at_ns BIGINT, call BIGINT, id VARCHAR, "
        "type VARCHAR, timestamp_ms DOUBLE, members VARCHAR"),
    _of("inbound_rtp",
        "step BIGINT, peer BIGINT, at_ns BIGINT, id VARCHAR, kind VARCHAR, ssrc BIGINT, "
        "packets_received BIGINT, packets_lost BIGINT, bytes_received BIGINT, "
        "jitter_ms DOUBLE, nack_count BIGINT, frames_decoded BIGINT, frames_per_second DOUBLE, "
        "freeze_count BIGINT, jitter_buffer_ms DOUBLE, concealed_samples BIGINT, "
        "audio_level DOUBLE"),
    _of("outbound_rtp",
        "step BIGINT, peer BIGINT, at_ns BIGINT, id VARCHAR, kind VARCHAR, ssrc BIGINT, "
        "packets_sent BIGINT, bytes_sent BIGINT, retransmitted_packets_sent BIGINT, "
        "target_bits_per_second DOUBLE, frames_encoded BIGINT, frames_per_second DOUBLE, "
        "quality_limitation VARCHAR"),
    _of("media_round_trip",
        "step BIGINT, peer BIGINT, at_ns BIGINT, direction VARCHAR, ssrc BIGINT, "
        "round_trip_ms DOUBLE"),
    _of("media_stream",
        "peer BIGINT, label VARCHAR, direction VARCHAR, ssrc BIGINT, track BIGINT, "
        "mid VARCHAR, kind VARCHAR, codec VARCHAR, payload_type BIGINT, participant VARCHAR, "
        "first_ns BIGINT, last_ns BIGINT, seconds DOUBLE, packets BIGINT, bytes BIGINT, "
        "bits_per_second DOUBLE, lost BIGINT, lost_percent DOUBLE, packets_lost BIGINT, "
        "loss_share DOUBLE, packets_refused BIGINT"),
    _of("speaker",
        "peer BIGINT, participant VARCHAR, track BIGINT, direction VARCHAR, "
        "contributor BIGINT, from_ns BIGINT, to_ns BIGINT, seconds DOUBLE, dbov DOUBLE"),
    _of("dominant_speaker",
        "peer BIGINT, participant VARCHAR, track BIGINT, direction VARCHAR, "
        "contributor BIGINT, from_ns BIGINT, to_ns BIGINT, seconds DOUBLE"),
    _of("participant",
        "actor BIGINT, participant BIGINT, id VARCHAR, name VARCHAR, local BIGINT, "
        "entered_ns BIGINT, left_ns BIGINT"),
    _of("participant_track",
        "actor BIGINT, participant BIGINT, id VARCHAR, media BIGINT, kind VARCHAR, "
        "extra_value VARCHAR, peer BIGINT, track BIGINT, direction VARCHAR, from_ns BIGINT, "
        "to_ns BIGINT"),
    _of("participant_speaker",
        "actor BIGINT, participant BIGINT, id VARCHAR, peer BIGINT, track BIGINT, "
        "from_ns BIGINT, to_ns BIGINT, seconds DOUBLE, dbov DOUBLE"),
    _of("person",
        "kind VARCHAR, peer BIGINT, actor BIGINT, participant BIGINT, name VARCHAR, "
        "from_ns BIGINT, to_ns BIGINT, bytes_sent BIGINT, bytes_received BIGINT, "
        "speaking_seconds DOUBLE, turns BIGINT"),
    _of("coverage",
        "row BIGINT, step BIGINT, actor BIGINT, at_ns BIGINT, peer BIGINT, from_ns BIGINT, "
        "to_ns BIGINT, what VARCHAR, reason VARCHAR"),
    _of("channel",
        "row BIGINT, step BIGINT, peer BIGINT, at_ns BIGINT, channel BIGINT, state VARCHAR, "
        "remote BIGINT, label VARCHAR, protocol VARCHAR, id BIGINT, ordered BIGINT, "
        "max_packet_life_time BIGINT, max_retransmits BIGINT, negotiated BIGINT, "
        "priority BIGINT, messages_sent BIGINT, bytes_sent BIGINT, messages_received BIGINT, "
        "bytes_received BIGINT"),
    _of("channel_total",
        "peer BIGINT, channel BIGINT, label VARCHAR, id BIGINT, direction VARCHAR, "
        "from_ns BIGINT, open_ns BIGINT, closed_ns BIGINT, messages_sent BIGINT, "
        "bytes_sent BIGINT, messages_received BIGINT, bytes_received BIGINT"),
    _of("event",
        "row BIGINT, step BIGINT, peer BIGINT, at_ns BIGINT, type VARCHAR, detail VARCHAR",
        where="type NOT IN ('keylog', 'certificate')"),
    # Published only on request, because there is a row per packet or frame.
    _of("packet",
        "row BIGINT, step BIGINT, peer BIGINT, at_ns BIGINT, direction VARCHAR, local VARCHAR, "
        "remote VARCHAR, size BIGINT, protocol VARCHAR, ssrc BIGINT, payload_type BIGINT, "
        "sequence BIGINT, rtp_time BIGINT, marker BIGINT, transport_sequence BIGINT, "
        "carrier VARCHAR, outer_source VARCHAR, outer_destination VARCHAR, ecn BIGINT",
        on_request=True),
    _of("rtcp",
        "row BIGINT, step BIGINT, peer BIGINT, at_ns BIGINT, direction VARCHAR, type VARCHAR, "
        "ssrc BIGINT, fields VARCHAR",
        on_request=True),
    _of("frame",
        "row BIGINT, step BIGINT, peer BIGINT, at_ns BIGINT, track BIGINT, kind VARCHAR, "
        "direction VARCHAR, codec VARCHAR, ssrc BIGINT, rtp_time BIGINT, key BIGINT, "
        "width BIGINT, height BIGINT, outcome VARCHAR, size BIGINT, quantiser BIGINT, "
        "audio_level BIGINT, voice BIGINT, channels BIGINT, samples BIGINT, peak BIGINT, "
        "energy BIGINT",
        on_request=True),
    _of("audio_level",
        "step BIGINT, peer BIGINT, at_ns BIGINT, track BIGINT, direction VARCHAR, "
        "voice BIGINT, dbov DOUBLE, level DOUBLE, percent BIGINT, sender_dbov BIGINT, "
        "libwebrtc_level DOUBLE",
        on_request=True),
    _of("lost_packet",
        "row BIGINT, step BIGINT, peer BIGINT, direction VARCHAR, ssrc BIGINT, "
        "sequence BIGINT, from_ns BIGINT, to_ns BIGINT, asked_ns BIGINT, requests BIGINT, "
        "repaired_ns BIGINT, repair_ssrc BIGINT, repair_sequence BIGINT, repair_ms DOUBLE",
        on_request=True),
    _of("loss_burst",
        "row BIGINT, step BIGINT, peer BIGINT, direction VARCHAR, ssrc BIGINT, from_ns BIGINT, "
        "to_ns BIGINT, first_sequence BIGINT, packets BIGINT",
        on_request=True),
)
"""All tables, in the order in which they are written."""


def wanted_columns(table: Table) -> list[tuple[str, str]]:
    """Returns all columns of a published table, with their types."""
    front = [("take", "VARCHAR"), ("day", "DATE")]
    if table.name == "take":
        front += TAKE_FRONT
    return [*front, *table.columns]


def published(packets: bool) -> tuple[Table, ...]:
    """Returns the tables that one run publishes."""
    return tuple(table for table in TABLES if packets or not table.on_request)


def of_name(name: str) -> Table | None:
    """Returns the table with a name; None if there is none."""
    return next((table for table in TABLES if table.name == name), None)
