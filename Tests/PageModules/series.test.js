// Tests the columns of a take, and the series made of them.
import assert from "node:assert/strict";
import { test } from "node:test";
import { deflateRawSync } from "node:zlib";
import { finished, numbers, unpacked } from "../../Sources/Take/Page/Document/take/columns.js";
import { Series } from "../../Sources/Take/Page/Document/take/series.js";
import { column, generator, seriesOfColumns } from "./generator.js";

test("a column returns the numbers that were written", () => {
  const next = generator(11);
  const values = [0, -1, 1, 63, -64, 64, 8191, -8192, 8192, 2 ** 31, -(2 ** 40), 2 ** 45 + 1,
    ...Array.from({ length: 2000 }, () =>
      (next() % 2 ? 1 : -1) * (next() % 2 ** (next() % 31)) + 0)];
  for (const coding of [0, 1]) {
    const bytes = Uint8Array.from(column(values, coding));
    const read = finished(numbers(bytes, [0, bytes.length, coding], values.length));
    assert.deepEqual([...read], values);
  }
});

test("a truncated column has zeros, and nothing is read beyond it", () => {
  const bytes = Uint8Array.from([...column([1000, 2000]), 99]);
  const read = finished(numbers(bytes, [0, bytes.length - 1, 0], 4));
  assert.deepEqual([...read], [1000, 2000, 0, 0]);
  assert.equal(finished(numbers(Uint8Array.of(), [0, 9, 1], 2)).length, 2);
});

test("long columns are read in pieces", () => {
  const values = Array.from({ length: 100_000 }, (_, index) => index * 3);
  const bytes = Uint8Array.from(column(values, 1));
  const work = numbers(bytes, [0, bytes.length, 1], values.length);
  let pieces = 0;
  let step = work.next();
  while (!step.done) {
    pieces += 1;
    step = work.next();
  }
  assert.equal(pieces, 3);
  assert.equal(step.value[99_999], 299_997);
});

test("the bytes of a page are unpacked", async () => {
  const bytes = Uint8Array.from({ length: 3000 }, (_, index) => index % 7);
  const text = deflateRawSync(bytes).toString("base64");
  assert.deepEqual(await unpacked(text), bytes);
  assert.equal((await unpacked("")).length, 0);
});

test("packets of RTP share a column of their size with the marker", () => {
  const series = new Series(...seriesOfColumns({ what: "packets", protocol: "rtp" },
    { at: [100_000, 200_000, 300_000], size: [201, 400, 601] }));
  assert.deepEqual([...series.at], [1, 2, 3].map((second) => second * 100_000 * (1 / 1e5)));
  assert.equal(series.sizeOf(0), 100);
  assert.deepEqual([...series.sums], [0, 100, 300, 600]);
  assert.deepEqual(series.range(1.5, 3.5), [1, 3]);
  assert.equal(series.before(0.5), -1);
  assert.equal(series.before(2), 1);
});

test("a series grows by the new values", () => {
  const facts = { what: "packets", protocol: "stun" };
  const series = new Series(...seriesOfColumns(facts, { at: [1, 2], size: [10, 20] }));
  assert.deepEqual([...series.sums], [0, 10, 30]);
  series.append(new Series(...seriesOfColumns(facts, { at: [3], size: [30] })));
  assert.equal(series.count, 3);
  assert.deepEqual([...series.sums], [0, 10, 30, 60]);
  assert.ok(series.hasGrown);
});

test("an overview replaces values that have not arrived", () => {
  const [facts, values] = seriesOfColumns({ what: "packets", protocol: "other" },
    { at: [10_000, 20_000, 120_000], size: [100, 200, 400] });
  const bins = [column([0, 2], 0), column([300, 400], 0)];
  const early = Uint8Array.from(bins.flat());
  const moved = Object.fromEntries(Object.entries(facts.columns).map(([name, [start, ...more]]) =>
    [name, [start + early.length, ...more]]));
  const overview = { bin: [0, bins[0].length, 0], bytes: [bins[0].length, bins[1].length, 0] };
  const series = new Series({ ...facts, columns: moved, overview }, early);
  assert.ok(series.isWaiting && !series.isRead);
  assert.equal(series.overview.total("bytes"), 700);
  assert.deepEqual([...series.overview.growth("bytes").at], [0, 0.5, 1, 1.5]);
  assert.throws(() => series.column("at"), /not loaded yet/);
  finished(series.complete(values));
  assert.ok(series.isRead && series.isWaiting);
  series.settle();
  assert.ok(!series.isWaiting);
  assert.deepEqual([...series.sums], [0, 100, 300, 700]);
});
