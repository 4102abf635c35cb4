// Keyboard control: everything that the mouse can do, and more.
import { markLane } from "../board/pointer.js";
import { recolour } from "../board/redraw.js";
import { board } from "../board/state.js";
import { toggleWall, zoomToSelection } from "../board/tools.js";
import { setAddressPart } from "../clock/address.js";
import { clock, pan, point, release, select, show, showAll, visit, zoom } from "../clock/clock.js";
import { timeText } from "../clock/times.js";
import { announce, make, place } from "../shared/elements.js";
import { take } from "../take/take.js";
import { copyMarkdown } from "./aside.js";
import { copyLink } from "./copying.js";
import { findingSpans, findingText, visitFinding } from "./findings.js";
import { togglePlaying } from "./media.js";

const now = () => clock.cursor ?? clock.from;

/** The first of some times after the cursor, or the last before it. */
function neighbour(times, by) {
  const sorted = [...new Set(times)].sort((a, b) => a - b);
  const at = now();
  return by > 0 ? sorted.find((time) => time > at + 1e-6)
    : sorted.findLast((time) => time < at - 1e-6);
}

/** The span last shown, among those of all findings. */
let shownSpan = null;

/** Steps through all findings, starting with the worst. */
function nextFinding(by) {
  const spans = findingSpans();
  // The list of spans changes while a take grows, so the last shown span is looked up again.
  const at = shownSpan === null ? -1
    : spans.findIndex(({ finding, from, to }) => finding.rule === shownSpan.rule
      && finding.peer === shownSpan.peer && from === shownSpan.from && to === shownSpan.to);
  const found = at < 0 ? spans[by > 0 ? 0 : spans.length - 1] : spans[at + by];
  if (!found) {
    announce(spans.length ? "No more findings" : "There are no findings");
    return;
  }
  // Both times are stored, because two findings can begin at the same instant.
  const { finding, from, to } = found;
  shownSpan = { rule: finding.rule, peer: finding.peer, from, to };
  visitFinding(finding, found.index);
  announce(findingText(finding).slice(0, 120));
}

function nextState(by) {
  const changes = (take.states ?? []).map(([peer, machine, from, , text]) =>
    ({ peer, machine, from, text }));
  const at = neighbour(changes.map(({ from }) => from), by);
  const found = changes.find(({ from }) => from === at);
  if (!found) {
    announce("No more state changes");
    return;
  }
  visit(at);
  announce(`${timeText(at)} ${found.machine}: ${found.text}`);
}

/** Steps to the next mark of the marked lane, else to the next event. */
function step(by) {
  const marks = board.lanes.find((lane) => lane.id === board.marked?.id)?.marks;
  const at = neighbour(marks?.length ? marks : take.timeline.map(([time]) => time), by);
  if (at !== undefined) visit(at);
}

/** Marks the next lane and announces its value at the cursor. */
function nextLane(by) {
  const at = board.lanes.findIndex((lane) => lane.id === board.marked?.id);
  const lane = board.lanes[at < 0 ? 0 : at + by];
  if (!lane) return;
  markLane(lane);
  lane.element.scrollIntoView({ block: "nearest" });
  announce(`${lane.group.name}, ${lane.label}: ${lane.at(now()) || "nothing"}`);
}

const schemes = ["light dark", "dark", "light"];

function nextScheme() {
  const root = document.documentElement;
  const index = (schemes.indexOf(root.style.colorScheme || schemes[0]) + 1) % schemes.length;
  root.style.colorScheme = schemes[index];
  setAddressPart("scheme", index ? schemes[index] : "");
  recolour();
  announce(index ? `${schemes[index]} colours` : "system colours");
}

/** Sets the scheme that an address names. */
export function chooseScheme(name) {
  if (!schemes.slice(1).includes(name)) return;
  document.documentElement.style.colorScheme = name;
  setAddressPart("scheme", name);
}

const tabs = () => [...place("views").querySelectorAll("button")];

const help = () => /** @type {HTMLDialogElement} */ (place("help"));

/** @type {[key: string, what: string, act: () => void][]} */
const actions = [
  ["n", "next finding, beginning with the worst", () => nextFinding(1)],
  ["p", "previous finding", () => nextFinding(-1)],
  ["s", "next state change", () => nextState(1)],
  ["S", "previous state change", () => nextState(-1)],
  [".", "step to the next event in the marked lane, or in any lane", () => step(1)],
  [",", "step back", () => step(-1)],
  [" ", "play from the cursor, or pause", togglePlaying],
  ["j", "mark the lane below, and announce its value", () => nextLane(1)],
  ["k", "mark the lane above", () => nextLane(-1)],
  ["ArrowLeft", "earlier", () => pan(-0.2)],
  ["ArrowRight", "later", () => pan(0.2)],
  ["+", "zoom in", () => zoom(0.5, now())],
  ["-", "zoom out", () => zoom(2, now())],
  ["Home", "go to the beginning", () => show(0, clock.to - clock.from)],
  ["End", "go to the end", () => show(take.seconds - (clock.to - clock.from), take.seconds)],
  ["0", "show the whole take", showAll],
  ["[", "begin the selection at the cursor", () => select(now(), clock.selection?.[1] ?? clock.to)],
  ["]", "end the selection at the cursor", () => select(clock.selection?.[0] ?? clock.from, now())],
  ["z", "zoom to the selection", zoomToSelection],
  ["h", "hold or release the cursor", () => (clock.isHeld ? release() : point(now(), true))],
  ["Escape", "clear the selection and release the cursor", () => {
    select(null);
    release();
  }],
  ["c", "copy a link to this place", copyLink],
  ["m", "copy a summary as Markdown", copyMarkdown],
  ["t", "show the time of day, or the time since the beginning", toggleWall],
  ["d", "dark, light, or system colours", nextScheme],
  ["/", "search for lanes", () => {
    place("tab-call").click();
    place("lane-words").focus();
  }],
  ["?", "show these keys", () => toggleHelp()],
];

const shownKeys = { ArrowLeft: "←", ArrowRight: "→", Escape: "Esc", " ": "space" };

function toggleHelp() {
  const dialog = help();
  if (dialog.open) {
    dialog.close();
    return;
  }
  dialog.replaceChildren(
    make("h2", {}, "Keys"),
    make("table", {}, make("tbody", {}, [...actions, ["1 … 9", "views"]].map(([key, what]) =>
      make("tr", {}, make("td", {}, make("kbd", {}, shownKeys[key] ?? key)),
        make("td", {}, what))))),
    make("h2", {}, "Pointer"),
    make("p", {},
      "Wheel or two fingers: zoom at the pointer. Drag: move. Shift and drag: select. Click: hold "
      + "the cursor and mark the lane. Double click: select the span. Shift and wheel: move."),
    make("form", { method: "dialog" }, make("button", {}, "Close")));
  dialog.showModal();
}

export function listenToKeys() {
  window.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const target = /** @type {HTMLElement} */ (event.target);
    if (target.matches("input, textarea, select") && event.key !== "Escape") return;
    if (help().open && event.key !== "?") return;
    if (target.matches("[role=tab]") && event.key.startsWith("Arrow")) return;
    if (target.matches("button, a, summary") && event.key === " ") return;
    if (/^[1-9]$/.test(event.key)) {
      tabs()[Number(event.key) - 1]?.click();
      return;
    }
    const action = actions.find(([key]) => key === event.key || (key === "+" && event.key === "="));
    if (!action) return;
    event.preventDefault();
    if (target.matches("input")) target.blur();
    action[2]();
  });
}
