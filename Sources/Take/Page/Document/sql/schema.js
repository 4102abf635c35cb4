// The schema beside a query: tables and views with descriptions of their columns. Clicking a name
// inserts it into the query.
import { button, make } from "../shared/elements.js";
import { askJSON } from "../shared/server.js";
import { take } from "../take/take.js";

/**
 * Creates the panel, which loads the schema when it becomes visible.
 * @param {(name: string) => void} insert
 */
export function schemaPanel(insert) {
  const list = make("div", { id: "schema-list" }, "…");
  /** @type {Relation[]} */
  let relations = [];
  const words = make("input", {
    type: "search", id: "schema-words", placeholder: "Tables and columns with …",
    "aria-label": "Tables and columns with these words",
    input: () => fill(words.value),
  });
  const fill = (text = "") => {
    const found = matching(relations, text);
    list.replaceChildren(...found.map((relation) =>
      relationElement(relation, insert, Boolean(text.trim()))));
    if (!found.length) list.replaceChildren("Nothing has this name.");
  };
  const panel = make("details", { id: "schema", open: window.innerWidth > 980 },
    make("summary", {}, "Tables and views"), words, list);
  new IntersectionObserver((entries, observer) => {
    if (!entries.some(({ isIntersecting }) => isIntersecting)) return;
    observer.disconnect();
    askJSON("schema", { name: take.name }).then((found) => {
      relations = found;
      fill(words.value);
    }, (error) => { list.textContent = error.message; });
  }).observe(panel);
  return panel;
}

/**
 * The relations with all words in their names or their columns' names, reduced to the matching
 * columns; a relation whose own name matches keeps all columns.
 * @param {Relation[]} relations
 * @param {string} text
 * @returns {Relation[]}
 */
export function matching(relations, text) {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const has = (name) => words.every((word) => name.toLowerCase().includes(word));
  return relations.flatMap((relation) => {
    if (has(relation.name)) return [relation];
    const columns = relation.columns.filter(({ name }) => has(`${relation.name} ${name}`));
    return columns.length ? [{ ...relation, columns }] : [];
  });
}

function relationElement({ name, kind, comment, columns }, insert, isOpen) {
  return make("details", { open: isOpen, "data-relation": name },
    make("summary", {}, make("b", {}, name), " ", make("small", {}, kind)),
    comment ? make("p", {}, comment) : null,
    make("ul", {}, item(name, kind === "view" ? "the view" : "the table", insert),
      columns.map((column) => item(column.name, column.comment, insert))));
}

const item = (name, comment, insert) => make("li", {},
  button(name, () => insert(name), { class: "plain", title: `Insert ${name}` }),
  comment ? make("small", {}, comment) : null);
