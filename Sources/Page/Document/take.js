"use strict";
const take = JSON.parse(document.getElementById("data").textContent);
const named = (tag, text, className) => {
  const element = document.createElement(tag);
  if (text !== undefined) element.textContent = text;
  if (className) element.className = className;
  return element;
};
const place = (id) => document.getElementById(id);
const labelOf = (peer) => (take.peers.find((each) => each.peer === peer) || {}).label || peer;
const colours = [
  "#2f81f7", "#e8702a", "#2da44e", "#bf3989", "#8250df", "#1b9e9e", "#b58900", "#cf222e",
];

// The part of the clock that is shown, and the instant that is pointed at.
let view = { from: 0, to: Math.max(take.seconds, 0.001) };
let pointed = null;
let peer = take.peers.length ? take.peers[0].peer : 0;
const drawings = [];

/* ---- The frame that all drawings share ---- */

const left = 150;
const right = 24;
const scale = (width) => (seconds) =>
  left + ((seconds - view.from) / (view.to - view.from)) * (width - left - right);

/** A canvas of so many pixels in height, sharp on any display. */
function prepare(canvas, height) {
  const ratio = window.devicePixelRatio || 1;
  const width = canvas.clientWidth || 800;
  canvas.style.height = `${height}px`;
  canvas.width = width * ratio;
  canvas.height = height * ratio;
  const context = canvas.getContext("2d");
  context.scale(ratio, ratio);
  context.font = "11px system-ui, sans-serif";
  return { context, width, height, x: scale(width) };
}

/** The colour of the style sheet of that name. */
function colour(name) {
  const probe = named("i");
  probe.style.color = `var(--${name})`;
  document.body.append(probe);
  const value = getComputedStyle(probe).color;
  probe.remove();
  return value;
}

/** About so many round numbers between two others. */
function ticks(from, to, count) {
  const rough = (to - from) / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((each) => each * power).find((each) => each >= rough);
  const found = [];
  for (let at = Math.ceil(from / step) * step; at <= to + step / 1e6; at += step) {
    found.push(Number(at.toPrecision(12)));
  }
  return found;
}

function clock(frame, ink) {
  const { context, height, x } = frame;
  context.fillStyle = context.strokeStyle = ink.faint;
  context.textAlign = "center";
  context.textBaseline = "bottom";
  for (const at of ticks(view.from, view.to, 10)) {
    context.globalAlpha = 0.25;
    line(context, x(at), 0, x(at), height - 14);
    context.globalAlpha = 1;
    context.fillText(`${at} s`, x(at), height);
  }
}

function line(context, x1, y1, x2, y2) {
  context.beginPath();
  context.moveTo(x1, y1);
  context.lineTo(x2, y2);
  context.stroke();
}

function pointer(frame, ink) {
  if (pointed === null || pointed < view.from || pointed > view.to) return;
  frame.context.strokeStyle = ink.ink;
  frame.context.globalAlpha = 0.6;
  line(frame.context, frame.x(pointed), 0, frame.x(pointed), frame.height - 14);
  frame.context.globalAlpha = 1;
}

/* ---- Curves ---- */

/** The values with a 0 for each second that has none: as far as the curve goes. */
function counted(items) {
  const filled = [];
  items.forEach(([at, value], index) => {
    for (let gap = index ? items[index - 1][0] + 1 : at; gap < at; gap += 1) filled.push([gap, 0]);
    filled.push([at, value]);
  });
  return filled;
}

/** The last value at or before an instant. */
function valueAt(items, at) {
  let low = 0;
  let high = items.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (items[middle][0] <= at) low = middle + 1;
    else high = middle;
  }
  return low ? items[low - 1][1] : null;
}

function drawCurves(drawing, ink) {
  const frame = prepare(drawing.canvas, 130);
  const { context, height, width, x } = frame;
  const shown = drawing.parts.filter((part) => part.peer === peer && !part.isOff);
  let [low, high] = [0, -Infinity];
  for (const part of shown) {
    for (const [at, value] of part.items) {
      if (at < view.from - 1 || at > view.to) continue;
      low = Math.min(low, value);
      high = Math.max(high, value);
    }
  }
  if (high <= low) high = low + 1;
  const y = (value) => height - 18 - ((value - low) / (high - low)) * (height - 26);
  clock(frame, ink);
  context.textAlign = "right";
  context.textBaseline = "middle";
  for (const value of ticks(low, high, 3)) {
    context.globalAlpha = 0.25;
    line(context, left, y(value), width - right, y(value));
    context.globalAlpha = 1;
    context.fillText(value, left - 6, y(value));
  }
  context.save();
  context.beginPath();
  context.rect(left, 0, width - left - right, height - 14);
  context.clip();
  context.lineWidth = 1.4;
  for (const part of shown) {
    context.strokeStyle = context.fillStyle = part.colour;
    context.beginPath();
    part.items.forEach(([at, value], index) => {
      if (index) context.lineTo(x(at), y(value));
      else context.moveTo(x(at), y(value));
      // What is counted in a second is so for the second.
      if (drawing.isCounted) context.lineTo(x(at + 1), y(value));
    });
    context.stroke();
    // A single value is no line.
    const [only, ...others] = part.items;
    if (!others.length) context.fillRect(x(only[0]) - 2, y(only[1]) - 2, 4, 4);
  }
  context.restore();
  pointer(frame, ink);
  for (const part of drawing.parts) {
    const value = pointed === null ? null : valueAt(part.items, pointed);
    part.value.textContent = value === null ? "" : ` ${Number(value.toPrecision(5))}`;
  }
}

