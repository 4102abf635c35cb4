// The takes of a folder: participants, date, length, and the worst finding of each.
import { button, make, place } from "../shared/elements.js";
import { askJSON, currentToken } from "../shared/server.js";
import { byteCount, counted, duration, percent } from "../shared/words.js";
import { chosenIn, chosenText, matches } from "./facets.js";
import { facetMenus } from "./narrowing.js";
import { sparkline } from "./sparkline.js";

/** The interval between requests for the list of takes, in milliseconds. */
const refreshing = 3000;

const catalogue = {
  /** @type {Entry[]} */
  takes: [],
  folder: "", by: "start", isDown: true, words: "",
  /** @type {Map<string, Set<string>>} */
  chosen: new Map(),
  /** The existing rows by take name, with the data that they show. */
  rows: new Map(),
  body: null, note: null, menus: null,
};

/**
 * The columns: a key to sort by, a title, and the value that is sorted by.
 * @type {[key: string, title: string, value: (entry: Entry) => string | number][]}
 */
const columns = [
  ["state", "", (entry) => (entry.isLive ? 0 : 1)],
  ["name", "take", (entry) => entry.label || entry.name],
  ["peers", "who", (entry) => entry.peers ?? ""],
  ["start", "when", (entry) => entry.start ?? ""],
  ["seconds", "how long", (entry) => entry.seconds ?? 0],
  ["bytes", "size", (entry) => entry.bytes ?? 0],
  ["worst", "worst finding", (entry) => entry.details?.findings.severity ?? -1],
  ["codecs", "codecs", (entry) => entry.details?.facts?.codecs.join(" ") ?? ""],
  ["loss", "loss", (entry) => entry.details?.facts?.loss_share ?? -1],
  ["concealed", "concealed", (entry) => entry.details?.facts?.concealed_share ?? -1],
  ["frozen", "frozen", (entry) => entry.details?.facts?.frozen_ns ?? -1],
  ["trip", "round trip", (entry) => entry.details?.facts?.round_trip_ms ?? -1],
  ["spark", "on the wire", (entry) => Math.max(0, ...(entry.details?.spark ?? []))],
];

/** Numeric columns, which are right-aligned. */
const numbers = ["seconds", "bytes", "loss", "concealed", "frozen", "trip"];

/** Columns that are sorted in descending order first. */
const fromGreatest = ["start", "worst", "loss", "concealed", "frozen", "trip"];

/** Shows the catalogue instead of a take. */
export async function showCatalogue() {
  place("call").hidden = true;
  const box = make("section", { class: "view", id: "catalogue" });
  place("call").before(box);
  const parts = new URLSearchParams(location.hash.slice(1));
  catalogue.chosen = chosenIn(parts);
  catalogue.words = parts.get("words") ?? "";
  await readCatalogue();
  place("title").textContent = catalogue.folder;
  document.title = `${catalogue.folder} · Retake`;
  const words = make("input", {
    type: "search", placeholder: "Takes with …", "aria-label": "Takes with these words",
    id: "take-words",
    input: () => {
      catalogue.words = words.value;
      narrow();
    },
  });
  words.value = catalogue.words;
  catalogue.menus = facetMenus(catalogue.chosen, narrow);
  catalogue.note = make("span", { role: "status", id: "take-count" });
  catalogue.body = make("tbody");
  box.append(make("div", { class: "card" },
    make("div", { class: "tools" }, words, catalogue.menus.elements, catalogue.note),
    make("div", { class: "wide", tabindex: 0, role: "region", "aria-label": "Takes" },
      make("table", { class: "grid", id: "takes" },
        make("thead", {}, make("tr", {}, columns.map(([key, title]) => make("th", {
          scope: "col", class: numbers.includes(key) ? "number" : false,
        }, title ? button(title, () => sortBy(key), { class: "plain", "data-sort": key }) : "")))),
        catalogue.body))));
  fillCatalogue();
  setInterval(refreshCatalogue, refreshing);
}

async function readCatalogue() {
  const found = await askJSON("takes");
  catalogue.folder = found.folder;
  catalogue.takes = found.takes;
  place("facts").textContent = counted(catalogue.takes.length, "take");
}

async function refreshCatalogue() {
  if (document.hidden) return;
  await readCatalogue();
  fillCatalogue();
}

function sortBy(key) {
  catalogue.isDown = catalogue.by === key ? !catalogue.isDown : fromGreatest.includes(key);
  catalogue.by = key;
  fillCatalogue();
}

