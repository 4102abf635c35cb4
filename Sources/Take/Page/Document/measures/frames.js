// Frames: their outcomes, their rate, and freezes.
import { countAt } from "./rates.js";
import { finished, once } from "../take/columns.js";
import { take } from "../take/take.js";

const outcomes = [
  "encoded", "decoded", "recovered", "concealed", "undecodable", "not decoded", "passed on",
  "captured", "mixed", "filler", "played", "silence", "other",
];

/** The outcome of a frame by its flags. */
export const outcomeOf = (flags) => outcomes[Math.min(flags >> 1, outcomes.length - 1)];

export const isKeyFrame = (flags) => (flags & 1) === 1;

/** Whether a video frame was shown or sent. */
const isShown = (flags) => [0, 1, 5, 6].includes(flags >> 1);

/**
 * The displayed frames of a series with their running count, which is constant over a freeze (by
 * the rule of freezeCount) and over any gap of more than a second.
 */
export function shownFrames(series) {
  if (series.isWaiting) {
    return once(series.overview.derived, "shown", () =>
      ({ ...series.overview.growth("shown"), freezes: freezesOf(series) }));
  }
  return series.derived.get("shown") ?? finished(readShownFrames(series));
}

/** The number of frames per piece of work. */
const framesInPiece = 16_384;

/** Computes `shownFrames` from the values in pieces. */
export function* readShownFrames(series) {
  if (series.derived.has("shown")) return series.derived.get("shown");
  const flags = series.column("flags");
  const all = series.at;
  const at = new Float64Array(all.length);
  const count = new Float64Array(all.length);
  const freezes = [];
  const gaps = [];
  let sum = 0;
  let shown = 0;
  for (let index = 0; index < all.length; index += 1) {
    if (index % framesInPiece === framesInPiece - 1) yield;
    if (!isShown(flags[index])) continue;
    if (shown) {
      const before = at[shown - 1];
      const gap = all[index] - before;
      const mean = gaps.length ? sum / gaps.length : gap;
      const isFreeze = series.direction === "in" && gap <= 5 && gaps.length >= 5
        && gap >= Math.max(3 * mean, mean + 0.15);
      const stands = isFreeze || gap > 1;
      if (isFreeze) freezes.push([before, all[index]]);
      count[shown] = count[shown - 1] + (stands ? 0 : 1);
      if (gap <= 5) {
        gaps.push(gap);
        sum += gap;
        if (gaps.length > 30) sum -= gaps.shift();
      }
    }
    at[shown] = all[index];
    shown += 1;
  }
  const made = { at: at.subarray(0, shown), count: count.subarray(0, shown), freezes };
  series.derived.set("shown", made);
  return made;
}

/** The freezes of a series according to the take. */
const freezesOf = (series) => (series.direction === "in" ? take.freezes ?? [] : [])
  .filter(([peer, track]) => peer === series.peer && Number(track) === series.track)
  .map(([, , from, to]) => [from, to]);

/** The frame rate of each pixel; 0 within a freeze. */
export function frameRates(series, { width, time, pixel }) {
  const all = shownFrames(series);
  const rates = new Float64Array(Math.ceil(width));
  let before = countAt(all, time(0));
  for (let x = 0; x < rates.length; x += 1) {
    const after = countAt(all, time(x + 1));
    rates[x] = (after - before) / pixel;
    before = after;
  }
  return rates;
}

/** The frame rate between two times; 0 within a freeze. */
export function frameRate(series, from, to) {
  const all = shownFrames(series);
  return (countAt(all, to) - countAt(all, from)) / (to - from);
}
