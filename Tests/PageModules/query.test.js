// Tests the SQL tab: history, search in the schema, results as lanes.
import assert from "node:assert/strict";
import { test } from "node:test";
import { createHistory } from "../../Sources/Take/Page/Document/sql/history.js";
import { ownLane } from "../../Sources/Take/Page/Document/sql/ownlane.js";
import { matching } from "../../Sources/Take/Page/Document/sql/schema.js";

function storage(text = null) {
  const values = new Map(text === null ? [] : [["retake.queries", text]]);
  return {
    values,
    getItem: (key) => values.get(key) ?? null,
    setItem: (key, value) => values.set(key, value),
    removeItem: (key) => values.delete(key),
  };
}

test("a history has each query once, the latest first, and outlives its page", () => {
  const kept = storage();
  const history = createHistory(kept);
  for (const sql of ["SELECT 1", "SELECT 2", " SELECT 1 ", "", "   "]) history.add(sql);
  assert.deepEqual(history.list(), ["SELECT 1", "SELECT 2"]);
  assert.deepEqual(createHistory(kept).list(), ["SELECT 1", "SELECT 2"]);
  for (let number = 0; number < 80; number += 1) history.add(`SELECT ${number}`);
  assert.equal(history.list().length, 50);
  history.clear();
  assert.equal(kept.values.size, 0);
});

test("keys move back through the history, and return to the typed text", () => {
  const history = createHistory(storage());
  history.add("SELECT 1");
  history.add("SELECT 2");
  assert.equal(history.step(1, "typed"), "SELECT 2");
  assert.equal(history.step(1, "SELECT 2"), "SELECT 1");
  assert.equal(history.step(1, "SELECT 1"), null);
  assert.equal(history.step(-1, "SELECT 1"), "SELECT 2");
  assert.equal(history.step(-1, "SELECT 2"), "typed");
  assert.equal(history.step(-1, "typed"), null);
  // The query just run is already listed.
  assert.equal(history.step(1, "SELECT 2"), "SELECT 1");
});

test("a history works with any storage content, or without storage", () => {
  for (const text of ["no JSON", "{}", "[1, null, \"SELECT 3\"]"]) {
    createHistory(storage(text)).add("SELECT 4");
  }
  assert.deepEqual(createHistory(storage("[1, \"SELECT 3\"]")).list(), ["SELECT 3"]);
  const full = { ...storage(), setItem() { throw new Error("QuotaExceededError"); } };
  const history = createHistory(full);
  history.add("SELECT 5");
  assert.deepEqual(history.list(), ["SELECT 5"]);
  assert.deepEqual(createHistory(undefined).list(), []);
});

test("a search shows relations by their names, else their columns", () => {
  const relation = (name, ...columns) => ({
    name, kind: "view", comment: "", columns: columns.map((each) => ({ name: each, comment: "" })),
  });
  const all = [relation("packet", "ssrc", "size"), relation("loss", "ssrc", "lost")];
  const found = (text) => matching(all, text).map(({ name, columns }) =>
    [name, ...columns.map((column) => column.name)].join(" "));
  assert.deepEqual(found(""), ["packet ssrc size", "loss ssrc lost"]);
  assert.deepEqual(found("PACK"), ["packet ssrc size"]);
  assert.deepEqual(found("ssrc"), ["packet ssrc", "loss ssrc"]);
  assert.deepEqual(found("loss lost"), ["loss lost"]);
  assert.deepEqual(found("nothing"), []);
});

test("an answer is a lane of spans, a curve or events", () => {
  const spans = ownLane("", { columns: ["from_ns", "to_ns", "state"], rows: [[1e9, 2e9, "up"]] });
  assert.deepEqual(spans.spans.map(({ from, to, text }) => [from, to, text]), [[1, 2, "up"]]);
  const curve = ownLane("", { columns: ["peer", "at_ns", "ms"], rows: [[1, 2e9, 5], [1, 1e9, 4]] });
  assert.equal(curve.unit, "ms");
  assert.equal(curve.at(1.5), "4\u00a0ms");
  const events = ownLane("", { columns: ["at_ns", "what"], rows: [[1e9, "a"], [null, "b"]] });
  assert.deepEqual([...events.marks], [1]);
  assert.throws(() => ownLane("", { columns: ["what"], rows: [] }), /at_ns/);
});