/** Applies words and facets, and stores them in the address. */
function narrow() {
  const parts = new URLSearchParams({
    ...(currentToken() ? { token: currentToken() } : {}),
    ...(catalogue.words ? { words: catalogue.words } : {}), ...chosenText(catalogue.chosen),
  });
  window.history.replaceState(null, "",
    `${parts}` ? `#${parts}` : location.pathname + location.search);
  fillCatalogue();
}

function fillCatalogue() {
  const { takes, chosen, words, isDown } = catalogue;
  const value = columns.find(([key]) => key === catalogue.by)[2];
  const order = (a, b) => (value(a) < value(b) ? -1 : value(a) > value(b) ? 1 : 0);
  const shown = takes.filter((entry) => matches(entry, chosen, words))
    .sort((a, b) => Number(b.isLive ?? false) - Number(a.isLive ?? false)
      || (isDown ? order(b, a) : order(a, b)));
  catalogue.menus.fill(takes, words);
  catalogue.note.textContent = shown.length === takes.length ? ""
    : `${shown.length} of ${counted(takes.length, "take")}`;
  for (const button of catalogue.body.parentElement.tHead.querySelectorAll("button")) {
    const isSorted = button.dataset.sort === catalogue.by;
    button.closest("th").ariaSort = isSorted ? (isDown ? "descending" : "ascending") : null;
  }
  const rows = shown.map(rowOf);
  // Rows that stay where they are keep the focus.
  const { children } = catalogue.body;
  if (rows.length !== children.length || rows.some((row, at) => row !== children[at])) {
    const focused = document.activeElement;
    catalogue.body.replaceChildren(...rows);
    if (focused instanceof HTMLElement && catalogue.body.contains(focused)) focused.focus();
  }
}

/** The row of a take, which is rebuilt only if its data changed. */
function rowOf(entry) {
  const facts = JSON.stringify(entry);
  const known = catalogue.rows.get(entry.name);
  if (known?.facts === facts) return known.row;
  const row = takeRow(entry);
  catalogue.rows.set(entry.name, { facts, row });
  return row;
}

const tonesOfSeverity = ["good", "off", "off", "wait", "bad", "bad"];

function takeRow(entry) {
  if (entry.error || entry.isWaiting) {
    return make("tr", {}, make("td"), make("td", {}, entry.name),
      make("td", { colspan: columns.length - 2 }, entry.error ?? "…"));
  }
  const state = entry.isLive ? make("span", { class: "pill wait" }, "live")
    : entry.isComplete ? "" : make("span", { class: "pill off" }, "cut short");
  const link = new URLSearchParams({
    ...(currentToken() ? { token: currentToken() } : {}), take: entry.name,
  });
  const facts = entry.details?.facts;
  const number = (value, words) =>
    make("td", { class: "number" }, value === undefined ? "" : words(value));
  return make("tr", {},
    make("td", {}, state),
    make("td", {}, make("a", { href: `#${link}`, target: "_self", "data-take": entry.name },
      entry.label || entry.name), entry.label ? make("div", {}, make("small", {}, entry.name))
      : null),
    make("td", {}, entry.peers), make("td", {}, entry.start.replace("T", " ").slice(0, 19)),
    number(entry.seconds, duration), number(entry.bytes, byteCount),
    make("td", {}, findingPill(entry.details?.findings)),
    make("td", {}, facts ? [...facts.codecs, ...(facts.relay ? ["over a relay"] : [])].join(", ")
      : ""),
    number(facts?.loss_share, (share) => percent(share)
      + (facts.packets_refused ? `, ${facts.packets_refused} refused` : "")),
    number(facts?.concealed_share, percent),
    number(facts?.frozen_ns, (time) => (time ? duration(time / 1e9) : "never")),
    number(facts?.round_trip_ms, (time) => duration(time / 1e3)),
    make("td", {}, sparkline(entry.details?.spark)));
}

/** The first finding of a take, and how many more are medium or worse. */
function findingPill(found) {
  if (!found) return "…";
  const more = found.count > 1 ? `, ${found.count - 1} more` : "";
  const where = [found.side, found.confidence].filter(Boolean).join(", ");
  const cause = where ? ` (${where})` : "";
  return make("span", {
    class: `pill ${tonesOfSeverity[found.severity]}`, title: found.evidence ?? "",
  }, found.worst ? `${found.level}: ${found.worst}${cause}${more}` : "none");
}
