"""A room on Janus: four Retakes, Chromium and Firefox, which join, leave, mute and speak in turns.

Meanwhile a network changes and the server restarts; every take is replayed and compared with the
others.
"""

import asyncio
import shutil
import signal
import sqlite3
import subprocess
import time
from contextlib import closing
from dataclasses import dataclass, field

import namespace
import statistics_voices
from peers.janus_server import ROOM, JanusServer
from peers.opening import open_peer
from plan import Call
from processes import Child, ProcessError

_SECONDS = 120
_TURN_SECONDS = 6
_NAMES = ("anna", "ben", "carl", "dora")
# The schedule in seconds: ben leaves and rejoins, dora leaves, carl's network changes.
_LATER = {"carl": 6, "dora": 12}
_LEAVES = {"ben": 36, "dora": 100}
_RETURNS = {"ben": 46}
_CHANGES = 56
_RESTARTS = 78
_DOWN_SECONDS = 2
# carl's network has two addresses, and loses the one in use.
_ADDRESSES = ("10.99.0.31", "10.99.0.32")
# The maximum time until media flows again everywhere after an outage.
_OUTAGE_SECONDS = 20
_SETTLING_SECONDS = 3
_LEAST_DECODED = 0.9
_AGREEMENT_SECONDS = 0.3
_KEEP_SECONDS = 20
_FINISH_SECONDS = 120
_REPLAY_SECONDS = 600
_SHORT_SECONDS = 2.5
_SHORT_TIMEOUT_SECONDS = 240
_LAYER_SECONDS = 4
# The width of received video frames, each time it changes.
_SHOWN_WIDTHS = """
SELECT width FROM (SELECT at_ns, width, lag(width) OVER (ORDER BY at_ns) AS before FROM frame
    WHERE kind = 'video' AND direction = 'in' AND outcome = 'decoded')
WHERE before IS NULL OR width != before ORDER BY at_ns
"""
_SHORT_OUTCOME = """
SELECT (SELECT count(DISTINCT track) FROM frame
    WHERE kind = 'video' AND direction = 'in' AND outcome = 'decoded'),
  (SELECT group_concat(name) FROM (SELECT DISTINCT name FROM participant ORDER BY name))
"""
_SHORT_EXPECTED = (True, "ben,retake")


@dataclass
class Guest:
    """A Retake peer in the room; a guest that rejoins records another take."""

    name: str
    child: Child
    take: object


@dataclass
class Story:
    """The events of the meeting, in Unix seconds."""

    outages: list = field(default_factory=list)
    takes: list = field(default_factory=list)


async def run(program, folder):
    """Holds the meeting; returns the problems and the figures."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for address in _ADDRESSES:
        _ip("address", "add", f"{address}/24", "dev", "retake0")
    story = Story()
    server = await JanusServer.start("videoroom", folder)
    try:
        async with asyncio.timeout(_SECONDS + 120):
            await _hold(program, folder, server, story)
    except Exception as error:  # a peer's stack may raise anything: the meeting failed
        return [f"{type(error).__name__}: {error}"], []
    finally:
        await server.end()
    problems, figures = [], []
    for take in story.takes:
        problems += await _replay(program, take, folder)
    found, figures = _compare(story)
    problems += found
    problems += await _merge(program, story.takes, folder)
    return problems, figures


async def run_short(program, folder):
    """Lets two Retakes meet for a few seconds; returns the problems. One of them keeps its take."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    server = await JanusServer.start("videoroom", folder)
    take = folder / "call.take"
    try:
        async with asyncio.timeout(_SHORT_TIMEOUT_SECONDS):
            other = await Child.start(
                _short(program, server, "ben", 600, folder / "other.take"), folder / "other.log"
            )
            try:
                await server.wait_for_publisher()
                child = await Child.start(
                    _short(program, server, "retake", 600, take), folder / "call.log"
                )
                await asyncio.sleep(_SHORT_SECONDS)
                # On a busy machine, this time may not be enough.
                while _short_outcome(take) != _SHORT_EXPECTED and child.status is None:
                    await asyncio.sleep(_SHORT_SECONDS)
                status = await child.finish(_FINISH_SECONDS, sending=signal.SIGINT)
            finally:
                ended = await other.finish(_FINISH_SECONDS, sending=signal.SIGINT)
    except Exception as error:  # a peer's stack may raise anything: the visit failed
        return [f"{type(error).__name__}: {error}"]
    finally:
        await server.end()
    problems = [f"status {each}" for each in (status, ended) if each != 0]
    for each in (take, folder / "other.take"):
        problems += await _replay(program, each, folder)
    if (outcome := _short_outcome(take)) != _SHORT_EXPECTED:
        problems.append(f"whether videos were decoded, and whose: {outcome}")
    return problems


