"""Calls between other peers, observed on the wire.

Retake is not an end of these calls: it captures, decrypts the packets with one end's key log, and
makes a take. tshark reads the take's export, and must count the same. In the last cells Retake is
an end as well, and the observed receiver must decode the same frames as the endpoint.
"""

import asyncio
import base64
import json
import os
import re
import shutil
import signal
import sqlite3
import struct
import subprocess
from contextlib import closing, contextmanager
from dataclasses import dataclass

import namespace
import tshark
from peers.coturn import Coturn
from peers.opening import open_peer
from plan import ABILITIES, Call
from processes import Child, ProcessError, end_orphans
from retake import Recorder, replay

_START_SECONDS = 90
_FINISH_SECONDS = 180
_CALL_SECONDS = 240
_MEDIA_SECONDS = 90
_FEWEST_FRAMES = 20
# The maximum number of frames that one end has counted and the other has not when a call ends.
_UNDERWAY_FRAMES = 10
_JITTER_MS = 0.1
# The maximum distance between the ports of one path's streams in an export.
_CLEAR_DISTANCE = 40
# Gaps that must not occur, because all protected packets have to be decrypted.
_GAPS = ("no-keys", "not-opened", "waiting-overflow", "dropped", "truncated", "unsupported")


@dataclass(frozen=True)
class Cell:
    """Two peers that call each other."""

    offerer: str
    answerer: str
    # The highest DTLS version that Firefox may use; empty for its default.
    dtls: str = ""
    # The version that must be negotiated; empty for any.
    expects: str = ""
    # The transport over which the first peer reaches a relay, which is the peer's only candidate;
    # empty without a relay.
    relay: str = ""
    # Whether signaling removes UDP candidates, in which case ICE uses TCP.
    tcp: bool = False

    @property
    def name(self):
        """The name in the output and of the folder."""
        words = ["observed", self.offerer, self.answerer]
        words += [f"dtls-{self.dtls}"] if self.dtls else []
        words += ["tcp"] * self.tcp
        return "-".join(words + ([f"relay-{self.relay}"] if self.relay else []))

    def signaled(self, sdp):
        """Returns a description as signaled to the other peer."""
        return re.sub(r"(?i)a=candidate:\S+ \d+ udp .*\r\n", "", sdp) if self.tcp else sdp

    @property
    def peers(self):
        return {self.offerer, self.answerer}

    @property
    def uses_loopback(self):
        """Whether both peers can use loopback."""
        return not self.relay and all(ABILITIES[peer].uses_loopback for peer in self.peers)


CELLS = [
    Cell("firefox", "firefox", expects="DTLSv1.3"),
    Cell("firefox", "chromium", expects="DTLSv1.3"),
    Cell("chromium", "firefox", dtls="1.2", expects="DTLSv1.2"),
    Cell("chromium", "firefox", relay="udp"),
    Cell("chromium", "firefox", relay="tcp"),
    Cell("aiortc", "chromium", expects="DTLSv1.2"),
    Cell("gstreamer", "firefox", expects="DTLSv1.2"),
    Cell("gstreamer", "firefox", tcp=True),
]


@contextmanager
def _key_log(path):
    """Sets SSLKEYLOGFILE for the processes started within the block."""
    os.environ["SSLKEYLOGFILE"] = str(path)
    try:
        yield
    finally:
        del os.environ["SSLKEYLOGFILE"]


class Watch:
    """A running `retake record pcap`."""

    def __init__(self, child, take):
        self._child = child
        self.take = take

    @classmethod
    async def start(cls, program, folder, options=()):
        """Starts capturing on loopback, which all traffic within a machine uses."""
        take = folder / "seen.take"
        child = await Child.start(
            [program, "record", "pcap", "-i", "lo", "--keys", folder / "keys.log", "--out", take,
             "--json", *options],
            folder / "pcap.log",
        )
        await child.line("capturing on lo", _START_SECONDS, errors=True)
        return cls(child, take)

    async def finish(self):
        """Ends the capture with an interrupt, as users do; returns its summary."""
        status = await self._child.finish(_FINISH_SECONDS, sending=signal.SIGINT)
        if status:
            raise ProcessError(f"record pcap ended with status {status}")
        return json.loads(self._child.output[-1])


