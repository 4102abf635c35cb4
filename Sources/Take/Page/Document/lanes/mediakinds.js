// Kinds of lanes that draw packets and frames.
import { clock } from "../clock/clock.js";
import { area, eachPixel, grid, ink, line, roundTop, topValue } from "./draw.js";
import { stillToCome } from "./kinds.js";
import {
  frameRate, frameRates, outcomeOf, readShownFrames, shownFrames,
} from "../measures/frames.js";
import { extent, peaksOf, quantile, readPeaks } from "../measures/peaks.js";
import { carried, rateAt, ratesOf, rateWindow } from "../measures/rates.js";
import { lowerBound, upperBound } from "../shared/search.js";
import { bitRate, digits, duration } from "../shared/words.js";
import { finished, once } from "../take/columns.js";
import { binSeconds } from "../take/series.js";

/**
 * A lane of a bit rate with further curves.
 * @param {string} label
 * @param {Series[]} list
 * @param {string} tone
 * @param {Curve[]} curves
 * @param {Partial<Lane>} more
 * @returns {Lane}
 */
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
        // An estimate far above the sent rate must not flatten the curve.
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

/** Draws each packet as a bar of its size if there is room. */
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

/**
 * A lane of the frame rate: 0 within a freeze, which is marked.
 * @param {Series} series
 * @returns {Lane}
 */
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
      // Bursts of frames do not set the scale.
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
      if (frozen) return `0 per s, frozen for ${duration(frozen[1] - frozen[0])}`;
      return `${digits(frameRate(series, time - 0.0005, time + 0.0005), 2)} per s`;
    },
    get spans() {
      return shownFrames(series).freezes.map(([from, to]) =>
        ({ from, to, tone: "bad", text: "freeze" }));
    },
    get marks() { return series.count <= 20000 ? shownFrames(series).at : []; },
  };
}

/** The number of frames per piece of work. */
const wavesInPiece = 16_384;

/** The waveform of an overview: one value per bin. */
function overviewOf(overview) {
  const sums = (name) => Uint32Array.of(0, ...overview.growth(name).count.filter((_, index) =>
    index % 2));
  return {
    at: overview.at, peak: overview.column("peak"), bad: sums("concealed"),
    repaired: sums("recovered"),
  };
}

/**
 * Audio as it was played or sent: its peaks, with concealment in red. `isPicked` selects the values
 * of a series that also has others.
 * @param {string} label
 * @param {Series} series
 * @param {(place: number) => boolean} isPicked
 * @returns {Lane}
 */
export function waveLane(label, series, isPicked = (_) => true) {
  const flags = () => series.column("flags");
  const name = `wave ${label}`;
  /** The selected values, with running counts of concealed and repaired ones. */
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
        // The square root keeps quiet speech visible beside loud speech.
        const tall = Math.sqrt(peak[peaks.place(begin, end)] / 255) * (middle - 2);
        context.fillStyle = ink[worst || "audio"];
        context.globalAlpha = worst ? 1 : 0.85;
        const size = Math.max(tall, worst ? 3 : 0.5);
        context.fillRect(column, middle - size, wide, 2 * size);
      };
      // A block that began before the view may extend into it.
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
      if (outcome === "filler") return "silence, nothing received";
      return ["concealed", "recovered"].includes(outcome) ? `${outcome}, ${loud}` : loud;
    },
  };
}
