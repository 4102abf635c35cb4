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
from fault_kinds import GOOD, KINDS, described, payload_types, script, transfer
from faulty_path import FaultyPath
from peers.talk import BRIEF
from plan import ABILITIES, Call
from processes import Child, ProcessError, adopt_orphans, end_orphans

_ROOT = Path(__file__).resolve().parents[2]
_CALL_SECONDS = 150
_CONNECT_SECONDS = 60
_ATTEMPTS = 3
# How many times a call may be made again because its fault had too little effect.
_REDRAWS = 3
# A call is repeated if the process that forwards packets is late by this many seconds.
_LAG = 0.15

# The peers of a call: Retake is an end, or observes.
_ENDS = [("retake", "chromium"), ("retake", "firefox"), ("retake", "aiortc")]
_WATCHED = [("chromium", "firefox"), ("chromium", "aiortc"), ("firefox", "aiortc")]
_PAGES = ("chromium", "firefox")

@dataclass
class Plan:
    """A call and its fault."""

    kind: str
    peers: tuple
    # The end that the fault comes from: the first of the peers or the second.
    culprit: int
    # In an observed call, the end at whose network interface Retake observes.
    watched: int | None
    begin: float
    length: float
    severity: float
    seed: int

    @property
    def how(self):
        """The kind of the fault, or of the good call: how it is made, and which findings name
        it."""
        return KINDS.get(self.kind) or GOOD[self.kind]

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
        if self.kind.startswith("turn"):
            return False
        return all(ABILITIES[peer].uses_loopback for peer in self.peers if peer != "retake")


def draw(seed, count, kinds):
    """Returns `count` plans, spread over the kinds."""
    chance = random.Random(f"faults {seed}")
    names = []
    while len(names) < count:
        names += chance.sample(sorted(kinds), len(kinds))
    return [_plan(name, kinds[name], chance, seed * 1000 + number)
            for number, name in enumerate(names[:count])]


def _plan(name, kind, chance, seed):
    """Draws the peers, the end with the fault, the observer, the time and the severity."""
    is_watched = kind.sight != "end" and name != "restart" and chance.random() < 0.4
    while True:
        peers = chance.choice(_WATCHED if is_watched else _ENDS)
        culprit = chance.randrange(2)
        if name.startswith("turn"):
            culprit = 0
        # Only an answer rejects a section.
        if name == "rejectedSection":
            culprit = 1
        if kind.by == "page" and peers[culprit] not in _PAGES:
            continue
        if kind.by == "chromium" and peers[culprit] != "chromium":
            continue
        if kind.by == "peer" and peers[culprit] == "retake":
            continue
        # aiortc supports only one exchange.
        if kind.negotiates and "aiortc" in peers:
            continue
        break
    watched = chance.randrange(2) if is_watched else None
    if kind.sight == "receiver":
        if is_watched:
            watched = 1 - culprit
        else:
            culprit = 1
    least, most = kind.seconds
    return Plan(
        name, peers, culprit, watched, 4 + 4 * chance.random(),
        least + (most - least) * chance.random(), chance.random(), seed)


@dataclass
class Judged:
    """The findings of a call, and the verdict."""

    verdict: str
    found: list
    starved: int
    redrawn: int = 0


async def run(plan, program, folder):
    """Makes a call, repeating it while the machine starves, and judges its findings."""
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
        stalls = set() if plan.how.stalls else {"process-starved", "peer-starved"}
        if lag < _LAG and not ids & stalls:
            break
        starved += 1
        if starved == _ATTEMPTS:
            break
    names = [f"{each['id']} ({each['severity']})" for each in found]
    loud = [each["id"] for each in found if each["severity"] not in ("low", "info")]
    if plan.kind in GOOD:
        return Judged("false alarm" if loud else "quiet", names, starved)
    accepted = plan.how.accepted
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
    if plan.kind.startswith("turn"):
        await _without_relay(program, plan, folder)
        return 0, True
    host = "127.0.0.1" if plan.uses_loopback else namespace.ADDRESS
    os.environ[BRIEF] = "1"
    os.environ["RETAKE_INTEROP_AIORTC"] = host
    path = await FaultyPath.open(host, plan)
    try:
        if plan.watched is None:
            await _with_retake(plan, program, folder, path)
        else:
            await _watch(plan, program, folder, path)
    finally:
        path.close()
    return path.lag, path.is_touched


