#!/usr/bin/env python3
"""Makes calls between real peers with one known fault each, and checks that the first finding names
it.

Retake is one end of some calls, and observes others on the wire beside one end. A seed decides the
peers, the fault, its severity, time and direction. A call during which this machine starved is
repeated, and counted; one whose fault had hardly any effect is replaced by another.
"""

import argparse
import asyncio
import json
import os
import random
import re
import shutil
import signal
import sys
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path

import namespace
from faulty_path import FaultyPath
from peers.talk import BRIEF
from plan import ABILITIES, Call
from processes import Child, ProcessError, adopt_orphans, end_orphans

_ROOT = Path(__file__).resolve().parents[2]
_CALL_SECONDS = 150
_CONNECT_SECONDS = 60
_ATTEMPTS = 3
# How often a call whose fault had too little effect is replaced.
_REDRAWS = 3
# The longest delay of the process that forwards packets, in seconds, that a call may have.
_LAG = 0.15

# The peers of a call: Retake is an end, or observes.
_ENDS = [("retake", "chromium"), ("retake", "firefox"), ("retake", "aiortc")]
_WATCHED = [("chromium", "firefox"), ("chromium", "aiortc"), ("firefox", "aiortc")]

# The findings that name each fault. A media fault belongs to the peer that sends.
_ACCEPTED = {
    "loss": {"loss", "loss-at-peer", "loss-burst"},
    "lossBurst": {"loss-burst", "loss", "loss-at-peer"},
    "bottleneck": {"standing-queue"},
    "longDelay": {"high-round-trip", "path-became-longer"},
    "jitter": {"high-jitter"},
    "reordering": {"reordering"},
    "deadPath": {"path-dead"},
    "mediaDeadOneWay": {"one-way-media", "stream-gap", "sent-not-arriving"},
    "silentMicrophone": {"microphone-without-signal", "silent-audio"},
    "cameraBlack": {"camera-black"},
    # A browser's encoder goes on refining, so that its repeated pictures are not equal.
    "cameraRepeats": {"camera-repeats", "picture-still"},
    "turnRefused": {"turn-refused", "turn-refused-seen"},
}
# Script for a browser's page that replaces a source.
_SOURCES = {
    "silentMicrophone": """
        const context = new AudioContext();
        const sound = context.createMediaStreamDestination();
        // Without a source that runs there are no samples at all.
        const source = context.createConstantSource();
        const nothing = context.createGain();
        nothing.gain.value = 0;
        source.connect(nothing).connect(sound);
        source.start();
        context.resume();
        const sender = call.connections[0].getSenders().find((one) => one.track?.kind === "audio");
        sender.replaceTrack(sound.stream.getAudioTracks()[0]);
    """,
    "camera": """
        const canvas = Object.assign(document.createElement("canvas"), { width: 640, height: 480 });
        const context = canvas.getContext("2d");
        const draw = () => {
          context.fillStyle = "black";
          context.fillRect(0, 0, 640, 480);
          if (SHOWS) {
            for (let i = 0; i < 40; i++) {
              context.fillStyle = `rgb(${i * 6},${255 - i * 5},${i * 53 % 255})`;
              context.fillRect(i * 16, (i * 97) % 400, 60, 60);
            }
          }
        };
        setInterval(draw, 40);
        const sender = call.connections[0].getSenders().find((one) => one.track?.kind === "video");
        sender.replaceTrack(canvas.captureStream(25).getVideoTracks()[0]);
    """,
}


@dataclass
class Plan:
    """A call and its fault."""

    kind: str
    peers: tuple
    # The end that the fault comes from: the first of the peers or the second.
    culprit: int
    # In an observed call, the end beside which Retake observes.
    watched: int | None
    begin: float
    length: float
    severity: float
    seed: int

    @property
    def name(self):
        """The name in the output and of the folder."""
        where = "" if self.watched is None else f"-seen-at-{self.peers[self.watched]}"
        return f"{self.kind}-{'-'.join(self.peers)}{where}"

    @property
    def words(self):
        """A description for the output."""
        seen = "" if self.watched is None else f", watched beside {self.peers[self.watched]}"
        return (f"{self.kind} of {self.peers[self.culprit]}, {self.severity:.2f}, "
                f"{self.peers[0]} and {self.peers[1]}{seen}")

    @property
    def uses_loopback(self):
        """Whether both peers can use loopback."""
        if self.kind == "turnRefused":
            return False
        return all(ABILITIES[peer].uses_loopback for peer in self.peers if peer != "retake")


