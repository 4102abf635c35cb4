#!/usr/bin/env python3
"""Compares what Retake observes beside receivers on lossy paths with the receivers' statistics.

A capture ends with its receiver's last getStats. Run alone, this program compares the captures kept
by a run with `--keep`: `observed_loss.py --retake PROGRAM FOLDER`.
"""

import argparse
import asyncio
import json
import os
import re
import shutil
import signal
import sqlite3
import statistics
import struct
import subprocess
import sys
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import namespace
from impairment import LossyPath
from peers.talk import BRIEF
from plan import ABILITIES, Call
from processes import Child, ProcessError, end_orphans

_CALL_SECONDS = 240
_CONNECT_SECONDS = 60
# Long enough for several freezes and key frame requests.
_LEAST_SECONDS = 20
_RUNS = 3
LOSSES = (0, 2, 5, 10)

# The members that must agree, within a share or a number, whichever is larger. The tolerances for
# frames and freezes depend on the loss.
_COUNTED = ("packetsReceived", "bytesReceived", "packetsLost", "nackCount", "pliCount")
_SHARE, _SPARE = 0.01, 2
# aiortc counts neither bytes nor requests; its jitter must agree, in seconds.
_AIORTC_COUNTED = ("packetsReceived", "packetsLost")
_JITTER = 0.001
_FRAMES_SHARE = {0: 0.01, 2: 0.01, 5: 0.03, 10: 0.03}
_FREEZES_SPARE = {0: 1, 2: 1, 5: 1, 10: 2}
# libwebrtc decides itself whether padding retransmissions count as retransmitted.
_REPEATED_SHARE, _REPEATED_SPARE = 0.05, 5
# For receivers of FlexFEC: the packets of the repair stream.
_FEC_COUNTED = ("fecPacketsReceived", "fecBytesReceived")
# Further members in the table.
_SHOWN = (
    "packetsReceived", "bytesReceived", "headerBytesReceived", "packetsLost", "jitter",
    "nackCount", "pliCount", "firCount", "retransmittedPacketsReceived",
    "retransmittedBytesReceived", "fecPacketsReceived", "fecBytesReceived", "packetsDiscarded",
    "fecPacketsDiscarded", "framesReceived", "framesDecoded", "keyFramesDecoded", "framesDropped",
    "freezeCount", "totalFreezesDuration", "pauseCount", "qpSum", "frameWidth", "frameHeight",
    "framesPerSecond", "framesAssembledFromMultiplePackets", "totalInterFrameDelay", "fecSsrc",
    # Members of the streams sent by the same end.
    "packetsSent", "bytesSent", "retransmittedPacketsSent", "retransmittedBytesSent",
    "framesSent", "keyFramesEncoded",
)
# Between two Chromiums, packets are unencrypted, because Chromium writes no key log.
_CLEAR = ("--disable-webrtc-encryption",)
_FLEXFEC = (
    "--force-fieldtrials=WebRTC-FlexFEC-03/Enabled/WebRTC-FlexFEC-03-Advertised/Enabled/",
)


@dataclass(frozen=True)
class Cell:
    """Two peers and a path between them."""

    offerer: str
    answerer: str
    codec: str = "vp8"
    # Whether FlexFEC repairs lost packets, too.
    fec: bool = False
    # The scalability mode, such as "L1T3"; the media is then unencrypted.
    layers: str = ""
    losses: tuple[int, ...] = LOSSES
    runs: int = _RUNS

    @property
    def name(self):
        """The name in the output and of the folder."""
        words = ["lossy", self.offerer, self.answerer]
        words += ["flexfec"] * self.fec + [self.layers.lower()] * bool(self.layers)
        return "-".join(words + [self.codec] * (self.codec != "vp8"))

    @property
    def peers(self):
        """The peers, in the order of the ends."""
        return (self.offerer, self.answerer)

    @property
    def uses_loopback(self):
        """Whether both peers can use loopback."""
        return all(ABILITIES[peer].uses_loopback for peer in self.peers)


CELLS = [
    Cell("chromium", "firefox"), Cell("chromium", "aiortc"),
    Cell("chromium", "chromium", fec=True),
    # Chromium itself does not decode spatial layers of AV1.
    Cell("chromium", "chromium", codec="av1", layers="L1T3", losses=(0, 5), runs=1),
]