class _Signaling:
    """Passes descriptions from one end to the other, with the plan's fault."""

    def __init__(self, plan, path):
        self._plan, self._path = plan, path

    def passed(self, sdp, end):
        """Returns an end's description as the other end receives it."""
        # Calls that restart ICE do not use the path, because the restart opens sockets that bypass
        # it.
        if self._plan.kind != "restart":
            sdp = self._path.signaled(sdp, end)
        self._path.video |= payload_types(sdp, "video")
        self._path.repairs |= payload_types(sdp, "video", repairs=True)
        return described(self._plan, sdp, end)


async def _with_retake(plan, program, folder, path):
    from peers.opening import open_peer
    from retake import Recorder

    signaling = _Signaling(plan, path)
    recorder = await Recorder.start(program, folder, path.host, "pattern")
    peer = None
    try:
        call = Call(plan.peers[1], "retake", avoids_loopback=not plan.uses_loopback)
        peer = await open_peer(call, folder)
        identifier, offer = await recorder.make_offer()
        await _prepare(plan, path, [None, peer])
        answer = await peer.answer(signaling.passed(offer, 0))
        await _begin_early(plan, [None, peer])
        await recorder.answer(identifier, signaling.passed(answer, 1))

        async def renegotiate():
            offer = signaling.passed(await peer.offer_again(), 1)
            answer = await recorder.offer_again(identifier, offer)
            await peer.accept(signaling.passed(answer, 0))

        await _run(plan, path, [None, peer], renegotiate)
        await recorder.finish()
    except BaseException:
        await recorder.abandon()
        raise
    finally:
        if peer:
            await peer.close()


async def _watch(plan, program, folder, path):
    from observed import _key_log
    from observed_loss import _capture
    from peers.opening import open_peer

    signaling = _Signaling(plan, path)
    peers, capture, descriptions = [], None, []

    def passed(sdp, end):
        sdp = signaling.passed(sdp, end)
        file = folder / f"{len(descriptions)}.sdp"
        file.write_text(sdp)
        descriptions.append(file)
        return sdp

    try:
        capture = await _capture(folder / "call.pcap", path.ports(plan.watched))
        with _key_log(folder / "keys.log"):
            for end, name in enumerate(plan.peers):
                (folder / str(end)).mkdir()
                call = Call(name, "peer", avoids_loopback=not plan.uses_loopback)
                peers.append(await open_peer(call, folder / str(end)))
        await _prepare(plan, path, peers)
        answer = await peers[1].answer(passed(await peers[0].offer(), 0))
        await _begin_early(plan, peers)
        await peers[0].accept(passed(answer, 1))

        async def renegotiate():
            one, other = peers[plan.culprit], peers[1 - plan.culprit]
            offer = passed(await one.offer_again(), plan.culprit)
            await one.accept(passed(await other.answer_again(offer), 1 - plan.culprit))

        await _run(plan, path, peers, renegotiate)
        await capture.finish(10, sending=signal.SIGINT)
    finally:
        for peer in peers:
            await peer.close()
        if capture:
            await capture.end()
    importing = await Child.start(
        [program, "import", folder / "call.pcap", "--keys", folder / "keys.log",
         *(word for file in descriptions for word in ("--sdp", file)), "--decode", "--out",
         folder / "call.take"],
        folder / "import.log")
    if await importing.finish(120):
        raise ProcessError(f"import failed: {importing.errors[-1:]}")


