"""Compares Chromium's own records of a call with Retake's take of the call.

Its RTC event log, RTP dump and webrtc-internals dump are imported and compared: packet by packet,
state by state, and line by line of the descriptions.
"""

import asyncio
import re
import sqlite3

from peers.browser import CALL_SCRIPT, Browser
from peers.devtools import Page
from recorded_page import Browser as Chromium
from retake import Recorder

_DOWNLOAD_SECONDS = 60
# Packets in transit when the call or a log ended are in only one of two files.
_END_NS = 400_000_000
# The lengths that SRTP's profiles add to a packet, as authentication tags.
_TAGS = {10, 16}

_SAVE = """(() => {
  const box = document.getElementById('dump-checkbox');
  if (box?.checked) box.click();
  document.getElementById('dump-click-target').click();
})()"""


async def run(program, folder, seconds):
    """Makes the call and compares; returns the problems and a summary."""
    folder.mkdir(parents=True)
    logs = folder / "logs"
    logs.mkdir()
    problems = []
    try:
        take = await _record(program, folder, logs, seconds)
        files = await _import(program, folder, logs, problems)
    except Exception as error:  # a browser may fail in any way: the comparison failed
        return [f"{type(error).__name__}: {error}"], ""
    words = []
    for name in ("rtpdump", "eventlog"):
        if name in files:
            words.append(_compare(name, take, files[name], problems))
    if {"rtpdump", "eventlog"} <= files.keys():
        _compare_sizes(files, problems)
    if "internals" in files:
        words.append(_compare_reports(take, files["internals"], problems))
    return problems, "; ".join(words)


async def _record(program, folder, logs, seconds):
    recorder = await Recorder.start(program, folder, "127.0.0.1", "pattern")
    browser = None
    try:
        browser = await Chromium.start("chromium", folder, more=[
            f"--webrtc-event-logging={logs}",
            "--force-fieldtrials=WebRTC-Debugging-RtpDump/Enabled/",
            "--enable-logging=stderr", "--v=0", "--vmodule=*/webrtc/*=4",
            "--disable-features=WebRtcHideLocalIpsWithMdns",
        ])
        internals = await Page.open(browser.address)
        await internals.command(
            "Browser.setDownloadBehavior", behavior="allow", downloadPath=str(logs))
        await internals.load("chrome://webrtc-internals")
        await browser.page.command("Page.addScriptToEvaluateOnNewDocument", source=CALL_SCRIPT)
        page = Browser(browser.page)
        await page.prepare({"receivesOnly": False, "configuration": {}, "codec": "vp8"})
        await page.accept(await recorder.offer(await page.offer()))
        await asyncio.sleep(seconds)
        await internals.evaluate(_SAVE)
        async with asyncio.timeout(_DOWNLOAD_SECONDS):
            while not (logs / "webrtc_internals_dump.txt").exists():
                await asyncio.sleep(0.1)
        await browser.page.evaluate("void call.connections.forEach(each => each.close())")
        await asyncio.sleep(1)
        await internals.close()
        await recorder.finish()
    except BaseException:
        await recorder.abandon()
        raise
    finally:
        if browser:
            await browser.end()
    lines = [
        line for line in (folder / "chromium.log").read_text(errors="replace").splitlines()
        if line.endswith("# RTP_DUMP")
    ]
    (logs / "rtp.txt").write_text("\n".join(lines) + "\n")
    return recorder.take


async def _import(program, folder, logs, problems):
    sources = {
        "rtpdump": logs / "rtp.txt", "internals": logs / "webrtc_internals_dump.txt",
        "eventlog": next(iter(sorted(logs.glob("event_log_*"))), None),
    }
    takes = {}
    for name, source in sources.items():
        if source is None:
            problems.append(f"Chromium wrote no {name}")
            continue
        take = folder / f"{name}.take"
        process = await asyncio.create_subprocess_exec(
            program, "import", source, "--out", take,
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT)
        words, _ = await process.communicate()
        if process.returncode == 0:
            takes[name] = take
        else:
            problems.append(f"{name} is not imported: {words.decode()[-300:]}")
    return takes


