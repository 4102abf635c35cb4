// What lanes are made of: rates, gaps, waits and delays, worked out of packets and frames.
import { lowerBound, upperBound } from "./basics.js";

/* ---- Rates ---- */

/** How much a list of series carried between two times, by their sums. */
export function carried(list, from, to) {
  let bytes = 0;
  for (const series of list) {
    const [first, last] = series.range(from, to);
    bytes += series.sums[last] - series.sums[first];
  }
  return bytes;
}

/** Bits in a second around a time, over a window. */
export const rateAt = (list, time, window) =>
  (8 * carried(list, time - window / 2, time + window / 2)) / window;

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
  if (series.derived) return series.derived;
  const flags = series.column("flags");
  const all = series.at;
  const at = [];
  const count = [];
  const freezes = [];
  const gaps = [];
  let sum = 0;
  for (let index = 0; index < all.length; index += 1) {
    if (!isShown(flags[index])) continue;
    if (at.length) {
      const gap = all[index] - at[at.length - 1];
      const mean = gaps.length ? sum / gaps.length : gap;
      const isFreeze = series.direction === "in" && gap <= 5 && gaps.length >= 5
        && gap >= Math.max(3 * mean, mean + 0.15);
      const stands = isFreeze || gap > 1;
      if (isFreeze) freezes.push([at[at.length - 1], all[index]]);
      count.push(count[count.length - 1] + (stands ? 0 : 1));
      if (gap <= 5) {
        gaps.push(gap);
        sum += gap;
        if (gaps.length > 30) sum -= gaps.shift();
      }
    } else {
      count.push(0);
    }
    at.push(all[index]);
  }
  series.derived = { at, count, freezes };
  return series.derived;
}

/** How many frames there were up to a time, with parts of them in between. */
function frameCount({ at, count }, time) {
  if (!at.length || time <= at[0]) return 0;
  const after = upperBound(at, time);
  if (after >= at.length) return count[count.length - 1];
  const share = (time - at[after - 1]) / (at[after] - at[after - 1]);
  return count[after - 1] + share * (count[after] - count[after - 1]);
}

/** Frames in a second between two times; within a freeze it is 0. */
export function frameRate(series, from, to) {
  const all = shownFrames(series);
  return (frameCount(all, to) - frameCount(all, from)) / (to - from);
}

/* ---- Waits and delays ---- */

/** When the first packet of each frame came, by its timestamp. */
function firstArrivals(packets) {
  const first = new Map();
  for (const series of packets) {
    const at = series.at;
    const time = series.column("rtpTime");
    for (let index = 0; index < at.length; index += 1) {
      if (!first.has(time[index])) first.set(time[index], at[index]);
    }
  }
  return first;
}

/** How long each frame of a way waited from its first packet to the decoder, in ms. */
export function waits(way) {
  if (way.waits) return way.waits;
  const first = firstArrivals(way.packets);
  const [at, value] = [[], []];
  const times = way.frames.at;
  const stamps = way.frames.column("rtpTime");
  const flags = way.frames.column("flags");
  for (let index = 0; index < times.length; index += 1) {
    const came = first.get(stamps[index]);
    if (came === undefined || outcomeOf(flags[index]) === "concealed") continue;
    at.push(times[index]);
    value.push((times[index] - came) * 1e3);
  }
  way.waits = { at, value };
  return way.waits;
}

/** A number that wraps, made one that does not: the difference of each to the one before. */
function unwrapper(bits) {
  const size = 2 ** bits;
  let last = null;
  let whole = 0;
  return (value) => {
    if (last !== null) {
      let step = (value - last) % size;
      if (step >= size / 2) step -= size;
      else if (step < -size / 2) step += size;
      whole += step;
    }
    last = value;
    return whole;
  };
}

/** When each number of a stream was sent. */
function sendTimes(packets) {
  const sent = new Map();
  for (const series of packets) {
    const at = series.at;
    const sequence = series.column("sequence");
    const unwrapped = unwrapper(16);
    for (let index = 0; index < at.length; index += 1) {
      // The beginning tells the rounds apart on both sides.
      const key = unwrapped(sequence[index]) + sequence[0];
      if (!sent.has(key)) sent.set(key, at[index]);
    }
  }
  return sent;
}

/**
 * How late packets came, in ms: how long they were on their way when the take has both ends, else
 * by how much more than the fastest one, reckoned by the timestamps of their frames.
 */
export function delays(flow) {
  if (flow.delays) return flow.delays;
  const { received, sent } = flow;
  const [at, value] = [[], []];
  for (const series of received.packets) {
    const times = series.at;
    const match = flow.isSeenOnce ? undefined
      : sent?.packets.find((each) => each.ssrc === series.ssrc);
    if (match && match.count) {
      const began = sendTimes([match]);
      const sequence = series.column("sequence");
      const first = match.column("sequence")[0];
      const unwrapped = unwrapper(16);
      let offset = null;
      for (let index = 0; index < times.length; index += 1) {
        const whole = unwrapped(sequence[index]);
        if (offset === null) {
          offset = first + ((((sequence[index] - first) % 65536) + 98304) % 65536) - 32768;
        }
        const when = began.get(whole + offset);
        if (when === undefined) continue;
        at.push(times[index]);
        value.push((times[index] - when) * 1e3);
      }
      continue;
    }
    const stamps = series.column("rtpTime");
    const unwrapped = unwrapper(32);
    const late = [];
    let least = Infinity;
    for (let index = 0; index < times.length; index += 1) {
      late.push(times[index] - unwrapped(stamps[index]) / flow.clockRate);
      least = Math.min(least, late[index]);
    }
    for (let index = 0; index < times.length; index += 1) {
      at.push(times[index]);
      value.push((late[index] - least) * 1e3);
    }
  }
  flow.delays = { at, value };
  return flow.delays;
}

/** The value at a share of a list: 0.5 gives the median. */
export function quantile(values, share) {
  if (!values.length) return NaN;
  const sorted = Float64Array.from(values).sort();
  return sorted[Math.min(Math.floor(share * sorted.length), sorted.length - 1)];
}

/** The least, the greatest and the last value of a curve between two times. */
export function extent({ at, value }, from, to) {
  let [low, high] = [Infinity, -Infinity];
  for (let index = lowerBound(at, from); index < at.length && at[index] <= to; index += 1) {
    low = Math.min(low, value[index]);
    high = Math.max(high, value[index]);
  }
  return [low, high];
}
