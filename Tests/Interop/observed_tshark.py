"""Compares Retake's statistics of the RTP streams in captures with tshark's.

    python3 Tests/Interop/observed_tshark.py RETAKE CAPTURE-OR-TAKE...

Packets and losses of every stream must be equal. Where a stream's clock is known, its mean jitter
must be within 0.1 ms of tshark's. The last jitter in getStats is the receiver's: it is updated
once per timestamp, and continues from the receiver's own reports where these are visible; the
expected value is computed here from the take's packets and reports. A stream whose numbers differ
for a known reason (its sequence numbers restart, packets were duplicated) is listed with the
reason. A capture may have its key log (`.keys`) and its descriptions (`-offer.sdp`, `-answer.sdp`)
beside it. `make interop` runs this program on the captures of the tests and on the observed takes
among the regression tests.
"""

import collections
import json
import re
import shutil
import sqlite3
import struct
import subprocess
import sys
import tempfile
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import tshark

_JITTER_MS = 0.1
_FIRST_PORT = 20000
_ROOT = Path(__file__).resolve().parents[2]
_FIELDS = (
    "frame.time_epoch", "udp.srcport", "udp.dstport", "rtp.ssrc", "rtp.seq", "rtp.timestamp",
    "rtp.p_type", "rtp.marker",
)


@dataclass
class _Stream:
    """A received stream."""

    peer: int
    ssrc: int
    packets: int = 0
    distinct: int = 0
    lost: int = 0
    clock: int = 0
    isRepair: bool = False
    jitter: float | None = None
    # For each packet, its arrival in ns, number and RTP time; for each jitter that the receiver
    # reported, the time, None and the jitter.
    arrivals: list = field(default_factory=list)
    ports: set = field(default_factory=set)
    # Where the stream's sequence numbers restart: the last number before, and the first one after.
    restarts: list = field(default_factory=list)


def main():
    program, *paths = sys.argv[1:]
    failures = 0
    for path in map(Path, paths):
        with tempfile.TemporaryDirectory() as folder:
            problems, exceptions, table = check(program, path, Path(folder))
        print(f"{path.name}: {'; '.join(problems) or 'the same'}")
        for line in table + [f"exception: {line}" for line in exceptions]:
            print(f"  {line}")
        failures += bool(problems)
    sys.exit(1 if failures else 0)


def hindrance():
    """Returns why nothing can be compared here; None if it can."""
    return None if shutil.which("tshark") else "tshark is not installed"


def run(program, folder):
    """Compares all captures of the repository; returns the problems, and tables with the
    exceptions."""
    samples = _ROOT / "Tests/ObserverTests/Samples"
    paths = sorted(samples.glob("*.pcap*")) + sorted((_ROOT / "Captures").glob("observed-*.take"))
    problems, lines = [], []
    for path in paths:
        place = folder / path.name
        place.mkdir(parents=True, exist_ok=True)
        found, exceptions, table = check(program, path, place)
        problems += [f"{path.name}: {problem}" for problem in found]
        lines += [path.name] + [f"  {line}" for line in table]
        lines += [f"  exception: {line}" for line in exceptions]
    if not paths:
        problems.append("there is no capture to compare")
    return problems, "\n".join(lines)


def check(program, path, folder):
    """Returns the problems, the exceptions with their reasons, and a table's lines."""
    capture, take = path, path
    if path.suffix == ".take":
        capture = folder / "exported.pcap"
        _run(program, "export", path, "--pcap", capture)
    else:
        take = folder / "imported.take"
        made = _run(program, "import", path, "--out", take, *_beside(path), mayFail=True)
        if made is None:
            return [], ["the capture cannot be read"], []
    with closing(sqlite3.connect(f"file:{take}?mode=ro", uri=True)) as database:
        ours = _ours(database, program, take)
    ports = sorted({port for stream in ours for port in stream.ports})
    if not ports:
        return [], ["no call is in it"], []
    decoding = [word for port in ports for word in ("-d", f"udp.port=={port},rtp")]
    theirs = _theirs(capture, decoding)
    packets = _packets(capture, decoding)
    return _compare(ours, theirs, packets, folder)


def _beside(path):
    options = []
    keys = path.with_suffix(".keys")
    if keys.exists():
        options += ["--keys", keys]
    for kind in ("offer", "answer"):
        description = path.with_name(f"{path.stem}-{kind}.sdp")
        if description.exists():
            options += ["--sdp", description]
    return options


def _run(*command, mayFail=False):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    if done.returncode and not mayFail:
        raise RuntimeError(f"{command}: {done.stderr}")
    return None if done.returncode else done.stdout


