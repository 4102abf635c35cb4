// The part of the address that stores the current view.
import { clock, point, select, show, onClock } from "./clock.js";
import { decimals } from "./times.js";
import { take } from "../take/take.js";

let isReading = false;

let waiting = 0;

/** Further parts of the address, set by other modules. */
export const addressParts = new Map();

/** The part of the address that leads to the current view. */
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

for (const what of ["view", "cursor", "selection"]) onClock(what, writeAddress);

/** Sets a part of the address; an empty value removes it. */
export function setAddressPart(name, value) {
  if (value) addressParts.set(name, String(value));
  else addressParts.delete(name);
  writeAddress();
}

/**
 * The time of the first event, where the first view starts: a recorder may have waited long
 * before.
 */
function opening() {
  const first = take.timeline.find(([, , , lane]) => lane !== "peer")?.[0] ?? 0;
  return first > 0.25 * take.seconds ? first - 0.03 * (take.seconds - first) : 0;
}

/** Restores the view from the address; returns its parts. */
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
