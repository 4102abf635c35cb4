"""Tests details of single lanes on pages of takes, and groups of lanes in print."""

import shutil
import sqlite3

from viewing_late import long_take
from visit import CAPTURES

_QUANTISERS = (
    "retake.board.groups.flatMap(group => group.lanes)"
    ".filter(lane => lane.label === 'quantiser').length"
)
# Counts the headings, and those that stay on one printed page with their first lane.
_HEADINGS = """
(() => {
  const heads = [...document.querySelectorAll('.group h2')];
  const kept = heads.filter((head) => {
    const rules = [...document.styleSheets].flatMap((sheet) => [...sheet.cssRules])
      .filter((rule) => rule.media?.mediaText === 'print').flatMap((rule) => [...rule.cssRules]);
    const around = head.parentElement;
    return !around.classList.contains('group')
      && (around.querySelector('.lane') || !around.parentElement.querySelector('.lane'))
      && rules.some((rule) => rule.style.breakInside === 'avoid'
        && around.matches(rule.selectorText));
  });
  return [heads.length, kept.length];
})()
"""
# Makes lanes slow to draw, and records which are drawn in which display frame.
_SLOW_LANES = """
(() => {
  window.drawn = [];
  let picture = 0;
  const count = () => {
    picture += 1;
    requestAnimationFrame(count);
  };
  count();
  for (const lane of retake.board.lanes) {
    const draw = lane.draw;
    lane.draw = (view) => {
      window.drawn.push({ lane, picture, from: view.from });
      for (const end = performance.now() + 6; performance.now() < end;);
      return draw.call(lane, view);
    };
  }
  retake.redraw();
  window.drawn = [];
  retake.show(1, 2);
})()
"""
_ALL_SHOW_THE_SAME = """
retake.board.lanes.filter(lane => lane.isDrawn).every(lane =>
  window.drawn.some(each => each.lane === lane && each.from === 1))
"""
_MOST_IN_A_PICTURE = """
Math.max(...[...Map.groupBy(window.drawn, each => each.picture).values()].map(each => each.length))
"""
_ALL_ARE_DESCRIBED = """
retake.board.lanes.filter(lane => lane.isDrawn).every(lane =>
  lane.canvas.getAttribute('aria-label').endsWith(`: ${lane.at(1.5) || 'nothing'}`))
"""


async def in_turns(visit):
    """Checks that lanes without time in one display frame are drawn in the next, and that all get a
    description."""
    await visit.page(CAPTURES / "virtual-heavy-loss.take")
    await visit.ask(_SLOW_LANES)
    await visit.until(_ALL_SHOW_THE_SAME, "a lane was never drawn after a step")
    most = await visit.ask(_MOST_IN_A_PICTURE)
    visit.expect(most <= 2, f"{most} lanes of 6 ms each were drawn with one picture")
    await visit.until(_ALL_ARE_DESCRIBED, "lanes are not described as they are now")


async def quantisers(visit):
    """Checks that unknown quantisers, as of video that is only passed on, make no lane."""
    await visit.page(CAPTURES / "virtual-heavy-loss.take")
    visit.expect(await visit.ask(_QUANTISERS) > 0, "quantisers of VP8 are not shown")
    path = visit.folder / "passed-on.take"
    shutil.copyfile(CAPTURES / "virtual-heavy-loss.take", path)
    take = sqlite3.connect(path)
    take.execute("UPDATE format SET codec = 'av1' WHERE kind = 'video'")
    take.execute(
        "UPDATE frame_store SET quantiser = 0"
        " WHERE format IN (SELECT format FROM format WHERE kind = 'video')"
    )
    take.commit()
    take.close()
    await visit.page(path)
    shown = await visit.ask(_QUANTISERS)
    visit.expect(shown == 0, f"{shown} lanes of unknown quantisers")


async def headings(visit):
    """Checks that no group's heading is left alone at the bottom of a printed page."""
    await visit.page(CAPTURES / "virtual-heavy-loss.take")
    count, kept = await visit.ask(_HEADINGS)
    visit.expect(count > 4, f"{count} groups")
    visit.expect(kept == count, f"{count - kept} of {count} headings may stand alone")


async def beside(visit):
    """Checks that two long takes are drawn below each other from overviews, and get all values in
    the end."""
    folder = visit.folder / "long"
    folder.mkdir(exist_ok=True)
    for name in ("a.take", "b.take"):
        long_take(folder, name)
    address, token = await visit.serve(folder)
    await visit.viewer.open(f"{address}#token={token}&take=a.take&with=b.take")
    waiting = await visit.ask(
        "[...new Set(retake.take.series.filter(each => each.isWaiting)"
        ".map(each => each.peer >= 1000))].sort().join()"
    )
    visit.expect(waiting == "false,true", f"drawn from overviews, of two takes: {waiting}")
    await visit.until("!retake.hasLateValues()", "values of two takes never arrive")
    await visit.until("retake.isPrepared", "lanes of two takes are never prepared")
    sums = await visit.ask(
        "[0, 1].map(second => retake.take.series.filter(each => each.what === 'packets'"
        " && Math.floor(each.peer / 1000) === second).map(each => each.sums.at(-1)))"
    )
    visit.expect(len(sums[0]) > 4 and sums[0] == sums[1], f"the same take twice carries {sums}")
    visit.expect(
        await visit.ask("document.querySelectorAll('#comparison tbody tr').length") > 4,
        "two long takes are not compared",
    )
