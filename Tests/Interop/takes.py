"""Checks what a take contains after a call, with plain SQL."""

import json
import sqlite3
from collections import Counter
from contextlib import closing
from dataclasses import dataclass, field

from reports import DTLS_VERSIONS
from retake import is_private

# The state machines of every call; each must reach at least one of its listed states.
_STATES = [
    ("ice-connection", {"connected", "completed"}),
    ("dtls", {"connected"}),
    ("connection", {"connected"}),
]
# The share of datagrams that loopback may lose, because a busy machine reads them too late.
_LOSS = 0.02
# The share of packets that a relay with small socket buffers may lose while data channels run at
# full speed.
_RELAYED_LOSS = 0.2
_FEWEST_FRAMES = 10
# A sample value above any codec's noise.
_LOUD = 500


@dataclass
class Take:
    """A take's facts, for comparison and for the table."""

    # Frames by direction (`in`: received by Retake) and kind.
    frames: Counter = field(default_factory=Counter)
    # The codecs of video frames, and those of audio.
    codecs: set[str] = field(default_factory=set)
    sounds: set[str] = field(default_factory=set)
    # RTP packets by direction and SSRC.
    packets: Counter = field(default_factory=Counter)
    # Retake's report of the handshake: version, profile, role.
    secured: dict = field(default_factory=dict)
    # The types of the two candidates that media used at the end.
    path: dict = field(default_factory=dict)
    # How many messages Retake sent and the peer echoed.
    repeated: int = 0
    # The number of channels on which these messages were sent.
    channels: int = 0
    # The largest received sample.
    peak: int = 0
    problems: list[str] = field(default_factory=list)

    @property
    def dtls_version(self):
        """The DTLS version's name."""
        return DTLS_VERSIONS.get(self.secured.get("version"), "")


def examine(path, call, report):
    """Checks a call's take, and compares it with the peer's report."""
    take = Take()
    if not path.exists():
        take.problems.append("there is no take")
        return take
    if not is_private(path):
        take.problems.append("others may read the take")
    try:
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
            _read(database, take)
            _listen(database, call, take)
    except sqlite3.Error as error:
        take.problems.append(f"sqlite: {error}")
        return take
    for direction, kinds in (("in", call.sends), ("out", call.receives)):
        for kind in kinds:
            count = take.frames[direction, kind]
            if count < _FEWEST_FRAMES:
                take.problems.append(f"take: {count} {kind} frames {direction}")
    if take.codecs - {call.codec}:
        take.problems.append(f"take: video frames of {sorted(take.codecs)}, not {call.codec}")
    expected = {call.audio}
    # Chromium sends the offer's preferred codec, whatever it answers.
    if call.peer == "chromium" and call.offerer == "retake":
        expected.add("opus")
    if take.sounds - expected:
        take.problems.append(f"take: audio of {sorted(take.sounds)}, not {call.audio}")
    _compare(take, report, _RELAYED_LOSS if "retake" in call.relays else _LOSS)
    _judge_path(take, call)
    return take


