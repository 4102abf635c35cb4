// Tests the facets that filter a catalogue.
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  chosenIn, chosenText, countsOf, facets, matches,
} from "../../Sources/Take/Page/Document/catalogue/facets.js";

const entry = (name, seconds, facts) => ({
  name, seconds, details: facts && { findings: { count: 0, severity: 0 }, spark: [], facts: {
    codecs: [], findings: [], relay: false, ...facts } },
});
const takes = [
  entry("good.take", 8, { codecs: ["opus", "vp8"], loss_share: 0, round_trip_ms: 20 }),
  entry("lossy.take", 75, { codecs: ["opus", "h264"], findings: ["freeze", "loss"], relay: true,
    loss_share: 0.061, concealed_share: 0.02, frozen_ns: 2e9, round_trip_ms: 400 }),
  entry("unread.take", 700),
];
const names = (chosen, words) =>
  takes.filter((each) => matches(each, chosen, words)).map(({ name }) => name.split(".")[0]);
const choice = (parts) => chosenIn(new URLSearchParams(parts));
const counts = (id, chosen = choice("")) => Object.fromEntries(
  countsOf(facets.find((facet) => facet.id === id), takes, chosen)
    .map(({ value, count }) => [value, count]));

test("any selected value of a facet matches, and every facet must match", () => {
  assert.deepEqual(names(choice("")), ["good", "lossy", "unread"]);
  assert.deepEqual(names(choice("codec=vp8,h264")), ["good", "lossy"]);
  assert.deepEqual(names(choice("codec=vp8,h264&finding=loss")), ["lossy"]);
  assert.deepEqual(names(choice("codec=vp8&finding=loss")), []);
  assert.deepEqual(names(choice(""), "LOSSY h264"), ["lossy"]);
});

test("values are grouped into bands; unknown values are in none", () => {
  assert.deepEqual(counts("loss"),
    { none: 1, "below 1 %": 0, "1 to 5 %": 0, "5 % and more": 1 });
  assert.equal(counts("trip")["300 ms and more"], 1);
  assert.deepEqual(counts("relay"), { direct: 1, "over a relay": 1 });
  assert.equal(counts("length")["10 min and more"], 1);
  assert.equal(counts("concealed")["1 to 5 %"], 1);
});

test("a facet counts the matches within the other facets' selections", () => {
  const chosen = choice("codec=vp8");
  assert.deepEqual(counts("codec", chosen), { opus: 2, h264: 1, vp8: 1 });
  assert.deepEqual(counts("finding", chosen), {});
  assert.deepEqual(counts("finding"), { freeze: 1, loss: 1 });
});

test("a selection is part of the address, whatever its values", () => {
  const chosen = choice("");
  chosen.get("codec").add("a,b & c=%");
  chosen.get("loss").add("5 % and more");
  const parts = new URLSearchParams(chosenText(chosen));
  assert.deepEqual(chosenIn(new URLSearchParams(parts.toString())), chosen);
  assert.deepEqual([...choice("codec=%25zz").get("codec")], ["%zz"]);
});
