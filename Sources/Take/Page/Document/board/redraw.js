// Schedules drawing: in the next animation frame, visible lanes first.
import { board, kept, parts } from "./state.js";
import { drawAxis, drawStrip, placeMarks } from "./strip.js";
import { clock } from "../clock/clock.js";
import { frame, grid, ink, readColours, tag } from "../lanes/draw.js";
import { place } from "../shared/elements.js";
import { inPieces } from "../shared/pieces.js";
import { duration } from "../shared/words.js";

/** The time limit of drawing within an animation frame, in milliseconds. */
const mostDrawing = 10;

/** Lanes for which the last frame had no time; the next one begins with them. */
let lateLanes = [];

let isDue = false;

let isChanged = false;

/** The duration of the last drawing in milliseconds, which estimates the cost of a zoom step. */
let lastDrawing = 0;

export const drawingTime = () => lastDrawing;

/** Schedules drawing for the next animation frame, and for further ones if it takes longer. */
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

/** Draws the visible lanes within a time limit. */
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
  lastDrawing = performance.now() - begin;
  placeMarks();
}

/** Redraws everything in the colours of the scheme. */
export function recolour() {
  readColours();
  soon();
}

/** Measures before drawing, because measuring afterwards would force another layout. */
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

/**
 * Draws at least one lane, and further lanes while the remaining time is enough for each of them,
 * judging by how long it took last time.
 */
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

/** Describes the middle of each lane for screen readers when the view is at rest. */
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
    // A lane that fails must not stop the others.
    console.error(lane.label, error);
  }
}

const asked = new WeakSet();

/** Computes the data that a lane needs, in pieces, then draws the lane. */
function prepareSoon(lane) {
  if (asked.has(lane)) return;
  asked.add(lane);
  inPieces(lane.prepare()).then(() => {
    asked.delete(lane);
    soon();
  }, (error) => console.error(lane.label, error));
}

/** Prepares the lanes below the visible ones while the browser is idle. */
export const readAhead = () => inPieces(preparations([...board.lanes]));

/** Prepares the lanes of folded groups too. */
export const readFurtherAhead = () =>
  inPieces(preparations(board.groups.flatMap((group) => group.lanes)));

function* preparations(lanes) {
  for (const lane of lanes) {
    try {
      if (lane.prepare) yield* lane.prepare();
      lane.at(clock.from);
    } catch (error) {
      // A lane that fails must not stop the others.
      console.error(lane.label, error);
    }
    if (lane.prepare && lane.isDrawn && !lane.isWaiting?.()) soon();
    yield;
  }
}

/** Draws lanes that scroll into view. */
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
