// A list of many lines; only the visible ones are in the document.
import { make } from "./elements.js";

/** The maximum height of an element in browsers, in pixels. */
const highest = 6e6;

/**
 * A list of lines of equal height, of which only the visible ones are elements. If the list is
 * higher than an element can be, scrolling is accelerated.
 */
export function scroller(head, count, line, height = 22) {
  const space = make("div", { class: "space" });
  const box = make("div", {
    class: "scroller", tabindex: 0, role: "group", "aria-label": "List",
  }, space);
  const element = make("div", {}, head, box);
  const shown = new Map();
  /** Returns the list's laid-out height, its scroll range, and the range that all lines need. */
  const measure = () => {
    const whole = count() * height;
    const laid = Math.min(whole, highest);
    const reach = Math.max(laid - box.clientHeight, 1);
    return { laid, reach, whole: Math.max(whole - box.clientHeight, 0) };
  };
  const draw = () => {
    const { laid, reach, whole } = measure();
    space.style.height = `${laid}px`;
    const top = laid < highest ? box.scrollTop : (box.scrollTop / reach) * whole;
    const first = Math.max(0, Math.floor(top / height) - 8);
    const last = Math.min(count(), Math.ceil((top + box.clientHeight) / height) + 8);
    for (const [index, item] of shown) {
      if (index < first || index >= last) {
        item.remove();
        shown.delete(index);
      }
    }
    for (let index = first; index < last; index += 1) {
      if (!shown.has(index)) {
        const item = line(index);
        shown.set(index, item);
        space.append(item);
      }
      shown.get(index).style.top = `${box.scrollTop + index * height - top}px`;
    }
  };
  box.addEventListener("scroll", draw, { passive: true });
  return {
    element,
    /** Redraws all lines after the list changed. */
    refresh() {
      for (const item of shown.values()) item.remove();
      shown.clear();
      draw();
    },
    /** Scrolls a line to the middle. */
    show(index) {
      const { laid, reach, whole } = measure();
      space.style.height = `${laid}px`;
      const top = Math.max(0, index * height - box.clientHeight / 2);
      box.scrollTop = laid < highest ? top : (top / whole) * reach;
      draw();
    },
  };
}