def _read(database, take):
    rows = database.execute("PRAGMA integrity_check").fetchall()
    if rows != [("ok",)]:
        take.problems.append(f"integrity_check: {rows[0][0]}")
    met = set(database.execute("SELECT machine, to_state FROM state"))
    for machine, states in _STATES:
        if not any((machine, state) in met for state in states):
            take.problems.append(f"take: {machine} never became {' or '.join(sorted(states))}")
    kinds = {row[0] for row in database.execute("SELECT type FROM signaling")}
    if not {"offer", "answer"} <= kinds:
        take.problems.append(f"take: signaling has only {sorted(kinds)}")
    for direction, kind, count, frames in database.execute(
        "SELECT direction, kind, count(*), count(DISTINCT coalesce(digest, bytes)) FROM frame"
        " WHERE outcome IN ('decoded', 'encoded', 'not decoded', 'passed on') GROUP BY 1, 2"
    ):
        take.frames[direction, kind] = count
        if (direction, kind) == ("in", "video") and count > 1 and frames < 2:
            take.problems.append("take: all received video frames are the same")
    for kind, codecs in (("video", take.codecs), ("audio", take.sounds)):
        rows = database.execute(f"SELECT DISTINCT codec FROM frame WHERE kind = '{kind}'")
        codecs.update(codec for (codec,) in rows)
    for direction, ssrc, count in database.execute(
        "SELECT direction, ssrc, count(*) FROM packet WHERE protocol = 'rtp' GROUP BY 1, 2"
    ):
        take.packets[direction, ssrc] = count
    secured = database.execute("SELECT detail FROM event WHERE type = 'secured'").fetchone()
    if secured:
        take.secured = json.loads(secured[0])
    take.peak = database.execute(
        "SELECT coalesce(max(peak), 0) FROM frame"
        " WHERE (direction, kind, outcome) = ('in', 'audio', 'decoded')"
    ).fetchone()[0]
    path = database.execute(
        "SELECT local_type, remote_type FROM selected_pair ORDER BY from_ns DESC LIMIT 1"
    ).fetchone()
    take.path = dict(zip(("retake", "peer"), path or ()))
    # Without received frames there are no inbound statistics.
    for direction in {direction for direction, _ in take.frames}:
        kind = "inbound-rtp" if direction == "in" else "outbound-rtp"
        if database.execute("SELECT count(*) FROM stat WHERE type = ?", (kind,)).fetchone() == (0,):
            take.problems.append(f"take: no {kind} statistics")


def _listen(database, call, take):
    """Checks that every message sent by Retake was echoed on its channel in order, text with the
    peer's prefix, and that the channels opened for one message are closed."""
    if not call.says:
        return
    words = call.abilities.repeats_after.encode()
    channels = {}
    for channel, direction, binary, content in database.execute(
        "SELECT channel, direction, binary, bytes FROM message ORDER BY step"
    ):
        content = content.encode() if isinstance(content, str) else bytes(content)
        messages = channels.setdefault(channel, {"in": [], "out": []})
        messages[direction].append((binary, content))
    lengths = []
    for channel, messages in channels.items():
        expected = [(binary, content if binary else words + content)
                    for binary, content in messages["out"]]
        lengths.append(len(expected))
        if messages["in"] != expected:
            came = [len(content) for _, content in messages["in"]]
            take.problems.append(
                f"take: of {len(expected)} messages on channel {channel} came back {came} bytes")
    if lengths != [2 * len(call.says)] + [1] * call.says_channels:
        take.problems.append(f"take: messages sent on each channel: {lengths}")
    closed = database.execute("SELECT count(*) FROM channel WHERE state = 'closed'").fetchone()[0]
    if closed < call.says_channels:
        take.problems.append(f"take: {closed} of {call.says_channels} channels were closed")
    take.repeated = sum(lengths)
    take.channels = len(lengths)


def _compare(take, report, loss):
    """Checks that both ends report the same handshake, and that every packet counted by the peer
    has a row."""
    roles = {take.secured.get("role"), report.dtls_role}
    if roles != {"client", "server"}:
        take.problems.append(f"take: the roles of the handshake are {sorted(map(str, roles))}")
    profiles = {_profile(name) for name in (take.secured.get("profile"), report.srtp_profile)}
    if len(profiles) != 1:
        take.problems.append(f"take: the SRTP profiles are {sorted(profiles)}")
    for stream in report.streams:
        mine = "in" if stream.direction == "out" else "out"
        rows = sum(take.packets[mine, ssrc] for ssrc in {stream.ssrc, stream.rtx_ssrc})
        if rows < stream.packets * (1 - loss):
            take.problems.append(
                f"take: {rows} rows of {stream.kind} {mine} with SSRC {stream.ssrc}, "
                f"the peer counted {stream.packets}"
            )


def _judge_path(take, call):
    """Checks that audio was received, and that media used a relay exactly where it had to."""
    if "audio" in call.sends and take.peak < _LOUD:
        take.problems.append("take: only silence was received")
    for who, kind in take.path.items():
        if (kind == "relay") != (who in call.relays):
            take.problems.append(f"take: media went to a candidate of type {kind} of {who}")


def _profile(name):
    """Returns an SRTP profile's name without the parts that some libraries omit."""
    return (name or "").removeprefix("SRTP_").replace("HMAC_", "").upper()