def _ours(database, program, take):
    """Returns the views' counts and the last getStats sample, by stream."""
    # Creates this version's views, as the program does.
    def rows(sql):
        return json.loads(_run(program, "sql", take, sql, "--json"))

    streams = {}
    for row in rows(
        "SELECT peer, ssrc, local, count(*) AS packets FROM packet WHERE direction = 'out'"
        " AND protocol = 'rtp' AND ssrc IN (SELECT ssrc FROM track"
        " UNION SELECT members ->> '$.ssrc' FROM stat WHERE type = 'outbound-rtp') GROUP BY 1, 2, 3"
    ):
        key = row["peer"], row["ssrc"]
        stream = streams.setdefault(key, _Stream(*key))
        stream.packets += row["packets"]
        stream.ports.add(int(row["local"].rsplit(":", 1)[1]))
    for row in rows("SELECT peer, ssrc, received, lost FROM loss WHERE direction = 'out'"):
        if stream := streams.get((row["peer"], row["ssrc"])):
            stream.distinct, stream.lost = row["received"], row["lost"]
    for row in rows(
        "SELECT peer, ssrc, codec, clock_rate AS clock FROM track WHERE row IN ("
        " SELECT max(row) FROM track WHERE direction = 'out' GROUP BY peer, ssrc)"
    ):
        if stream := streams.get((row["peer"], row["ssrc"])):
            stream.isRepair = row["codec"] == "rtx"
            stream.clock = 0 if stream.isRepair else row["clock"] or 0
    for row in rows(
        "SELECT members ->> '$.ssrc' AS ssrc, peer, 1e3 * (members ->> '$.jitter') AS jitter,"
        " max(row) FROM stat WHERE type = 'inbound-rtp' GROUP BY 1, 2"
    ):
        other = row["peer"] + 1 if row["peer"] % 2 else row["peer"] - 1
        if stream := streams.get((other, row["ssrc"])):
            stream.jitter = row["jitter"]
    for row in rows(
        "SELECT peer, ssrc, at_ns, sequence, rtp_time AS time FROM packet WHERE direction = 'in'"
        " AND protocol = 'rtp' ORDER BY row"
    ):
        other = row["peer"] + 1 if row["peer"] % 2 else row["peer"] - 1
        if stream := streams.get((other, row["ssrc"])):
            stream.arrivals.append((row["at_ns"], row["sequence"], row["time"]))
    for row in rows(
        "SELECT peer, at_ns, block.value ->> '$.ssrc' AS ssrc, block.value ->> '$.jitter' AS jitter"
        " FROM rtcp, json_each(fields, '$.blocks') AS block WHERE direction = 'out'"
        " AND rtcp.type IN ('sr', 'rr') ORDER BY rtcp.at_ns"
    ):
        other = row["peer"] + 1 if row["peer"] % 2 else row["peer"] - 1
        if stream := streams.get((other, row["ssrc"])):
            stream.arrivals.append((row["at_ns"], None, row["jitter"]))
    problems = json.loads(_run(program, "stats", take, "--problems", "--json") or "[]")
    for problem in problems:
        if problem["problem"] == "sequence-restart":
            for stream in streams.values():
                if problem.get("ssrc") == stream.ssrc and problem.get("peer") != stream.peer:
                    before, after = re.search(r"from (\d+) to (\d+)", json.dumps(problem)).groups()
                    stream.restarts.append((int(before), int(after)))
    return list(streams.values())


def _theirs(capture, decoding):
    """Returns tshark's table, with a stream's paths combined."""
    printed = _run("tshark", "-r", capture, "-q", "-n", "-z", "rtp,streams", *decoding)
    found = {}
    for row in filter(None, map(tshark.row, printed.splitlines())):
        packets, lost = found.get((row.port, row.ssrc), (0, 0))
        found[row.port, row.ssrc] = packets + row.packets, lost + row.lost
    return found


def _packets(capture, decoding):
    """Returns each stream's packets: arrival in ns, RTP time, marker, sequence number, type."""
    options = [word for name in _FIELDS for word in ("-e", name)]
    chosen = ("-T", "fields", "-Y", "rtp.ssrc")
    printed = _run("tshark", "-r", capture, "-n", *chosen, *options, *decoding)
    streams = collections.defaultdict(list)
    for line in printed.splitlines():
        at, source, _, ssrc, sequence, time, kind, marker = line.split("\t")[:8]
        if not source:
            continue
        seconds, fraction = at.split(".")
        streams[int(source.split(",")[0]), int(ssrc.split(",")[0], 16)].append((
            int(seconds) * 10**9 + int(fraction.ljust(9, "0")[:9]), int(time.split(",")[0]),
            marker.split(",")[0] in ("1", "True"), int(sequence.split(",")[0]),
            int(kind.split(",")[0]),
        ))
    return streams