async def run(cell, program, folder, seconds):
    """Observes a call; returns the problems, and a table of tshark's counts."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    try:
        async with asyncio.timeout(_CALL_SECONDS + seconds):
            summary = await _watch(cell, program, folder, seconds)
        problems = _complete(folder / "seen.take", summary, cell)
        compare = _compare_counts if cell.tcp else _compare
        found, table = compare(program, folder / "seen.take", folder)
        again, _ = await replay(program, folder / "seen.take", folder)
        return problems + found + again, table
    except Exception as error:  # a peer may raise anything: the call failed
        return [f"{type(error).__name__}: {error}"], ""
    finally:
        end_orphans()


async def _watch(cell, program, folder, seconds):
    relay = await Coturn.start(folder, cell.relay) if cell.relay else None
    peers = []
    try:
        watch = await Watch.start(program, folder)
        with _key_log(folder / "keys.log"):
            for number, name in enumerate((cell.offerer, cell.answerer)):
                (folder / str(number)).mkdir()
                relays = ("peer",) if relay and number == 0 else ()
                call = Call(
                    name, "peer", relays=relays, dtls=cell.dtls,
                    avoids_loopback=not cell.uses_loopback,
                )
                peers.append(await open_peer(call, folder / str(number), relay))
        offer = cell.signaled(await peers[0].offer())
        answer = cell.signaled(await peers[1].answer(offer))
        await peers[0].accept(answer)
        (folder / "offer.sdp").write_text(offer)
        (folder / "answer.sdp").write_text(answer)
        await _hold(peers, seconds)
        for peer in reversed(peers):
            await peer.close()
        peers = []
        return await watch.finish()
    finally:
        for peer in peers:
            await peer.close()
        if relay:
            await relay.end()


async def _hold(peers, seconds, directions=("in",)):
    """Stays in the call for a while, and until media has been received in each direction."""
    loop = asyncio.get_running_loop()
    start = loop.time()
    while True:
        reports = [await peer.report() for peer in peers]
        counts = [
            report.frames(direction, kind)
            for report in reports for direction in directions for kind in ("audio", "video")
        ]
        if min(counts) >= _FEWEST_FRAMES + _UNDERWAY_FRAMES and loop.time() >= start + seconds:
            return
        if loop.time() >= start + seconds + _MEDIA_SECONDS:
            raise ProcessError(f"the ends have {counts} frames of sound and pictures")
        await asyncio.sleep(0.2)


def _complete(take, summary, cell):
    """Returns problems if not everything was decrypted."""
    problems = _unopened(summary, 0)
    with closing(sqlite3.connect(f"file:{take}?mode=ro", uri=True)) as database:
        problems += [
            f"coverage: {what}: {reason}" for what, reason in database.execute(
                f"SELECT what, reason FROM coverage WHERE what IN ({','.join('?' * len(_GAPS))})",
                _GAPS,
            )
        ]
        kinds = dict(database.execute(
            "SELECT kind, count(*) FROM frame WHERE direction = 'in' AND size > 0 GROUP BY kind"))
        versions = {row[0] for row in database.execute(
            "SELECT DISTINCT detail ->> '$.version' FROM event WHERE type = 'secured'")}
        keys = [row[0] for row in database.execute(
            "SELECT arguments FROM call_request WHERE name = 'keyLog'")]
    for kind in ("audio", "video"):
        if kinds.get(kind, 0) < _FEWEST_FRAMES:
            problems.append(f"{kinds.get(kind, 0)} {kind} frames were put together")
    if cell.expects and cell.expects not in versions:
        problems.append(f"the version is {versions} instead of {cell.expects}")
    if not keys:
        problems.append("the take has no line of the key log")
    return problems


def _unopened(summary, spare):
    """Returns a problem if more than `spare` packets were not decrypted."""
    opened, packets = summary["packetsInClear"], summary["packets"]
    return [f"{opened} of {packets} packets were decrypted"] * (not 0 < packets <= opened + spare)


# MARK: tshark


def _compare(program, take, folder):
    """Compares each decrypted stream with tshark's counts for the export.

    For tshark, the same SSRC on another pair of addresses is another stream.
    """
    theirs = _exported(program, take, folder)
    problems = []
    rows = [("ssrc", "packets", "tshark", "lost", "tshark", "mean", "tshark", "max", "tshark")]
    with closing(sqlite3.connect(f"file:{take}?mode=ro", uri=True)) as database:
        sights = _sights(database)
        streams = database.execute(
            "SELECT p.peer, p.ssrc, p.local, p.remote, max(t.clock_rate), max(t.codec)"
            " FROM packet AS p JOIN track AS t"
            " ON t.peer = p.peer AND t.ssrc = p.ssrc AND t.payload_type = p.payload_type"
            " WHERE p.protocol = 'rtp' AND p.direction = 'in' AND t.direction = 'in'"
            " GROUP BY 1, 2, 3, 4"
        ).fetchall()
        if len(streams) != len(theirs):
            problems.append(f"tshark: {len(theirs)} streams, and {len(streams)} in the take")
        for *stream, clock, codec in streams:
            _, ssrc, local, remote = stream
            ours = _ours(database, stream, clock, sights)
            found = [
                row for row in theirs if row.ssrc == ssrc and row.port in _clear_ports(remote)
                and row.destination_port in _clear_ports(local)
            ]
            if len(found) != 1:
                problems.append(f"tshark: {len(found)} streams are {ssrc} {codec} from {remote}")
                continue
            (row,) = found
            other = (row.packets, row.lost, row.mean, row.largest)
            rows.append((f"{ssrc} {codec}", *(
                f"{value:g}" for pair in zip(ours, other) for value in pair)))
            if ours[:2] != other[:2]:
                problems.append(f"tshark: {ssrc} {codec}: {other} against {ours}")
            # Retransmissions have the original packets' timestamps; without a codec tshark does not
            # know the clock.
            elif codec not in ("", "rtx") and any(
                abs(one - two) > _JITTER_MS for one, two in zip(ours[2:], other[2:])
            ):
                problems.append(f"tshark: {ssrc} {codec}: jitter {other[2:]}, not {ours[2:]}")
    return problems + _few(rows), _table(rows)


def _compare_counts(program, take, folder):
    """Compares calls over TCP, whose packets are not datagrams, with the observed receivers' final
    statistics."""
    theirs = {row.ssrc: (row.packets, row.lost) for row in _exported(program, take, folder)}
    rows = [("ssrc", "packets", "tshark", "lost", "tshark")]
    with closing(sqlite3.connect(f"file:{take}?mode=ro", uri=True)) as database:
        ours = {ssrc: (received, lost) for ssrc, received, lost, _ in database.execute(
            "SELECT members ->> '$.ssrc', members ->> '$.packetsReceived',"
            " members ->> '$.packetsLost', max(at_ns) FROM stat WHERE type = 'inbound-rtp'"
            " GROUP BY peer, id"
        )}
    problems = []
    for ssrc in sorted(ours.keys() | theirs.keys()):
        pair = ours.get(ssrc, ("-", "-")), theirs.get(ssrc, ("-", "-"))
        rows.append((str(ssrc), *(str(value) for values in zip(*pair) for value in values)))
        if pair[0] != pair[1]:
            problems.append(f"tshark: {ssrc}: {pair[1]} against {pair[0]}")
    return problems + _few(rows), _table(rows)


def _exported(program, take, folder):
    """Returns the streams that tshark finds in a take's export."""
    capture = folder / "seen.pcapng"
    subprocess.run([program, "export", take, "--pcapng", capture], check=True, capture_output=True)
    return tshark.streams(capture)


