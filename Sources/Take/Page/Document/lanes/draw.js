// Drawing on a canvas: the grid of the clock, curves, ticks, spans. Values come as numbers; nothing
// here knows their meaning.
import { clock } from "../clock/clock.js";
import { ticks } from "../clock/times.js";
import { peaksOf } from "../measures/peaks.js";
import { make } from "../shared/elements.js";
import { lowerBound, nextBound, upperBound } from "../shared/search.js";

const colourNames = [
  "ink", "dim", "line", "grid", "card", "good", "wait", "bad", "off", "video", "audio", "data",
  "control", "good-text", "wait-text", "bad-text", "off-text", "video-text", "audio-text",
  "data-text", "control-text", "good-back", "wait-back", "bad-back", "off-back", "video-back",
  "audio-back", "data-back", "control-back",
];

/** The current colours of the style sheet, by name. */
export const ink = {};

/** Reads the colours again after the scheme changed. */
export function readColours() {
  const probe = make("i");
  document.body.append(probe);
  const read = (name) => {
    probe.style.color = `var(--${name})`;
    return getComputedStyle(probe).color;
  };
  for (const name of colourNames) ink[name] = read(name);
  probe.remove();
}

const font = '11px system-ui, "DejaVu Sans", sans-serif';

/** The minimum number of canvas pixels per CSS pixel. */
export const canvases = { leastRatio: 1 };

/** A canvas of a size, sharp on any display, with the grid of the clock. */
export function frame(canvas, width, height) {
  const ratio = Math.max(window.devicePixelRatio || 1, canvases.leastRatio);
  const [across, down] = [Math.round(width * ratio), Math.round(height * ratio)];
  if (canvas.width !== across || canvas.height !== down) {
    canvas.width = across;
    canvas.height = down;
    canvas.style.height = `${height}px`;
  }
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  context.font = font;
  context.textBaseline = "middle";
  const { from, to } = clock;
  const scale = width / (to - from);
  return {
    context, width, height, from, to, pixel: (to - from) / width,
    x: (time) => (time - from) * scale,
    time: (x) => from + x / scale,
  };
}

/** Lines at the marks of the clock. */
export function grid({ context, width, height, from, to, x }) {
  context.fillStyle = ink.grid;
  for (const at of ticks(from, to, Math.max(width / 90, 2)).at) {
    context.fillRect(Math.round(x(at)), 0, 1, height);
  }
}

/** Writes the maximum of the scale at the top right. */
export function topValue(view, text) {
  label(view, text, view.width - 3, 7, ink.dim, "right");
}

/** Draws text with an outline in the background colour. */
export function label({ context }, text, x, y, colour, align = "left") {
  context.textAlign = align;
  context.lineJoin = "round";
  context.lineWidth = 4;
  context.strokeStyle = ink.card;
  context.strokeText(text, x, y);
  context.fillStyle = colour;
  context.fillText(text, x, y);
}

/** Draws text on a filled background at the top left. */
export function tag({ context }, text) {
  context.fillStyle = ink["off-back"];
  context.beginPath();
  context.roundRect(1, 1, context.measureText(text).width + 12, 15, 3);
  context.fill();
  context.textAlign = "left";
  context.fillStyle = ink["off-text"];
  context.fillText(text, 7, 9);
}

