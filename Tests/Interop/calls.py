"""Makes one call, from starting the recorder to checking the take."""

import asyncio
import re
import shutil
from dataclasses import dataclass, field

import clips
import namespace
import takes
from peers.coturn import Coturn
from peers.opening import open_peer
from plan import Call
from processes import ProcessError, end_orphans
from reports import Report
from retake import Recorder, look, replay

_CALL_SECONDS = 240
_MEDIA_SECONDS = 90
_POLL_SECONDS = 0.2
# A frame of one colour has no contrast; a correctly decoded test frame has far more than this.
_LEAST_CONTRAST = 5.0
_FEWEST_FRAMES = 10


@dataclass
class Outcome:
    """The result of a call."""

    call: Call
    report: Report = field(default_factory=Report)
    take: takes.Take = field(default_factory=takes.Take)
    summary: str = ""
    # How many replays were identical, and how many were made.
    replays: tuple[int, int] = (0, 0)
    problems: list[str] = field(default_factory=list)


async def run(call, program, folder, seconds):
    """Makes a call, records it and replays it; never raises, and leaves no process running."""
    outcome = Outcome(call)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    try:
        async with asyncio.timeout(_CALL_SECONDS + seconds):
            await _record(call, program, folder, seconds, outcome)
    except Exception as error:  # a peer's stack may throw anything: the call failed
        outcome.problems.append(f"{type(error).__name__}: {error}")
    end_orphans()
    take = folder / "call.take"
    outcome.take = takes.examine(take, call, outcome.report)
    outcome.problems += outcome.take.problems
    if take.exists():
        problems, outcome.replays = await replay(program, take, folder)
        outcome.problems += problems
        outcome.problems += await look(program, take, folder)
    return outcome


async def _record(call, program, folder, seconds, outcome):
    relay = await Coturn.start(folder) if call.relays else None
    try:
        bind = "127.0.0.1" if call.uses_loopback else namespace.address()
        send = "echo" if call.echoes else "pattern"
        if call.file:
            send = folder / "clip.h264"
            clips.write(send)
        options = call.options + (relay.options if "retake" in call.relays else [])
        if call.says:
            options = options + ["--say", ",".join(map(str, call.says))]
            options += ["--say-channels", str(call.says_channels)]
        recorder = await Recorder.start(program, folder, bind, send, options)
        try:
            await _converse(call, recorder, relay, folder, seconds, outcome)
        except BaseException:
            # A failed call leaves a take as well, for diagnosis.
            await recorder.abandon()
            raise
    finally:
        if relay:
            await relay.end()


async def _converse(call, recorder, relay, folder, seconds, outcome):
    peer = await open_peer(call, folder, relay)
    try:
        await _connect(call, recorder, peer, folder)
        await _hold(call, recorder, peer, seconds, outcome)
        if call.offerer == "page":
            await peer.chat("a line that was typed")
            if call.peer == "chromium":
                await peer.look()
            outcome.report.data_echo = "hello from the page's chat"
        _judge(call, outcome)
        await recorder.stats()
        if call.offerer == "page" and call.peer == "chromium":
            await peer.hang_up()
        # Interrupts the recording while the peer still sends, as users do.
        outcome.summary = await recorder.finish()
    finally:
        await peer.close()


async def _connect(call, recorder, peer, folder):
    """Exchanges the descriptions, or lets Retake's page do so."""
    if call.offerer == "page":
        await peer.visit(recorder.address + "/?auto")
        return
    if call.offerer == "peer":
        offer = _signaled(call, await peer.offer())
        (folder / "offer.sdp").write_text(offer)
        answer = _signaled(call, await recorder.offer(offer))
        (folder / "answer.sdp").write_text(answer)
        await peer.accept(answer)
        return
    identifier, offer = await recorder.make_offer()
    if call.peer_waits:
        # An offerer with `setup:active` would send this: the peer can only be passive.
        offer = re.sub(r"a=setup:actpass", "a=setup:active", offer)
    offer = _signaled(call, offer)
    (folder / "offer.sdp").write_text(offer)
    answer = _signaled(call, await peer.answer(offer))
    (folder / "answer.sdp").write_text(answer)
    await recorder.answer(identifier, answer)


def _signaled(call, sdp):
    """Returns a description as signaled; without its BUNDLE group if the call is not bundled."""
    return re.sub(r"a=group:BUNDLE.*\r\n", "", sdp) if call.apart else sdp


async def _hold(call, recorder, peer, seconds, outcome):
    """Stays in the call for a while, and until media flows in both directions and all messages were
    echoed; keeps the last report."""
    loop = asyncio.get_running_loop()
    start = loop.time()
    while True:
        report = outcome.report = await peer.report()
        lacking = _lacking(call, report)
        if call.says:
            lacking += _unsaid(call, *await recorder.conversation())
        if report.connection in ("failed", "closed"):
            raise ProcessError(f"the peer's connection is {report.connection}")
        if not lacking and loop.time() >= start + seconds:
            return
        if loop.time() >= start + seconds + _MEDIA_SECONDS:
            raise ProcessError("the call lacks: " + ", ".join(lacking))
        await asyncio.sleep(_POLL_SECONDS)


def _lacking(call, report):
    """Returns what is still missing at the peer."""
    lacking = []
    if report.connection != "connected":
        lacking.append(f"connection is {report.connection}")
    for direction, kinds in (("in", call.receives), ("out", call.sends)):
        for kind in kinds:
            count = report.frames(direction, kind)
            if count < _FEWEST_FRAMES:
                lacking.append(f"{count} {kind} frames {direction}")
    if call.talks and "hello" not in (report.data_echo or ""):
        lacking.append(f"data: {report.data_echo}")
    perceived = set(call.receives) & set(call.abilities.perceives)
    if "audio" in perceived and not report.audio_energy:
        lacking.append("silence")
    if "video" in perceived and (report.video_contrast or 0) < _LEAST_CONTRAST:
        lacking.append(f"video contrast is {report.video_contrast}")
    layers = sum((each.direction, each.kind) == ("in", "video") for each in report.streams)
    if call.layers and layers < 3:
        lacking.append(f"{layers} of 3 layers")
    if call.file and not report.shows(clips.WIDTH, clips.HEIGHT):
        lacking.append("no video frame of the size of the file")
    return lacking


def _unsaid(call, received, closed):
    """Returns which messages of Retake's channels have not been echoed, and which channels are
    open."""
    lacking = []
    if received < 2 * len(call.says):
        lacking.append(f"{received} of {2 * len(call.says)} messages were echoed")
    if closed < call.says_channels:
        lacking.append(f"{closed} of {call.says_channels} channels are closed")
    return lacking


def _judge(call, outcome):
    report = outcome.report
    if call.peer_waits and report.dtls_role != "server":
        outcome.problems.append(f"the peer is {report.dtls_role or 'nothing'} of the handshake")
