// The takes of a folder: who, when, how long, and what is worst in each.
import { byteCount, digits, duration, make, percent, place, button } from "./basics.js";
import { askJSON, token } from "./server.js";

const catalogue = {
  takes: [], folder: "", by: "start", isDown: true, words: "", chosen: new Map(), facets: new Map(),
};

const columns = [
  ["state", "", (entry) => (entry.isLive ? 0 : 1)],
  ["name", "take", (entry) => entry.label || entry.name],
  ["peers", "who", (entry) => entry.peers ?? ""],
  ["start", "when", (entry) => entry.start ?? ""],
  ["seconds", "how long", (entry) => entry.seconds ?? 0],
  ["bytes", "size", (entry) => entry.bytes ?? 0],
  ["codecs", "codecs", (entry) => entry.codecs ?? ""],
  ["trip", "round trip", (entry) => entry.roundTrip ?? -1],
  ["loss", "loss", (entry) => entry.loss ?? -1],
  ["concealed", "concealed", (entry) => entry.concealed ?? -1],
  ["worst", "worst finding", (entry) => entry.findings?.severity ?? -1],
  ["spark", "on the wire", (entry) => Math.max(0, ...(entry.spark ?? []))],
];

/** The limits that a value is above, in words. */
const above = (value, limits, words) =>
  limits.filter((limit) => value > limit).map((limit) => `> ${words(limit)}`);

/** What takes can be chosen by: a title, and what an entry has of it. */
const facets = [
  ["finding", (entry) => entry.findings?.ids ?? []],
  ["codec", (entry) => (entry.codecs ?? "").split(" ").filter((word) => word !== "")],
  ["path", (entry) => entry.isRelayed === undefined ? []
    : [entry.isRelayed ? "over a relay" : "without a relay"]],
  ["loss", (entry) => above(entry.loss, [0, 0.01, 0.05, 0.2], percent)],
  ["concealed", (entry) => above(entry.concealed, [0, 0.01, 0.05, 0.2], percent)],
  ["round trip", (entry) => above(entry.roundTrip, [0.05, 0.1, 0.2, 0.4], duration)],
  ["length", (entry) => above(entry.seconds, [10, 60, 600, 3600], duration)],
];

/** Shows the catalogue in the place of a take. */
export async function showCatalogue() {
  place("call").hidden = true;
  const box = make("section", { class: "view", id: "catalogue" });
  place("call").before(box);
  await readCatalogue();
  place("title").textContent = catalogue.folder;
  document.title = `${catalogue.folder} · Retake`;
  place("facts").textContent = `${digits(catalogue.takes.length, 6)} takes`;
  const words = make("input", {
    type: "search", placeholder: "Takes with …", "aria-label": "Takes with these words",
    id: "take-words",
    input: () => {
      catalogue.words = words.value.toLowerCase();
      fillCatalogue();
    },
  });
  catalogue.body = make("tbody");
  const choices = facets.map(([title]) => {
    const choice = make("select", {
      "aria-label": `Takes by ${title}`, "data-facet": title,
      change: () => {
        catalogue.chosen.set(title, choice.value);
        fillCatalogue();
      },
    });
    catalogue.facets.set(title, choice);
    return choice;
  });
  box.append(make("div", { class: "card" }, make("div", { class: "tools" }, words, choices),
    make("table", { class: "grid", id: "takes" },
      make("thead", {}, make("tr", {}, columns.map(([key, title]) => make("th", { scope: "col" },
        title ? button(title, () => sortBy(key), { class: "plain", "data-sort": key }) : "")))),
      catalogue.body)));
  fillFacets();
  fillCatalogue();
  setInterval(refreshCatalogue, 3000);
}

async function readCatalogue() {
  const found = await askJSON("takes");
  catalogue.folder = found.folder;
  catalogue.takes = found.takes;
  fillFacets();
}

function fillFacets() {
  for (const [title, words] of facets) fillFacet(catalogue.facets.get(title), title, words);
}