def _few(rows):
    """Returns a problem if fewer streams were compared than a call has."""
    return [f"tshark: {len(rows) - 1} streams were compared"] * (len(rows) < 4)


def _table(rows):
    widths = [max(map(len, column)) for column in zip(*rows)]
    return "\n".join(
        "  ".join(cell.rjust(width) for cell, width in zip(row, widths)) for row in rows)


def _clear_ports(place):
    """Returns the ports that an export uses for decrypted streams instead of the port on the
    wire."""
    port = int(place.rpartition(":")[2])
    high = (port ^ 0x8000) & 0x8000
    return {high | (port + distance) & 0x7FFF for distance in range(0, _CLEAR_DISTANCE, 2)}


def _ours(database, stream, clock, sights):
    """Returns a stream's counts as in tshark's table, computed from the take's packets."""
    packets = sorted(
        (min(at, sights.get((ssrc, sequence, time), at)), time, is_marked, sequence)
        for at, ssrc, time, is_marked, sequence in database.execute(
            "SELECT at_ns, ssrc, rtp_time, marker, sequence FROM packet WHERE protocol = 'rtp'"
            " AND direction = 'in' AND peer = ? AND ssrc = ? AND local = ? AND remote = ?", stream,
        )
    )
    first = highest = packets[0][3]
    for *_, sequence in packets:
        highest = max(highest, highest + (sequence - highest + 0x8000 & 0xFFFF) - 0x8000)
    lost = highest - first + 1 - len(packets)
    return len(packets), lost, *tshark.mean_and_largest(packets, clock)