def _packets(take, direction, label=None):
    """Returns one direction's packets: their header fields, sizes and times."""
    where = "" if label is None else " AND peer.label = ?"
    with sqlite3.connect(take) as base:
        rows = base.execute(
            "SELECT ssrc, sequence, rtp_time, marker, payload_type, size, packet.at_ns"
            " FROM packet JOIN peer USING (peer) WHERE protocol = 'rtp' AND direction = ?" + where,
            (direction, *([] if label is None else [label]))).fetchall()
    return {row[:5]: row[5:] for row in rows}


def _compare(name, take, file, problems):
    """Compares the packets in Retake's take with those in Chromium's file."""
    counts = []
    for ours, theirs in (("in", "out"), ("out", "in")):
        recorded = _packets(take, ours)
        reported = _packets(file, theirs, "this side")
        both = recorded.keys() & reported.keys()
        counts.append(f"{len(both)} {theirs}")
        if len(both) < 100:
            problems.append(f"{name}: only {len(both)} packets {theirs} are in both")
            continue
        for packets, others, whose in (
            (recorded, reported, "Retake's take"), (reported, recorded, f"Chromium's {name}"),
        ):
            # If the browser did not finish writing a log, the log ends earlier.
            end = max(packets[key][1] for key in both) - _END_NS
            begin = min(packets[key][1] for key in both)
            alone = [
                key for key, (_, at) in packets.items()
                if key not in others and begin <= at <= end
            ]
            if alone:
                problems.append(
                    f"{name}: {len(alone)} packets {theirs} are in {whose} alone: {alone[:3]}")
        tags = {recorded[key][0] - reported[key][0] for key in both}
        if len(tags) != 1 or not tags <= _TAGS:
            problems.append(f"{name}: packets {theirs} are {sorted(tags)} bytes longer on the wire")
    return f"{name}: {' and '.join(counts)} alike"


def _compare_sizes(files, problems):
    for direction in ("in", "out"):
        dump = _packets(files["rtpdump"], direction, "this side")
        log = _packets(files["eventlog"], direction, "this side")
        different = [
            (key, dump[key][0], log[key][0])
            for key in dump.keys() & log.keys() if dump[key][0] != log[key][0]
        ]
        if different:
            problems.append(f"sizes {direction} of both logs differ: {different[:3]}")


def _compare_reports(take, file, problems):
    """Compares the descriptions and states in a webrtc-internals dump."""
    def messages(path, type_, direction):
        with sqlite3.connect(path) as base:
            return [
                text for (text,) in base.execute(
                    "SELECT message FROM signaling WHERE type = ? AND direction = ? ORDER BY row",
                    (type_, direction))
            ]

    def states(path):
        with sqlite3.connect(path) as base:
            found = [
                state for (state,) in base.execute(
                    "SELECT to_state FROM state WHERE machine = 'connection' ORDER BY row")
            ]
        return found[: found.index("connected") + 1] if "connected" in found else found

    offers = messages(take, "offer", "in"), messages(file, "offer", "out")
    answers = messages(take, "answer", "out"), messages(file, "answer", "in")
    lines = 0
    for what, (recorded, reported) in (("offer", offers), ("answer", answers)):
        if len(recorded) != 1 or len(reported) != 1:
            problems.append(f"there are {len(recorded)} and {len(reported)} {what}s")
            continue
        ours, theirs = _fixed(recorded[0]), _fixed(reported[0])
        lines += len(theirs)
        for one, other in zip(ours, theirs, strict=False):
            if one != other:
                problems.append(f"the {what} has {one}, and Chromium's {other}")
                break
        if len(ours) != len(theirs):
            problems.append(f"the {what} has {len(ours)} lines, and Chromium's {len(theirs)}")
    if states(take) != states(file):
        problems.append(f"the states are {states(take)}, and Chromium's {states(file)}")
    return f"internals: {lines} lines of descriptions and {len(states(file))} states alike"


def _fixed(sdp):
    """Returns the lines of a description that do not change while candidates are gathered."""
    # Chromium formats the msid-semantic line differently.
    gathered = re.compile(r"a=(candidate|end-of-candidates|rtcp:|msid-semantic:)|c=")
    return [
        re.sub(r"^(m=\w+) \d+", r"\1", line)
        for line in sdp.splitlines() if line and not gathered.match(line)
    ]
