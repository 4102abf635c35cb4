// The groups of lanes, which share one clock.
import { listen, markLane } from "./pointer.js";
import { recolour, redraw, soon } from "./redraw.js";
import { board, kept, parts } from "./state.js";
import { placeMarks } from "./strip.js";
import { makeTools } from "./tools.js";
import { setAddressPart } from "../clock/address.js";
import { onClock } from "../clock/clock.js";
import { readColours } from "../lanes/draw.js";
import { allGroups } from "../lanes/groups.js";
import { button, make, place } from "../shared/elements.js";
import { finished } from "../take/columns.js";
import { take } from "../take/take.js";

/** Lanes made from the user's queries; they are kept when the other lanes are rebuilt. */
const ownLanes = [];

export function makeBoard() {
  parts.board = place("board");
  parts.window = make("div", { id: "window" });
  parts.strip = make("canvas", { "aria-label": "The whole take", role: "img", id: "strip" });
  parts.axis = make("canvas", { "aria-label": "The clock", role: "img", id: "axis" });
  parts.cursor = make("div", { class: "cursor" });
  parts.selection = make("div", { class: "selection" });
  parts.tools = makeTools({ fill: fillBoard, choosePeer });
  parts.list = make("div", { id: "groups" });
  const sticky = make("div", { class: "sticky" },
    row("whole take", parts.strip), row(make("span", { id: "span" }), parts.axis));
  parts.window.append(sticky, parts.list, parts.selection, parts.cursor);
  parts.board.append(parts.tools, parts.window);
  listen(parts.strip, { isStrip: true });
  listen(parts.axis);
  fillBoard();
  onClock("view", soon);
  onClock("cursor", placeMarks);
  onClock("selection", placeMarks);
  new ResizeObserver(soon).observe(parts.window);
  const scheme = window.matchMedia("(prefers-color-scheme: dark)");
  scheme.addEventListener("change", recolour);
}

const row = (label, canvas, more = {}) =>
  make("div", { class: "row", ...more }, make("div", { class: "label" }, label), canvas);

export function choosePeer(peer) {
  kept.peer = peer;
  if (parts.peers) parts.peers.value = String(peer);
  setAddressPart("peer", peer || "");
  fillBoard();
}

/** Adds a query's lane to a group at the top. */
export function addOwnLane(lane) {
  lane.id = `sql${ownLanes.length}`;
  ownLanes.push(lane);
}

/** Updates the lanes of a growing take, or rebuilds them if the set of lanes has changed. */
export function updateBoard() {
  const former = new Map(board.lanes.map((lane) => [lane.id, lane]));
  const groups = allGroups(soon);
  const names = (each) => each.flatMap((group) => group.lanes.map((lane) => lane.id)).join();
  if (names(groups) !== names(board.groups.filter((group) => group.id !== "own"))) {
    fillBoard();
    return;
  }
  for (const lane of groups.flatMap((group) => group.lanes)) {
    const known = former.get(lane.id);
    // Listeners retain the lane object, so its values are replaced instead.
    if (known) Object.defineProperties(known, Object.getOwnPropertyDescriptors(lane));
  }
  soon();
}

/** Rebuilds all groups and lanes and applies the user's choices. */
export function fillBoard() {
  board.groups = allGroups(soon);
  if (ownLanes.length) {
    const group = { id: "own", name: "Own lanes", note: "by SQL", peers: [], kind: "sql",
      lanes: ownLanes };
    for (const lane of ownLanes) lane.group = group;
    board.groups.unshift(group);
  }
  const order = (group) => {
    const index = kept.order.indexOf(group.id);
    return index < 0 ? kept.order.length : index;
  };
  board.groups.sort((a, b) => order(a) - order(b));
  board.lanes = [];
  parts.list.replaceChildren(...board.groups.filter(isWanted).map(groupElement));
  soon();
}