/* ---- Lanes ---- */

const laneHeight = 22;

/** A text cut to a width, with an ellipsis where something is missing. */
function fitting(context, text, width) {
  if (context.measureText(text).width <= width) return text;
  let length = text.length;
  while (length > 1 && context.measureText(`${text.slice(0, length)}…`).width > width) length -= 1;
  return `${text.slice(0, length)}…`;
}

function drawLanes(drawing, ink) {
  const shown = drawing.parts.filter((part) => part.peer === peer);
  const frame = prepare(drawing.canvas, shown.length * laneHeight + 18);
  const { context, width, x } = frame;
  clock(frame, ink);
  const words = new Map();
  shown.forEach((part, row) => {
    const top = row * laneHeight;
    context.fillStyle = ink.faint;
    context.textAlign = "right";
    context.textBaseline = "middle";
    context.fillText(fitting(context, part.name, left - 12), left - 6, top + laneHeight / 2);
    let free = left;
    context.save();
    context.beginPath();
    context.rect(left, top, width - left - right, laneHeight);
    context.clip();
    for (const [from, to, text] of part.items) {
      if (to < view.from || from > view.to) continue;
      if (!words.has(text)) words.set(text, colours[words.size % colours.length]);
      const begin = Math.max(x(from), left);
      const length = Math.max(x(to) - begin, 2);
      context.globalAlpha = 0.3;
      context.fillStyle = words.get(text);
      context.fillRect(begin, top + 2, length, laneHeight - 4);
      context.globalAlpha = 1;
      // What lasts at the same time is drawn over each other; one text of it is enough.
      const end = begin + 8 + context.measureText(text).width;
      if (begin < free || end > begin + length) continue;
      free = end;
      context.fillStyle = ink.ink;
      context.textAlign = "left";
      context.fillText(text, begin + 4, top + laneHeight / 2);
    }
    context.restore();
  });
  pointer(frame, ink);
  drawing.parts.forEach((part) => {
    const now = pointed === null
      ? [] : part.items.filter(([from, to]) => from <= pointed && pointed < to);
    part.value.textContent = now.length ? ` ${now.map((each) => each[2]).join("; ")}` : "";
  });
}

/* ---- All of them ---- */

function redraw() {
  const ink = { ink: colour("ink"), faint: colour("faint") };
  for (const drawing of drawings) {
    const isShown = drawing.parts.some((part) => part.peer === peer);
    drawing.figure.hidden = !isShown;
    if (isShown) (drawing.form === "lanes" ? drawLanes : drawCurves)(drawing, ink);
    for (const part of drawing.parts) {
      // The names of lanes stand beside them; here they are told with what is pointed at.
      part.key.hidden = part.peer !== peer || (drawing.form === "lanes" && !part.value.textContent);
    }
  }
}

let isWaiting = false;
function soon() {
  if (isWaiting) return;
  isWaiting = true;
  requestAnimationFrame(() => {
    isWaiting = false;
    redraw();
  });
}

function listen(canvas) {
  const instant = (event) => {
    const box = canvas.getBoundingClientRect();
    const share = (event.clientX - box.left - left) / (box.width - left - right);
    return view.from + Math.min(Math.max(share, 0), 1) * (view.to - view.from);
  };
  let begin = null;
  canvas.addEventListener("pointerdown", (event) => {
    begin = instant(event);
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    pointed = instant(event);
    soon();
  });
  canvas.addEventListener("pointerup", (event) => {
    const end = instant(event);
    const [from, to] = [Math.min(begin, end), Math.max(begin, end)];
    // A click is no wish to look closer.
    if (begin !== null && to - from > (view.to - view.from) / 100) view = { from, to };
    begin = null;
    list();
    soon();
  });
  canvas.addEventListener("pointerleave", () => {
    pointed = null;
    soon();
  });
  canvas.addEventListener("dblclick", () => {
    view = { from: 0, to: Math.max(take.seconds, 0.001) };
    list();
    soon();
  });
}