def _sights(database):
    """Returns when packets between a client and its relay were first seen, by SSRC, sequence number
    and RTP time.

    A packet is seen on both sides of the relay.
    """
    sights = {}

    def see(key, at):
        sights[key] = min(at, sights.get(key, at))

    for *key, at in database.execute(
        "SELECT ssrc & 0xffffffff, sequence & 0xffff, rtp_time & 0xffffffff, at_ns"
        " FROM packet_store WHERE marker_type IS NOT NULL"
        " AND path NOT IN (SELECT path FROM path_end)"
    ):
        see(tuple(key), at)
    pieces = {}
    for arguments, at in database.execute(
        "SELECT arguments, at_ns FROM call_request WHERE name = 'segment' ORDER BY row"
    ):
        segment = json.loads(arguments)
        path = segment["source"], segment["destination"]
        pieces[path] = pieces.get(path, b"") + base64.b64decode(segment["bytes"])
        while message := _cut(pieces[path]):
            pieces[path] = pieces[path][len(message):]
            if message[0] >> 6 == 1 and message[4] >> 6 == 2:
                sequence, time, ssrc = struct.unpack_from(">HII", message, 6)
                see((ssrc, sequence, time), at)
    return sights


def _cut(stream):
    """Returns the TURN message at the start of a TCP stream's bytes (RFC 8656 section 12.5);
    nothing while it is incomplete."""
    if len(stream) < 4:
        return b""
    length = int.from_bytes(stream[2:4])
    length += 4 + -length % 4 if stream[0] >> 6 == 1 else 20
    return stream[:length] if len(stream) >= length else b""


# MARK: Calls with Retake as an end


# The peers of the calls with Retake as an end, and whether ICE uses only TCP.
OWN_CELLS = {"observed-retake": ("aiortc", False), "observed-retake-tcp": ("firefox", True)}


