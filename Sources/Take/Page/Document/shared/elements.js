// Elements of the document.

/**
 * The element with an id.
 * @param {string} id
 */
export const place = (id) => document.getElementById(id);

/**
 * Creates an element with attributes and children. Text is never parsed as markup. Attributes
 * that are functions are listeners; `class` and the like are as in HTML.
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {Record<string, any>} attributes
 * @param {any[]} children
 * @returns {HTMLElementTagNameMap[Tag]}
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

export const button = (text, click, attributes = {}) =>
  make("button", { type: "button", click, ...attributes }, text);

let announcement = 0;

/** Shows a sentence for a moment; screen readers read it out. */
export function announce(text) {
  const said = place("said");
  said.textContent = text;
  said.classList.add("on");
  clearTimeout(announcement);
  announcement = setTimeout(() => said.classList.remove("on"), 1800);
}
