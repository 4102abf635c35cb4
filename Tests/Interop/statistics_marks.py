"""A call with Chromium over a path that sets ECN marks like a congested router (RFC 3168).

The marks that Retake read from IP headers, recorded and counted, are compared with those set by the
path.
"""

import asyncio
import socket
import sqlite3
from contextlib import closing

import namespace
from impairment import LossyPath
from peers.chromium import Chromium
from plan import Call
from processes import end_orphans
from retake import Recorder, replay

# Not ECN-capable, ECT(1), ECT(0) and CE, in turn.
_MARKS = [0, 1, 2, 3]
# Packets received in the last moment may be missing from the last sample.
_UNDER_WAY = 40


class MarkingPath(LossyPath):
    """Loses nothing, and sends each packet with the next mark."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        # For each end, how many RTP packets with each mark were sent to it.
        self.marked = [[0] * 4 for _ in range(2)]
        self._turn = 0

    def _leave(self, end, data):
        self._turn += 1
        mark = _MARKS[self._turn % len(_MARKS)]
        face = self.transports[end].get_extra_info("socket")
        if face is not None and not self.transports[end].is_closing():
            face.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, mark)
            if 128 <= data[0] < 192 and not 64 <= data[1] & 127 < 96:
                self.marked[end][mark] += 1
        super()._leave(end, data)


async def run(program, folder, seconds):
    """Makes the call; returns the problems and a summary of the counts."""
    folder.mkdir(parents=True, exist_ok=True)
    try:
        path, take, report = await _record(program, folder, max(seconds, 5))
        problems, words = _compare(take, path.marked, report)
    except Exception as error:  # a browser may raise anything: the comparison failed
        return [f"{type(error).__name__}: {error}"], ""
    found, _ = await replay(program, take, folder)
    return problems + found, words


async def _record(program, folder, seconds):
    host = namespace.address()
    path = await MarkingPath.open(host, 0, delay=0.005)
    recorder = await Recorder.start(program, folder, host, "pattern")
    try:
        call = Call("chromium", "peer", avoids_loopback=True)
        browser = await Chromium.open(folder, call)
        try:
            answer = await recorder.offer(path.signaled(await browser.offer(), 0))
            await browser.accept(path.signaled(answer, 1))
            await asyncio.sleep(seconds)
            report = (await browser.page.evaluate("call.report()"))["stats"]
            await recorder.finish()
        finally:
            await browser.close()
    except BaseException:
        await recorder.abandon()
        raise
    finally:
        path.close()
        end_orphans()
    return path, recorder.take, report


def _compare(take, marked, report):
    with closing(sqlite3.connect(f"file:{take}?mode=ro", uri=True)) as database:
        rows = dict(database.execute(
            "SELECT ecn, count(*) FROM packet WHERE direction = 'in' AND protocol = 'rtp'"
            " GROUP BY ecn"))
        counted = dict(zip(("ect1", "ce"), database.execute(
            "SELECT sum(members ->> '$.packetsReceivedWithEct1'),"
            " sum(members ->> '$.packetsReceivedWithCe') FROM stat WHERE row IN"
            " (SELECT max(row) FROM stat WHERE type = 'inbound-rtp' GROUP BY id)").fetchone()))
    to_retake = marked[1]
    problems = [
        f"marks: {rows.get(mark, 0)} packets with {mark} in the take, {to_retake[mark]} were sent"
        for mark in _MARKS if abs(rows.get(mark, 0) - to_retake[mark]) > _UNDER_WAY
    ]
    if sum(to_retake) < 200 or rows.get(None):
        problems.append(f"marks: {to_retake} were sent, and {rows.get(None, 0)} are not known")
    for name, mark in (("ect1", 1), ("ce", 3)):
        if abs((counted[name] or 0) - rows.get(mark, 0)) > _UNDER_WAY:
            problems.append(f"marks: {counted[name]} with {name} counted of {rows.get(mark, 0)}")
    theirs = [
        sum(each.get(f"packetsReceivedWith{name}", 0) for each in report
            if each["type"] == "inbound-rtp") for name in ("Ect1", "Ce")
    ]
    # Not every build of Chromium reads marks; those that do must count the same.
    for name, told, sent in zip(("ECT(1)", "CE"), theirs, (marked[0][1], marked[0][3])):
        if told and abs(told - sent) > _UNDER_WAY:
            problems.append(f"marks: Chromium counted {told} with {name} of {sent}")
    words = (
        f"Retake counted {counted['ect1']} with ECT(1) and {counted['ce']} with CE of "
        f"{to_retake[1]} and {to_retake[3]}, Chromium {theirs[0]} and {theirs[1]} of "
        f"{marked[0][1]} and {marked[0][3]}")
    return problems, words
