"""Compares loss, packets and jitter of a take's RTP streams with tshark's counts for its packets.

tshark computes jitter only where a session description states the payload type's clock rate. An
exported capture has all streams on one pair of ports; here each stream gets separate ports, and a
SIP call set-up before the packets describes it. tshark computes the jitter of RFC 3550 after every
packet, but its mean excludes packets with the marker bit, which end every frame; the mean computed
here excludes them as well.
"""

import shutil
import sqlite3
import struct
import subprocess
from contextlib import closing
from dataclasses import dataclass

import tshark

_FIRST_PORT = 20000
_LOSS_RTP_TYPES = range(64, 96)
# tshark prints times and jitter rounded to microseconds.
_JITTER_MS = 0.005
# getStats values are rounded to ticks of the RTP clock.
_OWN_JITTER_MS = 0.1


@dataclass
class _Stream:
    direction: str
    ssrc: int
    payload_type: int
    clock_rate: int


def check(program, take, folder):
    """Compares every stream of a take's first peer; returns a table and the problems."""
    if shutil.which("tshark") is None:
        return "", ["no tshark in PATH: run `make deps-interop`"]
    pcap = folder / "exported.pcap"
    pcap.unlink(missing_ok=True)
    subprocess.run(
        [program, "export", take, "--pcap", pcap, "--peer", "1"], check=True, capture_output=True
    )
    with closing(sqlite3.connect(f"file:{take}?mode=ro", uri=True)) as database:
        streams = _streams(database)
        ours = {(s.direction, s.ssrc): _ours(database, s) for s in streams}
        inbound = {row[0] for row in database.execute(
            "SELECT DISTINCT remote FROM path WHERE direction = 'in' AND peer = 1")}
        problems = _own(database, streams)
    separated = folder / "streams.pcap"
    _separate(pcap, separated, streams, inbound)
    theirs = {row.port: (row.packets, row.lost, row.mean) for row in tshark.streams(separated)}
    rows = [("stream", "packets", "tshark", "lost", "tshark", "jitter ms", "tshark")]
    for number, stream in enumerate(streams):
        mine, other = ours[stream.direction, stream.ssrc], theirs.get(_FIRST_PORT + 2 * number)
        name = f"{stream.direction} {stream.ssrc} type {stream.payload_type}"
        if other is None:
            problems.append(f"tshark: no stream {name}")
            continue
        pairs = list(zip(mine, other))
        rows.append((name, *(f"{value:g}" for pair in pairs for value in pair)))
        if mine[:2] != other[:2]:
            problems.append(f"tshark: {name}: {other} against {mine}")
        elif abs(mine[2] - other[2]) > _JITTER_MS:
            problems.append(f"tshark: {name}: the jitter is {other[2]} against {mine[2]:.3f} ms")
    widths = [max(len(row[column]) for row in rows) for column in range(7)]
    table = "\n".join("  ".join(c.rjust(w) for c, w in zip(row, widths)) for row in rows)
    return table, problems


def _streams(database):
    """Returns the media streams; retransmission streams have no steady clock."""
    rows = database.execute(
        "SELECT s.direction, s.ssrc, s.payload_type, max(t.clock_rate) FROM stream AS s"
        " JOIN track AS t ON t.peer = s.peer AND t.direction = s.direction"
        " AND t.payload_type = s.payload_type WHERE s.peer = 1 AND s.packets > 20"
        " GROUP BY 1, 2, 3 ORDER BY 1, 2"
    )
    return [_Stream(*row) for row in rows]


def _ours(database, stream):
    """Returns a stream's packets and losses in the views, and the mean jitter computed as tshark
    does."""
    packets, lost = database.execute(
        "SELECT packets, lost FROM stream JOIN loss USING (peer, direction, ssrc)"
        " WHERE peer = 1 AND direction = ? AND ssrc = ? AND payload_type = ?",
        (stream.direction, stream.ssrc, stream.payload_type),
    ).fetchone()
    mean, _ = tshark.mean_and_largest(_packets(database, stream), stream.clock_rate)
    return packets, lost, mean


def _packets(database, stream):
    """Returns each packet's arrival in ns, RTP time, marker and row."""
    return database.execute(
        "SELECT at_ns, rtp_time, marker, row FROM packet WHERE peer = 1 AND protocol = 'rtp'"
        " AND direction = ? AND ssrc = ? AND payload_type = ? ORDER BY row",
        (stream.direction, stream.ssrc, stream.payload_type),
    )


def _own(database, streams):
    """Compares the last getStats jitter of received streams with their packets up to then."""
    problems = []
    for stream in streams:
        told = database.execute(
            "SELECT row, 1e3 * (members ->> '$.jitter') FROM stat WHERE peer = 1"
            " AND type = 'inbound-rtp' AND members ->> '$.ssrc' = ? ORDER BY row DESC",
            (stream.ssrc,),
        ).fetchone()
        if stream.direction != "in" or told is None:
            continue
        jitters = tshark.jitters(_packets(database, stream), stream.clock_rate)
        before = [jitter for jitter, (*_, row) in jitters if row < told[0]]
        if abs(before[-1] - told[1]) > _OWN_JITTER_MS:
            problems.append(f"stat: {stream.ssrc}: jitter {told[1]} against {before[-1]:.3f} ms")
    return problems


def _separate(source, target, streams, remotes):
    """Writes a capture with separate ports for each stream, and a description before the
    packets."""
    ports = {
        (s.direction, s.ssrc, s.payload_type): _FIRST_PORT + 2 * n for n, s in enumerate(streams)
    }
    data = source.read_bytes()
    out = [data[:24]]
    offset = 24
    first = True
    while offset + 16 <= len(data):
        head = data[offset : offset + 8]
        length = struct.unpack_from("<I", data, offset + 8)[0]
        packet = data[offset + 16 : offset + 16 + length]
        offset += 16 + length
        if first:
            for stream in streams:
                port = ports[stream.direction, stream.ssrc, stream.payload_type]
                out.append(_record(head, tshark.udp(
                    5060, 5060, tshark.invite(stream.payload_type, stream.clock_rate, port))))
            first = False
        if packet[0] >> 4 != 4:
            continue
        payload = packet[28:]
        if len(payload) < 12 or payload[0] >> 6 != 2 or payload[1] & 0x7F in _LOSS_RTP_TYPES:
            continue
        port = int.from_bytes(packet[20:22])
        source_address = "{}.{}.{}.{}:{}".format(*packet[12:16], port)
        direction = "in" if source_address in remotes else "out"
        ssrc = struct.unpack(">I", payload[8:12])[0]
        port = ports.get((direction, ssrc, payload[1] & 0x7F))
        if port:
            out.append(_record(head, tshark.udp(port, port, payload)))
    target.write_bytes(b"".join(out))


def _record(head, packet):
    return head + struct.pack("<II", len(packet), len(packet)) + packet
