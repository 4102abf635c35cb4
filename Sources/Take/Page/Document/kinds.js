// Kinds of lanes: what each draws, says at the cursor, and lasts from when to when. A lane is
//   {label, unit, height, draw(view), at(time) -> text, tone, spans, marks, query, isExtra}
// where `isWaiting()` tells whether values are still to come, `prepare()` works out what drawing
// needs, a piece at a time, as soon as values can be read and before they are drawn, `isReady()`
// tells whether that is there, `spans` can be selected, `marks` are times to step to, and `query`
// names its SQL.
import { bitRate, counted, digits, duration, lowerBound, upperBound } from "./basics.js";
import { binSeconds, finished, manyAtOnce, once } from "./columns.js";
import { clock } from "./clock.js";
import {
  area, eachPixel, grid, ink, line, roundTop, spanMarks, tickMarks, topValue,
} from "./draw.js";
import {
  carried, extent, frameRate, frameRates, outcomeOf, peaksOf, quantile, rateAt, ratesOf, rateWindow,
  readPeaks, readShownFrames, shownFrames,
} from "./measures.js";

/* ---- States and their colours, which never change ---- */

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

/* ---- Kinds of lanes ---- */

/** What stands in the place of values that are still to come. */
export const stillToCome = "is being read";

/** What lasted: `list` has `{from, to, tone, text}`. */
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

/** One or more curves with one scale: `{at, value, colour, dash, hasSteps, name}`. */
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

/** How many are looked at before somebody else may have a turn. */
const heightsInPiece = 16_384;

/** The heights of all ticks of a list, worked out a piece at a time. */
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
 * Something that happened at times: `lists` has `{at, height, tone, name, text(index)}`, and where
 * values are still to come or heights need some, the `series` and what `prepare()` works out.
 */
