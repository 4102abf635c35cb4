// What lanes are made of: rates, gaps, waits and delays, worked out of packets and frames.
import { lowerBound, nextBound, upperBound } from "./basics.js";
import { finished, once } from "./columns.js";
import { take } from "./take.js";

/* ---- Many values ---- */

/** How many values, or blocks of them, make a block. */
const blockLength = 16;

/** How many blocks are looked at before somebody else may have a turn. */
const blocksInPiece = 2048;

/** Of so many in a run, their peaks are quicker than a look at each. */
const manyValues = 2000;

/** The greatest of any run of values, without a look at each of them. */
class Peaks {
  #values;
  #sign;
  /** The place of the greatest of each block, then of each block of blocks, and so on. */
  #levels = [];

  /** With -1 for a sign, the least. */
  constructor(values, sign) {
    this.#values = values;
    this.#sign = sign;
  }

  /** Looks at all values once, a piece at a time. */
  * read() {
    for (let { length } = this.#values; length > blockLength;) {
      const level = this.#levels.length;
      const places = new Uint32Array(Math.ceil(length / blockLength));
      for (let block = 0; block < places.length; block += 1) {
        if (block % blocksInPiece === blocksInPiece - 1) yield;
        const first = block * blockLength;
        places[block] = this.#scan(level, first, Math.min(first + blockLength, length), -1);
      }
      this.#levels.push(places);
      ({ length } = places);
    }
  }

