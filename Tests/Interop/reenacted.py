"""Re-enacts recorded calls to Chromium, which must count what the recorded receiver counted."""

import asyncio
import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

_CAPTURES = Path(__file__).resolve().parents[2] / "Captures"
# A capture, the receiver that Chromium replaces, and how its lost packets are repaired.
CASES = [
    ("virtual-heavy-loss", 1, "as-recorded"), ("virtual-heavy-loss", 1, "honest"),
    ("observed-aiortc", 2, "as-recorded"), ("observed-clear-vp8", 1, "as-recorded"),
]
_SECONDS = 120
# The maximum median deviation from the recorded timing.
_MEDIAN_NS = 2_000_000
_LOST = "SELECT sum(lost) FROM loss WHERE peer = ? AND direction = 'in' AND ssrc IN (" \
    "SELECT ssrc FROM track WHERE kind = 'video' AND direction = 'in')"


async def run(program, folder, is_brief):
    """Re-enacts all captures, or only the first in a brief run; returns the problems and the
    counts."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    problems, words = [], []
    for name, peer, repair in CASES[:1] if is_brief else CASES:
        try:
            async with asyncio.timeout(_SECONDS):
                found, word = await _play(program, folder, name, peer, repair, is_brief)
        except Exception as error:  # any error means that the call failed
            found, word = [f"{type(error).__name__}: {error}"], "failed"
        problems += [f"{name}, {repair}: {problem}" for problem in found]
        words.append(f"{name} {repair}: {word}")
    for way in [] if is_brief else [_change, _mend]:
        try:
            async with asyncio.timeout(_SECONDS):
                found, word = await way(program, folder)
        except Exception as error:
            found, word = [f"{type(error).__name__}: {error}"], "failed"
        problems += found
        words.append(word)
    return problems, "; ".join(words)


async def _change(program, folder):
    """Re-enacts a call whose sender renegotiated repeatedly; Chromium must get each description."""
    source, out = _CAPTURES / "chromium-negotiates.take", folder / "changes.take"
    report = json.loads(await _output(
        program, "reenact", source, "--peer", 1, "--listen", "127.0.0.1:0", "--against", "chromium",
        "--expect", "video.framesDecoded >= 10", "--out", out, "--json"))
    problems = [each["sentence"] for each in report["expectations"] if not each["holds"]]
    if not report["complete"] or report["omissions"] or report["descriptions"] < 5 \
            or not report["messages"]:
        problems.append(f"the changes came to {report}")
    with closing(sqlite3.connect(f"file:{report['pages'][0]}?mode=ro", uri=True)) as database:
        calls = dict(database.execute("SELECT name, count(*) FROM call_request GROUP BY 1"))
    # The first call applies the answer.
    if calls.get("setRemoteDescription") != report["descriptions"] + 1:
        problems.append(f"{report['descriptions']} later descriptions made calls of {calls}")
    await _output(program, "replay", out)
    return problems, f"{report['descriptions']} later descriptions"


async def _mend(program, folder):
    """Re-enacts a call for a client with a deeper jitter buffer, which must freeze less."""
    frozen = []
    for target in (None, "1s"):
        out = folder / f"mended-{target}.take"
        report = json.loads(await _output(
            program, "reenact", _CAPTURES / "virtual-heavy-loss.take", "--peer", 1, "--listen",
            "127.0.0.1:0", "--against", "chromium", "--out", out, "--json",
            *(["--jitter-buffer-target", target] if target else [])))
        frozen.append(video_of(report["pages"][0])["totalFreezesDuration"])
    problems = [] if frozen[1] < frozen[0] else [f"a deeper buffer froze for {frozen} s"]
    return problems, f"frozen {frozen[0]:.2f} s, with a deeper buffer {frozen[1]:.2f} s"


def video_of(take):
    """Returns a page's last statistics of the video that it received."""
    with closing(sqlite3.connect(f"file:{take}?mode=ro", uri=True)) as database:
        rows = database.execute(
            "SELECT members FROM stat WHERE type = 'inbound-rtp' ORDER BY row").fetchall()
    return [each for (text,) in rows if (each := json.loads(text)).get("kind") == "video"][-1]


async def _play(program, folder, name, peer, repair, is_brief):
    source, out = _CAPTURES / f"{name}.take", folder / f"{name}-{repair}.take"
    lost = "video.packetsLost <= 0" if repair == "honest" else "video.packetsLost >= 0"
    report = json.loads(await _output(
        program, "reenact", source, "--peer", peer, "--repair", repair, "--listen", "127.0.0.1:0",
        "--against", "chromium", "--expect", "video.framesDecoded >= 10", "--expect", lost,
        "--out", out, "--json"))
    problems = [f"{each['sentence']}" for each in report["expectations"] if not each["holds"]]
    if not report["complete"] or not report["pages"]:
        problems.append("it was not played to its end, or the page reported nothing")
    # A brief run shares the machine, which delays packets.
    if report["median_ns"] > _MEDIAN_NS and not is_brief:
        problems.append(f"packets left {report['median_ns']} ns from their distances")
    counted = [each["sentence"].rpartition(": ")[2] for each in report["expectations"]]
    if repair == "as-recorded":
        theirs = video_of(report["pages"][0])["packetsLost"]
        wanted = json.loads(await _output(
            program, "sql", source, _LOST.replace("?", str(peer)), "--json"))
        was = list(wanted[0].values())[0]
        if theirs != was:
            problems.append(f"{theirs} video packets are lost, and {was} were")
    await _output(program, "replay", out)
    return problems, ", ".join(counted)


async def _output(program, *words):
    child = await asyncio.create_subprocess_exec(
        program, *map(str, words), stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE)
    output, errors = await child.communicate()
    if child.returncode not in (0, 1):
        raise RuntimeError(f"{words[0]}: status {child.returncode}: {errors.decode()}")
    return output.decode()
