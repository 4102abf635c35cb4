"""Calls with browsers, measured at both ends; with Chromium, two voices take turns."""

import asyncio
import json
import math
import sqlite3
from contextlib import closing

import namespace
import statistics_complete
import statistics_members as members
import statistics_tshark
import statistics_voices as voices
from peers.chromium import Chromium
from peers.firefox import Firefox
from plan import Call
from processes import Child, ProcessError, end_orphans
from retake import Recorder, replay

# The interval of browser reports. The second to last report is compared, so that the call still
# runs before and after it.
_SAMPLE_SECONDS = 1.0
# Packets sent this shortly before a report may be in transit, or not yet counted.
_UNDER_WAY_NS = 80_000_000
_LOOK_SECONDS = 300
# The maximum distance between two samples that are compared; samples are made once a second.
_NEAR_MS = 1100


async def run(program, folder, seconds, peer):
    """Makes the call with a browser; returns the problems and the tables."""
    folder.mkdir(parents=True, exist_ok=True)
    try:
        length = max(seconds, 4 * voices.TURN_SECONDS)
        reports, take = await _record(program, folder, length, peer)
        problems, tables = await _look(program, take, folder, reports, peer == "chromium")
    except Exception as error:  # a browser may raise anything: the comparison failed
        return [f"{type(error).__name__}: {error}"], []
    found, _ = await replay(program, take, folder)
    return problems + found, tables


async def _record(program, folder, seconds, peer):
    if peer == "chromium":
        microphone, sent = voices.make(folder)
        bind, send = "127.0.0.1", str(sent)
    else:
        # Firefox gathers no loopback addresses, and its microphone is a tone.
        bind, send = namespace.address(), "pattern"
    recorder = await Recorder.start(program, folder, bind, send)
    try:
        if peer == "chromium":
            flags = [f"--use-file-for-fake-audio-capture={microphone}"]
            browser = await Chromium.open(folder, Call("chromium", "peer"), flags=flags)
        else:
            browser = await Firefox.open(folder, Call("firefox", "peer"))
        try:
            answer = await recorder.offer(await browser.offer())
            await browser.accept(answer)
            reports = []
            for _ in range(math.ceil(seconds / _SAMPLE_SECONDS)):
                await asyncio.sleep(_SAMPLE_SECONDS)
                reports.append((await browser.page.evaluate("call.report()"))["stats"])
            await recorder.finish()
        finally:
            await browser.close()
    except BaseException:
        await recorder.abandon()
        raise
    finally:
        end_orphans()
    return reports, recorder.take


async def _look(program, take, folder, reports, speaks):
    last = reports[-2]
    stamp = next(each["timestamp"] for each in last if each["type"] == "transport")
    with closing(sqlite3.connect(f"file:{take}?mode=ro", uri=True)) as database:
        start = database.execute("SELECT start_unix_ns FROM take").fetchone()[0]
        at = int(stamp * 1e6) - start
        under_way = {
            ssrc: count + 1 for ssrc, count in database.execute(
                "SELECT ssrc, count(*) FROM packet WHERE protocol = 'rtp'"
                " AND at_ns BETWEEN ? AND ? GROUP BY ssrc",
                (at - _UNDER_WAY_NS, at + _UNDER_WAY_NS),
            )
        }
        ours = await _json(program, folder, "stats", take, "--at", f"{at / 1e9:.6f}", "--json")
        mirrored = next(iter(ours.values()))
        # Both reports are kept complete, for diagnosis.
        (folder / "reports.json").write_text(json.dumps({"peer": last, "retake": mirrored}))
        comparison = members.Comparison(
            members.by_id(last), members.by_id(mirrored), lambda ssrc: under_way.get(ssrc, 2),
            lambda member, ssrc, at: _nearby(database, reports, member, ssrc, at),
        )
        lines = comparison.run()
        lines.append(_path(database, reports, start, at))
        if speaks:
            lines += _levels(database, reports, start)
        members.excuse(lines, is_firefox=not speaks)
        whole, different = "", []
        if speaks:
            whole, different = statistics_complete.check(
                members.by_id(last), members.by_id(mirrored),
                lambda ssrc: under_way.get(ssrc, 2),
                lambda ssrc, ms: _sent_until(database, ssrc, int(ms * 1e6) - start),
            )
    table, problems = members.show(lines)
    problems += different
    shark, found = statistics_tshark.check(program, take, folder)
    problems += found
    if not speaks:
        return problems, [table, shark]
    problems += _turns(await _json(program, folder, "speakers", take, "--json"))
    return problems, [table, whole, await _text(program, folder, "speakers", take), shark]


def _nearby(database, reports, member, ssrc, at):
    """Returns the values that a stream's receiver, at either end, reported for a member around a
    time in ms."""
    theirs = [
        each[member] for report in reports for each in report
        if each["type"] == "inbound-rtp" and each.get("ssrc") == ssrc and member in each
        and abs(each["timestamp"] - at) <= _NEAR_MS
    ]
    ours = database.execute(
        "SELECT members ->> ? FROM stat WHERE type = 'inbound-rtp'"
        " AND members ->> '$.ssrc' = ? AND abs(timestamp_ms - ?) <= ?",
        (f"$.{member}", ssrc, at, _NEAR_MS),
    )
    return theirs + [value for value, in ours if value is not None]