const isWanted = (group) =>
  (!kept.peer || !group.peers.length || group.peers.includes(kept.peer))
  && (!kept.words || group.lanes.some((lane) => hasWords(group, lane)));

const hasWords = (group, lane) =>
  kept.words.split(/\s+/).every(
    (word) => `${group.name} ${group.kind} ${lane.label}`.toLowerCase().includes(word));

function groupElement(group) {
  // Groups of a large room are initially folded.
  const isFolded = !kept.isAll && kept.folded.has(group.id) !== Boolean(group.isFolded);
  const isOpen = kept.isAll || kept.open.has(group.id) || Boolean(kept.words);
  const shown = isFolded ? [] : group.lanes.filter(
    (lane) => (isOpen || !lane.isExtra) && (!kept.words || hasWords(group, lane)));
  const hidden = group.lanes.filter((lane) => lane.isExtra).length;
  board.lanes.push(...shown);
  const toggle = (set, id) => () => {
    if (!set.delete(id)) set.add(id);
    fillBoard();
    parts.list.querySelector(`[data-group="${CSS.escape(group.id)}"] button`)?.focus();
  };
  const head = make("h2", {},
    make("span", { class: "name" }, button(`${isFolded ? "▸" : "▾"} ${group.name}`,
      toggle(kept.folded, group.id),
      { class: "plain", "aria-expanded": String(!isFolded), title: "Fold or unfold" })),
    make("small", {}, group.note),
    hidden && !isFolded && !kept.words ? button(
      isOpen ? "fewer" : `${hidden} more`, toggle(kept.open, group.id),
      { "aria-label": `${isOpen ? "Fewer" : "More"} lanes of ${group.name}` }) : null,
    button("↑", () => move(group, -1), { title: "Move up",
      "aria-label": `Move ${group.name} up` }));
  // Paper does not scroll, so each group has its own axis.
  const axis = kept.isAll && shown.length
    ? row("", make("canvas", { class: "axis", "aria-hidden": "true" })) : null;
  const [first = null, ...others] = shown.map(laneElement);
  // A heading stays on the same sheet as its first lane.
  return make("div", { class: "group", "data-group": group.id },
    make("div", { class: "beginning" }, head, axis, first), others);
}

/** Unfolds and draws all lanes, or restores the previous choice. */
export function showAllLanes(isAll) {
  kept.isAll = isAll;
  readColours();
  fillBoard();
  if (isAll) for (const lane of board.lanes) if (lane.prepare) finished(lane.prepare());
  redraw();
}

/** Moves a group up or down. */
function move(group, by) {
  const ids = board.groups.map(({ id }) => id);
  const at = ids.indexOf(group.id);
  const to = Math.max(at + by, 0);
  ids.splice(to, 0, ...ids.splice(at, 1));
  kept.order = ids;
  fillBoard();
}

function laneElement(lane) {
  lane.canvas = make("canvas", {
    role: "img", "aria-label": `${lane.group.name}, ${lane.label}`,
  });
  const sql = lane.sql ?? (lane.query ? take.queries[lane.query] : undefined);
  lane.element = row(
    make("span", { title: sql ? `retake sql:\n${sql}` : "" }, lane.label,
      lane.unit ? make("small", {}, lane.unit) : null),
    lane.canvas, { class: "row lane", "data-lane": lane.id });
  listen(lane.canvas, { lane });
  return lane.element;
}

/** Scrolls to a lane, unfolding it if necessary. */
export function findLane(id) {
  const group = board.groups.find((each) => each.lanes.some((lane) => lane.id === id));
  const lane = group?.lanes.find((each) => each.id === id);
  if (!lane) return;
  if (lane.isExtra && !kept.open.has(group.id)) {
    kept.open.add(group.id);
    fillBoard();
  }
  const shown = board.lanes.find((each) => each.id === id);
  if (!shown) return;
  markLane(shown);
  shown.element.scrollIntoView({ block: "center" });
}
