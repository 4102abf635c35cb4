#!/usr/bin/env python3
"""Re-enacts calls with freezes: does Chromium freeze like the recorded receiver?

Makes calls with freezes between real peers (Retake's own, observed and relayed takes) unless the
folder has them already, re-enacts each several times for a fresh Chromium, and compares Chromium's
statistics with the recorded receiver's.

Alone: `reenacted_freezes.py --retake PROGRAM FOLDER [--runs 10] [--take NAME]`.
"""

import argparse
import asyncio
import json
import shutil
import signal
import sqlite3
import statistics
import sys
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import namespace
from processes import end_orphans
from reenacted import video_of
from signaled import JOIN

_CALL_SECONDS = 15
_LIMIT_SECONDS = 180
# The maximum deviation from the recorded timing: the median, and the 99th percentile.
_MEDIAN_NS, _P99_NS = 2_000_000, 5_000_000
# The allowed difference in the number of freezes, the allowed relative difference in frozen time,
# and how many of ten runs must be within both.
_SPARE, _SHARE, _GOOD = 1, 0.25, 8
_FIGURES = ("freezeCount", "totalFreezesDuration", "framesDecoded", "packetsLost", "nackCount")

# Two connections of one page: one signals through the relay, the other directly with the server.
# The result is the first one's statistics, with which the re-enactment is compared.
_CALL = """(async (near, far, seconds) => {""" + JOIN + """
  const ends = [];
  for (const address of [near, far])
    ends.push(await join(address, {audio: true, video: {width: 640, height: 480}}));
  const [{socket, connection}] = ends;
  await connection.setLocalDescription();
  socket.send(JSON.stringify({jsep: connection.localDescription}));
  await new Promise(resolve => connection.onconnectionstatechange = () =>
    connection.connectionState === "connected" && resolve());
  await new Promise(resolve => setTimeout(resolve, seconds * 1000));
  const stats = [...(await connection.getStats()).values()];
  for (const end of ends) end.connection.close();
  await new Promise(resolve => setTimeout(resolve, 300));
  for (const end of ends) end.socket.close();
  return stats;
})"""


@dataclass(frozen=True)
class Bad:
    """A call over a lossy path: how it is recorded, and its loss in percent."""

    kind: str
    loss: int
    seed: int = 0

    @property
    def name(self):
        """The name in the output and of the folder."""
        return f"{self.kind}-{self.loss}"


CALLS = [
    Bad("observed", 15, 1), Bad("observed", 25, 2), Bad("relayed", 30), Bad("relayed", 35),
    Bad("own", 20, 3), Bad("demo", 20),
]


async def run(program, folder, runs, only="", target=""):
    """Makes the missing calls and re-enacts each `runs` times; returns the problems and a table.

    A target for the jitter buffer makes a different client, so nothing is judged.
    """
    more = ("--jitter-buffer-target", target) if target else ()
    problems, lines = [], []
    for bad in CALLS:
        if only not in bad.name:
            continue
        if bad.kind == "demo" and not _demos_are_there():
            lines.append(f"{bad.name}: left out, it needs janus, janus-demos and a private network")
            continue
        place = folder / bad.name
        try:
            if not (place / "counted.json").exists():
                async with asyncio.timeout(_LIMIT_SECONDS):
                    await _make(bad, program, place)
            counted = json.loads((place / "counted.json").read_text())
            results = place / f"runs{target}.jsonl"
            for _ in range(runs):
                async with asyncio.timeout(_LIMIT_SECONDS):
                    found = await _play(program, place, counted["peer"], more)
                with results.open("a") as file:
                    file.write(json.dumps(found) + "\n")
        except Exception as error:  # a peer may fail in any way: the call failed
            problems.append(f"{bad.name}: {type(error).__name__}: {error}")
            continue
        if not results.exists():
            continue
        played = [json.loads(line) for line in results.read_text().splitlines()]
        found, words = _judge(bad, counted["stats"], played)
        problems += [] if target else [f"{bad.name}: {each}" for each in found]
        lines += words
    return problems, "\n".join(lines)


def _demos_are_there():
    from recorded_others import demos_are_there

    return demos_are_there()


# MARK: Bad calls


async def _make(bad, program, folder):
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    try:
        ways = {"observed": _observed, "relayed": _relayed, "own": _own, "demo": _demo}
        take, stats = await ways[bad.kind](bad, program, folder)
    finally:
        end_orphans()
    (video,) = [each for each in stats
                if each["type"] == "inbound-rtp" and each["kind"] == "video"]
    with closing(sqlite3.connect(f"file:{take}?mode=ro", uri=True)) as database:
        # With a relay, the leg on the other side has the stream too; the observed ends come last.
        ((peer,),) = database.execute(
            "SELECT max(peer) FROM stream WHERE direction = 'in' AND ssrc = ?",
            (video["ssrc"],)).fetchall()
    take.rename(folder / "bad.take")
    # Written last, because a take is complete only at the end of its recording.
    (folder / "counted.json").write_text(json.dumps({"peer": peer, "stats": video}))