async def run(cell, program, folder, seconds):
    """Makes a cell's calls and compares them; returns the problems and a table."""
    seconds = max(seconds, _LEAST_SECONDS)
    problems = []
    try:
        for loss in cell.losses:
            for number in range(cell.runs):
                place = folder / f"{loss}-{number}"
                shutil.rmtree(place, ignore_errors=True)
                place.mkdir(parents=True)
                async with asyncio.timeout(_CALL_SECONDS + seconds):
                    await record(cell, place, loss, seconds, seed=number)
    except Exception as error:  # a peer may raise anything: the call failed
        problems.append(f"{type(error).__name__}: {error}")
    finally:
        end_orphans()
    found, table = compare_all(program, folder)
    return problems + found, table


# MARK: Calls


async def record(cell, folder, loss, seconds, seed):
    """Makes a call over a lossy path; saves each end's capture and statistics."""
    # Imported here, because comparing needs none of the packages used by these modules.
    from observed import _key_log

    host = "127.0.0.1" if cell.uses_loopback else namespace.ADDRESS
    path = await LossyPath.open(host, loss / 100, seed=seed)
    os.environ[BRIEF] = "1"
    peers, captures = [], []
    try:
        for end in range(2):
            captures.append(await _capture(folder / f"{end}.pcap", path.port(end)))
        with _key_log(folder / "keys.log"):
            for end, name in enumerate(cell.peers):
                (folder / str(end)).mkdir()
                call = Call(
                    name, "peer", codec=cell.codec, avoids_loopback=not cell.uses_loopback)
                peers.append(await _open(call, folder / str(end), cell))
        offer = path.signaled(await peers[0].offer(), 0)
        answer = path.signaled(await peers[1].answer(offer), 1)
        await peers[0].accept(answer)
        (folder / "offer.sdp").write_text(offer)
        (folder / "answer.sdp").write_text(answer)
        await _connected(peers)
        await asyncio.sleep(seconds)
        for end, peer in enumerate(peers):
            counted = {"peer": cell.peers[end], "loss": loss, "stats": await peer.statistics()}
            await asyncio.sleep(0.3)
            await captures[end].finish(10, sending=signal.SIGINT)
            (folder / f"{end}.json").write_text(json.dumps(counted))
    finally:
        for peer in peers:
            await peer.close()
        for capture in captures:
            await capture.end()
        path.close()


async def _open(call, folder, cell):
    from peers.chromium import Chromium
    from peers.opening import open_peer

    if not cell.fec and not cell.layers:
        return await open_peer(call, folder)
    peer = await Chromium.open(folder, call, flags=_CLEAR + _FLEXFEC * cell.fec)
    # Without DTLS there are no data channels.
    await peer.page.evaluate(
        f"void (call.channels = false, call.layers = {json.dumps(cell.layers)})")
    return peer


async def _capture(file, port):
    child = await Child.start(
        ["dumpcap", "-q", "-P", "-i", "lo", "-f", f"udp port {port}", "-w", file],
        file.with_suffix(".dumpcap.log"))
    await child.line("File: ", 30, errors=True)
    return child


async def _connected(peers):
    loop = asyncio.get_running_loop()
    start = loop.time()
    while loop.time() < start + _CONNECT_SECONDS:
        reports = [await peer.report() for peer in peers]
        if all(report.frames("in", "video") for report in reports):
            return
        await asyncio.sleep(0.3)
    raise ProcessError(f"no video frames within {_CONNECT_SECONDS} s")


# MARK: Comparison


def compare_all(program, folder):
    """Compares all captures below a folder; returns the problems and a table."""
    cases = {}
    for file in sorted(folder.rglob("[01].json")):
        counted = json.loads(file.read_text())
        counted["peer"] += " with FlexFEC" * ("flexfec" in file.parent.parent.name)
        try:
            streams = _compare(program, file.parent, int(file.stem), counted)
        except Exception as error:  # a damaged capture is reported as a problem
            return [f"{file}: {type(error).__name__}: {error}"], ""
        for kind, theirs, ours in streams:
            cases.setdefault((counted["peer"], counted["loss"], kind), []).append((theirs, ours))
    problems, lines = [], []
    for (peer, loss, kind), runs in sorted(cases.items()):
        lines.append(f"{peer} at {loss} %, {kind}: counted / observed, of {len(runs)} runs")
        for name in _SHOWN:
            pairs = [(theirs[name], ours.get(name)) for theirs, ours in runs
                     if theirs.get(name) is not None]
            if not pairs:
                continue
            words = "  ".join(f"{_word(one)}/{_word(two)}" for one, two in pairs)
            problem = _problem(peer, name, loss, kind, pairs)
            problems += [f"{peer} at {loss} %, {kind}: {problem}"] * bool(problem)
            lines.append(f"  {name:>34}  {words}{'  !' if problem else ''}")
    return problems, "\n".join(lines)