  /** The place of the greatest of those from `first` on before `last`: of several, the first. */
  place(first, last) { return this.#walk(0, first, last, -1); }

  #walk(level, first, last, best) {
    const [begin, end] = [Math.ceil(first / blockLength), Math.floor(last / blockLength)];
    if (level === this.#levels.length || begin >= end) return this.#scan(level, first, last, best);
    const before = this.#scan(level, first, begin * blockLength, best);
    const within = this.#walk(level + 1, begin, end, before);
    return this.#scan(level, end * blockLength, last, within);
  }

  #scan(level, first, last, found) {
    const values = this.#values;
    const places = level ? this.#levels[level - 1] : null;
    let best = found;
    for (let index = first; index < last; index += 1) {
      const place = places ? places[index] : index;
      if (best < 0 || this.#sign * (values[place] - values[best]) > 0) best = place;
    }
    return best;
  }
}

const peaks = new Map([1, -1].map((sign) => [sign, new WeakMap()]));

/** The peaks of a list of values, which stay as long as the list; with -1 those downwards. */
export function peaksOf(values, sign = 1) {
  const known = peaks.get(sign);
  if (!known.has(values)) finished(readPeaks(values, sign));
  return known.get(values);
}

/** Makes the peaks of a list of values, a piece at a time. */
export function* readPeaks(values, sign = 1) {
  if (peaks.get(sign).has(values)) return;
  const made = new Peaks(values, sign);
  yield* made.read();
  peaks.get(sign).set(values, made);
}

/* ---- Rates ---- */

/** How much a list of series carried between two times, by their sums. */
export function carried(list, from, to) {
  let bytes = 0;
  for (const series of list) {
    if (series.isWaiting) {
      const growth = series.overview.growth("bytes");
      bytes += countAt(growth, to) - countAt(growth, from);
      continue;
    }
    const [first, last] = series.range(from, to);
    bytes += series.sums[last] - series.sums[first];
  }
  return bytes;
}

/** Bits in a second around a time, over a window. */
export const rateAt = (list, time, window) =>
  (8 * carried(list, time - window / 2, time + window / 2)) / window;

/** Bits in a second around the middle of each pixel, over a window. */
export function ratesOf(list, { width, time }, window) {
  const rates = new Float64Array(Math.ceil(width));
  for (const series of list) {
    if (series.isWaiting) {
      addRates(rates, series.overview.growth("bytes"), time, window);
      continue;
    }
    const { at, sums } = series;
    let [first, last] = [0, 0];
    for (let x = 0; x < rates.length; x += 1) {
      const middle = time(x + 0.5);
      first = nextBound(at, middle - window / 2, first);
      last = nextBound(at, middle + window / 2, Math.max(first, last));
      rates[x] += (8 * (sums[last] - sums[first])) / window;
    }
  }
  return rates;
}

/** Adds the rates of what grows evenly between some times. */
function addRates(rates, { at, count }, time, window) {
  const grown = (place, when) => {
    if (place === 0 || place === at.length) return place ? count[place - 1] : 0;
    const share = (when - at[place - 1]) / (at[place] - at[place - 1]);
    return count[place - 1] + share * (count[place] - count[place - 1]);
  };
  let [first, last] = [0, 0];
  for (let x = 0; x < rates.length; x += 1) {
    const [begin, end] = [time(x + 0.5) - window / 2, time(x + 0.5) + window / 2];
    first = nextBound(at, begin, first);
    last = nextBound(at, end, Math.max(first, last));
    rates[x] += (8 * (grown(last, end) - grown(first, begin))) / window;
  }
}

/** The window over which a rate is taken when so much time is in sight, and a pixel is so long. */
export const rateWindow = (length, pixel) => Math.max(3 * pixel, Math.min(0.2, length / 40));

/* ---- Frames ---- */

const outcomes = [
  "encoded", "decoded", "recovered", "concealed", "undecodable", "not decoded", "passed on",
  "captured", "mixed", "filler", "played", "silence", "other",
];

/** The outcome of a frame by its flags. */
export const outcomeOf = (flags) => outcomes[Math.min(flags >> 1, outcomes.length - 1)];

export const isKeyFrame = (flags) => (flags & 1) === 1;

/** Outcomes of video frames that were shown, or sent. */
const isShown = (flags) => [0, 1, 5, 6].includes(flags >> 1);

/**
 * The video frames of a series and how many of them there were up to each: over a freeze, by the
 * rule of freezeCount, and over any gap of more than a second, the count stands still.
 */
export function shownFrames(series) {
  if (series.isWaiting) {
    return once(series.overview.derived, "shown", () =>
      ({ ...series.overview.growth("shown"), freezes: freezesOf(series) }));
  }
  return series.derived.get("shown") ?? finished(readShownFrames(series));
}

/** How many frames are looked at before somebody else may have a turn. */
const framesInPiece = 16_384;

/** Makes what `shownFrames` gives of the values, a piece at a time. */
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

/** The freezes of a series as the take tells them. */
const freezesOf = (series) => (series.direction === "in" ? take.freezes ?? [] : [])
  .filter(([peer, track]) => peer === series.peer && Number(track) === series.track)
  .map(([, , from, to]) => [from, to]);

/** How much there was up to a time, of what grows evenly in between. */
function countAt({ at, count }, time) {
  if (!at.length || time <= at[0]) return 0;
  const after = upperBound(at, time);
  if (after >= at.length) return count[count.length - 1];
  const share = (time - at[after - 1]) / (at[after] - at[after - 1]);
  return count[after - 1] + share * (count[after] - count[after - 1]);
}

/** Frames in a second within each pixel; within a freeze it is 0. */
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

/** Frames in a second between two times; within a freeze it is 0. */
export function frameRate(series, from, to) {
  const all = shownFrames(series);
  return (countAt(all, to) - countAt(all, from)) / (to - from);
}

/* ---- Waits and delays ---- */

/** How many packets or frames are looked at before somebody else may have a turn. */
const delaysInPiece = 8192;

/** When the first packet of each frame came, by its timestamp. */
function* firstArrivals(packets) {
  const first = new Map();
  for (const series of packets) {
    const at = yield* series.reading("at");
    const time = yield* series.reading("rtpTime");
    for (let index = 0; index < at.length; index += 1) {
      if (index % delaysInPiece === delaysInPiece - 1) yield;
      // The packets of a frame mostly follow each other.
      if (index && time[index] === time[index - 1]) continue;
      if (!first.has(time[index])) first.set(time[index], at[index]);
    }
  }
  return first;
}

/**
 * How long each frame of a way waited from its first packet to the decoder, in ms; worked out a
 * piece at a time.
 */
export function* waits(way) {
  if (way.waits) return way.waits;
  const first = yield* firstArrivals(way.packets);
  const times = yield* way.frames.reading("at");
  const stamps = yield* way.frames.reading("rtpTime");
  const flags = yield* way.frames.reading("flags");
  const [at, value] = [new Float64Array(times.length), new Float64Array(times.length)];
  let count = 0;
  for (let index = 0; index < times.length; index += 1) {
    if (index % delaysInPiece === delaysInPiece - 1) yield;
    const came = first.get(stamps[index]);
    if (came === undefined || outcomeOf(flags[index]) === "concealed") continue;
    at[count] = times[index];
    value[count] = (times[index] - came) * 1e3;
    count += 1;
  }
  way.waits = { at: at.subarray(0, count), value: value.subarray(0, count) };
  return way.waits;
}

/** A number that wraps, made one that does not: the difference of each to the one before. */
function unwrapper(bits) {
  const unused = 32 - bits;
  let last = null;
  let whole = 0;
  return (value) => {
    // The lowest bits with their sign.
    if (last !== null) whole += ((value - last) << unused) >> unused;
    last = value;
    return whole;
  };
}

/** When a number of a stream, which counts on over its rounds, was sent; undefined for never. */
function* sendTimes({ at, count }, sequence) {
  const numbers = new Float64Array(count);
  const unwrapped = unwrapper(16);
  let [low, high] = [Infinity, -Infinity];
  for (let index = 0; index < count; index += 1) {
    if (index % delaysInPiece === delaysInPiece - 1) yield;
    // The beginning tells the rounds apart on both sides.
    numbers[index] = unwrapped(sequence[index]) + sequence[0];
    low = Math.min(low, numbers[index]);
    high = Math.max(high, numbers[index]);
  }
  // Numbers that leap about would make a list of mostly nothing.
  const isDense = high - low < 4 * count + 65536;
  const sent = isDense ? new Float64Array(high - low + 1).fill(NaN) : new Map();
  for (let index = 0; index < count; index += 1) {
    if (index % delaysInPiece === delaysInPiece - 1) yield;
    const key = numbers[index] - low;
    if (!isDense) {
      if (!sent.has(key)) sent.set(key, at[index]);
    } else if (Number.isNaN(sent[key])) sent[key] = at[index];
  }
  return (number) => (isDense ? sent[number - low] : sent.get(number - low));
}

/**
 * How late packets came, in ms: how long they were on their way when the take has both ends, else
 * by how much more than the fastest one, reckoned by the timestamps of their frames; worked out a
 * piece at a time.
 */
export function* delays(flow) {
  if (flow.delays) return flow.delays;
  const { received, sent } = flow;
  const most = received.packets.reduce((sum, series) => sum + series.count, 0);
  const [at, value] = [new Float64Array(most), new Float64Array(most)];
  let count = 0;
  for (const series of received.packets) {
    const times = yield* series.reading("at");
    const match = flow.isSeenOnce ? undefined
      : sent?.packets.find((each) => each.ssrc === series.ssrc);
    if (match && match.count) {
      yield* match.reading("at");
      const sentNumbers = yield* match.reading("sequence");
      const began = yield* sendTimes(match, sentNumbers);
      const sequence = yield* series.reading("sequence");
      const [first] = sentNumbers;
      const unwrapped = unwrapper(16);
      let offset = null;
      for (let index = 0; index < times.length; index += 1) {
        if (index % delaysInPiece === delaysInPiece - 1) yield;
        const whole = unwrapped(sequence[index]);
        if (offset === null) {
          offset = first + ((((sequence[index] - first) % 65536) + 98304) % 65536) - 32768;
        }
        const when = began(whole + offset);
        if (when === undefined || Number.isNaN(when)) continue;
        at[count] = times[index];
        value[count] = (times[index] - when) * 1e3;
        count += 1;
      }
      continue;
    }
    const stamps = yield* series.reading("rtpTime");
    const unwrapped = unwrapper(32);
    const late = new Float64Array(times.length);
    let least = Infinity;
    for (let index = 0; index < times.length; index += 1) {
      if (index % delaysInPiece === delaysInPiece - 1) yield;
      late[index] = times[index] - unwrapped(stamps[index]) / flow.clockRate;
      least = Math.min(least, late[index]);
    }
    for (let index = 0; index < times.length; index += 1) {
      if (index % delaysInPiece === delaysInPiece - 1) yield;
      at[count] = times[index];
      value[count] = (late[index] - least) * 1e3;
      count += 1;
    }
  }
  flow.delays = { at: at.subarray(0, count), value: value.subarray(0, count) };
  return flow.delays;
}

/** The value at a share of a list: 0.5 gives the median. */
export function quantile(values, share) {
  if (!values.length) return NaN;
  const sorted = Float64Array.from(values).sort();
  return sorted[Math.min(Math.floor(share * sorted.length), sorted.length - 1)];
}

/** The least and the greatest value of a curve between two times. */
export function extent({ at, value }, from, to) {
  const first = lowerBound(at, from);
  const last = upperBound(at, to, first);
  if (last - first > manyValues) {
    return [value[peaksOf(value, -1).place(first, last)], value[peaksOf(value).place(first, last)]];
  }
  let [low, high] = [Infinity, -Infinity];
  for (let index = first; index < last; index += 1) {
    low = Math.min(low, value[index]);
    high = Math.max(high, value[index]);
  }
  return [low, high];
}
