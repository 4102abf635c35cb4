// The values of one series over the whole take, such as the packets of a stream.
import { lowerBound, upperBound } from "../shared/search.js";
import { finished, manyAtOnce, numbers, piece, unitsPerSecond } from "./columns.js";

/** The length of an overview's bin in seconds. */
export const binSeconds = 0.5;

/**
 * Represents a long series while its values load: the totals of each non-empty bin, which are
 * assumed to grow evenly within the bin.
 */
class Overview {
  #columns;
  #growths = new Map();

  constructor(places, bytes) {
    const [start, length] = places.bin;
    // Each number ends with a byte whose highest bit is not set, so these bytes are counted.
    const bins = bytes.subarray(start, start + length)
      .reduce((sum, byte) => sum + (byte < 128 ? 1 : 0), 0);
    this.#columns = Object.fromEntries(Object.entries(places).map(([name, place]) =>
      [name, finished(numbers(bytes, place, bins))]));
    this.at = this.#columns.bin.map((bin) => bin * binSeconds);
    /** Results computed from the overview, by name. */
    this.derived = new Map();
  }

  /** The values of a column, one per bin. */
  column(name) { return this.#columns[name]; }

  /** The sum of all bins. */
  total(name) { return this.#columns[name].reduce((sum, value) => sum + value, 0); }

  /** The running total at the start and end of each bin, with the times. */
  growth(name) {
    if (!this.#growths.has(name)) this.#growths.set(name, this.#grown(name));
    return this.#growths.get(name);
  }

  #grown(name) {
    const values = this.#columns[name];
    const at = new Float64Array(2 * values.length);
    const count = new Float64Array(2 * values.length);
    let sum = 0;
    for (let index = 0; index < values.length; index += 1) {
      at[2 * index] = this.at[index];
      at[2 * index + 1] = this.at[index] + binSeconds;
      count[2 * index] = sum;
      sum += values[index];
      count[2 * index + 1] = sum;
    }
    return { at, count };
  }
}

/**
 * The values of one series. Columns are decoded on first use. A long series begins with an overview:
 * its values are decoded, and what lanes need is computed from them, while the overview is still
 * drawn; then they replace it.
 */
export class Series {
  /** The kind of values: packets, lost, frames, curve, rtcp or messages. */
  what = "";
  /** The number of values in each column. */
  count = 0;
  /** The facts that identify the series among others of its kind. */
  peer; direction; protocol; ssrc; track; kind; type; channel; codec; of; isMedia;
  /** The divisor that converts values of a curve to its unit. */
  divisor = 1;
  /** The reading from which further bytes are requested. */
  session;
  #bytes;
  /** The offset of `#bytes` in the block that column locations refer to. */
  #begin = 0;
  #columns = new Map();
  #sums = null;

  constructor({ overview, ...facts }, bytes) {
    Object.assign(this, facts);
    this.places = facts.columns;
    this.#bytes = bytes;
    const isThere = Object.values(this.places).every(([start, length]) =>
      start + length <= bytes.length);
    /** The overview that is drawn while the values load; otherwise null. */
    this.overview = overview && !isThere ? new Overview(overview, bytes) : null;
    /** Whether the values can be read, even while the overview is still drawn. */
    this.isRead = !this.isWaiting;
    /** Results computed from the values, by name; dropped when values are added. */
    this.derived = new Map();
    /** Whether values were added during a recording. */
    this.hasGrown = false;
  }

  /** Whether the overview is drawn instead of the values. */
  get isWaiting() { return this.overview !== null; }

  /** Receives the remaining bytes and decodes the columns that are needed first, in pieces. */
  * complete(bytes) {
    this.#begin = this.#bytes.length;
    this.#bytes = bytes;
    for (const name of this.what === "frames" ? ["at", "flags", "measure"] : ["at"]) {
      yield* this.#read(name);
    }
    if (this.what === "packets") yield* this.#sum();
    this.isRead = true;
  }

  /** Replaces the overview by the values. */
  settle() { this.overview = null; }

  * #read(name) {
    if (this.#columns.has(name)) return this.#columns.get(name);
    const [start, length, coding] = this.places[name] ?? [];
    const values = start === undefined ? new Float64Array(this.count)
      : yield* numbers(this.#bytes, [start - this.#begin, length, coding], this.count,
        name === "at" ? 1 / unitsPerSecond : 1);
    this.#columns.set(name, values);
    return values;
  }

  /** Decodes a column in pieces and returns its values. */
  * reading(name) { return yield* this.#read(name); }

  /** The values of a column. */
  column(name) {
    if (!this.#columns.has(name)) {
      if (!this.isRead) throw new Error(`${name} of ${this.what} is not loaded yet`);
      finished(this.#read(name));
    }
    return this.#columns.get(name);
  }

  /**
   * Whether a result computed from all values is available or cheap. During a recording, the result
   * is computed each time.
   */
  isReadyWith(name) {
    return this.count <= manyAtOnce || this.hasGrown || this.derived.has(name);
  }

  /** The times in seconds. */
  get at() { return this.column("at"); }

  /** The size of a packet in bytes. For RTP the column also holds the marker in its lowest bit. */
  sizeOf(index) {
    const size = this.column("size")[index];
    return this.protocol === "rtp" ? Math.floor(size / 2) : size;
  }

  /** Running totals of sizes: entry n is the sum of the first n. */
  get sums() {
    if (!this.#sums) {
      this.column("size");
      finished(this.#sum());
    }
    return this.#sums;
  }

  * #sum() {
    const size = yield* this.#read("size");
    const half = this.protocol === "rtp" ? 0.5 : 1;
    const sums = new Float64Array(size.length + 1);
    for (let index = 0; index < size.length; index += 1) {
      if (index % piece === piece - 1) yield;
      sums[index + 1] = sums[index] + Math.floor(size[index] * half);
    }
    this.#sums = sums;
  }

  /** The indices of the values between two times: first, and one past the last. */
  range(from, to) {
    const at = this.at;
    const first = lowerBound(at, from);
    return [first, upperBound(at, to, first)];
  }

  /** The index of the last value at or before a time; -1 if there is none. */
  before(time) { return upperBound(this.at, time) - 1; }

  /** Appends the values of a later reading. */
  append(later) {
    const names = new Set([...Object.keys(this.places), ...this.#columns.keys()]);
    const whole = new Map();
    for (const name of names) {
      const joined = new Float64Array(this.count + later.count);
      joined.set(this.column(name));
      joined.set(later.column(name), this.count);
      whole.set(name, joined);
    }
    this.count += later.count;
    this.#columns = whole;
    this.#sums = null;
    this.derived.clear();
    this.hasGrown = true;
  }
}