/** The smallest round number that is not less than a value. */
export function roundTop(value) {
  if (!(value > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 1.5, 2, 3, 4, 5, 6, 8, 10].find((each) => each * power >= value * 0.999) * power;
}

/** A curve of one value per pixel, filled to the bottom. */
export function area({ context, height }, values, top, colour,
  { isFilled = true, dash = [] } = {}) {
  const y = (value) => height - 1 - (Math.min(value / top, 1) * (height - 5));
  const trace = () => {
    context.beginPath();
    for (let x = 0; x < values.length; x += 1) {
      if (x) context.lineTo(x, y(values[x]));
      else context.moveTo(x, y(values[x]));
    }
  };
  if (isFilled) {
    trace();
    context.lineTo(values.length, height);
    context.lineTo(0, height);
    context.globalAlpha = 0.14;
    context.fillStyle = colour;
    context.fill();
    context.globalAlpha = 1;
  }
  trace();
  context.strokeStyle = colour;
  context.lineWidth = 1.3;
  context.setLineDash(dash);
  context.stroke();
  context.setLineDash([]);
}

/** A curve through points; with steps, each value is held until the next. */
export function line(view, at, value, { low = 0, top, colour, dash = [], hasSteps = false }) {
  const { context, height, x, from, to, width } = view;
  const y = (number) => height - 1 - ((Math.min(Math.max(number, low), top) - low) / (top - low))
    * (height - 5);
  const first = Math.max(lowerBound(at, from) - 1, 0);
  const last = Math.min(upperBound(at, to) + 1, at.length);
  context.strokeStyle = context.fillStyle = colour;
  if (last - first > 3 * width) return band(view, at, value, first, last, y);
  context.lineWidth = 1.3;
  context.setLineDash(dash);
  context.beginPath();
  for (let index = first; index < last; index += 1) {
    if (index === first) context.moveTo(x(at[index]), y(value[index]));
    else if (hasSteps) {
      context.lineTo(x(at[index]), y(value[index - 1]));
      context.lineTo(x(at[index]), y(value[index]));
    } else context.lineTo(x(at[index]), y(value[index]));
  }
  context.stroke();
  context.setLineDash([]);
  // A single value is drawn as a dot, and so is the last step before the edge.
  const end = last > first ? x(at[last - 1]) : Infinity;
  if (last - first === 1 || (hasSteps && end < width - 6)) {
    context.fillRect(Math.max(end - 2, 0), y(value[last - 1]) - 2, 4, 4);
  }
  return undefined;
}

/** Draws more points than pixels: a line from minimum to maximum for each pixel. */
function band(view, at, value, first, last, y) {
  const [low, high] = [peaksOf(value, -1), peaksOf(value)];
  eachPixel(view, at, first, last, 0, (column, begin, end) => {
    const top = y(value[high.place(begin, end)]);
    const foot = y(value[low.place(begin, end)]);
    view.context.fillRect(column, top - 0.6, 1, Math.max(foot - top, 1.2));
  });
}

/**
 * Calls `draw` for each pixel that contains at least one of the times, with the range of their
 * indices. `shift` moves the pixels' bounds to the left by a fraction of a pixel.
 */
export function eachPixel({ from, time, width }, at, first, last, shift, draw) {
  let begin = lowerBound(at, from, first, last);
  for (let column = 0; begin < last && column <= width; column += 1) {
    const end = nextBound(at, time(column + 1 - shift), begin, last);
    if (end > begin) draw(column, begin, end);
    begin = end;
  }
}

/**
 * Ticks at visible times; those in one pixel are merged at the greatest height. If there are many,
 * `heights` returns the heights of all of them.
 */
export function tickMarks(view, at, { height, colour, heights }) {
  const { context, x, from, to, width } = view;
  const begin = lowerBound(at, from);
  const end = upperBound(at, to, begin);
  const heightOf = typeof height === "function" ? height : () => height;
  const colourOf = typeof colour === "function" ? colour : () => colour;
  const foot = view.height - 2;
  const mark = (column, index) => {
    const tall = heightOf(index);
    context.fillStyle = colourOf(index);
    context.fillRect(column - 0.5, foot - tall, 1.6, tall);
  };
  if (end - begin > 2 * width) {
    const peaks = typeof height === "function" ? peaksOf(heights()) : null;
    eachPixel(view, at, begin, end, 0.5, (column, first, last) =>
      mark(column, peaks ? peaks.place(first, last) : first));
    return;
  }
  let column = -2;
  let highest = 0;
  for (let index = begin; index < end; index += 1) {
    const now = Math.round(x(at[index]));
    const tall = heightOf(index);
    if (now - column < 1 && tall <= highest) continue;
    column = now;
    highest = tall;
    mark(now, index);
  }
}

/** The longest beginning of the text that fits, with an ellipsis if shortened. */
function fitting(context, text, width) {
  if (context.measureText(text).width <= width) return text;
  let [low, high] = [0, text.length];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (context.measureText(`${text.slice(0, middle)}…`).width <= width) low = middle;
    else high = middle - 1;
  }
  return low > 1 ? `${text.slice(0, low)}…` : "";
}

/** Draws spans: pale fields, each with a coloured edge and a label. */
export function spanMarks(view, spans, { top = 1, height = 15 } = {}) {
  const { context, x, from, to, width } = view;
  let free = -Infinity;
  for (const { from: begin, to: end, tone, text } of spans) {
    if (end < from || begin > to) continue;
    const left = Math.max(x(begin), -4);
    const right = Math.min(x(end), width + 4);
    // Spans shorter than a pixel are drawn only where the pixel is still free.
    if (right - left < 1 && left < free) continue;
    const wide = Math.max(right - left - 1, 2);
    context.fillStyle = ink[`${tone}-back`];
    context.beginPath();
    context.roundRect(left, top, wide, height, 3);
    context.fill();
    if (tone === "bad" && wide > 6) hatch(context, left, top, wide, height);
    context.fillStyle = ink[tone];
    context.fillRect(left, top, 2.5, height);
    free = left + 2;
    const shown = wide > 24 ? fitting(context, text, wide - 10) : "";
    if (shown) {
      context.fillStyle = ink[`${tone}-text`];
      context.textAlign = "left";
      context.fillText(shown, Math.max(left, 0) + 7, top + height / 2 + 0.5);
    }
  }
}

/** Hatches bad spans for readers who cannot see red. */
function hatch(context, left, top, wide, height) {
  context.save();
  context.beginPath();
  context.rect(left, top, wide, height);
  context.clip();
  context.strokeStyle = ink.bad;
  context.globalAlpha = 0.35;
  context.lineWidth = 1;
  context.beginPath();
  for (let at = left - height; at < left + wide; at += 5) {
    context.moveTo(at, top + height);
    context.lineTo(at + height, top);
  }
  context.stroke();
  context.restore();
}
