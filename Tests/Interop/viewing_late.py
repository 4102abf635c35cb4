"""Tests the page of a long call: drawn from an overview first, and from all values once they are
ready."""

import shutil
import sqlite3

from visit import CAPTURES

# How many times a short call's packets and frames are repeated: more than a page has at first.
_TIMES = 400
_PERIOD_NANOSECONDS = 3_000_000_000

# Sums the bytes of all packets that lanes draw.
_CARRIED = (
    "retake.board.lanes.filter(lane => lane.carried)"
    ".map(lane => Math.round(lane.carried(0, retake.take.seconds + 1)))"
)
# Records in each display frame, until everything is prepared, which lanes would have to compute
# immediately.
_WATCH = """
(() => {
  window.watched = new Set();
  const look = () => {
    for (const lane of retake.board.lanes) {
      if (!lane.isWaiting?.() && lane.isReady && !lane.isReady()) window.watched.add(lane.id);
    }
    if (!retake.isPrepared) requestAnimationFrame(look);
  };
  look();
})()
"""
_UNREADY = (
    "retake.board.groups.flatMap(group => group.lanes)"
    ".filter(lane => lane.isReady && !lane.isReady()).map(lane => lane.id)"
)


def long_take(folder, name="long.take"):
    """Makes a take of twenty minutes from one of three seconds."""
    path = folder / name
    shutil.copyfile(CAPTURES / "virtual-heavy-loss.take", path)
    take = sqlite3.connect(path)
    for table in ("packet_store", "frame_store"):
        columns = [row[1] for row in take.execute(f"PRAGMA table_info({table})")]
        count = take.execute(f"SELECT max(row) FROM {table}").fetchone()[0]
        moved = {"row": f"row + {count} * value",
                 "at_ns": f"at_ns + {_PERIOD_NANOSECONDS} * value"}
        take.execute(
            f"WITH RECURSIVE times(value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM times"
            f" WHERE value < {_TIMES - 1}) INSERT INTO {table} ({', '.join(columns)})"
            f" SELECT {', '.join(moved.get(name, name) for name in columns)}"
            f" FROM times, {table} ORDER BY value, row"
        )
    take.execute("UPDATE ending SET at_ns = ?", (_PERIOD_NANOSECONDS * _TIMES,))
    take.commit()
    take.close()
    return path


async def late(visit):
    """Checks that values replace the overview once everything that lanes need is computed."""
    address, token = await visit.serve(long_take(visit.folder))
    await visit.viewer.open(f"{address}#token={token}")
    await visit.ask(_WATCH)
    visit.expect(
        await visit.ask("retake.hasLateValues()"), "a long take is not drawn from an overview"
    )
    visit.expect(
        "details follow" in await visit.ask("document.getElementById('facts').textContent"),
        "the page does not say that details follow",
    )
    overview = await visit.ask(_CARRIED)
    await visit.until("!retake.hasLateValues()", "values never take the place of the overview")
    await visit.until("retake.isPrepared", "lanes are never prepared")
    unready = await visit.ask("[...window.watched]")
    visit.expect(not unready, f"values arrived before what is computed from them: {unready}")
    unready = await visit.ask(_UNREADY)
    visit.expect(not unready, f"lanes are not prepared: {unready}")
    carried = await visit.ask(_CARRIED)
    visit.expect(carried == overview, f"an overview of {overview} bytes and values of {carried}")
    visit.expect(
        "follow" not in await visit.ask("document.getElementById('facts').textContent"),
        "details still follow after they arrived",
    )