def _problem(peer, name, loss, kind, pairs):
    """Returns the problem with a member, by the median of the runs; None if there is none."""
    isVideo = kind.startswith("video")
    if name in _FEC_COUNTED and isVideo and peer.endswith("FlexFEC"):
        if loss and not any(one for one, _ in pairs):
            return f"{name}: no repair packets were received"
        off = lambda one: max(_SHARE * one, _SPARE)
    elif name == "fecSsrc":
        off = lambda one: 0
    elif name == "retransmittedPacketsReceived" and isVideo and peer != "aiortc":
        off = lambda one: max(_SHARE * one, _SPARE)
    elif name == "packetsSent" and peer != "aiortc":
        off = lambda one: max(_SHARE * one, _SPARE)
    elif name == "retransmittedPacketsSent" and isVideo and peer != "aiortc":
        off = lambda one: max(_REPEATED_SHARE * one, _REPEATED_SPARE)
    elif name in (_AIORTC_COUNTED if peer == "aiortc" else _COUNTED):
        off = lambda one: max(_SHARE * abs(one), _SPARE)
    elif name == "jitter" and peer == "aiortc":
        off = lambda one: _JITTER
    elif name == "framesDecoded" and kind == "video":
        off = lambda one: max(_FRAMES_SHARE[loss] * one, 1)
    elif name == "freezeCount":
        off = lambda one: _FREEZES_SPARE[loss]
    else:
        return None
    if any(two is None for _, two in pairs):
        return f"{name} is missing"
    excess = statistics.median(abs(one - two) - off(one) for one, two in pairs)
    if excess <= 0:
        return None
    return f"{name}: " + ", ".join(f"{one} and {two}" for one, two in pairs)


def _compare(program, folder, end, counted):
    """Returns an end's streams, each with its own statistics and Retake's."""
    inbound = [stats for stats in counted["stats"] if stats["type"] == "inbound-rtp"]
    outbound = [stats for stats in counted["stats"] if stats["type"] == "outbound-rtp"]
    capture, take = folder / f"{end}.cut.pcap", folder / f"{end}.take"
    _cut(folder / f"{end}.pcap", capture, max(stats["timestamp"] for stats in inbound))
    take.unlink(missing_ok=True)
    keys = ["--keys", folder / "keys.log"] * (folder / "keys.log").exists()
    subprocess.run(
        [program, "import", capture, *keys, "--sdp", folder / "offer.sdp",
         "--sdp", folder / "answer.sdp", "--decode", "--out", take],
        check=True, capture_output=True)
    with closing(sqlite3.connect(f"file:{take}?mode=ro", uri=True)) as database:
        rows = database.execute(
            "SELECT type, members, max(row) FROM stat"
            " WHERE type IN ('inbound-rtp', 'outbound-rtp') GROUP BY peer, id")
        ours = {}
        for kind, text, _ in rows:
            members = json.loads(text)
            ours[kind, members["ssrc"]] = members
    # aiortc may report the retransmission SSRC instead of the stream's.
    repairs = {
        int(ssrc) for name in ("offer.sdp", "answer.sdp")
        for ssrc in re.findall(r"a=ssrc-group:FID \d+ (\d+)", (folder / name).read_text())}
    return [
        (stats["kind"] + " sent" * (stats in outbound), stats,
         ours.get((stats["type"], stats["ssrc"]), {}))
        for stats in inbound + outbound if stats["ssrc"] not in repairs]


def _cut(source, target, milliseconds):
    """Copies a pcap's packets up to a Unix time."""
    data = source.read_bytes()
    scale = {b"\xd4\xc3\xb2\xa1": 1_000, b"\x4d\x3c\xb2\xa1": 1_000_000}[data[:4]]
    place = 24
    while place + 16 <= len(data):
        seconds, rest, size, _ = struct.unpack_from("<IIII", data, place)
        if seconds * 1_000 + rest / scale > milliseconds or place + 16 + size > len(data):
            break
        place += 16 + size
    target.write_bytes(data[:place])


def _word(value):
    if value is None:
        return "-"
    return f"{value:.4g}" if isinstance(value, float) and value % 1 else f"{value:.0f}"


def main():
    """Compares the captures that a run kept."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--retake", type=Path, required=True)
    parser.add_argument("folder", type=Path)
    options = parser.parse_args()
    problems, table = compare_all(options.retake.resolve(), options.folder)
    print(table)
    for problem in problems:
        print(problem)
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