async def _observed(bad, program, folder):
    """Records two Chromiums by an unencrypted capture beside the receiver."""
    from observed_loss import _cut, Cell, record

    await record(
        Cell("chromium", "chromium", layers="L1T1"), folder, bad.loss, _CALL_SECONDS, bad.seed)
    stats = json.loads((folder / "0.json").read_text())["stats"]
    _cut(folder / "0.pcap", folder / "cut.pcap", max(each["timestamp"] for each in stats))
    take = folder / "observed.take"
    await _output(
        program, "import", folder / "cut.pcap", "--sdp", folder / "offer.sdp", "--sdp",
        folder / "answer.sdp", "--out", take)
    return take, stats


async def _relayed(bad, program, folder):
    """Records two connections of a Chromium page, with the relay between them."""
    from recorded_page import Browser
    from relayed import Relay, Room

    room = await Room.start()
    browser = relay = None
    try:
        relay = await Relay.start(
            program, folder, room.address, "--fault", f"drop far rtp video {bad.loss}%",
            "--fault", "delay 30ms")
        browser = await Browser.start("chromium", folder)
        await browser.page.load(room.address + "/", ready="true")
        ways = [each.replace("http", "ws") + "/room" for each in (relay.address, room.address)]
        arguments = ", ".join(json.dumps(each) for each in (*ways, _CALL_SECONDS))
        stats = await browser.page.evaluate(f"{_CALL}({arguments})")
        await relay.finish()
    finally:
        if browser:
            await browser.end()
        await room.close()
    return relay.take, stats


async def _demo(bad, program, folder):
    """Records the demo page of Janus in a room, with the relay between them."""
    from relayed import visit_demo

    take, received, _ = await visit_demo(
        program, folder, _CALL_SECONDS, "--fault", f"drop far rtp video {bad.loss}%")
    return take, received[0]


async def _own(bad, program, folder):
    """Records Chromium's call to Retake, whose own statistics are the recorded receiver's."""
    from impairment import LossyPath
    from peers.opening import open_peer
    from plan import Call
    from retake import Recorder

    path = await LossyPath.open("127.0.0.1", bad.loss / 100, seed=bad.seed)
    recorder = await Recorder.start(program, folder, "127.0.0.1", "pattern")
    peer = await open_peer(Call("chromium", "peer"), folder)
    try:
        offer = path.signaled(await peer.offer(), 0)
        await peer.accept(path.signaled(await recorder.offer(offer), 1))
        await asyncio.sleep(_CALL_SECONDS)
        (call,) = (await recorder.stats()).values()
    finally:
        await peer.close()
        await recorder.abandon()
        path.close()
    return recorder.take, call["stats"]


# MARK: Re-enactments


async def _play(program, folder, peer, more=()):
    """Re-enacts a call for a fresh Chromium; returns its statistics and the packets' timing."""
    out = folder / "again.take"
    report = json.loads(await _output(
        program, "reenact", folder / "bad.take", "--peer", peer, "--listen", "127.0.0.1:0",
        "--against", "chromium", "--out", out, "--force", "--json", *more))
    video = video_of(report["pages"][0])
    figures = {name: video.get(name) for name in _FIGURES}
    return figures | {name: report[name] for name in ("median_ns", "p99_ns", "complete")}


def _judge(bad, was, played):
    """Returns the problems with the runs of a call, and lines of a table."""
    problems = [f"run {number} was not played to its end"
                for number, each in enumerate(played, 1) if not each["complete"]]
    for name, limit in (("median_ns", _MEDIAN_NS), ("p99_ns", _P99_NS)):
        if (middle := statistics.median(each[name] for each in played)) > limit:
            problems.append(f"{name} is {middle:.0f} at the median of the runs")
    frozen = was["totalFreezesDuration"]
    good = sum(
        abs(each["freezeCount"] - was["freezeCount"]) <= _SPARE
        and abs(each["totalFreezesDuration"] - frozen) <= _SHARE * frozen for each in played)
    # Retake and Chromium decide differently when to show a frame, so their freezes may differ.
    if bad.kind != "own" and good * 10 < _GOOD * len(played):
        problems.append(f"{good} of {len(played)} runs froze like the recorded receiver")
    lines = [f"{bad.name}: {good} of {len(played)} runs alike"]
    for name in _FIGURES:
        lines.append(f"  {name:>22}  was {_word(was.get(name))}, is "
                     + " ".join(_word(each[name]) for each in played))
    for name in ("median_ns", "p99_ns"):
        lines.append(f"  {name.replace('_ns', ' off, ms'):>22}  "
                     + " ".join(f"{each[name] / 1e6:.2f}" for each in played))
    return problems, lines


def _word(value):
    return "-" if value is None else f"{value:.2f}" if isinstance(value, float) else f"{value}"


async def _output(program, *words):
    child = await asyncio.create_subprocess_exec(
        program, *map(str, words), stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE)
    output, errors = await child.communicate()
    if child.returncode:
        raise RuntimeError(f"{words[0]}: status {child.returncode}: {errors.decode()}")
    return output.decode()


def main():
    """Makes and re-enacts the calls that the command line selects."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--retake", type=Path, required=True)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--take", default="", metavar="TEXT", help="calls whose name has this")
    parser.add_argument("--target", default="", metavar="TIME", help="of the jitter buffer")
    parser.add_argument("folder", type=Path)
    options = parser.parse_args()
    namespace.enter()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        problems, table = asyncio.run(
            run(options.retake.resolve(), options.folder.resolve(), options.runs, options.take,
                options.target))
    finally:
        end_orphans()
    print(table)
    for problem in problems:
        print(problem)
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