export function tickLane(label, lists, more = {}) {
  // What is so near to the cursor on the screen is at it.
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

/** A bit rate with further curves over it. */
export function rateLane(label, list, tone, curves = [], more = {}) {
  return {
    label, unit: "kbit/s", height: 52, tone, query: "packets",
    draw(view) {
      grid(view);
      const window = rateWindow(view.to - view.from, view.pixel);
      const values = ratesOf(list, view, window).map((rate) => rate / 1e3);
      let high = values.reduce((most, value) => Math.max(most, value), 0);
      for (const curve of curves) {
        const most = extent(curve, view.from, view.to)[1];
        // An estimate far beyond what is sent must not press the rest to the ground.
        if (Number.isFinite(most)) high = Math.max(high, Math.min(most, 3 * high || most));
      }
      const top = roundTop(high);
      area(view, values, top, ink[tone]);
      if (view.pixel < 0.0006) sticks(view, list, tone);
      for (const curve of curves) {
        line(view, curve.at, curve.value, {
          top, colour: ink[curve.tone], dash: [4, 3], hasSteps: true,
        });
      }
      topValue(view, digits(top));
    },
    isWaiting: () => list.some((series) => series.isWaiting),
    at(time) {
      if (this.isWaiting()) return stillToCome;
      const window = rateWindow(clock.to - clock.from, (clock.to - clock.from) / 1000);
      const parts = [bitRate(rateAt(list, time, window))];
      for (const curve of curves) {
        const index = upperBound(curve.at, time) - 1;
        if (index >= 0) parts.push(`${curve.name} ${bitRate(curve.value[index] * 1e3)}`);
      }
      return parts.join(", ");
    },
    carried: (from, to) => carried(list, from, to),
    ...more,
  };
}

/** Every packet as a stick, as long as the packet, where there is room for each. */
function sticks(view, list, tone) {
  view.context.fillStyle = ink[`${tone}-text`];
  for (const series of list) {
    if (series.isWaiting) continue;
    const [first, last] = series.range(view.from, view.to);
    for (let index = first; index < last; index += 1) {
      const tall = Math.max((series.sizeOf(index) / 1300) * (view.height - 8), 2);
      view.context.fillRect(view.x(series.at[index]), view.height - tall, 1.2, tall);
    }
  }
}

/** Frames in a second; 0 within a freeze, which is marked. */
export function frameLane(series) {
  return {
    label: "frames", unit: "per s", height: 34, tone: "video", query: "frames",
    draw(view) {
      grid(view);
      const { freezes } = shownFrames(series);
      view.context.fillStyle = ink["bad-back"];
      for (const [from, to] of freezes) {
        if (to < view.from || from > view.to) continue;
        view.context.fillRect(view.x(from), 0, Math.max(view.x(to) - view.x(from), 1), view.height);
      }
      const values = frameRates(series, view);
      const high = 10;
      // Frames that follow at once after others make no scale.
      const usual = quantile(values.filter((value) => value > 0), 0.9);
      const top = roundTop(Math.max(high, Number.isFinite(usual) ? 1.15 * usual : 0));
      area(view, values, top, ink.video);
      topValue(view, digits(top));
    },
    isWaiting: () => series.isWaiting,
    * prepare() { if (series.isRead) yield* readShownFrames(series); },
    isReady: () => series.isWaiting || series.isReadyWith("shown"),
    at(time) {
      if (series.isWaiting || !this.isReady()) return stillToCome;
      const frozen = shownFrames(series).freezes.find(([from, to]) => from <= time && time < to);
      if (frozen) return `0 per s, stands still for ${duration(frozen[1] - frozen[0])}`;
      return `${digits(frameRate(series, time - 0.0005, time + 0.0005), 2)} per s`;
    },
    get spans() {
      return shownFrames(series).freezes.map(([from, to]) =>
        ({ from, to, tone: "bad", text: "freeze" }));
    },
    get marks() { return series.count <= 20000 ? shownFrames(series).at : []; },
  };
}

/** How many frames are looked at before somebody else may have a turn. */
const wavesInPiece = 16_384;

/** What a wave is drawn of before its frames are there: its bins. */
function overviewOf(overview) {
  const sums = (name) => Uint32Array.of(0, ...overview.growth(name).count.filter((_, index) =>
    index % 2));
  return {
    at: overview.at, peak: overview.column("peak"), bad: sums("concealed"),
    repaired: sums("recovered"),
  };
}

/**
 * Audio as it was heard or sent: its peaks, with what was concealed in red. Of a series that has
 * more than that, a test picks the places.
 */
export function waveLane(label, series, isPicked = () => true) {
  const flags = () => series.column("flags");
  const name = `wave ${label}`;
  /** What is picked, and how many were concealed or repaired before each. */
  function* pick() {
    if (!series.isRead || series.derived.has(name)) return;
    const [all, measure, kinds] = [series.at, series.column("measure"), flags()];
    const places = new Uint32Array(all.length);
    let count = 0;
    for (let place = 0; place < all.length; place += 1) {
      if (place % wavesInPiece === wavesInPiece - 1) yield;
      if (isPicked(place)) places[count++] = place;
    }
    const [at, peak] = [new Float64Array(count), new Float64Array(count)];
    const [bad, repaired] = [new Uint32Array(count + 1), new Uint32Array(count + 1)];
    for (let index = 0; index < count; index += 1) {
      if (index % wavesInPiece === wavesInPiece - 1) yield;
      const place = places[index];
      const outcome = outcomeOf(kinds[place]);
      at[index] = all[place];
      peak[index] = measure[place];
      bad[index + 1] = bad[index] + (outcome === "concealed" || outcome === "filler" ? 1 : 0);
      repaired[index + 1] = repaired[index] + (outcome === "recovered" ? 1 : 0);
    }
    yield* readPeaks(peak);
    series.derived.set(name, { at, peak, bad, repaired });
  }
  const picked = () => {
    if (series.isWaiting) {
      return once(series.overview.derived, "wave", () => overviewOf(series.overview));
    }
    finished(pick());
    return series.derived.get(name);
  };
  return {
    label, height: 34, tone: "audio", query: "frames",
    draw(view) {
      grid(view);
      const { context, height } = view;
      const { at, peak, bad, repaired } = picked();
      const first = lowerBound(at, view.from);
      const last = upperBound(at, view.to, first);
      const length = series.isWaiting ? binSeconds : series.kind === "pcm" ? 0.01 : 0.02;
      const wide = Math.max(length / view.pixel - 0.6, 1);
      const middle = height / 2;
      context.fillStyle = ink.line;
      context.fillRect(0, middle - 0.5, view.width, 1);
      const peaks = peaksOf(peak);
      const draw = (column, begin, end) => {
        const worst = bad[end] > bad[begin] ? "bad" : repaired[end] > repaired[begin] ? "wait" : "";
        // By its square root, so that quiet speech is seen beside loud one.
        const tall = Math.sqrt(peak[peaks.place(begin, end)] / 255) * (middle - 2);
        context.fillStyle = ink[worst || "audio"];
        context.globalAlpha = worst ? 1 : 0.85;
        const size = Math.max(tall, worst ? 3 : 0.5);
        context.fillRect(column, middle - size, wide, 2 * size);
      };
      // The one that began before is seen as far as it reaches into the view.
      if (first && at[first - 1] > view.from - length) draw(0, first - 1, first);
      eachPixel(view, at, first, last, 0, draw);
      context.globalAlpha = 1;
    },
    isWaiting: () => series.isWaiting,
    * prepare() { yield* pick(); },
    isReady: () => series.isWaiting || series.isReadyWith(name),
    at(time) {
      if (series.isWaiting) return stillToCome;
      let index = series.before(time);
      while (index >= 0 && !isPicked(index)) index -= 1;
      if (index < 0 || time - series.at[index] > 0.2) return "nothing";
      const peak = series.column("measure")[index];
      const loud = peak ? `${digits(20 * Math.log10(peak / 255), 2)} dB peak` : "silence";
      const outcome = outcomeOf(flags()[index]);
      if (outcome === "filler") return "silence, as nothing came";
      return ["concealed", "recovered"].includes(outcome) ? `${outcome}, ${loud}` : loud;
    },
  };
}
