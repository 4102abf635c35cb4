"""WHIP and WHEP with another stack: sessions published and played, recorded and replayed."""

import asyncio
import re
import shutil
import sqlite3
from contextlib import closing

from peers.opening import open_peer
from plan import Call
from processes import ProcessError
from retake import Recorder, replay

_SESSION_SECONDS = 240
_MEDIA_SECONDS = 90
_POLL_SECONDS = 0.2
_FEWEST_FRAMES = 10
_DESCRIPTION = "application/sdp"
_FRAGMENT = "application/trickle-ice-sdpfrag"
_TOKEN = "interop-token"

# The direction that Retake's answer must state in every section, and the direction of the frames as
# the peer counts them.
_KINDS = {"whip": ("recvonly", "out"), "whep": ("sendonly", "in")}


# Many publishers, such as OBS, support only H.264.
_SESSIONS = [("whip", "vp8"), ("whep", "vp8"), ("whip", "h264")]


async def run(program, folder):
    """Publishes and plays with aiortc; returns the problems."""
    problems = []
    for kind, codec in _SESSIONS:
        name = f"{kind}-{codec}"
        place = folder / name
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        try:
            async with asyncio.timeout(_SESSION_SECONDS):
                found = await _session(kind, codec, program, place)
        except Exception as error:  # a peer's stack may raise anything: the session failed
            problems.append(f"{name}: {type(error).__name__}: {error}")
            continue
        differences, _ = await replay(program, place / "call.take", place)
        found += differences + _examine(kind, codec, place / "call.take")
        problems += [f"{name}: {each}" for each in found]
    return problems


async def _session(kind, codec, program, folder):
    recorder = await Recorder.start(
        program, folder, "127.0.0.1", "pattern", ["--token", _TOKEN, "--once"]
    )
    try:
        peer = await open_peer(Call("aiortc", "peer", codec=codec), folder)
        try:
            return await _converse(kind, recorder, peer)
        finally:
            await peer.close()
    finally:
        await recorder.abandon()


async def _converse(kind, recorder, peer):
    problems = []
    direction, way = _KINDS[kind]

    async def ask(method, path, right, body=None, type_=None, **fields):
        headers = {"Authorization": f"Bearer {_TOKEN}"} | fields
        if type_:
            headers["Content-Type"] = type_
        status, answered, text = await recorder.request(method, path, body, headers)
        if status != right:
            raise ProcessError(f"{method} {path}: status {status}, not {right}: {text[:200]}")
        return answered, text

    offer = await peer.offer()
    await ask("POST", f"/{kind}", 401, offer, _DESCRIPTION, Authorization="Bearer guessed")
    headers, answer = await ask("POST", f"/{kind}", 201, offer, _DESCRIPTION)
    session, tag = headers["Location"], headers["ETag"]
    directions = re.findall(r"^a=(sendrecv|sendonly|recvonly|inactive)\r$", answer, re.MULTILINE)
    if not directions or set(directions) != {direction}:
        problems.append(f"the answer's sections are {directions}, not {direction}")
    await peer.accept(answer)
    fragment = _fragment(offer)
    await ask("PATCH", session, 204, fragment, _FRAGMENT, **{"If-Match": tag})
    await ask("PATCH", session, 412, fragment, _FRAGMENT, **{"If-Match": '"another"'})
    await _wait_for_media(peer, way)
    await ask("DELETE", session, 200)
    await recorder.end_itself()
    return problems


def _fragment(offer):
    """Returns the trickle fragment with the ICE parameters and candidates of an offer's first
    section."""
    section = offer[offer.index("m=") :]
    lines = section.split("\r\n")
    kept = [lines[0]]
    for name in ("mid", "ice-ufrag", "ice-pwd", "candidate", "end-of-candidates"):
        found = [line for line in lines if re.match(rf"a={name}(:|$)", line)]
        kept += found if name == "candidate" else found[:1]
    return "\r\n".join(kept) + "\r\n"


async def _wait_for_media(peer, way):
    loop = asyncio.get_running_loop()
    end = loop.time() + _MEDIA_SECONDS
    while True:
        report = await peer.report()
        counts = {kind: report.frames(way, kind) for kind in ("audio", "video")}
        if report.connection == "connected" and min(counts.values()) >= 2 * _FEWEST_FRAMES:
            return
        if loop.time() > end:
            raise ProcessError(f"the peer is {report.connection}, frames {way}: {counts}")
        await asyncio.sleep(_POLL_SECONDS)


def _examine(kind, codec, take):
    """Checks that the take has the messages, and frames in one direction only."""
    problems = []
    with closing(sqlite3.connect(f"file:{take}?mode=ro", uri=True)) as database:
        messages = database.execute("SELECT transport, direction, type FROM signaling ORDER BY row")
        wanted = [(kind, "in", "offer"), (kind, "out", "answer"), (kind, "in", "candidate")]
        wanted.append((kind, "in", "bye"))
        if (found := messages.fetchall()) != wanted:
            problems.append(f"the take's signaling is {found}")
        way = "in" if kind == "whip" else "out"
        query = "SELECT kind, count(*) FROM frame WHERE direction = ? GROUP BY kind"
        counts = dict(database.execute(query, [way]))
        if min(counts.get("audio", 0), counts.get("video", 0)) < _FEWEST_FRAMES:
            problems.append(f"take: frames {way}: {counts}")
        video = "SELECT DISTINCT codec FROM frame WHERE kind = 'video'"
        if (codecs := database.execute(video).fetchall()) != [(codec,)]:
            problems.append(f"take: video frames of {codecs}, not {codec}")
        if other := dict(database.execute(query, ["out" if way == "in" else "in"])):
            problems.append(f"take: frames the other way: {other}")
    return problems
