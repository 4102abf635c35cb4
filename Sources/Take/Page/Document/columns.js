// The columns of numbers that the page carries: see PageColumn.swift for how they are written.
import { lowerBound, upperBound } from "./basics.js";

/** Units of the times in columns, in a second. */
const unitsPerSecond = 1e5;

/** The bytes that a text in base64 holds, which were compressed (RFC 1951). */
export async function unpacked(base64) {
  if (!base64) return new Uint8Array();
  const text = atob(base64);
  const packed = new Uint8Array(text.length);
  for (let index = 0; index < text.length; index += 1) packed[index] = text.charCodeAt(index);
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** How many numbers are read at once where somebody waits meanwhile. */
const piece = 32_768;

/** Reads the numbers of one column, a piece at a time. */
function* numbers(bytes, [start, length, coding], count, scale = 1) {
  const values = new Float64Array(count);
  const end = Math.min(start + length, bytes.length);
  const state = { at: start, last: 0 };
  for (let first = 0; first < count; first += piece) {
    if (first) yield;
    fillNumbers(values, first, Math.min(first + piece, count), bytes, end, state, coding, scale);
  }
  return values;
}

function fillNumbers(values, first, limit, bytes, end, state, coding, scale) {
  let { at, last } = state;
  for (let index = first; index < limit && at < end; index += 1) {
    let byte = bytes[at];
    at += 1;
    let number = byte & 127;
    // Most numbers have one byte or two, which integers hold.
    if (byte > 127 && at < end) {
      byte = bytes[at];
      at += 1;
      number |= (byte & 127) << 7;
    }
    if (byte < 128) number = (number >>> 1) ^ -(number & 1);
    else {
      let factor = 16384;
      while (byte > 127 && at < end) {
        byte = bytes[at];
        at += 1;
        number += (byte & 127) * factor;
        factor *= 128;
      }
      number = number % 2 ? -(number + 1) / 2 : number / 2;
    }
    if (coding === 1) number = last += number;
    values[index] = number * scale;
  }
  state.at = at;
  state.last = last;
}

/** How long a bin of an overview is, in seconds. */
export const binSeconds = 0.5;

/**
 * What a page knows of a long series before it has its values: what came in each bin that had
 * anything. Sums are taken to grow evenly within a bin.
 */
class Overview {
  #columns;
  #growths = new Map();

  constructor(places, bytes) {
    const [start, length] = places.bin;
    // Each number ends with a byte without the highest bit.
    const bins = bytes.subarray(start, start + length)
      .reduce((sum, byte) => sum + (byte < 128 ? 1 : 0), 0);
    this.#columns = Object.fromEntries(Object.entries(places).map(([name, place]) =>
      [name, finished(numbers(bytes, place, bins))]));
    this.at = this.#columns.bin.map((bin) => bin * binSeconds);
    /** What was worked out of it, by names. */
    this.derived = new Map();
  }

  /** The values of the bins. */
  column(name) { return this.#columns[name]; }

  /** The sum of all bins. */
  total(name) { return this.#columns[name].reduce((sum, value) => sum + value, 0); }

  /** A sum at the beginning and at the end of each bin, and their times. */
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

/** What is worked out of more values than these waits until nothing else is to do. */
export const manyAtOnce = 20_000;

/** Does all of some work that could be done in pieces. */
export function finished(work) {
  let step = work.next();
  while (!step.done) step = work.next();
  return step.value;
}

/** What a map has under a name; it is made when it is first asked for. */
export function once(map, name, made) {
  if (!map.has(name)) map.set(name, made());
  return map.get(name);
}

/**
 * Many values of one thing; what is needed of it is read when it is. Of a long one there is an
 * overview first; then its values are read, and what lanes need is worked out of them, while the
 * overview goes on standing for them; then they take its place.
 */
export class Series {
  #bytes;
  /** Where the bytes stand among those that the places of columns count. */
  #begin = 0;
  #columns = new Map();
  #sums = null;

  constructor({ overview, ...facts }, bytes) {
    Object.assign(this, facts);
    this.places = facts.columns;
    this.#bytes = bytes;
    const isThere = Object.values(this.places).every(([start, length]) =>
      start + length <= bytes.length);
    /** What there is of it while its values are still to come; else null. */
    this.overview = overview && !isThere ? new Overview(overview, bytes) : null;
    /** Whether its values can be read, also where the overview still stands for them. */
    this.isRead = !this.isWaiting;
    /** What was worked out of its values, by names, until there are more of them. */
    this.derived = new Map();
    /** Whether values were added, as those of a recording are. */
    this.hasGrown = false;
  }

  /** Whether an overview stands for its values. */
  get isWaiting() { return this.overview !== null; }

  /**
   * Takes the bytes that stand behind those it has, with its values, and reads what is needed of
   * them first, a piece at a time.
   */
  * complete(bytes) {
    this.#begin = this.#bytes.length;
    this.#bytes = bytes;
    for (const name of this.what === "frames" ? ["at", "flags", "measure"] : ["at"]) {
      yield* this.#read(name);
    }
    if (this.what === "packets") yield* this.#sum();
    this.isRead = true;
  }

  /** From now on there is no overview, but its values. */
  settle() { this.overview = null; }

  * #read(name) {
    if (this.#columns.has(name)) return this.#columns.get(name);
    const [start, ...more] = this.places[name] ?? [];
    const values = start === undefined ? new Float64Array(this.count)
      : yield* numbers(this.#bytes, [start - this.#begin, ...more], this.count,
        name === "at" ? 1 / unitsPerSecond : 1);
    this.#columns.set(name, values);
    return values;
  }

  /** The values of a column, read a piece at a time. */
  * reading(name) { return yield* this.#read(name); }

  /** The values of a column. */
  column(name) {
    if (!this.#columns.has(name)) {
      if (!this.isRead) throw new Error(`${name} of ${this.what} is still to come`);
      finished(this.#read(name));
    }
    return this.#columns.get(name);
  }

  /**
   * Whether something that is worked out of all values is there, or quickly is: what is recorded
   * just now is worked out each time, and waited for.
   */
  isReadyWith(name) {
    return this.count <= manyAtOnce || this.hasGrown || this.derived.has(name);
  }

  /** The times in seconds. */
  get at() { return this.column("at"); }

  /** The size of a packet in bytes, which shares its column with the marker when it is RTP. */
  sizeOf(index) {
    const size = this.column("size")[index];
    return this.protocol === "rtp" ? Math.floor(size / 2) : size;
  }

  /** Sums of sizes: of all before each place. */
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

  /** The places of what is between two times. */
  range(from, to) {
    const at = this.at;
    const first = lowerBound(at, from);
    return [first, upperBound(at, to, first)];
  }

  /** What is known of the last one at or before a time; -1 for none. */
  before(time) { return upperBound(this.at, time) - 1; }

  /** Adds what came since. */
  append(later) {
    const names = new Set([...Object.keys(this.places), ...this.#columns.keys()]);
    const whole = [...names].map((name) => {
      const joined = new Float64Array(this.count + later.count);
      joined.set(this.column(name));
      joined.set(later.column(name), this.count);
      return [name, joined];
    });
    this.count += later.count;
    this.#columns = new Map(whole);
    this.#sums = null;
    this.derived.clear();
    this.hasGrown = true;
  }
}
