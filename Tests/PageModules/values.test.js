// Tests searches in sorted values, and the peaks, extents and quantiles of series.
import assert from "node:assert/strict";
import { test } from "node:test";
import { extent, peaksOf, quantile } from "../../Sources/Take/Page/Document/measures/peaks.js";
import {
  lowerBound, nextBound, upperBound,
} from "../../Sources/Take/Page/Document/shared/search.js";
import { generator } from "./generator.js";

test("bounds are where a walk finds them", () => {
  const next = generator(3);
  const values = Float64Array.from({ length: 500 }, () => next() % 200).sort();
  for (let limit = -1; limit <= 201; limit += 0.5) {
    const lower = values.filter((value) => value < limit).length;
    assert.equal(lowerBound(values, limit), lower);
    assert.equal(upperBound(values, limit), values.filter((value) => value <= limit).length);
    for (const low of [0, Math.floor(lower / 2), lower]) {
      assert.equal(nextBound(values, limit, low), lower);
    }
  }
  assert.equal(lowerBound([], 1), 0);
});

test("peaks of any range equal those of a scan over each value", () => {
  const next = generator(5);
  const values = Float64Array.from({ length: 5000 }, () => next() % 997);
  const [high, low] = [peaksOf(values), peaksOf(values, -1)];
  for (let round = 0; round < 400; round += 1) {
    const first = next() % 4999;
    const last = first + 1 + (next() % (5000 - first));
    const run = values.subarray(first, last);
    assert.equal(values[high.place(first, last)], Math.max(...run));
    assert.equal(values[low.place(first, last)], Math.min(...run));
    // Of several equal values, the first is found.
    assert.equal(high.place(first, last), first + run.indexOf(Math.max(...run)));
  }
});

test("the extent of a curve is that of its values between two times", () => {
  for (const length of [100, 6000]) {
    const at = Float64Array.from({ length }, (_, index) => index / 10);
    const value = at.map((time) => Math.sin(time));
    const inside = [...value].filter((_, index) => at[index] >= 2 && at[index] <= 7);
    assert.deepEqual(extent({ at, value }, 2, 7), [Math.min(...inside), Math.max(...inside)]);
  }
  assert.deepEqual(extent({ at: [], value: [] }, 0, 1), [Infinity, -Infinity]);
});

test("quantiles", () => {
  assert.equal(quantile([5, 1, 3], 0.5), 3);
  assert.equal(quantile([1, 2, 3, 4], 1), 4);
  assert.ok(Number.isNaN(quantile([], 0.5)));
});