def _compare(ours, theirs, packets, folder):
    problems, exceptions = [], []
    table = [f"{'ssrc':>10}  packets  tshark   lost  tshark  jitter ms  tshark"]
    means = _means(ours, packets, folder)
    for number, stream in enumerate(ours):
        name = f"ssrc {stream.ssrc}"
        rows = [theirs[port, stream.ssrc] for port in stream.ports if (port, stream.ssrc) in theirs]
        if not rows:
            exceptions.append(f"{name}: tshark does not take its packets for RTP")
            continue
        their_packets, their_lost = map(sum, zip(*rows))
        seen = sorted(
            packet for port in stream.ports for packet in packets.get((port, stream.ssrc), []))
        table.append(
            f"{stream.ssrc:>10}  {stream.packets:>7}  {their_packets:>6}  {stream.lost:>5}"
            f"  {their_lost:>6}  {'' if stream.jitter is None else round(stream.jitter, 3):>9}"
            f"  {'' if number not in means else round(means[number], 3):>6}")
        missed = stream.packets - their_packets
        if missed > 0 and their_lost - stream.lost == missed:
            exceptions.append(f"{name}: tshark takes {missed} of its packets for another protocol")
            continue
        if missed:
            problems.append(f"{name}: {stream.packets} packets, {their_packets} in tshark")
        duplicates = stream.packets - stream.distinct
        if stream.restarts:
            by_parts = _lost_by_parts([packet[3] for packet in seen], stream.restarts)
            if by_parts != stream.lost:
                problems.append(f"{name}: {stream.lost} lost, {by_parts} of tshark's by parts")
            exceptions.append(
                f"{name}: its sequence numbers restart {len(stream.restarts)} times, which is"
                f" {their_lost} lost packets for tshark and {stream.lost} here; counted by parts"
                f" its packets lack {by_parts}")
        elif len(rows) > 1:
            exceptions.append(f"{name}: tshark counts its {len(rows)} paths apart")
        elif stream.lost - duplicates != their_lost:
            problems.append(f"{name}: {stream.lost} lost, {their_lost} in tshark")
        elif duplicates:
            exceptions.append(
                f"{name}: {duplicates} duplicates; tshark subtracts them from lost packets")
        if stream.isRepair:
            exceptions.append(f"{name}: retransmissions have the original packets' times")
            continue
        if not stream.clock:
            exceptions.append(f"{name}: its clock is unknown")
            continue
        _compare_jitter(stream, seen, means.get(number), name, problems, exceptions)
    return problems, exceptions, table


def _lost_by_parts(numbers, restarts):
    """Returns how many numbers are missing, counting each part between restarts separately; None if
    a restart's packet does not exist."""
    restarts, parts = list(restarts), [[]]
    for before, number in zip([None] + numbers, numbers):
        if restarts and (before, number) == restarts[0]:
            restarts.pop(0)
            parts.append([])
        last = parts[-1][-1] if parts[-1] else number
        parts[-1].append(last + ((number - last + 0x8000 & 0xFFFF) - 0x8000))
    if restarts:
        return None
    return sum(max(part) - min(part) + 1 - len(set(part)) for part in parts)


def _compare_jitter(stream, seen, mean, name, problems, exceptions):
    """Compares tshark's mean jitter with one computed from the packets, and checks the last
    value."""
    own, _ = tshark.mean_and_largest(seen, stream.clock)
    if mean is not None and abs(own - mean) > _JITTER_MS:
        problems.append(f"{name}: the mean jitter is {own:.3f} ms, {mean:.3f} in tshark")
    if stream.jitter is None or not seen:
        return
    if stream.restarts:
        exceptions.append(f"{name}: its times restart with its numbers, which is not jitter")
        return
    last = _last_jitter(sorted(stream.arrivals, key=lambda one: one[0]), stream.clock)
    if abs(last - stream.jitter) > _JITTER_MS:
        problems.append(f"{name}: the last jitter is {stream.jitter:.3f} ms against {last:.3f}")


def _last_jitter(arrivals, clock):
    """Returns the final jitter in ms, computed from packets in order (RFC 3550 appendix A.8)."""
    value, last = 0.0, None
    for at, sequence, time in arrivals:
        if sequence is None:
            value = time
            continue
        if last and not 0 < (sequence - last[1] & 0xFFFF) < 0x8000:
            continue
        former, last = last, (at, sequence, time)
        if former is None or former[2] == time:
            continue
        step = time - former[2] + 2**31 & 0xFFFFFFFF
        difference = abs((at - former[0]) * clock // 10**9 - (step - 2**31))
        if difference < 5 * clock:
            value += (difference - value) / 16
    return 1000 * value / clock


def _means(ours, packets, folder):
    """Returns tshark's mean jitters; a SIP call set-up before the packets states each clock."""
    separated = folder / "separated.pcap"
    chosen, records = {}, []
    for number, stream in enumerate(ours):
        seen = [p for port in stream.ports for p in packets.get((port, stream.ssrc), [])]
        if not stream.clock or len(seen) < 2:
            continue
        port = _FIRST_PORT + 2 * len(chosen)
        chosen[port] = number
        begin = min(seen)[0]
        invite = tshark.udp(5060, 5060, tshark.invite(96, stream.clock, port))
        records.append((begin - 1, invite))
        for at, time, marker, sequence, _ in sorted(seen):
            head = struct.pack(
                ">BBHII", 0x80, 96 | (128 if marker else 0), sequence, time, stream.ssrc)
            records.append((at, tshark.udp(port, port, head + bytes(20))))
    if not records:
        return {}
    head = struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 262144, 101)
    separated.write_bytes(head + b"".join(
        struct.pack("<IIII", at // 10**9, at % 10**9, len(packet), len(packet)) + packet
        for at, packet in sorted(records, key=lambda record: record[0])))
    return {chosen[row.port]: row.mean for row in tshark.streams(separated) if row.port in chosen}


if __name__ == "__main__":
    main()
