// The stack of lanes under one clock: the strip of the whole take, the axis, and what the pointer
// does.
import { button, duration, lowerBound, make, place } from "./basics.js";
import {
  addressParts, clock, onClock, pan, point, select, setAddressPart, show, showAll, showAround,
    ticks, timeText,
  zoom,
} from "./clock.js";
import { finished } from "./columns.js";
import { frame, grid, ink, readColours, tag } from "./draw.js";
import { allGroups } from "./lanes.js";
import { carried } from "./measures.js";
import { inPieces } from "./pieces.js";
import { peerName, seriesOf, take } from "./take.js";

/** What is on the board; other modules read it. */
export const board = {
  groups: [],
  /** Lanes that are in sight, from top to bottom. */
  lanes: [],
  /** The lane under the pointer, or the one that an address names. */
  marked: null,
};

let onRedraw = () => {};
/** Has somebody hear of each drawing. */
export const afterRedraw = (listener) => { onRedraw = listener; };

/** Milliseconds that the last drawing took: what a step of a zoom costs. */
export let drawingTime = 0;

const parts = {};
/** Lanes by queries of the user, which stay when all others are made anew. */
const ownLanes = [];
const kept = {
  folded: new Set(), open: new Set(), order: [], peer: 0, words: "",
  /** Whether all lanes are shown, and drawn wherever they are. */
  isAll: false,
};

/* ---- What there is ---- */

export function makeBoard() {
  parts.board = place("board");
  parts.window = make("div", { id: "window" });
  parts.strip = make("canvas", { "aria-label": "The whole take", role: "img", id: "strip" });
  parts.axis = make("canvas", { "aria-label": "The clock", role: "img", id: "axis" });
  parts.cursor = make("div", { class: "cursor" });
  parts.selection = make("div", { class: "selection" });
  parts.tools = tools();
  parts.list = make("div", { id: "groups" });
  const sticky = make("div", { class: "sticky" },
    row("whole take", parts.strip), row(make("span", { id: "span" }), parts.axis));
  parts.window.append(sticky, parts.list, parts.selection, parts.cursor);
  parts.board.append(parts.tools, parts.window);
  listen(parts.strip, { isStrip: true });
  listen(parts.axis, {});
  fillBoard();
  onClock("view", soon);
  onClock("cursor", placeMarks);
  onClock("selection", placeMarks);
  new ResizeObserver(soon).observe(parts.window);
  const scheme = window.matchMedia("(prefers-color-scheme: dark)");
  scheme.addEventListener("change", recolour);
}

/** Draws all anew in the colours of the scheme. */
export function recolour() {
  readColours();
  soon();
}

const row = (label, canvas, more = {}) =>
  make("div", { class: "row", ...more }, make("div", { class: "label" }, label), canvas);

function tools() {
  const words = make("input", {
    type: "search", placeholder: "Lanes with …", "aria-label": "Show lanes with these words",
    id: "lane-words",
    input: () => {
      kept.words = words.value.toLowerCase();
      fillBoard();
    },
  });
  const peers = take.peers.length < 2 ? null : make("select", {
    "aria-label": "Peer", id: "peer-choice",
    change: () => choosePeer(Number(peers.value)),
  }, make("option", { value: 0 }, "all peers"),
    ...take.peers.map(({ peer }) => make("option", { value: peer }, peerName(peer))));
  parts.peers = peers;
  const title = (text) => ({ title: text, "aria-label": text });
  return make("div", { class: "tools" },
    button("−", () => zoom(2), title("Zoom out (−)")),
    button("+", () => zoom(0.5), title("Zoom in (+)")),
    button("◂", () => pan(-0.5), title("Earlier (←)")),
    button("▸", () => pan(0.5), title("Later (→)")),
    button("whole take", showAll, { ...title("Show the whole take (0)"), id: "all" }),
    button("selection", zoomToSelection, { ...title("Show what is selected (z)"),
      id: "zoom-selection" }),
    peers, words, otherChoice(), make("span", { class: "grow" }),
    button("time of day", toggleWall, { "aria-pressed": "false", id: "wall" }));
}