def _short_outcome(take):
    """Returns whether video was decoded so far, and the participants' names; None without a
    take."""
    if not take.exists():
        return None
    try:
        with closing(sqlite3.connect(f"file:{take}?mode=ro", uri=True)) as database:
            ((decoded, names),) = database.execute(_SHORT_OUTCOME)
    except sqlite3.OperationalError:  # it is being created
        return None
    return bool(decoded), names


async def run_layers(program, folder):
    """Publishes three layers from one Retake, of which another selects each in turn; returns the
    problems."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    server = await JanusServer.start("videoroom", folder)
    takes = [folder / "anna.take", folder / "ben.take"]
    guests = []
    try:
        async with asyncio.timeout(_SHORT_TIMEOUT_SECONDS):
            for name, take in zip(("anna", "ben"), takes):
                arguments = [program, "record", "janus", server.address, "--room", ROOM]
                arguments += ["--name", name, "--commands", "--out", take]
                if name == "anna":
                    arguments += ["--publish", "pattern", "--size", "640x360", "--rate", "15"]
                    arguments += ["--simulcast"]
                guests.append(await Child.start(arguments, folder / f"{name}.log"))
                if name == "anna":
                    await server.wait_for_publisher()
            for profile in ("high", "low", "mid"):
                await guests[1].write(f"profile {profile}")
                await asyncio.sleep(_LAYER_SECONDS)
            for guest in reversed(guests):
                if status := await guest.finish(_FINISH_SECONDS, sending=signal.SIGINT):
                    return [f"status {status}"]
    except Exception as error:  # a peer's stack may raise anything: the visit failed
        return [f"{type(error).__name__}: {error}"]
    finally:
        await server.end()
    problems = []
    for take in takes:
        problems += await _replay(program, take, folder)
    with closing(sqlite3.connect(f"file:{takes[1]}?mode=ro", uri=True)) as database:
        widths = [width for (width,) in database.execute(_SHOWN_WIDTHS)]
    # When switching, the server may pass through other layers whose key frames arrive first.
    rest = iter(widths)
    if not all(width in rest for width in (640, 160, 320)) or widths[-1] != 320:
        problems.append(f"the widths that were shown are {widths}")
    return problems


def _short(program, server, name, seconds, take):
    arguments = [program, "record", "janus", server.address, "--room", ROOM, "--name", name]
    arguments += ["--publish", "pattern", "--size", "64x48", "--rate", "10"]
    return [*arguments, "--seconds", seconds, "--no-media-copy", "--out", take]


async def _hold(program, folder, server, story):
    loop = asyncio.get_running_loop()
    began = loop.time()
    voices = statistics_voices.make(folder)
    guests = {}
    browsers = Browsers(server, folder)
    count = 0

    async def enter(name):
        nonlocal count
        count += 1
        take = folder / f"{count}-{name}.take"
        voice = voices[_NAMES.index(name) % len(voices)]
        bind = _ADDRESSES if name == "carl" else [namespace.address()]
        arguments = [program, "record", "janus", server.address, "--room", ROOM, "--name", name]
        arguments += ["--publish", "pattern", "--publish", voice, "--size", "320x180"]
        arguments += ["--rate", "15", "--commands", "--out", take]
        for address in bind:
            arguments += ["--bind", address]
        child = await Child.start(arguments, folder / f"{count}-{name}.log")
        guests[name] = Guest(name, child, take)
        story.takes.append(take)
        await child.write("mute audio")

    async def leave(name):
        guest = guests.pop(name)
        status = await guest.child.finish(_FINISH_SECONDS, sending=signal.SIGINT)
        if status != 0:
            raise ProcessError(f"{guest.take.name}: status {status}")

    due = [(0, enter, "anna"), (0, enter, "ben")]
    due += [(at, enter, name) for name, at in (*_LATER.items(), *_RETURNS.items())]
    due += [(at, leave, name) for name, at in _LEAVES.items()]
    due.sort(key=lambda entry: entry[0])
    speaker = None
    has_changed = has_restarted = False
    await browsers.enter()
    while (now := loop.time() - began) < _SECONDS:
        while due and due[0][0] <= now:
            _, act, name = due.pop(0)
            await act(name)
        turn = sorted(guests)[int(now / _TURN_SECONDS) % len(guests)] if guests else None
        if turn != speaker:
            if speaker in guests:
                await guests[speaker].child.write("mute audio")
            if turn in guests:
                await guests[turn].child.write("unmute audio")
            speaker = turn
        if now >= _CHANGES and not has_changed:
            has_changed = True
            story.outages.append(_clock())
            _ip("address", "del", f"{_ADDRESSES[0]}/24", "dev", "retake0")
            await guests["carl"].child.write("network-changed")
        if now >= _RESTARTS and not has_restarted:
            has_restarted = True
            story.outages.append(_clock())
            await browsers.leave()
            await server.restart(_DOWN_SECONDS)
            await browsers.enter()
        await browsers.keep(now)
        await asyncio.sleep(0.1)
    for name in sorted(guests):
        await leave(name)
    await browsers.leave()


class Browsers:
    """Chromium and Firefox as publishers; this program signals for them."""

    def __init__(self, server, folder):
        self._server = server
        self._folder = folder
        self._open = []
        self._kept = 0.0

    async def enter(self):
        """Starts the browsers and publishes their captured media."""
        for name in ("chromium", "firefox"):
            peer = await open_peer(
                Call(name, "peer", avoids_loopback=True), self._folder
            )
            session = await self._server.session()
            self._open.append((peer, session))
            handle = await session.attach("videoroom")
            body = {"request": "join", "ptype": "publisher", "room": ROOM, "display": name}
            await session.message(handle, body)
            reply = await session.message(
                handle, {"request": "publish"}, "offer", await peer.offer()
            )
            await peer.accept(reply["jsep"]["sdp"])

    async def leave(self):
        """Ends the sessions and the browsers."""
        while self._open:
            peer, session = self._open.pop()
            await session.close()
            await peer.close()

    async def keep(self, now):
        """Keeps the browsers' sessions alive."""
        if now - self._kept < _KEEP_SECONDS:
            return
        self._kept = now
        for _, session in self._open:
            await session.keep()