/** Offers what there is, with how many takes have it. */
function fillFacet(choice, title, words) {
  if (!choice) return;
  const counts = new Map();
  for (const word of catalogue.takes.flatMap(words)) counts.set(word, (counts.get(word) ?? 0) + 1);
  const chosen = catalogue.chosen.get(title) ?? "";
  if (chosen && !counts.has(chosen)) counts.set(chosen, 0);
  // A list that is open stays so where nothing is new.
  const known = JSON.stringify([...counts]);
  if (choice.dataset.words === known) return;
  choice.dataset.words = known;
  const byNumber = new Intl.Collator("en", { numeric: true }).compare;
  choice.replaceChildren(make("option", { value: "" }, `any ${title}`),
    ...[...counts.keys()].sort(byNumber).map((word) =>
      make("option", { value: word, selected: word === chosen }, `${word} (${counts.get(word)})`)));
}

async function refreshCatalogue() {
  if (document.hidden) return;
  await readCatalogue();
  fillCatalogue();
}

function sortBy(key) {
  catalogue.isDown = catalogue.by === key ? !catalogue.isDown : key === "start" || key === "worst";
  catalogue.by = key;
  fillCatalogue();
}

function fillCatalogue() {
  const value = columns.find(([key]) => key === catalogue.by)[2];
  const order = (a, b) => (value(a) < value(b) ? -1 : value(a) > value(b) ? 1 : 0);
  const shown = catalogue.takes
    .filter((entry) =>
      `${entry.name} ${entry.label} ${entry.peers} ${entry.findings?.worst ?? ""}`
      .toLowerCase().includes(catalogue.words))
    .filter((entry) => facets.every(([title, words]) =>
      !catalogue.chosen.get(title) || words(entry).includes(catalogue.chosen.get(title))))
    .sort((a, b) => Number(b.isLive ?? false) - Number(a.isLive ?? false)
      || (catalogue.isDown ? order(b, a) : order(a, b)));
  catalogue.body.replaceChildren(...shown.map(takeRow));
}

const tonesOfSeverity = ["good", "off", "off", "wait", "bad", "bad"];

function takeRow(entry) {
  if (entry.error || entry.isWaiting) {
    return make("tr", {}, make("td"), make("td", {}, entry.name),
      make("td", { colspan: columns.length - 2 }, entry.error ?? "…"));
  }
  const number = (value, words) =>
    make("td", { class: "number" }, value === undefined ? "" : words(value));
  const state = entry.isLive ? make("span", { class: "pill wait" }, "live")
    : entry.isComplete ? "" : make("span", { class: "pill off" }, "cut short");
  const link = new URLSearchParams({ ...(token ? { token } : {}), take: entry.name });
  const found = entry.findings;
  return make("tr", {},
    make("td", {}, state),
    make("td", {}, make("a", { href: `#${link}`, target: "_self", "data-take": entry.name },
      entry.label || entry.name), entry.label ? make("div", {}, make("small", {}, entry.name))
        : null),
    make("td", {}, entry.peers), make("td", {}, entry.start.replace("T", " ").slice(0, 19)),
    make("td", { class: "number" }, duration(entry.seconds)),
    make("td", { class: "number" }, byteCount(entry.bytes)),
    make("td", {}, entry.codecs), number(entry.roundTrip, duration), number(entry.loss, percent),
    number(entry.concealed, percent),
    make("td", {}, found ? make("span", {
      class: `pill ${tonesOfSeverity[found.severity]}`, title: found.evidence ?? "",
    }, found.worst
      ? `${found.level}: ${found.worst}${found.count > 1 ? `, ${found.count - 1} more` : ""}`
        : "none") : "…"),
    make("td", {}, sparkline(entry.spark)));
}

const svgSpace = "http://www.w3.org/2000/svg";

function sparkline(values) {
  const svg = document.createElementNS(svgSpace, "svg");
  svg.setAttribute("viewBox", "0 0 120 22");
  svg.setAttribute("width", "120");
  svg.setAttribute("height", "22");
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", "How much went over the wire when");
  if (!values) return svg;
  const most = Math.max(1, ...values);
  const path = document.createElementNS(svgSpace, "path");
  path.setAttribute("d", values.map((value, index) =>
    `${index ? "L" : "M"}${(index * 120) / (values.length - 1)} ${20 - (value / most) * 18}`).join(""));
  path.setAttribute("class", "spark");
  svg.append(path);
  return svg;
}
