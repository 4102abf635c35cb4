// Kinds of lanes, with their drawing, their text at the cursor, and their spans. A lane is
//   {label, unit, height, draw(view), at(time) -> text, tone, spans, marks, query, isExtra}
// `isWaiting()` returns whether values are still loading. As soon as values can be read,
// `prepare()` computes in pieces what drawing needs, and `isReady()` returns whether it has
// finished. `spans` can be selected, `marks` are times to step to, and `query` names the lane's
// SQL.
import { clock } from "../clock/clock.js";
import { grid, ink, line, roundTop, spanMarks, tickMarks, topValue } from "./draw.js";
import { extent, readPeaks } from "../measures/peaks.js";
import { lowerBound, upperBound } from "../shared/search.js";
import { counted, digits } from "../shared/words.js";
import { finished, manyAtOnce } from "../take/columns.js";

const tones = {
  good: [
    "connected", "completed", "complete", "stable", "succeeded", "open", "active", "running",
    "playing", "recording", "granted", "speaker", "ready", "established", "started", "flowing",
  ],
  wait: [
    "checking", "connecting", "gathering", "have-local-offer", "have-remote-offer",
    "have-local-pranswer", "have-remote-pranswer", "in-progress", "waiting", "closing", "starting",
    "stopping", "interrupted", "preparing", "initialized", "paused", "locked", "reconnecting",
    "disconnecting", "establishing",
  ],
  bad: ["disconnected", "failed", "lost", "denied", "error", "starved", "terminated"],
};

/** The tone of a state: good, wait, bad or off. */
export const toneOf = (state) =>
  Object.keys(tones).find((tone) => tones[tone].includes(state)) ?? "off";

/** Shown instead of values that are still loading. */
export const stillToCome = "is loading";

/**
 * A lane of spans.
 * @param {string} label
 * @param {Span[]} list
 * @param {Partial<Lane>} more
 * @returns {Lane}
 */
export function spanLane(label, list, more = {}) {
  return {
    label, height: 18, spans: list, tone: "off",
    draw(view) {
      grid(view);
      spanMarks(view, list);
    },
    at: (time) => list.filter(({ from, to }) => from <= time && time < to)
      .map(({ text }) => text).join(", "),
    toneAt: (time) => list.find(({ from, to }) => from <= time && time < to)?.tone,
    marks: list.map(({ from }) => from),
    ...more,
  };
}

/**
 * A lane of curves with a common scale.
 * @param {string} label
 * @param {string} unit
 * @param {Curve[]} curves
 * @param {Partial<Lane>} more
 * @returns {Lane}
 */
export function curveLane(label, unit, curves, more = {}) {
  const isDown = more.low !== undefined;
  return {
    label, unit, height: 34, tone: curves[0].tone,
    draw(view) {
      grid(view);
      const extents = curves.map((curve) => extent(curve, view.from, view.to));
      const high = Math.max(...extents.map(([, top]) => top));
      const top = more.top ?? roundTop(Number.isFinite(high) ? high : 1);
      for (const curve of curves) {
        line(view, curve.at, curve.value, {
          low: more.low ?? 0, top, colour: ink[curve.tone], dash: curve.dash,
          hasSteps: curve.hasSteps,
        });
      }
      topValue(view, isDown ? `${top} to ${more.low}` : digits(top));
    },
    at: (time) => curves.map((curve) => {
      const index = upperBound(curve.at, time) - 1;
      if (index < 0) return "";
      return `${curve.name ? `${curve.name} ` : ""}${digits(curve.value[index])}\u00a0${unit}`;
    }).filter(Boolean).join(", "),
    ...more,
  };
}

/** The number of ticks per piece of work. */
const heightsInPiece = 16_384;

/** Computes the heights of all ticks of a list, a piece at a time. */
function* readHeights(list) {
  if (list.heights) return list.heights;
  if (list.prepare) yield* list.prepare();
  const heights = new Float32Array((list.series ?? list).at.length);
  for (let index = 0; index < heights.length; index += 1) {
    if (index % heightsInPiece === heightsInPiece - 1) yield;
    heights[index] = list.height(index);
  }
  yield* readPeaks(heights);
  list.heights = heights;
  return heights;
}

/**
 * A lane of events: `lists` has `{at, height, tone, name, text(index)}`, and, if values are still
 * loading or heights are expensive, the `series` and what `prepare()` computes.
 * @param {string} label
 * @param {any[]} lists
 * @param {Partial<Lane>} more
 * @returns {Lane}
 */
export function tickLane(label, lists, more = {}) {
  // Ticks within a few pixels of the cursor count as being at the cursor.
  const near = () => (6 * (clock.to - clock.from)) / 1000 + 1e-9;
  return {
    label, height: 18, tone: lists[0].tone,
    draw(view) {
      grid(view);
      for (const list of lists) {
        tickMarks(view, list.at, {
          height: list.height ?? 9,
          heights: () => finished(readHeights(list)),
          colour: typeof list.tone === "function" ? (index) => ink[list.tone(index)]
            : ink[list.tone],
        });
      }
    },
    isWaiting: () => lists.some((list) => list.series?.isWaiting),
    * prepare() {
      for (const list of lists) {
        if (typeof list.height === "function" && (list.series?.isRead ?? true)) {
          yield* readHeights(list);
        }
      }
    },
    isReady: () => lists.every((list) => typeof list.height !== "function" || list.heights
      || list.series?.hasGrown || list.at.length <= manyAtOnce),
    at(time) {
      const words = [];
      if (this.isWaiting()) return stillToCome;
      for (const list of lists) {
        const first = lowerBound(list.at, time - near());
        const last = upperBound(list.at, time + near(), first);
        if (last > first) {
          words.push(last - first === 1 && list.text
            ? list.text(first) : counted(last - first, list.name, list.names));
        }
      }
      return words.join(", ");
    },
    get marks() {
      return lists.flatMap((list) =>
        (list.series?.isWaiting || list.at.length > 5000 ? [] : [...list.at]));
    },
    ...more,
  };
}