def draw(seed, count):
    """Returns `count` plans, spread over all kinds of faults."""
    chance = random.Random(f"faults {seed}")
    kinds = []
    while len(kinds) < count:
        kinds += chance.sample(sorted(_ACCEPTED), len(_ACCEPTED))
    plans = []
    for number, kind in enumerate(kinds[:count]):
        # Only an end that decodes can detect a source's fault; the page replaces the source.
        is_source = kind in ("silentMicrophone", "cameraBlack", "cameraRepeats")
        is_watched = not is_source and kind != "turnRefused" and chance.random() < 0.4
        if is_watched:
            peers = chance.choice(_WATCHED)
        else:
            peers = chance.choice(_ENDS[:2] if is_source or kind == "turnRefused" else _ENDS)
        culprit = 1 if is_source else 0 if kind == "turnRefused" else chance.randrange(2)
        watched = chance.randrange(2) if is_watched else None
        # Only the receiver can detect these.
        if kind in ("jitter", "reordering"):
            if is_watched:
                watched = 1 - culprit
            else:
                culprit = 1
        length = {
            "lossBurst": 0.3 + 0.6 * chance.random(), "silentMicrophone": 20.0,
            "deadPath": 4 + 5 * chance.random(), "mediaDeadOneWay": 4 + 5 * chance.random(),
        }.get(kind, 7 + 5 * chance.random())
        plans.append(Plan(
            kind, peers, culprit, watched, 4 + 4 * chance.random(), length, chance.random(),
            seed * 1000 + number))
    return plans


@dataclass
class Judged:
    """The findings of a call, and the verdict."""

    verdict: str
    found: list
    starved: int
    redrawn: int = 0


async def run(plan, program, folder):
    """Makes a call, again while the machine starves, and judges its findings."""
    starved, redrawn = 0, 0
    for attempt in range(_ATTEMPTS + _REDRAWS):
        place = folder / plan.name / str(attempt)
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        try:
            async with asyncio.timeout(_CALL_SECONDS):
                lag, is_touched = await _make(plan, program, place)
        finally:
            end_orphans()
        if not is_touched and redrawn < _REDRAWS:
            redrawn += 1
            chance = random.Random(f"again {plan.seed} {redrawn}")
            plan = replace(plan, severity=chance.random())
            continue
        found = await _findings(program, place / "call.take")
        ids = {one for each in found for one in _all(each)}
        if lag < _LAG and not ids & {"process-starved", "peer-starved"}:
            break
        starved += 1
        if starved == _ATTEMPTS:
            break
    names = [f"{each['id']} ({each['severity']})" for each in found]
    loud = [each["id"] for each in found if each["severity"] not in ("low", "info")]
    accepted = _ACCEPTED[plan.kind]
    first = found[0]["id"] if found else ""
    verdict = (
        "first" if first in accepted
        else "named" if any(each["id"] in accepted for each in found)
        else "symptom" if loud else "unnamed")
    return Judged(verdict, names, starved, redrawn)


def _all(finding):
    return [finding["id"]] + [one for each in finding.get("symptoms", []) for one in _all(each)]


async def _findings(program, take):
    child = await Child.start(
        [program, "findings", take, "--json"], take.with_suffix(".findings.log"))
    await child.finish(120)
    return json.loads("\n".join(child.output))["findings"]


# MARK: Calls


async def _make(plan, program, folder):
    """Makes a call; returns the longest delay of the process that forwards its packets, and whether
    the fault had enough effect."""
    if plan.kind == "turnRefused":
        await _refused(program, plan, folder)
        return 0, True
    host = "127.0.0.1" if plan.uses_loopback else namespace.ADDRESS
    os.environ[BRIEF] = "1"
    if plan.watched is None:
        return await _with_retake(plan, program, folder, host)
    return await _watch(plan, program, folder, host)


async def _with_retake(plan, program, folder, host):
    from peers.opening import open_peer
    from retake import Recorder

    path = await FaultyPath.open(host, plan)
    recorder = await Recorder.start(program, folder, host, "pattern")
    peer = None
    try:
        call = Call(plan.peers[1], "retake", avoids_loopback=not plan.uses_loopback)
        peer = await open_peer(call, folder)
        identifier, offer = await recorder.make_offer()
        answer = path.signaled(await peer.answer(path.signaled(offer, 0)), 1)
        if plan.kind == "silentMicrophone":
            # From the start, because a participant that was heard once may just be listening.
            await peer.change(_SOURCES["silentMicrophone"])
        await recorder.answer(identifier, answer)
        await _connected([peer])
        await _run_fault(plan, path, [None, peer])
        await recorder.finish()
        return path.lag, path.is_touched
    except BaseException:
        await recorder.abandon()
        raise
    finally:
        if peer:
            await peer.close()
        path.close()


