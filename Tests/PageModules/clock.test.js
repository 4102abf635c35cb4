// Tests times in words, round times, and the clock that all lanes share.
import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import {
  clock, onClock, pan, point, release, select, show, zoom,
} from "../../Sources/Take/Page/Document/clock/clock.js";
import { ticks, timeText } from "../../Sources/Take/Page/Document/clock/times.js";
import { take } from "../../Sources/Take/Page/Document/take/take.js";

beforeEach(() => {
  Object.assign(take, { seconds: 10, start: "2026-11-21T10:39:00.500Z" });
  Object.assign(clock, { from: 0, to: 10, cursor: null, isHeld: false, isWall: false });
});

test("times have as many decimals as their step", () => {
  assert.equal(timeText(1.23456), "1.235 s");
  assert.equal(timeText(1.5, 0.5), "1.5 s");
  take.seconds = 4000;
  assert.equal(timeText(75.5, 0.1), "1:15.5");
  assert.equal(timeText(3725, 1), "1:02:05");
  clock.isWall = true;
  assert.equal(timeText(1.25, 0.01), "10:39:01.75");
});

test("ticks are round, inside the range, and about as many as requested", () => {
  for (const [from, to] of [[0, 1], [0.1234, 0.1239], [17, 900], [3600, 90_000]]) {
    const { step, at } = ticks(from, to, 8);
    assert.ok(at.length >= 2 && at.length <= 16, `${at.length}`);
    for (const each of at) {
      assert.ok(each >= from - 1e-9 && each <= to + step / 1e5);
      assert.ok(Math.abs(each / step - Math.round(each / step)) < 1e-6);
    }
  }
});

test("the view stays inside the take", () => {
  show(-5, 3);
  assert.deepEqual([clock.from, clock.to], [0, 8]);
  show(8, 20);
  assert.deepEqual([clock.from, clock.to], [0, 10]);
  show(4, 4);
  assert.ok(clock.to - clock.from > 0);
});

test("a zoom leaves the time where it is, a step moves by a part of what is shown", () => {
  zoom(0.5, 2);
  assert.deepEqual([clock.from, clock.to], [1, 6]);
  pan(0.2);
  assert.deepEqual([clock.from, clock.to], [2, 7]);
});

test("a held cursor moves only when it is set again", () => {
  let count = 0;
  onClock("cursor", () => { count += 1; });
  point(3, true);
  point(5);
  assert.equal(clock.cursor, 3);
  point(5, true);
  assert.equal(clock.cursor, 5);
  release();
  assert.equal(clock.cursor, null);
  assert.equal(count, 3);
  select(7, 2);
  assert.deepEqual(clock.selection, [2, 7]);
});
