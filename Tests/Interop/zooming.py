#!/usr/bin/env python3
"""Measures each step of zooming through the page of a long call.

It starts when the page opens and continues after all values are loaded and prepared: no step may
take longer than a display frame.
"""

import argparse
import asyncio
import shutil
import signal
import statistics
import sys
import tempfile
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[2]
_MOST_MILLISECONDS = 16
_TOLD_MILLISECONDS = 10
_END_SECONDS = 180
# Runs before the page's modules: records the work done in idle callbacks, and its duration.
_BEFORE = """
window.pieces = [];
const idle = window.requestIdleCallback.bind(window);
window.requestIdleCallback = (work, options) => idle((deadline) => {
  const begin = performance.now();
  work(deadline);
  window.pieces.push([begin, performance.now() - begin]);
}, options);
"""
# Turns the wheel in each display frame, zooming in and out at different places.
_ZOOM = """
(() => {
  const steps = [];
  const spent = new Map();
  const listen = (lane) => {
    for (const name of ["draw", "at"]) {
      const work = lane[name];
      if (work.isTimed) continue;
      lane[name] = function timed(...all) {
        const begin = performance.now();
        try { return work.apply(lane, all); } finally {
          spent.set(lane, (spent.get(lane) ?? 0) + performance.now() - begin);
        }
      };
      lane[name].isTimed = true;
    }
  };
  const axis = document.getElementById("axis");
  const depths = [10, 25, 4, 16, 32];
  let [number, cycle, depth, isOut, preparedAt] = [0, 0, depths[0], false, null];
  const groups = [...document.querySelectorAll(".group")];
  const place = () => {
    const at = cycle % (groups.length + 1);
    (at ? groups[at - 1] : axis).scrollIntoView({ block: at ? "start" : "center" });
  };
  place();
  const turn = () => {
    if (number) {
      const [[slowest, time] = []] = [...spent].sort((a, b) => b[1] - a[1]);
      steps.push([performance.now(), retake.drawingTime, retake.hasLateValues() ? "overview"
        : retake.isPrepared ? "prepared" : "values",
        slowest ? `${slowest.group.name}: ${slowest.label}` : "", time ?? 0]);
    }
    const isDone = retake.isPrepared && !retake.hasLateValues();
    if (isDone) preparedAt ??= performance.now();
    if ((preparedAt && performance.now() > preparedAt + AFTER)
      || performance.now() > 1000 * MOST) {
      window.zoomed = { steps, pieces: window.pieces, readyAt: retake.readyAt, preparedAt };
      return;
    }
    for (const lane of retake.board.lanes) listen(lane);
    spent.clear();
    const box = axis.getBoundingClientRect();
    axis.dispatchEvent(new WheelEvent("wheel", {
      deltaY: isOut ? 220 : -220, clientX: box.left + 30 + (47 * number) % (box.width - 60),
      clientY: box.top + 5, cancelable: true, bubbles: true,
    }));
    number += 1;
    depth -= 1;
    if (!depth) {
      if (isOut) cycle += 1;
      if (isOut) place();
      isOut = !isOut;
      depth = depths[cycle % depths.length];
    }
    requestAnimationFrame(turn);
  };
  requestAnimationFrame(turn);
})()
"""


def _arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--retake", type=Path, default=_ROOT / ".build/release/retake", metavar="PATH",
        help="the program under test (default: the release build)",
    )
    parser.add_argument("--take", type=Path, metavar="FILE", required=True,
                        help="the take of a long call, as `retake-bench page --take` makes it")
    parser.add_argument("--rounds", type=int, default=5, help="how often (default: 5)")
    parser.add_argument("--after", type=float, default=5, metavar="SECONDS",
                        help="how long after all is prepared (default: 5)")
    return parser.parse_args()


async def _round(options, folder, viewer):
    """Measures one page from its opening; returns whether no step took too long."""
    from processes import Child

    server = await Child.start(
        [options.retake, "open", options.take, "--json"], folder / "open.log"
    )
    address = (await server.line(r'^\{"url":"([^"]+)"\}', 60)).group(1)
    await viewer.open(address)
    program = _ZOOM.replace("AFTER", str(1000 * options.after)).replace("MOST", str(_END_SECONDS))
    await viewer.page.evaluate(program)
    while not await viewer.page.evaluate("Boolean(window.zoomed)"):
        await asyncio.sleep(0.5)
    found = await viewer.page.evaluate("window.zoomed")
    await server.finish(20, signal.SIGINT)
    ready = found["readyAt"]
    end = (found["preparedAt"] or 0) / 1000
    print(f"ready at {ready / 1000:.2f} s, all prepared at {end:.2f} s")
    for state in ("overview", "values", "prepared"):
        spent = [step[1] for step in found["steps"] if step[2] == state]
        if spent:
            print(f"  {state:9} {len(spent):5} steps, median {statistics.median(spent):5.1f} ms, "
                  f"longest {max(spent):5.1f} ms")
    for at, spent, state, lane, alone in found["steps"]:
        if spent > _TOLD_MILLISECONDS:
            print(f"    {at / 1000:6.2f} s {state:9} {spent:5.1f} ms, "
                  f"of which {alone:5.1f} ms: {lane}")
    pieces = [spent for at, spent in found["pieces"] if at > ready]
    if pieces:
        print(f"  {len(pieces)} pieces beside, median {statistics.median(pieces):.1f} ms, "
              f"longest {max(pieces):.1f} ms")
    return found["preparedAt"] and all(step[1] <= _MOST_MILLISECONDS for step in found["steps"])


async def _measure(options, folder):
    # Imported here, because these modules need the virtual environment's packages.
    from peers.viewer import ChromiumViewer

    good = True
    viewer = await ChromiumViewer.start(folder)
    try:
        await viewer.page.command("Page.addScriptToEvaluateOnNewDocument", source=_BEFORE)
        for _ in range(options.rounds):
            good = await _round(options, folder, viewer) and good
    finally:
        await viewer.close()
    return good


def main():
    """Prints each round; the exit status is 1 if a step took too long."""
    options = _arguments()
    folder = Path(tempfile.mkdtemp(prefix="retake-zooming-"))
    try:
        return 0 if asyncio.run(_measure(options, folder)) else 1
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