def _ip(*arguments):
    subprocess.run(["ip", *arguments], check=True, capture_output=True)


def _clock():
    return time.time()


async def _replay(program, take, folder):
    child = await Child.start([program, "replay", take], folder / f"{take.stem}-replay.log")
    status = await child.finish(_REPLAY_SECONDS)
    if status != 0 or not any("identical" in line for line in child.output):
        last = (child.output + child.errors)[-1:] or ["no word"]
        return [f"{take.name}: replay: status {status}: {last[0]}"]
    return []


async def _merge(program, takes, folder):
    """Merges takes that overlap in time; they come from one machine, so their clocks agree."""
    problems = []
    for first, second in zip(takes, takes[1:]):
        child = await Child.start(
            [program, "merge", first, second, "--json"], folder / f"{second.stem}-merge.log"
        )
        if status := await child.finish(_REPLAY_SECONDS):
            last = (child.output + child.errors)[-1:] or ["no word"]
            problems.append(f"merge {first.name} {second.name}: status {status}: {last[0]}")
    return problems


class Witness:
    """A take's contents, on the machine's clock."""

    def __init__(self, path):
        self.name = path.stem.partition("-")[2]
        self.label = path.name
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
            ((start,),) = database.execute("SELECT start_unix_ns FROM take")
            self._start = start
            self.names = dict(database.execute("SELECT participant, name FROM participant"))
            self.spoken = [
                (self.names[who], direction, self._at(begin), self._at(end))
                for who, direction, begin, end in database.execute(_SPOKEN)
            ]
            self.tracks = [
                (self.names[who], peer, track, direction, self._at(begin), self._at(end))
                for who, peer, track, direction, begin, end in database.execute(_TRACKS)
            ]
            self.frames = {}
            for peer, track, direction, outcome, at in database.execute(_FRAMES):
                self.frames.setdefault((peer, track, direction), []).append(
                    (self._at(at), outcome)
                )
            self.last = self._at(database.execute("SELECT max(at_ns) FROM tape").fetchone()[0])

    def _at(self, nanoseconds):
        return (self._start + nanoseconds) / 1e9

    def count(self, peer, track, direction, outcome, begin, end):
        """Returns how many frames had an outcome within an interval."""
        return sum(
            1
            for at, what in self.frames.get((peer, track, direction), [])
            if begin <= at < end and what == outcome
        )


