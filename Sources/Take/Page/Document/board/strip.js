// The strip of the whole take, the axis, and the marks of cursor and selection.
import { parts } from "./state.js";
import { clock } from "../clock/clock.js";
import { ticks, timeText } from "../clock/times.js";
import { frame, ink } from "../lanes/draw.js";
import { carried } from "../measures/rates.js";
import { seriesOf, take } from "../take/take.js";

const stripHeight = 34;

/** Draws the whole take: traffic, findings, and the visible part. */
export function drawStrip(width) {
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

/** The traffic in bytes, one value per pixel. */
function stripValues(width) {
  if (strip.width === width && strip.seconds === take.seconds) return strip.values;
  const list = seriesOf("packets");
  const step = take.seconds / width;
  const values = Array.from({ length: width },
    (_, at) => carried(list, at * step, (at + 1) * step));
  // Smooths the curve a little.
  const smooth = values.map((value, at) =>
    (value * 2 + (values[at - 1] ?? value) + (values[at + 1] ?? value)) / 4);
  strip = { width, values: smooth, seconds: take.seconds };
  return smooth;
}

export function drawAxis(canvas, width) {
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

/** Positions the lines of cursor and selection. */
export function placeMarks() {
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
