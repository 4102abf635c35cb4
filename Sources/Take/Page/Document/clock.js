// The clock that all lanes share: what is shown, pointed at and selected, also in the address.
import { noteMove } from "./pieces.js";
import { take } from "./take.js";

/** The state of the clock. Times are in seconds since the take began. */
export const clock = {
  from: 0,
  to: 1,
  /** Where the pointer is, or where it was held; null for nowhere. */
  cursor: null,
  /** Whether the cursor stays where it is. */
  isHeld: false,
  /** `[from, to]`, or null. */
  selection: null,
  /** Whether times are told by the clock on the wall. */
  isWall: false,
};

const listeners = { view: [], cursor: [], selection: [] };

/** Calls somebody when the view, the cursor or the selection changed. */
export const onClock = (what, listener) => listeners[what].push(listener);

function changed(what) {
  for (const listener of listeners[what]) listener();
  writeAddress();
}

/** The shortest time that is worth looking at. */
const shortest = 2e-4;

/** Shows a part of the take; it is kept inside. */
export function show(from, to) {
  const length = Math.min(Math.max(to - from, shortest), take.seconds);
  const begin = Math.min(Math.max(from, 0), take.seconds - length);
  if (begin === clock.from && begin + length === clock.to) return;
  clock.from = begin;
  clock.to = begin + length;
  noteMove();
  changed("view");
}

/** Zooms so that a time stays where it is; more than 1 shows more. */
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

/** Shows something with some of what is around it. */
export function showAround(from, to) {
  const margin = Math.max((to - from) / 3, 0.15);
  show(from - margin, to + margin);
}

export const showAll = () => show(0, take.seconds);

/** Points at a time; a held cursor moves only when it is held anew. */
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

/** Goes to a time: the cursor is held there, and it is in sight. */
export function visit(time) {
  if (time < clock.from || time > clock.to) {
    const half = (clock.to - clock.from) / 2;
    show(time - half, time + half);
  }
  point(time, true);
}

/* ---- Words for times ---- */

/** Decimals that tell neighbours of a distance apart. */
const decimals = (step) => Math.min(Math.max(Math.ceil(-Math.log10(step)), 0), 5);

/** A time in words: with as many decimals as a step needs. */
export function timeText(seconds, step = 0.001) {
  const places = decimals(step);
  if (clock.isWall) {
    const wall = new Date(Date.parse(take.start) + seconds * 1000);
    if (!Number.isNaN(wall.getTime())) {
      const text = wall.toISOString().slice(11, places ? 20 + Math.min(places, 3) : 19);
      return text.replace(/\.$/, "");
    }
  }
  if (take.seconds < 120) return `${seconds.toFixed(places)} s`;
  const whole = Math.floor(seconds + 1e-9);
  const hours = Math.floor(whole / 3600);
  const minutes = Math.floor((whole % 3600) / 60);
  const rest = (seconds - hours * 3600 - minutes * 60).toFixed(places);
  const two = (text) => (text.split(".")[0].length < 2 ? `0${text}` : text);
  return hours ? `${hours}:${two(String(minutes))}:${two(rest)}` : `${minutes}:${two(rest)}`;
}

/** Round numbers between two others, about so many. */
export function ticks(from, to, count) {
  const rough = (to - from) / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  let choices = [1, 2, 5, 10].map((each) => each * power);
  if (rough > 8) choices = [10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 18000, 36000];
  const step = choices.find((each) => each >= rough) ?? choices.at(-1);
  const found = [];
  for (let at = Math.ceil(from / step) * step; at <= to + step / 1e6; at += step) {
    found.push(Number(at.toPrecision(12)));
  }
  return { step, at: found };
}

/* ---- The address ---- */

let isReading = false;
let waiting = 0;
/** More of the address: what other modules keep there. */
export const addressParts = new Map();

/** The part of the address that leads here. */
export function addressText() {
  const parts = new URLSearchParams();
  const places = decimals((clock.to - clock.from) / 5000);
  if (clock.from > 0 || clock.to < take.seconds) {
    parts.set("t", `${clock.from.toFixed(places)}-${clock.to.toFixed(places)}`);
  }
  if (clock.isHeld) parts.set("at", clock.cursor.toFixed(5).replace(/0+$/, "").replace(/\.$/, ""));
  if (clock.selection) {
    parts.set("select", clock.selection.map((time) => time.toFixed(places)).join("-"));
  }
  for (const [name, value] of addressParts) if (value) parts.set(name, value);
  return parts.toString();
}

function writeAddress() {
  if (isReading || waiting) return;
  waiting = setTimeout(() => {
    waiting = 0;
    const text = addressText();
    if (text !== location.hash.slice(1)) {
      history.replaceState(null, "", text ? `#${text}` : location.pathname + location.search);
    }
  }, 150);
}

/** Has the address written again, after a part of it changed. */
export function setAddressPart(name, value) {
  if (value) addressParts.set(name, String(value));
  else addressParts.delete(name);
  writeAddress();
}

/** Where a take is shown from at first: a recorder may wait long for the call. */
function opening() {
  const first = take.timeline.find(([, , , lane]) => lane !== "peer")?.[0] ?? 0;
  return first > 0.25 * take.seconds ? first - 0.03 * (take.seconds - first) : 0;
}

/** Goes where the address says; gives what is in it. */
export function readAddress() {
  const parts = new URLSearchParams(location.hash.slice(1));
  const pair = (name) => {
    const found = /^(\d+(?:\.\d+)?)-(\d+(?:\.\d+)?)$/.exec(parts.get(name) ?? "");
    return found ? [Number(found[1]), Number(found[2])] : null;
  };
  isReading = true;
  const shown = pair("t");
  if (shown) show(...shown);
  else show(opening(), take.seconds);
  const selected = pair("select");
  if (selected) select(...selected);
  const at = Number.parseFloat(parts.get("at"));
  if (Number.isFinite(at)) point(at, true);
  isReading = false;
  return parts;
}