_SPOKEN = """
SELECT participant_speaker.participant, carrier.direction, participant_speaker.from_ns,
  participant_speaker.to_ns
FROM participant_speaker JOIN participant_track AS carrier
  ON carrier.peer = participant_speaker.peer AND carrier.track = participant_speaker.track
  AND carrier.participant = participant_speaker.participant
WHERE participant_speaker.seconds > 1
"""
_TRACKS = """
SELECT participant, peer, track, direction, from_ns, to_ns FROM participant_track
WHERE kind = 'video'
"""
_FRAMES = "SELECT peer, track, direction, outcome, at_ns FROM frame WHERE kind = 'video'"


def _quiet(story, begin, end):
    """Returns the parts of an interval without outages."""
    parts = [(begin + _SETTLING_SECONDS, end - _SETTLING_SECONDS)]
    for outage in story.outages:
        low, high = outage - _SETTLING_SECONDS, outage + _OUTAGE_SECONDS
        parts = [
            piece
            for a, b in parts
            for piece in ((a, min(b, low)), (max(a, high), b))
            if piece[1] - piece[0] > 1
        ]
    return [(a, b) for a, b in parts if b - a > 1]


def _compare(story):
    """Compares in all takes the frames sent and decoded, and who spoke when."""
    problems = []
    witnesses = [Witness(take) for take in story.takes]
    least = (2.0, "")
    pairs = 0
    for receiver in witnesses:
        for sender in witnesses:
            if sender.name == receiver.name:
                continue
            ratio = _decoded(story, sender, receiver)
            if ratio is None:
                continue
            pairs += 1
            what = f"{receiver.label} decoded of {sender.label}"
            least = min(least, (ratio, what))
            if ratio < _LEAST_DECODED:
                problems.append(f"{what}: {100 * ratio:.1f} %")
    differences = []
    for receiver in witnesses:
        for sender in witnesses:
            if sender.name != receiver.name:
                differences += _differences(story, sender, receiver)
    differences.sort()
    late = [each for each in differences if each[0] > _AGREEMENT_SECONDS]
    problems += [f"speakers: {what} is {gap:.2f} s apart" for gap, what in late]
    if not differences:
        problems.append("speakers: no speech was received")
    figures = [f"least decoded {100 * least[0]:.1f} % ({least[1]}), of {pairs} pairs"]
    if differences:
        figures.append(
            f"{len(differences)} turns heard, at most {differences[-1][0] * 1000:.0f} ms apart"
        )
    return problems, figures


def _decoded(story, sender, receiver):
    """Returns the share of sent frames that was decoded; None if the two did not meet."""
    sent = decoded = 0
    for name, peer, track, direction, begin, end in receiver.tracks:
        if direction != "in" or name != sender.name:
            continue
        for own, own_peer, own_track, way, first, last in sender.tracks:
            if way != "out" or own != sender.name:
                continue
            for a, b in _quiet(story, max(begin, first), min(end, last)):
                sent += sender.count(own_peer, own_track, "out", "encoded", a, b)
                decoded += receiver.count(peer, track, "in", "decoded", a, b)
    return decoded / sent if sent > 30 else None


def _differences(story, sender, receiver):
    """Returns how far apart both takes put the starts and ends of turns."""
    found = []
    heard = [each for each in receiver.spoken if each[0] == sender.name and each[1] == "in"]
    for name, way, begin, end in sender.spoken:
        if way != "out" or name != sender.name:
            continue
        if len(_quiet(story, begin - 4, end + 4)) != 1:
            continue
        if not _overlaps(receiver, sender, begin, end):
            continue
        nearest = min(
            (max(abs(begin - a), abs(end - b)) for _, _, a, b in heard), default=None
        )
        if nearest is None or nearest > 3:
            continue
        found.append((nearest, f"{sender.name} in {receiver.label} at {begin:.1f}"))
    return found


def _overlaps(receiver, sender, begin, end):
    return any(
        name == sender.name and direction == "in" and a <= begin - 1 and end + 1 <= b
        for name, _, _, direction, a, b in receiver.tracks
    )
