// The panel beside the lanes: values at the cursor, the selection, and the corresponding command.
import { board } from "../board/state.js";
import { clock, onClock, release, select, showAround } from "../clock/clock.js";
import { timeText } from "../clock/times.js";
import { ink } from "../lanes/draw.js";
import { stillToCome } from "../lanes/kinds.js";
import { carried } from "../measures/rates.js";
import { button, make, place } from "../shared/elements.js";
import { bitRate, byteCount, counted, duration } from "../shared/words.js";
import { hasLateValues, seekCommand, seriesOf, take } from "../take/take.js";
import { cards } from "./cards.js";
import { copyLink, copyPicture, copyText, markdown, picture } from "./copying.js";
import { findingLine } from "./findings.js";

const sections = {};

export function makeAside() {
  sections.head = make("h2", { id: "at" }, "At the cursor");
  sections.values = make("table", {}, make("tbody"));
  sections.command = make("code", { class: "command", id: "command" });
  sections.hint = make("p", { class: "note" },
    "Point at a lane, click to hold the cursor. Wheel zooms, drag moves, shift-drag selects; ",
    make("kbd", {}, "n"), " next finding, ", make("kbd", {}, "s"), " next state, ",
    make("kbd", {}, "?"), " all keys.");
  sections.selected = make("section", { id: "selected", hidden: true });
  place("aside").append(make("div", { class: "stay" },
    make("section", {},
      sections.head,
      make("div", { id: "values", tabindex: 0, role: "group",
        "aria-label": "Values at the cursor" },
        sections.values),
      sections.command,
      make("div", { class: "tools" },
        button("copy command", () => copyText(sections.command.textContent),
          { id: "copy-command" }),
        button("link", copyLink, { title: "Copy a link to this place (c)", id: "copy-link" }),
        button("Markdown", copyMarkdown, { title: "Copy a summary as Markdown (m)",
          id: "copy-markdown" }),
        button("PNG", () => copyPicture(picture(board.lanes, ink)),
          { title: "Copy the lanes as a picture", id: "copy-png" })),
      sections.hint),
    sections.selected));
  onClock("cursor", fillValues);
  onClock("view", fillValues);
  onClock("selection", fillSelection);
  fillValues();
  fillSelection();
}

/** The time whose values are shown: the cursor's time, or the middle of the view. */
const instant = () => clock.cursor ?? (clock.from + clock.to) / 2;

/**
 * The values of each visible lane at a time.
 * @returns {[lane: Lane, text: string][]}
 */
function valuesAt(time) {
  /** @type {[Lane, string][]} */
  const found = [];
  for (const lane of board.lanes) {
    const text = lane.at(time);
    if (text) found.push([lane, text]);
  }
  return found;
}

let isAsked = false;

function fillValues() {
  if (isAsked) return;
  isAsked = true;
  requestAnimationFrame(() => {
    isAsked = false;
    const time = instant();
    const held = clock.isHeld ? ", held" : "";
    sections.head.textContent = clock.cursor === null
      ? `In the middle, at ${timeText(time)}` : `At ${timeText(time)}${held}`;
    sections.command.textContent = seekCommand(time);
    let group = null;
    const rows = [];
    for (const [lane, text] of valuesAt(time)) {
      if (lane.group !== group) {
        group = lane.group;
        rows.push(make("tr", { class: "group-name" }, make("td", { colspan: 2 }, group.name)));
      }
      const swatch = make("i", { class: "swatch" });
      swatch.style.background = ink[lane.toneAt?.(time) ?? lane.tone] ?? ink.off;
      rows.push(make("tr", { class: lane === board.marked ? "under" : "" },
        make("td", {}, swatch, lane.label), make("td", {}, text)));
    }
    sections.values.tBodies[0].replaceChildren(...rows);
  });
}

/** Sums up the selection. */
export function fillSelection() {
  const { selection } = clock;
  sections.selected.hidden = !selection;
  if (!selection) return;
  const [from, to] = selection;
  const length = Math.max(to - from, 1e-5);
  const lines = [];
  const isWaiting = hasLateValues();
  if (isWaiting) lines.push(["packets", stillToCome]);
  for (const { peer, label } of isWaiting ? [] : take.peers) {
    for (const direction of ["in", "out"]) {
      const list = seriesOf("packets", { peer, direction });
      const bytes = carried(list, from, to);
      if (!bytes) continue;
      const packets = list.reduce((sum, series) => {
        const [first, last] = series.range(from, to);
        return sum + last - first;
      }, 0);
      lines.push([`${label || peer} ${direction === "in" ? "received" : "sent"}`,
        `${byteCount(bytes)}, ${counted(packets, "packet")}, ${bitRate((8 * bytes) / length)}`]);
    }
  }
  const lost = seriesOf("lost").reduce((sum, series) => {
    const [first, last] = series.range(from, to);
    return sum + last - first;
  }, 0);
  if (lost) lines.push(["missing", counted(lost, "packet")]);
  const happened = take.timeline.filter(([at]) => at >= from && at <= to);
  sections.selected.replaceChildren(
    make("h2", {}, `Selected: ${duration(to - from)}`),
    make("p", { class: "note" }, `${timeText(from)} to ${timeText(to)}`),
    make("table", {}, make("tbody", {}, lines.map(([label, text]) =>
      make("tr", {}, make("td", {}, label), make("td", {}, text))))),
    make("p", { class: "note" }, happened.slice(0, 6).map(([at, , , , what]) =>
      make("span", {}, `${timeText(at)} ${what}`, make("br"))),
      happened.length > 6 ? `and ${happened.length - 6} more` : null),
    make("div", { class: "tools" },
      button("show", () => showAround(from, to), { title: "Zoom to the selection (z)" }),
      button("clear", () => {
        select(null);
        release();
      }, { title: "Clear the selection (Esc)" })));
}

/** Copies a summary as Markdown. */
export function copyMarkdown() {
  const values = clock.cursor === null ? []
    : valuesAt(clock.cursor).map(([lane, text]) => [`${lane.group.name}: ${lane.label}`, text]);
  copyText(markdown(cards(), take.findings.map(findingLine), values));
}
