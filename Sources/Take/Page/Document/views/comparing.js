// Two takes, one below the other, and their differences.
import { make, place } from "../shared/elements.js";
import { askJSON, askReading } from "../shared/server.js";
import { adopt, adoptBeside } from "../take/reading.js";
import { take } from "../take/take.js";
import { cards } from "./cards.js";

/** The cards and findings of each take. */
const sides = [];

const side = () => ({
  name: take.file, cards: cards(),
  findings: take.findings,
});

/** Reads a second take and compares it with the first. */
export async function besides(name) {
  const first = take.reading;
  const examined = await askJSON("findings", { name: take.name });
  Object.assign(first.data, examined, { isExamined: true });
  Object.assign(take, examined);
  sides.push(side());
  const reading = await askReading("take", { name, overview: 1 });
  const second = { ...reading.data, name, ...await askJSON("findings", { name }) };
  // Each take's cards are computed while only that take is loaded.
  take.series = [];
  adopt(second, reading.bytes);
  sides.push(side());
  take.series = [];
  adopt(first.data, first.bytes);
  adoptBeside(second, reading.bytes);
}

/** Shows the cards of both takes as a table. */
export function fillComparison() {
  const [left, right] = sides;
  const titles = [...new Set(sides.flatMap((each) => each.cards.map(({ title }) => plain(title))))];
  const cell = (each, title) => {
    const card = each.cards.find((other) => plain(other.title) === title);
    if (!card) return make("td", {}, "–");
    const who = card.title.slice(title.length).trim();
    return make("td", {}, make("b", { class: card.tone ?? "" }, card.value),
      make("span", {}, [who, card.note].filter(Boolean).join(", ")));
  };
  const only = (one, other) => {
    const rules = one.findings.map(({ rule }) => rule)
      .filter((rule) => !other.findings.some((each) => each.rule === rule));
    return make("td", {}, [...new Set(rules)].join(", ")
      || "nothing");
  };
  const heads = ["", left.name, right.name];
  place("quality").replaceChildren();
  place("cards").replaceChildren(make("div", { class: "card", id: "comparison" },
    make("table", { class: "grid" },
      make("thead", {}, make("tr", {}, heads.map((text) => make("th", { scope: "col" }, text)))),
      make("tbody", {}, titles.map((title) => make("tr", {},
        make("th", { scope: "row" }, title), cell(left, title), cell(right, title))),
      make("tr", {}, make("th", { scope: "row" }, "Only found there"),
        only(left, right), only(right, left))))));
}

/** The title of a card without the peer. */
const plain = (title) => title.split(/ (?:at|to) /)[0];

/** Whether two takes are compared. */
export const isComparing = () => sides.length === 2;