/** Chooses a take to lay beside this one. */
function otherChoice() {
  if (!take.others?.length) return null;
  const choice = make("select", {
    "aria-label": "Lay another take beside this one", id: "other-choice",
    change: () => {
      const parts = new URLSearchParams(location.hash.slice(1));
      if (choice.value) parts.set("with", choice.value);
      else parts.delete("with");
      location.hash = parts;
      location.reload();
    },
  }, make("option", { value: "" }, "beside …"),
    take.others.slice(0, 500).map((name) => make("option", { value: name }, name)));
  choice.value = addressParts.get("with") ?? "";
  return choice;
}

/** Shows times by the clock on the wall, or since the beginning. */
export function toggleWall() {
  clock.isWall = !clock.isWall;
  place("wall").setAttribute("aria-pressed", String(clock.isWall));
  soon();
  placeMarks();
}

export function choosePeer(peer) {
  kept.peer = peer;
  if (parts.peers) parts.peers.value = String(peer);
  setAddressPart("peer", peer || "");
  fillBoard();
}

export function zoomToSelection() {
  if (clock.selection) showAround(...clock.selection);
}

/** Adds a lane by a query, in a group of its own at the top. */
export function addOwnLane(lane) {
  lane.id = `sql${ownLanes.length}`;
  ownLanes.push(lane);
}

/** Draws the same lanes with what came since; others that there are now are made. */
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
    // Whoever listens to the lane goes on doing so: it is the same with other values.
    if (known) Object.defineProperties(known, Object.getOwnPropertyDescriptors(lane));
  }
  soon();
}

/** Makes the groups and their lanes anew, as what is kept of them says. */
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
  // A room of many people begins folded where its groups say so.
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
  // Paper does not scroll: each group has the clock over it.
  const axis = kept.isAll && shown.length
    ? row("", make("canvas", { class: "axis", "aria-hidden": "true" })) : null;
  const [first = null, ...others] = shown.map(laneElement);
  // A page of paper may end after the first lane and not before it.
  return make("div", { class: "group", "data-group": group.id },
    make("div", { class: "beginning" }, head, axis, first), others);
}

/** Shows all lanes of all groups, drawn at once, or again those that were shown before. */
export function showAllLanes(isAll) {
  kept.isAll = isAll;
  readColours();
  fillBoard();
  if (isAll) for (const lane of board.lanes) if (lane.prepare) finished(lane.prepare());
  redraw();
}

/** Moves a group among those that are shown. */
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

/* ---- Drawing ---- */

/** What drawing may take of a picture of the display, in milliseconds. */
const mostDrawing = 10;
/** Lanes that found no time in the last drawing: with the next picture it is their turn first. */
let lateLanes = [];
let isDue = false;
let isChanged = false;

/** Draws with the next picture of the display; what finds no time in it, with those after it. */
export function soon() {
  isChanged = true;
  askForPicture();
}

function askForPicture() {
  if (isDue) return;
  isDue = true;
  requestAnimationFrame(() => {
    isDue = false;
    if (isChanged) redraw(mostDrawing);
    else drawLanes(lateLanes, parts.axis.clientWidth, performance.now() + mostDrawing);
  });
}

/** Draws what is in sight now, all of it where nothing else is said. */
export function redraw(most = Infinity) {
  isChanged = false;
  if (!ink.ink) readColours();
  const width = parts.axis.clientWidth;
  if (!width) return;
  const begin = performance.now();
  const shown = lanesInSight();
  drawStrip(width);
  drawAxis(parts.axis, width);
  for (const axis of parts.list.querySelectorAll(".axis")) drawAxis(axis, width);
  place("span").textContent = `${duration(clock.to - clock.from)} in sight`;
  const late = new Set(lateLanes);
  const inTurn = [true, false].flatMap((isLate) =>
    shown.filter((lane) => late.has(lane) === isLate));
  drawLanes(inTurn, width, kept.isAll ? Infinity : begin + most);
  drawingTime = performance.now() - begin;
  placeMarks();
  onRedraw();
}