def _sent_until(database, ssrc, at):
    """Returns how many packets of a stream were sent before a time, and their payload bytes: sizes
    without header, extensions and the SRTP tag."""
    packets, size = database.execute(
        "SELECT count(*), sum(size) FROM packet WHERE direction = 'out' AND protocol = 'rtp'"
        " AND ssrc = ? AND at_ns <= ?", (ssrc, at),
    ).fetchone()
    row = database.execute(
        "SELECT members ->> '$.bytesSent', members ->> '$.packetsSent' FROM stat"
        " WHERE type = 'outbound-rtp' AND members ->> '$.ssrc' = ? ORDER BY row DESC", (ssrc,),
    ).fetchone()
    total, count = database.execute(
        "SELECT sum(size), count(*) FROM packet WHERE direction = 'out' AND protocol = 'rtp'"
        " AND ssrc = ?", (ssrc,),
    ).fetchone()
    if not packets or not row or not row[1]:
        return packets, None
    # The overhead of a stream's packets differs by a few bytes only.
    overhead = total / count - row[0] / row[1]
    return packets, round(size - packets * overhead)


def _path(database, reports, start, at):
    """Compares the path's round-trip time: the minimum that each end measured so far.

    Each check's time includes the time that the other process takes to wake, and the ends make
    different checks.
    """
    until = [report for report in reports if int(report[0]["timestamp"] * 1e6) - start <= at + 1e6]
    theirs = [
        each["currentRoundTripTime"] for report in until for each in report
        if each["type"] == "candidate-pair" and each.get("currentRoundTripTime") is not None
    ]
    ours = database.execute(
        "SELECT min(members ->> '$.currentRoundTripTime') FROM stat"
        " WHERE type = 'candidate-pair' AND at_ns <= ?", (at,),
    ).fetchone()[0]
    return members.round_trip(
        "candidate-pair currentRoundTripTime, the least", min(theirs, default=None), ours)


def _levels(database, reports, start):
    """Compares the loudness of the same audio at both ends: the energy between the first and the
    last report.

    libwebrtc computes the level from peaks; it is compared with Retake's column that does the same.
    """
    lines = []
    for direction, kind in (("in", "media-source"), ("out", "inbound-rtp")):
        first, last = (_audio(report, kind) for report in (reports[1], reports[-1]))
        if first is None or last is None:
            lines.append(members.Line(f"audio {direction} level", None, None))
            continue
        energy = last["totalAudioEnergy"] - first["totalAudioEnergy"]
        duration = last["totalSamplesDuration"] - first["totalSamplesDuration"]
        span = [int(each["timestamp"] * 1e6) - start for each in (first, last)]
        levels = [row[0] for row in database.execute(
            "SELECT libwebrtc_level FROM audio_level WHERE direction = ? AND at_ns BETWEEN ? AND ?",
            (direction, *span),
        )]
        own = sum(level * level for level in levels) / max(len(levels), 1)
        lines.append(
            members.level(
                f"audio {direction} level, dB, from {kind}", _decibels(energy / duration),
                _decibels(own), _concealed(database, reports[-1], direction),
            )
        )
    return lines


def _concealed(database, report, direction):
    """Returns the share of received audio that was concealed, by Retake (in) or by the browser
    (out)."""
    if direction == "in":
        return database.execute(
            "SELECT avg(outcome = 'concealed') FROM frame"
            " WHERE kind = 'audio' AND direction = 'in'",
        ).fetchone()[0] or 0
    received = _audio(report, "inbound-rtp")
    return received["concealedSamples"] / max(received["totalSamplesReceived"], 1)


def _audio(report, kind):
    return next(
        (each for each in report if each["type"] == kind and each["kind"] == "audio"), None
    )


def _decibels(power):
    return 10 * math.log10(power) if power > 0 else -127.0


def _turns(speaking):
    """Checks that both voices are found, dominant by turns for about half of the time each."""
    participants = {each["participant"]: each for each in speaking["participants"]}
    spans = [each for each in speaking["times"] if each["what"] == "dominates"]
    problems = []
    for name, each in participants.items():
        turns = sum(span["participant"] == name for span in spans)
        if turns < 2:
            problems.append(f"speakers: {name} dominated {turns} times")
        if each["dominant_ns"] < each["speaking_ns"] / 2:
            problems.append(
                f"speakers: {name} spoke {each['speaking_ns'] / 1e9:.1f} s and dominated "
                f"{each['dominant_ns'] / 1e9:.1f} s"
            )
    order = [span["participant"] for span in spans]
    if any(one == other for one, other in zip(order, order[1:])):
        # A pause within a turn may end and restart a speaker's dominance, but most changes must be
        # from one voice to the other.
        changes = sum(one != other for one, other in zip(order, order[1:]))
        if changes * 2 < len(order):
            problems.append(f"speakers: the turns are {order}")
    if len(participants) != 2:
        problems.append(f"speakers: the participants are {sorted(participants)}")
    return problems


async def _text(program, folder, *arguments):
    child = await Child.start([program, *arguments], folder / f"{arguments[0]}.log")
    status = await child.finish(_LOOK_SECONDS)
    if status != 0:
        raise ProcessError(f"{arguments[0]}: status {status}: {' '.join(child.errors[-1:])}")
    return "\n".join(child.output)


async def _json(program, folder, *arguments):
    return json.loads(await _text(program, folder, *arguments))
