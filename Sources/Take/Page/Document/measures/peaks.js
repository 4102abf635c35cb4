// Minima and maxima in ranges of many values, found by blocks.
import { lowerBound, upperBound } from "../shared/search.js";
import { finished } from "../take/columns.js";

/** The number of values, or of blocks, per block. */
const blockLength = 16;

/** The number of blocks per piece of work. */
const blocksInPiece = 2048;

/** The length of a range from which peaks are faster than a scan. */
const manyValues = 2000;

/** Finds the maximum of any range of values without scanning it. */
class Peaks {
  #values;
  #sign;
  /** The index of the maximum of each block, then of each block of blocks, and so on. */
  #levels = [];

  /** A sign of -1 finds minima. */
  constructor(values, sign) {
    this.#values = values;
    this.#sign = sign;
  }

  /** Scans all values once, in pieces. */
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

  /** The index of the maximum in a range; the first if there are several. */
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

/** The peaks of an array, cached as long as it lives; a sign of -1 finds minima. */
export function peaksOf(values, sign = 1) {
  const known = peaks.get(sign);
  if (!known.has(values)) finished(readPeaks(values, sign));
  return known.get(values);
}

/** Computes the peaks of an array in pieces. */
export function* readPeaks(values, sign = 1) {
  if (peaks.get(sign).has(values)) return;
  const made = new Peaks(values, sign);
  yield* made.read();
  peaks.get(sign).set(values, made);
}

/** A quantile of a list: 0.5 is the median. */
export function quantile(values, share) {
  if (!values.length) return NaN;
  const sorted = Float64Array.from(values).sort();
  return sorted[Math.min(Math.floor(share * sorted.length), sorted.length - 1)];
}

/** The minimum and maximum of a curve between two times. */
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