/** Measured before anything is drawn: after a change it would lay the page out for each lane. */
function lanesInSight() {
  for (const { canvas, height } of board.lanes) {
    if (canvas.style.height !== `${height}px`) canvas.style.height = `${height}px`;
  }
  const last = window.innerHeight + 200;
  return board.lanes.filter((lane) => {
    const box = lane.canvas.getBoundingClientRect();
    lane.isDrawn = kept.isAll || (box.bottom > -200 && box.top < last);
    return lane.isDrawn;
  });
}

/** Draws lanes as long as there is time, going by what each took before; one in any case. */
function drawLanes(lanes, width, end) {
  let count = 0;
  for (const lane of lanes) {
    const begin = performance.now();
    if (count && begin + (lane.lastDrawing ?? 1) > end) break;
    drawLane(lane, width);
    lane.lastDrawing = performance.now() - begin;
    count += 1;
  }
  lateLanes = lanes.slice(count);
  if (lateLanes.length) askForPicture();
  describeLater();
}

let describing = 0;
/** Says in words what the middle of each lane shows, for screen readers, once it stays there. */
function describeLater() {
  clearTimeout(describing);
  describing = setTimeout(() => {
    for (const lane of board.lanes) if (lane.isDrawn) describe(lane);
  }, 300);
}

function describe(lane) {
  const words = lane.at((clock.from + clock.to) / 2) || "nothing";
  lane.canvas.setAttribute("aria-label", `${lane.group.name}, ${lane.label}: ${words}`);
}

function drawLane(lane, width) {
  try {
    const view = frame(lane.canvas, width, lane.height);
    const isReady = lane.isReady?.() ?? true;
    if (isReady) lane.draw(view);
    else {
      grid(view);
      prepareSoon(lane);
    }
    if (!isReady || lane.isWaiting?.()) tag(view, "details follow");
  } catch (error) {
    // One lane that cannot be drawn must not take the others with it.
    console.error(lane.label, error);
  }
}

const asked = new WeakSet();
/** Has a lane drawn when what it needs is worked out, which took too long for one step. */
function prepareSoon(lane) {
  if (asked.has(lane)) return;
  asked.add(lane);
  inPieces(lane.prepare()).then(() => {
    asked.delete(lane);
    soon();
  }, (error) => console.error(lane.label, error));
}

/** Works out, while nothing else is to do, what lanes need that are shown but not in sight. */
export const readAhead = () => inPieces(preparations([...board.lanes]));

/** The same for lanes that are not shown. */
export const readFurtherAhead = () =>
  inPieces(preparations(board.groups.flatMap((group) => group.lanes)));

function* preparations(lanes) {
  for (const lane of lanes) {
    try {
      if (lane.prepare) yield* lane.prepare();
      lane.at(clock.from);
    } catch (error) {
      // One lane that cannot be prepared must not take the others with it.
      console.error(lane.label, error);
    }
    if (lane.prepare && lane.isDrawn && !lane.isWaiting?.()) soon();
    yield;
  }
}

/** Lanes that were not in sight are drawn when they come into it. */
window.addEventListener("scroll", () => {
  const width = parts.axis?.clientWidth;
  if (!width) return;
  for (const lane of board.lanes) {
    if (lane.isDrawn) continue;
    const box = lane.canvas.getBoundingClientRect();
    if (box.bottom > -100 && box.top < window.innerHeight + 100) {
      lane.isDrawn = true;
      drawLane(lane, width);
    }
  }
}, { passive: true });

const stripHeight = 34;

/** The whole take: how much went over the wire, findings, and which part is shown. */
function drawStrip(width) {
  const canvas = parts.strip;
  const { from, to } = clock;
  Object.assign(clock, { from: 0, to: take.seconds });
  const view = frame(canvas, width, stripHeight);
  Object.assign(clock, { from, to });
  const { context, x } = view;
  for (const finding of [...take.findings].reverse()) {
    context.fillStyle = ink[finding.severity > 3 ? "bad-back" : "wait-back"];
    if (finding.severity < 3) continue;
    for (const [begin, end] of finding.spans) {
      context.fillRect(x(begin), 0, Math.max(x(end) - x(begin), 1.5), stripHeight);
    }
  }
  const values = stripValues(Math.round(width));
  const most = values.reduce((high, value) => Math.max(high, value), 1);
  context.strokeStyle = ink.video;
  context.lineWidth = 1.2;
  context.beginPath();
  values.forEach((value, at) => {
    context.lineTo(at, stripHeight - 3 - (value / most) * (stripHeight - 8));
  });
  context.stroke();
  context.strokeStyle = ink.line;
  context.lineWidth = 1;
  context.strokeRect(0.5, 0.5, width - 1, stripHeight - 1);
  const [worst] = take.findings;
  if (worst && worst.severity > 2) marker(context, x(worst.spans[0][0]));
  if (from > 0 || to < take.seconds) {
    context.fillStyle = ink.card;
    context.globalAlpha = 0.62;
    context.fillRect(0, 0, x(from), stripHeight);
    context.fillRect(x(to), 0, width - x(to), stripHeight);
    context.globalAlpha = 1;
    context.strokeStyle = ink.ink;
    context.strokeRect(x(from), 0.5, Math.max(x(to) - x(from), 2), stripHeight - 1);
  }
}

