"""A call that both peers renegotiate repeatedly while media flows."""

import asyncio
import re
import shutil
from dataclasses import dataclass, field

import namespace
from peers.opening import open_peer
from plan import Call
from processes import ProcessError, end_orphans
from retake import Recorder, look, replay

_CALL_SECONDS = 480
_FLOW_SECONDS = 60
_POLL_SECONDS = 0.1
# Media flows if there are this many more frames; it has stopped if there are none for this many
# seconds.
_MORE = 5
_QUIET_SECONDS = 0.6


@dataclass(frozen=True)
class Step:
    """One offer/answer exchange, and the flows after it."""

    name: str
    # The flows by mid: `in` if the peer receives, `out` if it sends.
    flows: dict
    # A script that the peer runs before it offers; without a script, Retake offers the changes in
    # `retake`.
    peer: str | None = None
    retake: dict = field(default_factory=dict)
    # Whether the other end has an offer in progress, which is rolled back.
    glare: bool = False


_BOTH = ("in", "out")
# Browsers number sections in the same way: audio 0, video 1, data 2, and so on.
STEPS = [
    Step("peer adds video", {"0": _BOTH, "1": _BOTH, "3": _BOTH}, peer="call.addVideo()"),
    Step(
        "peer stops receiving", {"0": _BOTH, "1": ("out",), "3": _BOTH},
        peer="call.transceiver('1').direction = 'sendonly'",
    ),
    Step(
        "Retake holds the audio", {"0": (), "1": ("out",), "3": _BOTH},
        retake={"directions": {"0": "inactive"}},
    ),
    Step(
        "Retake resumes the audio", {"0": _BOTH, "1": ("out",), "3": _BOTH},
        retake={"directions": {"0": "sendrecv"}},
    ),
    Step(
        "peer stops a section", {"0": _BOTH, "1": ("out",)}, peer="call.transceiver('3').stop()",
    ),
    # The stopped section is reused under another mid.
    Step(
        "Retake adds video", {"0": _BOTH, "1": ("out",), "*": ("in",)},
        retake={"add": ["video"]},
    ),
    Step(
        "Retake restarts ICE", {"0": _BOTH, "1": ("out",), "*": ("in",)},
        retake={"iceRestart": True},
    ),
    Step(
        "peer restarts ICE", {"0": _BOTH, "1": ("out",), "*": ("in",)},
        peer="call.connections[0].restartIce()",
    ),
    Step(
        "offers cross, the peer's is rolled back", {"0": _BOTH, "1": ("out",), "*": ("in",)},
        retake={}, glare=True,
    ),
    Step(
        "offers cross, Retake's is rolled back", {"0": _BOTH, "1": _BOTH, "*": ("in",)},
        peer="call.transceiver('1').direction = 'sendrecv'", glare=True,
    ),
]


async def run(program, folder, browser):
    """Makes the call with a browser and replays it; returns the problems."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    problems = []
    try:
        async with asyncio.timeout(_CALL_SECONDS):
            await _record(program, folder, Call(browser, "peer"))
    except Exception as error:  # a peer's stack may throw anything: the call failed
        problems.append(f"{type(error).__name__}: {error}")
    end_orphans()
    take = folder / "call.take"
    if take.exists():
        found, _ = await replay(program, take, folder)
        problems += found + await look(program, take, folder)
    return problems


async def _record(program, folder, call):
    bind = "127.0.0.1" if call.uses_loopback else namespace.address()
    recorder = await Recorder.start(program, folder, bind, "pattern")
    try:
        peer = await open_peer(call, folder)
        try:
            identifier, answer = await recorder.begin(await peer.offer())
            await peer.accept(answer)
            await _check(peer, "the first exchange", {"0": _BOTH, "1": _BOTH})
            for step in STEPS:
                await _negotiate(step, peer, recorder, identifier)
                await _check(peer, step.name, step.flows)
        finally:
            await peer.close()
        await recorder.finish()
    except BaseException:
        await recorder.abandon()
        raise


async def _negotiate(step, peer, recorder, identifier):
    if step.peer is None:
        if step.glare:
            await peer.offer_again()
        _, offer = await recorder.make_offer(id=identifier, **step.retake)
        await recorder.answer(identifier, await peer.answer_again(offer))
        return
    if step.glare:
        await recorder.make_offer(id=identifier)
    await peer.change(step.peer)
    offer = await peer.offer_again()
    await peer.accept(await recorder.offer_again(identifier, offer))


async def _check(peer, name, flows):
    """Waits until exactly the expected flows are active."""
    loop = asyncio.get_running_loop()
    end = loop.time() + _FLOW_SECONDS
    first = await peer.flow()
    while True:
        now = await peer.flow()
        expected = _named(flows, now)
        lacking = [
            f"{mid} {way}" for mid, ways in expected.items() for way in ways
            if _count(now, mid, way) < _count(first, mid, way) + _MORE
        ]
        if not lacking:
            break
        if loop.time() > end:
            raise ProcessError(f"{name}: nothing flows at {', '.join(lacking)}: {now}")
        await asyncio.sleep(_POLL_SECONDS)
    # Packets in transit may arrive later if the machine is busy.
    while True:
        before = now
        await asyncio.sleep(_QUIET_SECONDS)
        now = await peer.flow()
        excess = [
            f"{mid} {way}" for mid, ways in expected.items() for way in _BOTH
            if way not in ways and _count(now, mid, way) != _count(before, mid, way)
        ]
        if not excess:
            break
        if loop.time() > end:
            raise ProcessError(f"{name}: {', '.join(excess)} flows still: {now}")
    if unexpected := now.keys() - expected.keys():
        raise ProcessError(f"{name}: {sorted(unexpected)} should be no more: {now}")


def _named(flows, counts):
    """Returns the flows by mid; `*` stands for the section with a new mid."""
    others = [mid for mid in counts if mid not in flows and re.fullmatch(r"\w+", mid)]
    return {
        (others[0] if mid == "*" and others else mid): ways for mid, ways in flows.items()
    }


def _count(counts, mid, way):
    return counts.get(mid, {}).get(way, 0)
