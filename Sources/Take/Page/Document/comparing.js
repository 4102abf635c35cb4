// Two takes under each other, and what differs between them.
import { make, place } from "./basics.js";
import { cards } from "./cards.js";
import { askJSON, askReading } from "./server.js";
import { adopt, adoptBeside, take } from "./take.js";

/** The numbers and findings of each take by itself. */
const sides = [];

const side = () => ({
  name: take.file, cards: cards(),
  findings: take.findings,
});

/** Reads a second take and lays it beside the first. */
export async function besides(name) {
  const first = take.reading;
  first.data.findings = await askJSON("findings", { name: take.name });
  take.findings = first.data.findings;
  first.data.isExamined = true;
  sides.push(side());
  const reading = await askReading("take", { name, overview: 1 });
  const second = { ...reading.data, name, findings: await askJSON("findings", { name }) };
  // The numbers of each are those of a take alone.
  take.series = [];
  adopt(second, reading.bytes);
  sides.push(side());
  take.series = [];
  adopt(first.data, first.bytes);
  adoptBeside(second, reading.bytes);
}

/** The numbers of both takes in a table in the place of the cards. */
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
  place("cards").replaceChildren(make("div", { class: "card", id: "comparison" },
    make("table", { class: "grid" },
      make("thead", {}, make("tr", {}, heads.map((text) => make("th", { scope: "col" }, text)))),
      make("tbody", {}, titles.map((title) => make("tr", {},
        make("th", { scope: "row" }, title), cell(left, title), cell(right, title))),
      make("tr", {}, make("th", { scope: "row" }, "Found there alone"),
        only(left, right), only(right, left))))));
}

/** What a card is about, whoever it is of. */
const plain = (title) => title.split(/ (?:at|to) /)[0];

/** Whether two takes are looked at. */
export const isComparing = () => sides.length === 2;
