// Elements and words that all modules use.

/** The element with an id. */
export const place = (id) => document.getElementById(id);

/**
 * An element with attributes and children. Texts are texts: nothing of a take is ever markup.
 * Attributes that are functions are listeners, `class` and the like are as in HTML.
 */
export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== undefined && value !== null) {
      element.setAttribute(name, value);
    }
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

/** A button that does something. */
export const button = (text, click, attributes = {}) =>
  make("button", { type: "button", click, ...attributes }, text);

/** A number with so many significant digits, and a thin space between thousands. */
export function digits(value, significant = 3) {
  if (!Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  const places = size >= 1 ? Math.max(0, significant - 1 - Math.floor(Math.log10(size)))
    : significant;
  const text = Number(value.toFixed(Math.min(places, 6))).toString();
  return size >= 10000 ? text.replace(/\B(?=(\d{3})+(?!\d))/g, "\u202f") : text;
}

/** A duration: `346 ms`, `2.4 s`, `12 min 5 s`. */
export function duration(seconds) {
  if (!Number.isFinite(seconds)) return "–";
  if (seconds < 1) return `${digits(seconds * 1000, seconds < 0.01 ? 2 : 3)}\u00a0ms`;
  if (seconds < 120) return `${digits(seconds, 3)}\u00a0s`;
  const whole = Math.round(seconds);
  if (whole < 7200) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  const minutes = Math.round(seconds / 60);
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/** Bits in a second: `85 kbit/s`, `1.25 Mbit/s`. */
export const bitRate = (perSecond) =>
  perSecond >= 1e6 ? `${digits(perSecond / 1e6)}\u00a0Mbit/s`
    : `${digits(perSecond / 1e3)}\u00a0kbit/s`;

/** Bytes: `812 B`, `1.2 MB`. */
export function byteCount(bytes) {
  if (bytes < 1000) return `${bytes}\u00a0B`;
  return bytes < 1e6 ? `${digits(bytes / 1e3)}\u00a0kB` : `${digits(bytes / 1e6)}\u00a0MB`;
}

export const percent = (share) => `${digits(100 * share, share < 0.1 ? 2 : 3)}\u00a0%`;

/** `1 packet`, `3 packets`. */
export const counted = (count, noun, nouns = `${noun}s`) =>
  `${digits(count, 9)} ${count === 1 ? noun : nouns}`;

/** The place of the first of sorted values that is more than a limit. */
export function upperBound(values, limit, low = 0, high = values.length) {
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] <= limit) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The place of the first of sorted values that is a limit or more. */
export function lowerBound(values, limit, low = 0, high = values.length) {
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] < limit) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The same as `lowerBound` for a limit that lies little beyond `low`. */
export function nextBound(values, limit, low, end = values.length) {
  let step = 16;
  let begin = low;
  while (begin + step < end && values[begin + step] < limit) {
    begin += step;
    step *= 2;
  }
  return lowerBound(values, limit, begin, Math.min(begin + step, end));
}

/** Tells something for a moment, also to screen readers. */
export function say(text) {
  const said = place("said");
  said.textContent = text;
  said.classList.add("on");
  clearTimeout(say.timer);
  say.timer = setTimeout(() => said.classList.remove("on"), 1800);
}

/** Browsers do not lay out elements that are much higher. */
const highest = 6e6;

/**
 * A list of many lines of one height, of which only those in sight are elements. Where all would be
 * too high for an element, scrolling goes over them as much faster.
 */
export function scroller(head, count, line, height = 22) {
  const space = make("div", { class: "space" });
  const box = make("div", {
    class: "scroller", tabindex: 0, role: "group", "aria-label": "List",
  }, space);
  const element = make("div", {}, head, box);
  const shown = new Map();
  /** The top of what is in sight, in pixels of all lines, and how far the element scrolls. */
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
    /** Draws all anew, after the list changed. */
    refresh() {
      for (const item of shown.values()) item.remove();
      shown.clear();
      draw();
    },
    /** Brings a line into the middle. */
    show(index) {
      const { laid, reach, whole } = measure();
      space.style.height = `${laid}px`;
      const top = Math.max(0, index * height - box.clientHeight / 2);
      box.scrollTop = laid < highest ? top : (top / whole) * reach;
      draw();
    },
  };
}