async def run_own(name, program, folder, seconds):
    """Observes a call with Retake as an end; the observed receiver must decode the same frames."""
    call = Call(OWN_CELLS[name][0], "peer", tcp=OWN_CELLS[name][1])
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    try:
        async with asyncio.timeout(_CALL_SECONDS + seconds):
            seen, own, summary = await _watch_own(call, program, folder, seconds)
        problems, words = _digests(seen, own, summary["dropped"])
        opened, packets = summary["packetsInClear"], summary["packets"]
        words += f", {opened} of {packets} packets decrypted"
        # Offload merges different packets in each call, and some merged packets are not recognized.
        return _unopened(summary, packets // 100) + problems, words
    except Exception as error:  # a peer may raise anything: the call failed
        return [f"{type(error).__name__}: {error}"], ""
    finally:
        end_orphans()


async def _watch_own(call, program, folder, seconds):
    watch = await Watch.start(program, folder, ["--decode"])
    bind = "127.0.0.1" if call.uses_loopback else namespace.address()
    recorder = await Recorder.start(program, folder, bind, "pattern", call.options)
    peer = None
    try:
        with _key_log(folder / "keys.log"):
            peer = await open_peer(call, folder)
        await peer.accept(await recorder.offer(await peer.offer()))
        # A busy browser sends few video frames, and the frames that Retake receives are compared.
        await _hold([peer], seconds, ("in", "out"))
        await recorder.finish()
    except BaseException:
        await recorder.abandon()
        raise
    finally:
        if peer:
            await peer.close()
    return watch.take, recorder.take, await watch.finish()


def _digests(seen, own, dropped):
    """Compares the frames that Retake received in both takes.

    When a receiver starts concealing audio depends on the machine's load, and decoders differ from
    then on: after the first concealed frame, only the encoded frames are compared.
    """
    problems, words = [], []
    for kind in ("video", "audio"):
        ours, ssrc = _frames(own, kind)
        theirs, _ = _frames(seen, kind, ssrc)
        if kind == "audio":
            ours, theirs, whole = _before_made_up(ours), _before_made_up(theirs), (ours, theirs)
            problems += _unlike(kind, *(
                {time: payload for time, (_, payload) in frames.items() if payload}
                for frames in whole
            ), dropped)
        ours, theirs = (
            {time: digest for time, (digest, _) in frames.items() if digest}
            for frames in (ours, theirs)
        )
        if kind == "video":
            problems += _unlike(kind, ours, theirs, dropped)
        common = ours.keys() & theirs.keys()
        words.append(f"{len(common)} of {len(ours)} {kind} frames")
        if wrong := sum(ours[time] != theirs[time] for time in common):
            problems.append(f"{kind}: {wrong} of {len(common)} frames are decoded differently")
    return problems, " and ".join(words) + " decoded alike"


def _unlike(kind, ours, theirs, dropped):
    """Returns a problem if too few frames were observed, or any differs from the endpoint's."""
    common = ours.keys() & theirs.keys()
    wrong = sum(ours[time] != theirs[time] for time in common)
    if not wrong and _FEWEST_FRAMES <= len(common) >= len(ours) - 5 - dropped:
        return []
    return [f"{kind}: {len(common)} of {len(ours)} frames were seen, {wrong} are different"]


def _before_made_up(frames):
    """Returns the frames before the first concealed one."""
    times = list(frames)
    end = next((n for n, time in enumerate(times) if not frames[time][1]), len(times))
    return {time: frames[time] for time in times[:end]}


def _frames(take, kind, ssrc=None):
    """Returns each received frame's digest and payload by RTP time, without a payload if it was
    concealed; and the SSRC."""
    with closing(sqlite3.connect(f"file:{take}?mode=ro", uri=True)) as database:
        if ssrc is None:
            ssrc = database.execute(
                "SELECT ssrc FROM frame WHERE direction = 'in' AND kind = ? AND size > 0 LIMIT 1",
                (kind,),
            ).fetchone()[0]
        frames = {}
        for time, digest, payload, source in database.execute(
            "SELECT rtp_time, digest, bytes, ssrc FROM frame WHERE direction = 'in'"
            " AND kind = ? AND peer IN (SELECT peer FROM frame WHERE ssrc = ? AND direction = 'in')"
            " ORDER BY row", (kind, ssrc),
        ):
            if source == ssrc and payload:
                frames[time] = digest, payload
            elif kind == "audio" and frames:
                frames[time, "made up"] = None, b""
        return frames, ssrc


def hindrance():
    """Returns why calls cannot be observed here; None if they can."""
    if not namespace.address():
        return "it needs a private network"
    if os.geteuid():
        return "capturing needs root"
    return None
