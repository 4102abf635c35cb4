#!/usr/bin/env python3
"""Measures how fast pages of takes are in a browser: opening, zooming, serving, and following a
recording."""

import argparse
import asyncio
import shutil
import signal
import statistics
import sys
import tempfile
import time
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[2]
_ZOOMS = 40
_RECORDING_SECONDS = 14
_WATCHED_SECONDS = 5
_VALUES_SECONDS = 120
# Sums the bytes of all packets that lanes draw.
_CARRIED = (
    "retake.board.lanes.filter(lane => lane.carried)"
    ".map(lane => lane.carried(0, retake.take.seconds + 1))"
)


def _arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--retake", type=Path, default=_ROOT / ".build/release/retake", metavar="PATH",
        help="the program under test (default: the release build)",
    )
    parser.add_argument(
        "--take", type=Path, metavar="FILE",
        help="the take of a long call, made if it does not exist (default: a temporary one)",
    )
    parser.add_argument(
        "--seconds", type=int, default=600, help="how long the call is (default: 600)",
    )
    return parser.parse_args()


async def _run(program, *arguments):
    process = await asyncio.create_subprocess_exec(
        program, *map(str, arguments), stdout=asyncio.subprocess.DEVNULL
    )
    if await process.wait() != 0:
        raise RuntimeError(f"{program} {' '.join(map(str, arguments))} failed")


async def _zoom(viewer):
    """Returns the script time of zooming in and out at several places, in milliseconds per step."""
    spent = []
    for number in range(_ZOOMS):
        x = 300 + 47 * number % 700
        await viewer.wheel(x, 500, -220 if number % (_ZOOMS // 2) < _ZOOMS // 4 else 220)
        await viewer.page.evaluate(
            "new Promise(done => requestAnimationFrame(() => setTimeout(done, 20)))"
        )
        spent.append(await viewer.page.evaluate("retake.drawingTime"))
    return spent


async def _measure(options, folder, rows):
    # Imported here, because these modules need the virtual environment's packages.
    from peers.viewer import ChromiumViewer
    from processes import Child

    take = options.take or folder / "long.take"
    bench = options.retake.with_name("retake-bench")
    await _run(bench, "page", "--seconds", options.seconds, "--take", take)
    page = folder / "long.html"
    await _run(options.retake, "page", take, "--no-media", "--out", page, "--force")
    viewer = await ChromiumViewer.start(folder)
    try:
        for what, address in (("a file", page.as_uri()), ("served", None)):
            server = None
            if address is None:
                server = await Child.start(
                    [options.retake, "open", take, "--json"], folder / "open.log"
                )
                address = (await server.line(r'^\{"url":"([^"]+)"\}', 30)).group(1)
            await viewer.open(address)
            opened = await viewer.page.evaluate("retake.readyAt / 1000")
            goal = 1 if server is None else 2
            rows.append((f"opening the page of the call, {what}", opened, "s", goal))
            await viewer.page.evaluate(
                "void document.getElementById('axis').scrollIntoView({block: 'center'})"
            )
            spent = await _zoom(viewer)
            rows.append((f"script of a zoom, {what}, median", statistics.median(spent), "ms", 16))
            rows.append((f"script of a zoom, {what}, longest", max(spent), "ms", 16))
            if server:
                await _complete(viewer, rows)
                await server.finish(20, signal.SIGINT)
        await _follow(options, folder, viewer, rows)
    finally:
        await viewer.close()


async def _complete(viewer, rows):
    """Checks that all values replace the overview in the end, with the same number of bytes."""
    overview = await viewer.page.evaluate(_CARRIED)
    begin = time.monotonic()
    while await viewer.page.evaluate("retake.hasLateValues()"):
        if time.monotonic() - begin > _VALUES_SECONDS:
            raise RuntimeError("values of the page never arrive")
        await asyncio.sleep(0.1)
    carried = await viewer.page.evaluate(_CARRIED)
    if carried != overview:
        raise RuntimeError(f"an overview of {overview} bytes and values of {carried}")
    spent = await _zoom(viewer)
    rows.append(("script of a zoom with all values, longest", max(spent), "ms", 16))


async def _follow(options, folder, viewer, rows):
    """Measures how far a recording's page lags, and what it costs the recorder."""
    from processes import Child

    take = folder / "live.take"
    recorder = await Child.start(
        [options.retake, "record", "demo", "--seconds", str(_RECORDING_SECONDS), "--out", take],
        folder / "record.log",
    )
    await asyncio.sleep(2)
    before = recorder.processor_seconds
    await asyncio.sleep(_WATCHED_SECONDS)
    alone = recorder.processor_seconds - before
    server = await Child.start([options.retake, "open", take, "--json"], folder / "live.log")
    address = (await server.line(r'^\{"url":"([^"]+)"\}', 30)).group(1)
    await viewer.open(address)
    before = recorder.processor_seconds
    behind = []
    for _ in range(_WATCHED_SECONDS * 10):
        behind.append(await viewer.page.evaluate(
            "Date.now() / 1000 - Date.parse(retake.take.start) / 1000 - retake.take.seconds"
        ))
        await asyncio.sleep(0.1)
    watched = recorder.processor_seconds - before
    late = 1000 * statistics.median(behind)
    rows.append(("a page behind its recording, median", late, "ms", 500))
    share = 100 * (watched - alone) / _WATCHED_SECONDS
    rows.append(("cost for the recorder, of a core", max(share, 0), "%", 2))
    await recorder.finish(60)
    await server.finish(20, signal.SIGINT)


def main():
    """Prints the measurements beside their limits."""
    options = _arguments()
    folder = Path(tempfile.mkdtemp(prefix="retake-drawing-"))
    rows = []
    try:
        asyncio.run(_measure(options, folder, rows))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        for what, value, unit, goal in rows:
            met = "met" if value <= goal else "not met"
            print(f"{what:44}  {value:8.1f} {unit:3}  <= {goal} {unit:3}  {met}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
