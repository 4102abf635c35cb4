// Delays of packets, and how long frames waited for their decoder.
import { outcomeOf } from "./frames.js";

/** The number of packets or frames per piece of work. */
const delaysInPiece = 8192;

/** Arrival of the first packet of each frame, by RTP timestamp. */
function* firstArrivals(packets) {
  const first = new Map();
  for (const series of packets) {
    const at = yield* series.reading("at");
    const time = yield* series.reading("rtpTime");
    for (let index = 0; index < at.length; index += 1) {
      if (index % delaysInPiece === delaysInPiece - 1) yield;
      // The packets of a frame are mostly consecutive, so most are skipped without a search.
      if (index && time[index] === time[index - 1]) continue;
      if (!first.has(time[index])) first.set(time[index], at[index]);
    }
  }
  return first;
}

/** The wait of each frame from its first packet to the decoder, in ms; computed in pieces. */
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

/**
 * Returns a function that unwraps numbers of `bits` bits and returns their distance from the first
 * one.
 */
function unwrapper(bits) {
  const unused = 32 - bits;
  let last = null;
  let whole = 0;
  return (value) => {
    // Sign-extends the lowest bits.
    if (last !== null) whole += ((value - last) << unused) >> unused;
    last = value;
    return whole;
  };
}

/** The send time of packets by unwrapped sequence number; undefined if a packet was not sent. */
function* sendTimes({ at, count }, sequence) {
  const numbers = new Float64Array(count);
  const unwrapped = unwrapper(16);
  let [low, high] = [Infinity, -Infinity];
  for (let index = 0; index < count; index += 1) {
    if (index % delaysInPiece === delaysInPiece - 1) yield;
    // Both sides count from the first sequence number of the sender.
    numbers[index] = unwrapped(sequence[index]) + sequence[0];
    low = Math.min(low, numbers[index]);
    high = Math.max(high, numbers[index]);
  }
  // Sparse numbers would make a list mostly empty, so they are stored in a map.
  const list = high - low < 4 * count + 65536 ? new Float64Array(high - low + 1).fill(NaN) : null;
  const map = new Map();
  for (let index = 0; index < count; index += 1) {
    if (index % delaysInPiece === delaysInPiece - 1) yield;
    const key = numbers[index] - low;
    if (!list) {
      if (!map.has(key)) map.set(key, at[index]);
    } else if (Number.isNaN(list[key])) list[key] = at[index];
  }
  return (number) => (list ? list[number - low] : map.get(number - low));
}

/**
 * The one-way delay of packets in ms, measured if the take has both ends. Otherwise it is relative
 * to the fastest packet by RTP timestamps; computed in pieces.
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
