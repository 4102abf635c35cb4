// The SQL tab: a query, and its result as a table, a file, or a lane that is stored in the address.
import { addOwnLane, fillBoard } from "../board/board.js";
import { setAddressPart } from "../clock/address.js";
import { button, make, place } from "../shared/elements.js";
import { ask, askJSON } from "../shared/server.js";
import { counted, shellWord } from "../shared/words.js";
import { take } from "../take/take.js";
import { examples } from "./examples.js";
import { createHistory } from "./history.js";
import { ownLane } from "./ownlane.js";
import { schemaPanel } from "./schema.js";

/** The maximum number of rows shown; the file has all of them. */
const rowsShown = 500;

/** The elements of the tab; null without a server. */
let tab = null;

let history = createHistory(undefined);

/** Counts queries, so that a late result of an earlier query is dropped. */
let asked = 0;

export function makeQuery() {
  const box = place("sql");
  if (take.form !== "served") {
    box.replaceChildren(commands());
    return;
  }
  history = createHistory(browserStorage());
  const text = make("textarea", {
    rows: 6, id: "query", "aria-label": "SQL", "aria-describedby": "query-keys",
    spellcheck: "false", keydown: chooseByKey,
  });
  text.value = history.list()[0] ?? examples[0].sql;
  const save = button("CSV", downloadAnswer, {
    id: "csv-query", title: "Save the whole answer as comma-separated values",
  });
  tab = {
    text,
    note: make("span", { role: "status", id: "query-note" }),
    result: make("div", { id: "answer", tabindex: 0, role: "region", "aria-label": "Answer" }),
    examples: menu("query-examples", "Examples"),
    history: menu("query-history", "History"),
  };
  fillMenu(tab.examples, examples);
  fillHistory();
  box.replaceChildren(make("div", { class: "card query" },
    schemaPanel(insert),
    make("div", {},
      make("p", { id: "query-keys" },
        "Ctrl+Enter runs the query, Ctrl+↑ and Ctrl+↓ go through earlier ones. Columns at_ns and "
        + "a number draw a curve, at_ns and a text events, from_ns, to_ns and a text spans."),
      text,
      make("div", { class: "tools" },
        button("Run", runQuery, { id: "run-query" }),
        button("Draw as a lane", () => drawQuery(text.value), { id: "draw-query" }),
        save, tab.examples, tab.history, tab.note),
      tab.result)));
}

/** The tab of a page without a server. */
const commands = () => make("div", { class: "card" },
  make("p", {}, "A page in a file cannot run queries. These commands can:"),
  make("code", { class: "command" }, `retake open ${shellWord(take.file)}`),
  make("code", { class: "command" },
    `retake sql ${shellWord(take.file)} "SELECT * FROM state_time"`),
  make("h3", {}, "This page's queries"),
  ...Object.entries(take.queries).map(([title, sql]) =>
    make("details", {}, make("summary", {}, title), make("pre", { tabindex: 0 }, sql))));

/** The storage of the browser; undefined if it is refused. */
function browserStorage() {
  try {
    return window.localStorage;
  } catch {
    return undefined;
  }
}

/** A list of queries that opens below its name. */
const menu = (id, name) => make("details", {
  class: "menu", id,
  // Focus that leaves the list closes it.
  focusout: (event) => {
    const each = event.currentTarget;
    if (event.relatedTarget && !each.contains(event.relatedTarget)) each.open = false;
  },
  keydown: (event) => {
    if (event.key !== "Escape") return;
    event.stopPropagation();
    event.currentTarget.open = false;
    event.currentTarget.querySelector("summary").focus();
  },
}, make("summary", {}, name), make("ul"));

/** Fills a menu with queries that are inserted when chosen. */
function fillMenu(element, queries) {
  const item = (name, act, title) => make("li", {}, button(name, () => {
    element.open = false;
    act();
    tab.text.focus();
  }, { class: "plain", title }));
  element.querySelector("ul").replaceChildren(
    ...queries.map(({ name, sql }) => item(name, () => setText(sql), sql)),
    ...(element === tab.history ? [item("delete all", () => {
      history.clear();
      fillHistory();
    }, "Removes them from the browser")] : []));
}

function fillHistory() {
  const queries = history.list();
  fillMenu(tab.history, queries.map((sql) =>
    ({ name: sql.replace(/\s+/g, " ").slice(0, 80), sql })));
  tab.history.hidden = !queries.length;
}

function setText(sql) {
  tab.text.value = sql;
  tab.text.setSelectionRange(sql.length, sql.length);
}

/** Inserts a name at the caret, separated from the word before it. */
function insert(name) {
  const { text } = tab;
  const before = text.value.slice(0, text.selectionStart);
  text.setRangeText(/[\w"]$/.test(before) ? ` ${name}` : name, text.selectionStart,
    text.selectionEnd, "end");
  text.focus();
}

function chooseByKey(event) {
  if (!event.ctrlKey && !event.metaKey) return;
  if (event.key === "Enter") {
    event.preventDefault();
    runQuery();
  }
  const by = { ArrowUp: 1, ArrowDown: -1 }[event.key];
  if (!by) return;
  event.preventDefault();
  const found = history.step(by, tab.text.value);
  if (found !== null) setText(found);
}

const answer = (sql) => askJSON("sql", { name: take.name }, { method: "POST", body: sql });

async function runQuery() {
  const number = asked += 1;
  const sql = tab.text.value;
  tab.note.textContent = "…";
  try {
    const found = await answer(sql);
    if (number !== asked) return;
    history.add(sql);
    fillHistory();
    showAnswer(found);
  } catch (error) {
    if (number !== asked) return;
    // The previous result belongs to another query, so it is removed.
    tab.result.replaceChildren();
    tab.note.textContent = error.message;
  }
}

function showAnswer({ columns, rows, isCut }) {
  const shown = rows.slice(0, rowsShown);
  tab.note.textContent = counted(rows.length, "row")
    + (isCut ? ", and there are more" : "")
    + (rows.length > rowsShown ? `; ${rowsShown} of them are shown` : "");
  tab.result.replaceChildren(make("table", { class: "grid" },
    make("thead", {}, make("tr", {}, columns.map((name, index) => make("th", {
      scope: "col", class: typeof rows[0]?.[index] === "number" ? "number" : false,
    }, name)))),
    make("tbody", {}, shown.map((row) => make("tr", {}, row.map((value) =>
      make("td", { class: typeof value === "number" ? "number" : false },
        value === null ? "" : String(value).slice(0, 300))))))));
}

/** Saves the result of the query as a file. */
async function downloadAnswer() {
  const sql = tab.text.value;
  tab.note.textContent = "…";
  try {
    const reply = await ask("csv", { name: take.name }, { method: "POST", body: sql });
    const link = make("a", {
      href: URL.createObjectURL(await reply.blob()),
      download: `${take.file.replace(/\.take$/, "")}.csv`,
    });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
    history.add(sql);
    fillHistory();
    tab.note.textContent = `saved as ${link.download}`;
  } catch (error) {
    tab.result.replaceChildren();
    tab.note.textContent = error.message;
  }
}

/** Draws the result of a query as a lane. */
export async function drawQuery(sql) {
  if (take.form !== "served" || !sql) return;
  try {
    const lane = ownLane(sql, await answer(sql));
    addOwnLane(lane);
    setAddressPart("sql", sql);
    fillBoard();
    history.add(sql);
    if (tab) {
      fillHistory();
      tab.note.textContent = "drawn at the top of the call";
    }
  } catch (error) {
    if (!tab) return;
    tab.result.replaceChildren();
    tab.note.textContent = error.message;
  }
}