for (const { title, sql, form, unit, isCounted, parts } of take.drawings) {
  const figure = named("figure");
  const caption = named("figcaption");
  const details = named("details");
  details.append(named("summary", unit ? `${title}, ${unit}` : title), named("pre", sql));
  caption.append(details);
  const canvas = named("canvas");
  const drawing = { figure, canvas, form, isCounted, parts };
  const counts = new Map();
  for (const part of parts) {
    const number = counts.get(part.peer) || 0;
    counts.set(part.peer, number + 1);
    part.colour = colours[number % colours.length];
    if (isCounted) part.items = counted(part.items);
    part.key = named("span", undefined, "key");
    part.value = named("b");
    if (form === "curves") {
      const swatch = named("i");
      swatch.style.background = part.colour;
      part.key.append(swatch);
      part.key.addEventListener("click", () => {
        part.isOff = part.key.classList.toggle("off");
        soon();
      });
    }
    part.key.append(part.name, part.value);
    caption.append(part.key);
  }
  figure.append(caption, canvas);
  place("drawings").append(figure);
  listen(canvas);
  drawings.push(drawing);
}

/* ---- What is told in words ---- */

document.querySelector("h1").textContent = take.label || "A take";
place("facts").textContent = [
  take.start, `${take.seconds.toFixed(1)} s`, `recorded by ${take.version}`,
  take.isComplete ? "complete" : "cut short",
].join(" · ");

function choosePeer(chosen) {
  peer = chosen;
  for (const button of place("peers").children) {
    button.classList.toggle("on", Number(button.value) === peer);
  }
  list();
  soon();
}
for (const each of take.peers) {
  const [sent, received] = [each.bytesOut, each.bytesIn].map((bytes) => Math.round(bytes / 1000));
  const button = named(
    "button", `${each.peer} ${each.label}: ${sent} kB sent, ${received} kB received`);
  button.type = "button";
  button.value = each.peer;
  button.title = each.tracks.join("\n");
  button.addEventListener("click", () => choosePeer(each.peer));
  place("peers").append(button);
}

for (const each of take.actors) {
  place("actors").append(named("li", `actor ${each.actor} ${each.label}: ${each.kind}`));
}
for (const each of take.coverage) {
  const span = `${(each.fromNanoseconds / 1e9).toFixed(3)} to `
    + `${(each.toNanoseconds / 1e9).toFixed(3)} s`;
  place("actors").append(named("li", `not seen: ${each.what}, ${span}: ${each.reason}`));
}

if (!take.problems.length) {
  place("problems").className = "none";
  place("problems").textContent = "Nothing seems wrong.";
}
for (const problem of take.problems) {
  const [from, to] = [problem.from_ns / 1e9, problem.to_ns / 1e9];
  const link = named(
    "a", `${from.toFixed(3)} s: ${problem.problem}, ${labelOf(problem.peer)}: ${problem.evidence}`);
  link.title = problem.sql;
  link.addEventListener("click", () => {
    const margin = Math.max((to - from) / 4, 0.25);
    view = { from: Math.max(from - margin, 0), to: Math.min(to + margin, take.seconds) };
    choosePeer(problem.peer);
  });
  place("problems").append(link);
}

/* ---- The listing ---- */

const offLanes = new Set();
const pageLength = 300;
let shownLength = pageLength;

function list() {
  const words = place("filter").value.toLowerCase();
  const found = take.timeline.filter((entry) => {
    const seconds = entry.at_ns / 1e9;
    return entry.peer === peer && !offLanes.has(entry.lane) && seconds >= view.from
      && seconds <= view.to && `${entry.lane} ${entry.what}`.toLowerCase().includes(words);
  });
  const body = place("events");
  body.replaceChildren();
  for (const entry of found.slice(0, shownLength)) {
    const row = named("tr");
    const cell = named("td", entry.what);
    row.append(
      named("td", (entry.at_ns / 1e9).toFixed(3)), named("td", entry.step),
      named("td", labelOf(entry.peer)), named("td", entry.lane), cell);
    const message = entry.lane === "signaling"
      && take.messages.find((each) => each.step === entry.step && each.peer === entry.peer);
    if (message) {
      cell.textContent = "";
      const details = named("details");
      details.append(named("summary", entry.what), named("pre", message.text));
      cell.append(details);
    }
    body.append(row);
  }
  place("more").hidden = found.length <= shownLength;
}

for (const lane of [...new Set(take.timeline.map((entry) => entry.lane))]) {
  const button = named("button", lane, "on");
  button.type = "button";
  button.addEventListener("click", () => {
    if (button.classList.toggle("on")) offLanes.delete(lane);
    else offLanes.add(lane);
    list();
  });
  place("lanes").append(button);
}
place("filter").addEventListener("input", list);
place("more").addEventListener("click", () => {
  shownLength += pageLength;
  list();
});
window.addEventListener("resize", soon);
choosePeer(peer);