function marker(context, at) {
  context.fillStyle = ink.bad;
  context.beginPath();
  context.moveTo(at - 5, 0);
  context.lineTo(at + 5, 0);
  context.lineTo(at, 8);
  context.fill();
}

let strip = { width: 0, values: [], seconds: 0 };

/** What went over the wire, a value for each pixel. */
function stripValues(width) {
  if (strip.width === width && strip.seconds === take.seconds) return strip.values;
  const list = seriesOf("packets");
  const step = take.seconds / width;
  const values = Array.from({ length: width },
    (_, at) => carried(list, at * step, (at + 1) * step));
  // A little smoother than single pixels are.
  const smooth = values.map((value, at) =>
    (value * 2 + (values[at - 1] ?? value) + (values[at + 1] ?? value)) / 4);
  strip = { width, values: smooth, seconds: take.seconds };
  return smooth;
}

function drawAxis(canvas, width) {
  const { context, x, from, to } = frame(canvas, width, 20);
  const marks = ticks(from, to, Math.max(width / 90, 2));
  context.fillStyle = ink.dim;
  for (const at of marks.at) {
    const text = timeText(at, marks.step);
    const wide = context.measureText(text).width;
    const left = Math.min(Math.max(x(at) - wide / 2, 0), width - wide);
    context.textAlign = "left";
    context.fillText(text, left, 9);
    context.fillRect(Math.round(x(at)), 16, 1, 4);
  }
}

/** Brings the lines of cursor and selection where they belong. */
function placeMarks() {
  const width = parts.axis.clientWidth;
  const left = parts.axis.offsetLeft;
  const x = (time) => left + ((time - clock.from) / (clock.to - clock.from)) * width;
  const { cursor, selection } = clock;
  const isSeen = cursor !== null && cursor >= clock.from && cursor <= clock.to;
  parts.cursor.style.display = isSeen ? "block" : "none";
  parts.cursor.classList.toggle("held", clock.isHeld);
  if (isSeen) parts.cursor.style.left = `${x(cursor)}px`;
  const top = parts.axis.offsetTop + parts.axis.clientHeight;
  parts.cursor.style.top = `${top}px`;
  parts.selection.style.top = `${top}px`;
  const isSelected = selection && selection[1] >= clock.from && selection[0] <= clock.to;
  parts.selection.style.display = isSelected ? "block" : "none";
  if (isSelected) {
    const begin = Math.max(x(selection[0]), left);
    const end = Math.min(x(selection[1]), left + width);
    parts.selection.style.left = `${begin}px`;
    parts.selection.style.width = `${Math.max(end - begin, 1)}px`;
  }
}

/* ---- The pointer ---- */

/** Wheels that scroll the page go on doing so over the lanes. */
let scrolledAt = -Infinity;
window.addEventListener("wheel", (event) => {
  if (!event.defaultPrevented) scrolledAt = event.timeStamp;
}, { passive: true });

