// Tests rates, freezes and delays computed from packets and frames.
import assert from "node:assert/strict";
import { test } from "node:test";
import { delays, waits } from "../../Sources/Take/Page/Document/measures/delays.js";
import {
  frameRate, isKeyFrame, outcomeOf, shownFrames,
} from "../../Sources/Take/Page/Document/measures/frames.js";
import {
  carried, rateAt, ratesOf, rateWindow,
} from "../../Sources/Take/Page/Document/measures/rates.js";
import { finished } from "../../Sources/Take/Page/Document/take/columns.js";
import { Series } from "../../Sources/Take/Page/Document/take/series.js";
import { seriesOfColumns } from "./generator.js";

const series = (facts, columns) => new Series(...seriesOfColumns(facts, columns));

/** A thousand bytes every 10 ms. */
const steady = () => series({ what: "packets", protocol: "other" }, {
  at: Array.from({ length: 1000 }, (_, index) => index * 1000), size: Array(1000).fill(1000),
});

test("a steady stream has its rate at any time and width", () => {
  const list = [steady()];
  assert.equal(carried(list, 0.005, 1.005), 100_000);
  assert.ok(Math.abs(rateAt(list, 5, 1) - 800_000) <= 8000);
  const width = 200;
  const rates = ratesOf(list, { width, time: (x) => 2 + (x * 4) / width }, 0.5);
  for (const rate of rates) assert.ok(Math.abs(rate - 800_000) <= 16_000, `${rate}`);
});

test("the window of a rate is never less than three pixels", () => {
  assert.equal(rateWindow(10, 0.01), 0.2);
  assert.equal(rateWindow(0.4, 0.001), 0.01);
  assert.equal(rateWindow(600, 1), 3);
});

/** Flags of frames: the outcome times two, plus one for a key frame. */
const [decoded, notDecoded, key] = [2, 10, 1];

test("over a freeze no frames are counted", () => {
  // 25 frames in a second for two seconds, nothing for one, then 25 again.
  const at = [...Array(50).keys()].map((index) => index * 4000);
  at.push(...at.map((time) => time + 50 * 4000 + 100_000));
  const frames = series({ what: "frames", direction: "in", kind: "video" },
    { at, flags: at.map((_, index) => decoded + (index ? 0 : key)) });
  const { freezes } = shownFrames(frames);
  assert.equal(freezes.length, 1);
  assert.ok(Math.abs(freezes[0][0] - 1.96) < 1e-9 && Math.abs(freezes[0][1] - 3) < 1e-9);
  assert.ok(Math.abs(frameRate(frames, 0.5, 1.5) - 25) < 0.01);
  assert.equal(frameRate(frames, 2.2, 2.8), 0);
});

test("flags state a frame's outcome", () => {
  assert.equal(outcomeOf(decoded), "decoded");
  assert.equal(outcomeOf(notDecoded + key), "not decoded");
  assert.equal(outcomeOf(99), "other");
  assert.ok(isKeyFrame(decoded + key) && !isKeyFrame(decoded));
});

const way = (at, sequence, more = {}) => ({
  packets: [series({ what: "packets", protocol: "rtp", ssrc: 7 },
    { at, size: at.map(() => 200), sequence, rtpTime: at.map((time) => time * 0.9) })],
  ...more,
});

test("delays between both ends are matched by sequence number, across wraps", () => {
  const count = 40;
  const numbers = Array.from({ length: count }, (_, index) => (65_520 + index) % 65_536);
  const sent = way(Array.from({ length: count }, (_, index) => index * 2000), numbers);
  // Packet 10 is lost; the others take 30 ms, except the last one with 80 ms.
  const came = [...Array(count).keys()].filter((index) => index !== 10);
  const received = way(came.map((index) => index * 2000 + (index === count - 1 ? 8000 : 3000)),
    came.map((index) => numbers[index]));
  const { at, value } = finished(delays({ sent, received, clockRate: 90_000 }));
  assert.equal(at.length, count - 1);
  assert.ok([...value].slice(0, -1).every((each) => Math.abs(each - 30) < 1e-6));
  assert.ok(Math.abs(value.at(-1) - 80) < 1e-6);
});

test("delays at one end are given relative to the smallest", () => {
  const received = way([0, 2000, 4500, 6000], [1, 2, 3, 4]);
  received.packets[0] = series({ what: "packets", protocol: "rtp", ssrc: 7 }, {
    at: [0, 2000, 4500, 6000], size: [1, 1, 1, 1], sequence: [1, 2, 3, 4],
    // Timestamps wrap around (RFC 3550 section 5.1).
    rtpTime: [2 ** 32 - 1800, 0, 1800, 3600],
  });
  const { value } = finished(delays({ received, clockRate: 90_000 }));
  assert.deepEqual([...value].map((each) => Math.round(each)), [0, 0, 5, 0]);
});

test("a frame waits from its first packet on", () => {
  const received = way([1000, 1200, 5000], [1, 2, 3]);
  received.packets[0] = series({ what: "packets", protocol: "rtp", ssrc: 7 }, {
    at: [1000, 1200, 5000], size: [1, 1, 1], sequence: [1, 2, 3], rtpTime: [900, 900, 1800],
  });
  received.frames = series({ what: "frames", direction: "in" }, {
    at: [3000, 9000, 9500], rtpTime: [900, 1800, 2700], flags: [decoded, decoded, decoded],
  });
  const { at, value } = finished(waits(received));
  assert.deepEqual([...value].map((each) => Math.round(each)), [20, 40]);
  assert.equal(at.length, 2);
});