async def _without_relay(program, plan, folder):
    """Makes a call in which Retake may use only a relay, with a wrong password or where nothing
    answers."""
    from peers.coturn import Coturn
    from peers.opening import open_peer
    from retake import Recorder

    relay = await Coturn.start(folder)
    peer = None
    try:
        options = [re.sub(r":interop@", ":guess@", one) for one in relay.options]
        if plan.kind == "turnUnreachable":
            # Port 9 (discard): nothing listens there.
            options = [re.sub(r":\d+$", ":9", one) for one in relay.options]
        recorder = await Recorder.start(program, folder, namespace.ADDRESS, "pattern", options)
        try:
            peer = await open_peer(Call(plan.peers[1], "retake", avoids_loopback=True), folder)
            try:
                identifier, offer = await recorder.make_offer()
                await recorder.answer(identifier, await peer.answer(offer))
            except ProcessError:
                # There is no offer while a server does not answer.
                if plan.kind != "turnUnreachable":
                    raise
            await asyncio.sleep(plan.begin + plan.length)
            await recorder.finish()
        except BaseException:
            await recorder.abandon()
            raise
    finally:
        if peer:
            await peer.close()
        await relay.end()


async def _prepare(plan, path, peers):
    """Starts a fault of the path or the answer that must exist before the call connects."""
    if plan.kind == "rejectedSection":
        await peers[plan.culprit].change("call.rejects = 'video';")
    if plan.how.begins == "before":
        path.begin()


async def _begin_early(plan, peers):
    """Starts a fault of a source before anything is sent, because a participant who has spoken may
    simply be listening."""
    if plan.how.begins == "before" and plan.how.script:
        await peers[plan.culprit].change(script(plan.how.script, plan))


async def _run(plan, path, peers, renegotiate):
    """Continues the call with its fault, and pauses afterwards until reports have arrived."""
    if not plan.how.connects:
        await asyncio.sleep(plan.begin + plan.length)
        return
    await _connected([peer for peer in peers if peer])
    if plan.how.begins == "before":
        await asyncio.sleep(plan.length + 4)
        return
    await asyncio.sleep(plan.begin)
    culprit = peers[plan.culprit]
    for text in (plan.how.script, transfer(plan.kind)):
        if text:
            await culprit.change(script(text, plan))
    if plan.how.negotiates:
        await renegotiate()
    path.begin()
    match plan.kind:
        case "peerStalls":
            culprit.signal_all(signal.SIGSTOP)
            await asyncio.sleep(plan.length)
            culprit.signal_all(signal.SIGCONT)
        case "slowProcessor":
            await _throttle(culprit, plan)
        case "peerKilled":
            culprit.signal_all(signal.SIGKILL)
            await asyncio.sleep(plan.length)
            return
        case _:
            await asyncio.sleep(plan.length)
    path.end()
    if plan.how.undo:
        await culprit.change(script(plan.how.undo, plan))
    await asyncio.sleep(5)


async def _throttle(peer, plan):
    """Lets a peer run for part of each period, like a quota of processor time."""
    over = time.monotonic() + plan.length
    try:
        while time.monotonic() < over:
            peer.signal_all(signal.SIGSTOP)
            await asyncio.sleep(0.09 + 0.07 * plan.severity)
            peer.signal_all(signal.SIGCONT)
            await asyncio.sleep(0.05)
    finally:
        peer.signal_all(signal.SIGCONT)


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
    parser.add_argument(
        "--only", default="", help="only these kinds, separated by commas")
    parser.add_argument("--good", action="store_true", help="calls without a fault instead")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep takes and logs there")
    return parser.parse_args()


async def _main(options, folder):
    counts, starved = {}, 0
    kinds = GOOD if options.good else KINDS
    if options.only:
        kinds = {name: kinds[name] for name in options.only.split(",")}
    plans = draw(options.seed, options.calls, kinds)
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
    if options.good:
        print(f"\nreal peers, seed {options.seed}: {len(plans)} good calls; quiet "
              f"{counts.get('quiet', 0)}; starved {starved} times", flush=True)
        return counts.get("quiet", 0) == len(plans)
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
