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
    return problems, "; ".join(words)


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
        with closing(sqlite3.connect(f"file:{report['pages'][0]}?mode=ro", uri=True)) as database:
            rows = database.execute(
                "SELECT members FROM stat WHERE type = 'inbound-rtp' ORDER BY row").fetchall()
        ours = [json.loads(text) for (text,) in rows]
        theirs = [each["packetsLost"] for each in ours if each.get("kind") == "video"]
        wanted = json.loads(await _output(
            program, "sql", source, _LOST.replace("?", str(peer)), "--json"))
        was = list(wanted[0].values())[0]
        if not theirs or theirs[-1] != was:
            problems.append(f"{theirs[-1:]} video packets are lost, and {was} were")
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
