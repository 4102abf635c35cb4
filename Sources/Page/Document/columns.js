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

/** The numbers of one column. */
function numbers(bytes, [start, length, coding], count, scale = 1) {
  const values = new Float64Array(count);
  const end = Math.min(start + length, bytes.length);
  let at = start;
  let last = 0;
  for (let index = 0; index < count && at < end; index += 1) {
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
  return values;
}

/** Many values of one thing; what is needed of it is read when it is. */
export class Series {
  #bytes;
  #columns = new Map();
  #sums = null;

  constructor(facts, bytes) {
    Object.assign(this, facts);
    this.places = facts.columns;
    this.#bytes = bytes;
  }

  /** The values of a column. */
  column(name) {
    if (!this.#columns.has(name)) {
      const place = this.places[name];
      this.#columns.set(
        name,
        place
          ? numbers(this.#bytes, place, this.count, name === "at" ? 1 / unitsPerSecond : 1)
          : new Float64Array(this.count));
    }
    return this.#columns.get(name);
  }

  /** The times in seconds. */
  get at() { return this.column("at"); }

  /** The sizes of packets in bytes, which share their column with the marker when they are RTP. */
  get sizes() {
    if (!this.#columns.has("sizes")) {
      const size = this.column("size");
      this.#columns.set(
        "sizes", this.protocol === "rtp" ? size.map((value) => Math.floor(value / 2)) : size);
    }
    return this.#columns.get("sizes");
  }

  /** Sums of sizes: of all before each place. */
  get sums() {
    if (!this.#sums) {
      const size = this.column("size");
      const isHalved = this.protocol === "rtp";
      const sums = new Float64Array(size.length + 1);
      for (let index = 0; index < size.length; index += 1) {
        sums[index + 1] = sums[index] + (isHalved ? size[index] >>> 1 : size[index]);
      }
      this.#sums = sums;
    }
    return this.#sums;
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
    names.delete("sizes");
    const whole = [...names].map((name) => {
      const joined = new Float64Array(this.count + later.count);
      joined.set(this.column(name));
      joined.set(later.column(name), this.count);
      return [name, joined];
    });
    this.count += later.count;
    this.#columns = new Map(whole);
    this.#sums = null;
    this.derived = undefined;
  }
}
