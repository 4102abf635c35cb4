// The clock of all lanes: visible range, cursor and selection.
import { recordMove } from "../shared/pieces.js";
import { take } from "../take/take.js";

/** The state of the clock. Times are in seconds since the take began. */
export const clock = {
  from: 0,
  to: 1,
  /** The time at the cursor, which follows the pointer unless it is held; null if there is none. */
  cursor: null,
  /** Whether the cursor is held. */
  isHeld: false,
  /** The selected interval, `[from, to]`; null if nothing is selected. */
  selection: null,
  /** Whether times are shown as time of day. */
  isWall: false,
};

const listeners = { view: [], cursor: [], selection: [] };

/** Adds a listener for changes of the view, the cursor or the selection. */
export const onClock = (what, listener) => listeners[what].push(listener);

function changed(what) {
  for (const listener of listeners[what]) listener();
}

/** The shortest view, in seconds. */
const shortest = 2e-4;

/** Shows a part of the take, clamped to the take. */
export function show(from, to) {
  const length = Math.min(Math.max(to - from, shortest), take.seconds);
  const begin = Math.min(Math.max(from, 0), take.seconds - length);
  if (begin === clock.from && begin + length === clock.to) return;
  clock.from = begin;
  clock.to = begin + length;
  recordMove();
  changed("view");
}

/** Zooms around a time; a factor above 1 shows more. */
export function zoom(factor, around = (clock.from + clock.to) / 2) {
  const length = Math.min((clock.to - clock.from) * factor, take.seconds);
  const share = (around - clock.from) / (clock.to - clock.from);
  show(around - share * length, around - share * length + length);
}

/** Moves the view by a part of its length. */
export function pan(share) {
  const distance = (clock.to - clock.from) * share;
  show(clock.from + distance, clock.to + distance);
}

/** Shows an interval with a margin. */
export function showAround(from, to) {
  const margin = Math.max((to - from) / 3, 0.15);
  show(from - margin, to + margin);
}

export const showAll = () => show(0, take.seconds);

/** Moves the cursor to a time; a held cursor moves only if `isHeld` is true. */
export function point(time, isHeld = false) {
  if (clock.isHeld && !isHeld) return;
  const inside = time === null ? null : Math.min(Math.max(time, 0), take.seconds);
  if (inside === clock.cursor && isHeld === clock.isHeld) return;
  clock.cursor = inside;
  clock.isHeld = isHeld && inside !== null;
  changed("cursor");
}

/** Lets the cursor follow the pointer again. */
export function release() {
  clock.isHeld = false;
  point(null);
}

export function select(from, to) {
  clock.selection = from === null ? null
    : [Math.max(Math.min(from, to), 0), Math.min(Math.max(from, to), take.seconds)];
  changed("selection");
}

/** Holds the cursor at a time and scrolls it into view. */
export function visit(time) {
  if (time < clock.from || time > clock.to) {
    const half = (clock.to - clock.from) / 2;
    show(time - half, time + half);
  }
  point(time, true);
}
