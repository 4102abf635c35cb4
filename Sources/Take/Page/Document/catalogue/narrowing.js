// The menus above a catalogue: one per facet, with the number of takes for each choice.
import { button, make } from "../shared/elements.js";
import { countsOf, facets } from "./facets.js";

/** The maximum number of listed values per facet; searching finds the others. */
const valuesShown = 40;

/**
 * Creates a menu for each facet, in which its values are chosen.
 * @param {Map<string, Set<string>>} chosen
 * @param {() => void} changed
 */
export function facetMenus(chosen, changed) {
  const menus = facets.map((facet) => {
    const name = make("summary", {}, facet.name);
    const list = make("ul");
    const element = make("details", {
      class: "menu", "data-facet": facet.id,
      focusout: (event) => {
        if (event.relatedTarget && !element.contains(event.relatedTarget)) element.open = false;
      },
      keydown: (event) => {
        if (event.key !== "Escape") return;
        element.open = false;
        name.focus();
      },
    }, name, list);
    return { facet, element, name, list, items: new Map() };
  });
  const none = button("all takes", () => {
    for (const values of chosen.values()) values.clear();
    changed();
  }, { id: "no-facets" });
  const choose = (facet, value, isWanted) => {
    const values = chosen.get(facet.id);
    if (isWanted) values.add(value);
    else values.delete(value);
    changed();
  };
  return {
    elements: [...menus.map(({ element }) => element), none],
    /** Updates the counts after takes or choices changed. */
    fill(entries, words) {
      for (const menu of menus) fillMenu(menu, entries, chosen, words, choose);
      none.hidden = ![...chosen.values()].some(({ size }) => size);
    },
  };
}

function fillMenu({ facet, element, name, list, items }, entries, chosen, words, choose) {
  const wanted = chosen.get(facet.id);
  const counts = countsOf(facet, entries, chosen, words)
    .filter(({ value, count }) => count || wanted.has(value)).slice(0, valuesShown);
  element.hidden = !counts.length;
  name.textContent = wanted.size ? `${facet.name}: ${[...wanted].join(" or ")}` : facet.name;
  const lines = counts.map(({ value, count }) => {
    if (!items.has(value)) {
      const box = make("input", {
        type: "checkbox", change: () => choose(facet, value, box.checked),
      });
      const number = make("small");
      items.set(value, { line: make("li", {}, make("label", {}, box, ` ${value} `, number)),
        box, number });
    }
    const item = items.get(value);
    item.box.checked = wanted.has(value);
    item.number.textContent = String(count);
    return item.line;
  });
  // Elements that stay where they are keep the focus.
  if (lines.length !== list.children.length || lines.some((line, at) => line !== list.children[at])) {
    const focused = document.activeElement;
    list.replaceChildren(...lines);
    if (focused instanceof HTMLElement && list.contains(focused)) focused.focus();
  }
}
