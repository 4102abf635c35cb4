// Mouse, touch and wheel events on a lane.
import { board } from "./state.js";
import { setAddressPart } from "../clock/address.js";
import { clock, pan, point, select, show, showAll, zoom } from "../clock/clock.js";
import { lowerBound } from "../shared/search.js";
import { take } from "../take/take.js";

/** When the wheel last scrolled the page, so that scrolling continues over the lanes. */
let scrolledAt = -Infinity;

window.addEventListener("wheel", (event) => {
  if (!event.defaultPrevented) scrolledAt = event.timeStamp;
}, { passive: true });

/**
 * Handles the pointer on a canvas that shows the take.
 * @param {HTMLCanvasElement} canvas
 * @param {{lane?: Lane, isStrip?: boolean}} what - what the canvas shows
 */
export function listen(canvas, { lane, isStrip } = {}) {
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

/** Zooms with two fingers, keeping the times under them in place. */
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

/** Selects the span at a time, or else the interval between the marks before and after the time. */
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

/** Marks a lane and names it in the address. */
export function markLane(lane) {
  board.marked = lane;
  for (const each of board.lanes) each.element.classList.toggle("marked", each === lane);
  setAddressPart("lane", lane?.id ?? "");
}
