// Bit rates of packets.
import { nextBound, upperBound } from "../shared/search.js";

/** The running total at a time, interpolated. */
export function countAt({ at, count }, time) {
  if (!at.length || time <= at[0]) return 0;
  const after = upperBound(at, time);
  if (after >= at.length) return count[count.length - 1];
  const share = (time - at[after - 1]) / (at[after] - at[after - 1]);
  return count[after - 1] + share * (count[after] - count[after - 1]);
}

/** The number of bytes that several series carried between two times. */
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

/** The bit rate around a time, over a window. */
export const rateAt = (list, time, window) =>
  (8 * carried(list, time - window / 2, time + window / 2)) / window;

/** The bit rate around the middle of each pixel, over a window. */
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

/** Adds the rates of an interpolated running total. */
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

/** The averaging window in seconds, for a view's length in seconds and its seconds per pixel. */
export const rateWindow = (length, pixel) => Math.max(3 * pixel, Math.min(0.2, length / 40));
