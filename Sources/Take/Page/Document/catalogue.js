// The takes of a folder: who, when, how long, and what is worst in each.
import { byteCount, digits, duration, make, place, button } from "./basics.js";
import { askJSON, token } from "./server.js";

const catalogue = { takes: [], folder: "", by: "start", isDown: true, words: "" };

const columns = [
  ["state", "", (entry) => (entry.isLive ? 0 : 1)],
  ["name", "take", (entry) => entry.label || entry.name],
  ["peers", "who", (entry) => entry.peers ?? ""],
  ["start", "when", (entry) => entry.start ?? ""],
  ["seconds", "how long", (entry) => entry.seconds ?? 0],
  ["bytes", "size", (entry) => entry.bytes ?? 0],
  ["worst", "worst finding", (entry) => entry.details?.findings.severity ?? -1],
  ["spark", "on the wire", (entry) => Math.max(0, ...(entry.details?.spark ?? []))],
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
  box.append(make("div", { class: "card" }, make("div", { class: "tools" }, words),
    make("table", { class: "grid", id: "takes" },
      make("thead", {}, make("tr", {}, columns.map(([key, title]) => make("th", { scope: "col" },
        title ? button(title, () => sortBy(key), { class: "plain", "data-sort": key }) : "")))),
      catalogue.body)));
  fillCatalogue();
  for (const entry of catalogue.takes) await addDetails(entry);
  setInterval(refreshCatalogue, 3000);
}

async function readCatalogue() {
  const found = await askJSON("takes");
  const known = new Map(catalogue.takes.map((entry) => [entry.name, entry]));
  catalogue.folder = found.folder;
  catalogue.takes = found.takes.map((entry) =>
    ({ ...entry, details: known.get(entry.name)?.details }));
}

async function addDetails(entry) {
  if (entry.error || entry.details) return;
  try {
    entry.details = await askJSON("details", { name: entry.name });
  } catch (error) {
    entry.error = String(error.message);
  }
  fillCatalogue();
}

async function refreshCatalogue() {
  if (document.hidden) return;
  await readCatalogue();
  fillCatalogue();
  for (const entry of catalogue.takes) await addDetails(entry);
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
      `${entry.name} ${entry.label} ${entry.peers} ${entry.details?.findings.worst ?? ""}`
      .toLowerCase().includes(catalogue.words))
    .sort((a, b) => Number(b.isLive ?? false) - Number(a.isLive ?? false)
      || (catalogue.isDown ? order(b, a) : order(a, b)));
  catalogue.body.replaceChildren(...shown.map(takeRow));
}

const tonesOfSeverity = ["good", "off", "off", "wait", "bad", "bad"];

function takeRow(entry) {
  if (entry.error) {
    return make("tr", {}, make("td"), make("td", {}, entry.name),
      make("td", { colspan: columns.length - 2 }, entry.error));
  }
  const state = entry.isLive ? make("span", { class: "pill wait" }, "live")
    : entry.isComplete ? "" : make("span", { class: "pill off" }, "cut short");
  const link = new URLSearchParams({ ...(token ? { token } : {}), take: entry.name });
  const found = entry.details?.findings;
  return make("tr", {},
    make("td", {}, state),
    make("td", {}, make("a", { href: `#${link}`, target: "_self", "data-take": entry.name },
      entry.label || entry.name), entry.label ? make("div", {}, make("small", {}, entry.name))
        : null),
    make("td", {}, entry.peers), make("td", {}, entry.start.replace("T", " ").slice(0, 19)),
    make("td", { class: "number" }, duration(entry.seconds)),
    make("td", { class: "number" }, byteCount(entry.bytes)),
    make("td", {}, found ? make("span", {
      class: `pill ${tonesOfSeverity[found.severity]}`, title: found.evidence ?? "",
    }, found.worst
      ? `${found.level}: ${found.worst}${found.count > 1 ? `, ${found.count - 1} more` : ""}`
        : "none") : "…"),
    make("td", {}, sparkline(entry.details?.spark)));
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
