// Minima and maxima of many values.
import { lowerBound, upperBound } from "../shared/search.js";
import { finished } from "../take/columns.js";

/** How many values, or blocks of them, make a block. */
const blockLength = 16;

/** How many blocks make a piece of work. */
const blocksInPiece = 2048;

/** From that length of a run on, peaks are quicker than a scan. */
const manyValues = 2000;

/** Finds the greatest of any run of values without a scan of the run. */
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

  /** Scans all values once, a piece at a time. */
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

/** A quantile of a list: 0.5 is the median. */
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
