// SQL on the take: an answer as a table, and as a lane of one's own that stays in the address.
import { button, counted, make, place } from "./basics.js";
import { setAddressPart } from "./clock.js";
import { addOwnLane, fillBoard } from "./board.js";
import { curveLane, spanLane, tickLane } from "./kinds.js";
import { askJSON } from "./server.js";
import { shellWord, take } from "./take.js";

const examples = [
  ["round trips", "SELECT at_ns, round_trip_ms FROM round_trip"],
  ["key frames",
    "SELECT at_ns, kind || ' of ' || size FROM frame WHERE key = 1 AND kind = 'video'"],
  ["freezes", "SELECT from_ns, to_ns, gap_ms || ' ms' FROM freeze"],
  ["states", "SELECT from_ns, to_ns, machine || ': ' || state FROM state_time"],
];

const query = {};

export function makeQuery() {
  const box = place("sql");
  if (take.form !== "served") {
    box.replaceChildren(make("div", { class: "card" },
      make("p", {}, "A page in a file cannot ask. These do:"),
      make("code", { class: "command" }, `retake open ${shellWord(take.file)}`),
      make("code", { class: "command" }, `retake sql ${shellWord(take.file)} "SELECT * FROM state_time"`),
      make("h3", {}, "What this page asked"),
      ...Object.entries(take.queries).map(([title, sql]) =>
        make("details", {}, make("summary", {}, title), make("pre", { tabindex: 0 }, sql)))));
    return;
  }
  query.text = make("textarea", { rows: 5, id: "query", "aria-label": "SQL", spellcheck: "false" });
  query.text.value = examples[0][1];
  query.text.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) runQuery();
  });
  query.result = make("div", { id: "answer" });
  query.note = make("span", { role: "status" });
  box.replaceChildren(make("div", { class: "card" },
    make("p", {},
      "Columns at_ns and a number make a curve, at_ns and a text make events, from_ns, to_ns and "
      + "a text make spans. A column peer may stand among them."),
    query.text,
    make("div", { class: "tools" },
      button("Run", runQuery, { id: "run-query" }),
      button("Draw as a lane", () => drawQuery(query.text.value), { id: "draw-query" }),
      examples.map(([title, sql]) => button(title, () => {
        query.text.value = sql;
        runQuery();
      })), query.note),
    query.result));
}

async function answer(sql) {
  return askJSON("sql", { name: take.name }, { method: "POST", body: sql });
}

async function runQuery() {
  query.note.textContent = "…";
  try {
    const { columns, rows, isCut } = await answer(query.text.value);
    query.note.textContent = `${counted(rows.length, "row")}${isCut ? ", the first of more" : ""}`;
    query.result.replaceChildren(make("table", { class: "grid" },
      make("thead", {}, make("tr", {}, columns.map((name) => make("th", { scope: "col" }, name)))),
      make("tbody", {}, rows.slice(0, 500).map((row) => make("tr", {},
        row.map((value) => make("td", {}, value === null ? "" : String(value).slice(0, 300))))))));
  } catch (error) {
    // What stood there answered another question.
    query.result.replaceChildren();
    query.note.textContent = error.message;
  }
}

/** Draws the answer of a query as a lane. */
export async function drawQuery(sql) {
  if (take.form !== "served" || !sql) return;
  try {
    const lane = ownLane(sql, await answer(sql));
    addOwnLane(lane);
    setAddressPart("sql", sql);
    fillBoard();
    if (query.note) query.note.textContent = "drawn at the top of the call";
  } catch (error) {
    if (query.note) query.note.textContent = error.message;
  }
}

/** What form an answer has: spans, a curve or events. */
function ownLane(sql, { columns, rows }) {
  const column = (name) => columns.indexOf(name);
  const others = columns.map((_, index) => index).filter(
    (index) => !["peer", "at_ns", "from_ns", "to_ns"].includes(columns[index]));
  const title = (row) => others.map((index) => row[index]).filter((value) =>
    value !== null).join(", ");
  const more = { label: "SQL", sql };
  if (column("from_ns") >= 0 && column("to_ns") >= 0) {
    return spanLane("SQL", rows.map((row) => ({
      from: row[column("from_ns")] / 1e9, to: row[column("to_ns")] / 1e9, text: title(row),
        tone: "data",
    })), more);
  }
  const at = column("at_ns");
  if (at < 0 || !others.length) throw new Error("a lane needs at_ns and a value, or from_ns, to_ns and a text");
  const sorted = rows.filter((row) => typeof row[at] === "number").sort((a, b) => a[at] - b[at]);
  const times = Float64Array.from(sorted, (row) => row[at] / 1e9);
  const number = others.find((index) => sorted.every((row) => typeof row[index] === "number"));
  if (number === undefined || !sorted.length) {
    return tickLane("SQL", [{
      at: times, tone: "data", name: "row", text: (index) => title(sorted[index]),
    }], more);
  }
  return curveLane("SQL", columns[number], [{
    at: times, value: Float64Array.from(sorted, (row) => row[number]), tone: "data",
  }], more);
}