async def _watch(plan, program, folder, host):
    from observed import _key_log
    from observed_loss import _capture
    from peers.opening import open_peer

    path = await FaultyPath.open(host, plan)
    peers, capture = [], None
    try:
        capture = await _capture(folder / "call.pcap", path.port(plan.watched))
        with _key_log(folder / "keys.log"):
            for end, name in enumerate(plan.peers):
                (folder / str(end)).mkdir()
                call = Call(name, "peer", avoids_loopback=not plan.uses_loopback)
                peers.append(await open_peer(call, folder / str(end)))
        offer = path.signaled(await peers[0].offer(), 0)
        answer = path.signaled(await peers[1].answer(offer), 1)
        await peers[0].accept(answer)
        (folder / "offer.sdp").write_text(offer)
        (folder / "answer.sdp").write_text(answer)
        await _connected(peers)
        await _run_fault(plan, path, peers)
        await capture.finish(10, sending=signal.SIGINT)
    finally:
        for peer in peers:
            await peer.close()
        if capture:
            await capture.end()
        path.close()
    importing = await Child.start(
        [program, "import", folder / "call.pcap", "--keys", folder / "keys.log", "--sdp",
         folder / "offer.sdp", "--sdp", folder / "answer.sdp", "--decode", "--out",
         folder / "call.take"],
        folder / "import.log")
    if await importing.finish(120):
        raise ProcessError(f"import failed: {importing.errors[-1:]}")
    return path.lag, path.is_touched


async def _refused(program, plan, folder):
    """Makes a call in which Retake may use only a relay, with a wrong password."""
    from peers.coturn import Coturn
    from peers.opening import open_peer
    from retake import Recorder

    relay = await Coturn.start(folder)
    peer = None
    try:
        options = [re.sub(r":interop@", ":guess@", one) for one in relay.options]
        recorder = await Recorder.start(program, folder, namespace.ADDRESS, "pattern", options)
        try:
            peer = await open_peer(Call(plan.peers[1], "retake", avoids_loopback=True), folder)
            identifier, offer = await recorder.make_offer()
            await recorder.answer(identifier, await peer.answer(offer))
            await asyncio.sleep(plan.begin + plan.length)
            await recorder.finish()
        except BaseException:
            await recorder.abandon()
            raise
    finally:
        if peer:
            await peer.close()
        await relay.end()


async def _run_fault(plan, path, peers):
    """Continues the call with its fault, and pauses afterwards until reports have arrived."""
    if plan.kind == "silentMicrophone":
        await asyncio.sleep(plan.length)
        return
    await asyncio.sleep(plan.begin)
    if plan.kind in ("cameraBlack", "cameraRepeats"):
        shows = "true" if plan.kind == "cameraRepeats" else "false"
        await peers[plan.culprit].change(_SOURCES["camera"].replace("SHOWS", shows))
    path.begin()
    await asyncio.sleep(plan.length)
    path.end()
    await asyncio.sleep(5)


async def _connected(peers):
    start = time.monotonic()
    while time.monotonic() < start + _CONNECT_SECONDS:
        reports = [await peer.report() for peer in peers]
        if all(report.frames("in", "video") for report in reports):
            return
        await asyncio.sleep(0.2)
    raise ProcessError(f"no video frames within {_CONNECT_SECONDS} s")


# MARK: Program


def _arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--retake", type=Path, default=_ROOT / ".build/debug/retake")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--calls", type=int, default=10)
    parser.add_argument("--only", default="", help="only faults whose name contains this")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep takes and logs there")
    return parser.parse_args()


async def _main(options, folder):
    counts, starved = {}, 0
    plans = [plan for plan in draw(options.seed, options.calls) if options.only in plan.kind]
    for plan in plans:
        begin = time.monotonic()
        try:
            judged = await run(plan, options.retake.resolve(), folder)
        except Exception as error:  # a peer may fail in any way: the call failed
            judged = Judged("failed", [f"{type(error).__name__}: {error}"], 0)
        counts[judged.verdict] = counts.get(judged.verdict, 0) + 1
        starved += judged.starved
        repeated = f", made again {judged.starved} times" if judged.starved else ""
        repeated += f", drawn again {judged.redrawn} times" if judged.redrawn else ""
        print(f"{judged.verdict:<12}{plan.words}{repeated} ({time.monotonic() - begin:.0f} s)\n"
              f"            {'; '.join(judged.found[:4]) or '-'}", flush=True)
    named = counts.get("first", 0) + counts.get("named", 0)
    print(f"\nreal peers, seed {options.seed}: {len(plans)} faults; first finding right "
          f"{counts.get('first', 0)}, named further down {counts.get('named', 0)}, not named "
          f"{len(plans) - named}; starved {starved} times", flush=True)
    return named == len(plans) and counts.get("first", 0) * 10 >= len(plans) * 9


def main():
    """Makes a seed's calls; the exit status is 1 if findings do not name the faults."""
    options = _arguments()
    namespace.enter()
    adopt_orphans()
    # SIGTERM is handled like an interrupt, so that no process is left behind.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    folder = (options.keep or Path(tempfile.mkdtemp(prefix="retake-faults-"))).resolve()
    try:
        is_good = asyncio.run(_main(options, folder))
    except KeyboardInterrupt:
        print(f"\ninterrupted; takes and logs are in {folder}")
        return 130
    finally:
        end_orphans()
    if not options.keep:
        shutil.rmtree(folder)
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