function listen(canvas, { lane, isStrip }) {
  const fingers = new Map();
  let drag = null;
  const timeAt = (clientX) => {
    const box = canvas.getBoundingClientRect();
    const share = (clientX - box.left) / box.width;
    return isStrip ? share * take.seconds : clock.from + share * (clock.to - clock.from);
  };
  canvas.addEventListener("wheel", (event) => {
    const isPinch = event.ctrlKey || event.metaKey;
    if (!isPinch && event.timeStamp - scrolledAt < 300) return;
    event.preventDefault();
    if (!isPinch && Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      pan(event.deltaX / canvas.clientWidth);
      return;
    }
    if (event.shiftKey) {
      pan(event.deltaY / canvas.clientWidth);
      return;
    }
    const pixels = event.deltaMode === 1 ? 16 * event.deltaY : event.deltaY;
    zoom(Math.exp(Math.max(Math.min(pixels, 200), -200) * (isPinch ? 0.01 : 0.002)),
      isStrip ? (clock.from + clock.to) / 2 : timeAt(event.clientX));
  }, { passive: false });
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    fingers.set(event.pointerId, event.clientX);
    drag = {
      x: event.clientX, from: clock.from, to: clock.to, time: timeAt(event.clientX),
      isSelecting: event.shiftKey, hasMoved: false,
      spread: fingers.size === 2 ? spread(fingers) : 0,
    };
  });
  canvas.addEventListener("pointermove", (event) => {
    const time = timeAt(event.clientX);
    board.marked = lane ?? null;
    if (!drag) {
      point(time);
      return;
    }
    fingers.set(event.pointerId, event.clientX);
    if (fingers.size === 2) {
      pinch(drag, fingers, canvas);
      return;
    }
    if (Math.abs(event.clientX - drag.x) > 3) drag.hasMoved = true;
    if (!drag.hasMoved) return;
    if (isStrip) {
      const half = (drag.to - drag.from) / 2;
      show(time - half, time + half);
    } else if (drag.isSelecting) select(drag.time, time);
    else {
      const seconds = ((event.clientX - drag.x) / canvas.clientWidth) * (drag.to - drag.from);
      show(drag.from - seconds, drag.to - seconds);
    }
  });
  const end = (event) => {
    fingers.delete(event.pointerId);
    if (drag && !drag.hasMoved && event.type === "pointerup") click(event);
    if (!fingers.size) drag = null;
  };
  const click = (event) => {
    if (isStrip) {
      const half = (clock.to - clock.from) / 2;
      const time = timeAt(event.clientX);
      show(time - half, time + half);
      return;
    }
    point(timeAt(event.clientX), true);
    if (lane) markLane(lane);
  };
  canvas.addEventListener("pointerup", end);
  canvas.addEventListener("pointercancel", end);
  canvas.addEventListener("pointerleave", () => {
    if (!drag) point(null);
  });
  canvas.addEventListener("dblclick", (event) => {
    if (isStrip) showAll();
    else selectAt(lane, timeAt(event.clientX));
  });
}

const spread = (fingers) => {
  const [a, b] = [...fingers.values()];
  return Math.max(Math.abs(a - b), 20);
};

/** Two fingers: what lies under them stays under them. */
function pinch(drag, fingers, canvas) {
  const now = spread(fingers);
  if (!drag.spread) drag.spread = now;
  drag.hasMoved = true;
  const length = (drag.to - drag.from) * (drag.spread / now);
  const middle = [...fingers.values()].reduce((sum, x) => sum + x, 0) / fingers.size;
  const share = (middle - canvas.getBoundingClientRect().left) / canvas.clientWidth;
  const around = drag.from + share * (drag.to - drag.from);
  show(around - share * length, around - share * length + length);
}

/** Selects what lasts at a time in a lane, else what lies between its neighbours. */
function selectAt(lane, time) {
  const span = lane?.spans?.find(({ from, to }) => from <= time && time < to);
  if (span) {
    select(span.from, span.to);
    return;
  }
  const marks = lane?.marks ?? [];
  const sorted = Float64Array.from(marks).sort();
  const next = lowerBound(sorted, time);
  if (sorted.length) select(sorted[next - 1] ?? 0, sorted[next] ?? take.seconds);
  else select(clock.from, clock.to);
}

/** Marks a lane, which the address then names. */
export function markLane(lane) {
  board.marked = lane;
  for (const each of board.lanes) each.element.classList.toggle("marked", each === lane);
  setAddressPart("lane", lane?.id ?? "");
}

/** Brings the lane of an address into sight. */
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
