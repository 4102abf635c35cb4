// Tests numbers, times and names in words.
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  bitRate, byteCount, counted, digits, duration, percent, possessive, shellWord,
} from "../../Sources/Take/Page/Document/shared/words.js";

test("numbers have only meaningful digits", () => {
  assert.equal(digits(0.012345), "0.012");
  assert.equal(digits(1.2345), "1.23");
  assert.equal(digits(123.45), "123");
  assert.equal(digits(1234567), "1\u202f234\u202f567");
  assert.equal(digits(NaN), "–");
  assert.equal(digits(-Infinity), "–");
});

test("durations are in the unit that fits", () => {
  assert.equal(duration(0.0035), "3.5\u00a0ms");
  assert.equal(duration(0.3456), "346\u00a0ms");
  assert.equal(duration(2.42), "2.42\u00a0s");
  assert.equal(duration(725), "12 min 5 s");
  assert.equal(duration(7380), "2 h 3 min");
});

test("rates, sizes and shares", () => {
  assert.equal(bitRate(85_400), "85.4\u00a0kbit/s");
  assert.equal(bitRate(1_250_000), "1.25\u00a0Mbit/s");
  assert.equal(byteCount(812), "812\u00a0B");
  assert.equal(byteCount(1234), "1.23\u00a0kB");
  assert.equal(byteCount(24_000_000), "24\u00a0MB");
  assert.equal(percent(0.281), "28.1\u00a0%");
  assert.equal(percent(0.0123), "1.2\u00a0%");
});

test("counts have their nouns, names their genitive", () => {
  assert.equal(counted(1, "packet"), "1 packet");
  assert.equal(counted(12_345, "packet"), "12\u202f345 packets");
  assert.equal(counted(2, "person", "people"), "2 people");
  assert.equal(possessive("caller"), "caller's");
  assert.equal(possessive("Smiths"), "Smiths'");
});

test("a shell gets a name unchanged", () => {
  assert.equal(shellWord("a/b-1.take"), "a/b-1.take");
  assert.equal(shellWord("two words; rm 'x'"), "'two words; rm '\\''x'\\'''");
});
