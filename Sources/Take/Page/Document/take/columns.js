// Columns of numbers as stored in the page; PageSeries.swift describes the encoding.

/** The number of time units in columns per second. */
export const unitsPerSecond = 1e5;

/** The number of values decoded per piece. */
export const piece = 32_768;

/** Decompresses bytes from base64 text (RFC 1951). */
export async function unpacked(base64) {
  if (!base64) return new Uint8Array();
  const text = atob(base64);
  const packed = new Uint8Array(text.length);
  for (let index = 0; index < text.length; index += 1) packed[index] = text.charCodeAt(index);
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** Decodes one column in pieces. */
export function* numbers(bytes, [start, length, coding], count, scale = 1) {
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
    // Nearly all numbers occupy one or two bytes, for which 32-bit arithmetic is enough.
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

/** The number of values above which computations wait until the browser is idle. */
export const manyAtOnce = 20_000;

/** Runs a generator to completion immediately. */
export function finished(work) {
  let step = work.next();
  while (!step.done) step = work.next();
  return step.value;
}

/** Returns the entry of a map, creating it if it is missing. */
export function once(map, name, made) {
  if (!map.has(name)) map.set(name, made());
  return map.get(name);
}
