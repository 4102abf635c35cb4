// The exchange of descriptions, each folded to its differences from the previous one.
import { setAddressPart } from "../clock/address.js";
import { visit } from "../clock/clock.js";
import { timeText } from "../clock/times.js";
import { button, make, place } from "../shared/elements.js";
import { peerName, take } from "../take/take.js";
import { copyText } from "./copying.js";
import {
  candidateTypes, description, differences, parsed, sectionsOf, wayOf,
} from "./descriptions.js";

const exchange = { chosen: 0, isWhole: false, against: "before" };

export function makeSignaling() {
  const box = place("signaling");
  if (!take.signaling.length) {
    box.replaceChildren(make("div", { class: "card" }, "The take has no signaling."));
    return;
  }
  exchange.steps = make("div", { class: "steps" });
  exchange.body = make("div", { class: "sdp" });
  const whole = make("input", {
    type: "checkbox", id: "whole-sdp",
    change: () => {
      exchange.isWhole = whole.checked;
      fillMessage();
    },
  });
  const against = make("select", {
    id: "sdp-against", "aria-label": "Compare with",
    change: () => {
      exchange.against = against.value;
      fillMessage();
    },
  }, make("option", { value: "before" }, "the previous one from the same side"),
  make("option", { value: "offer" }, "the one that it answers, or the remote peer's latest"));
  box.replaceChildren(make("div", { class: "card" },
    make("div", { class: "tools" },
      make("label", { for: "sdp-against" }, "Compare with"), against,
      make("label", {}, whole, " show unchanged lines too")),
    make("div", { class: "exchange" }, exchange.steps, exchange.body)));
  exchange.steps.replaceChildren(...take.signaling.map((row, index) =>
    button("", () => chooseMessage(index), {
    "aria-pressed": "false", id: `message-${index}`,
  })));
  take.signaling.forEach((row, index) => {
    exchange.steps.children[index].append(
      make("span", {}, timeText(row.at)), make("span", {}, row.direction === "out" ? "→" : "←"),
      make("span", {}, `${peerName(row.peer)}: ${row.type}`));
  });
  chooseMessage(0);
}

/** Shows a signaling message and adds it to the page's address. */
export function chooseMessage(index) {
  if (!take.signaling[index] || !exchange.steps) return;
  exchange.chosen = index;
  [...exchange.steps.children].forEach((each, at) =>
    each.setAttribute("aria-pressed", String(at === index)));
  setAddressPart("message", index || "");
  fillMessage();
}

/** The message that the selected one is compared with. */
function counterpart(row, index) {
  const isSame = (each) => each.direction === row.direction;
  const earlier = take.signaling.slice(0, index).reverse().filter(
    (each) => each.peer === row.peer && description(each) !== null
      && (exchange.against === "before") === isSame(each));
  // A message of the same type is preferred: offers and answers differ in many insignificant ways.
  return earlier.find((each) => exchange.against !== "before" || each.type === row.type)
    ?? earlier[0];
}

function fillMessage() {
  const row = take.signaling[exchange.chosen];
  const sdp = description(row);
  const other = counterpart(row, exchange.chosen);
  const head =
    make("p", {},
      make("b", {},
        `${peerName(row.peer)} ${row.direction === "out" ? "sent" : "received"} ${row.type}`),
      ` over ${row.transport} at ${timeText(row.at)}, step ${row.step} `,
      button("show on the clock", () => {
        place("tab-call").click();
        visit(row.at);
      }), " ",
      row.message === undefined ? null : button("copy", () => copyText(sdp ?? row.message)));
  if (sdp === null) {
    exchange.body.replaceChildren(head, row.message === undefined
      ? make("p", {}, "Its text was left out of this page.") : candidateText(row.message));
    return;
  }
  const former = other ? sectionsOf(description(other)) : [];
  exchange.body.replaceChildren(head,
    make("p", { class: "why" }, other ? `Compared with the ${other.type} of ${timeText(other.at)}.`
      : "There is no description to compare with."),
    ...sectionsOf(sdp).map((section, index) =>
      sectionElement(section, former, index, Boolean(other))));
}

/** JSON with a member per line; any other text unchanged. */
function readableText(message) {
  const value = parsed(message);
  return typeof value === "object" ? JSON.stringify(value, null, 2) : message;
}

/** A message without a description; a candidate is explained. */
function candidateText(message) {
  const found = /candidate:\S+ \d+ (\w+) \d+ (\S+) (\d+) typ (\w+)/.exec(message);
  const what = { host: "a local address", srflx: "its address as seen by a STUN server",
    prflx: "its address as seen by the remote peer", relay: "an address on a relay" };
  return make("div", {},
    found ? make("p", { class: "why" },
      `${found[2]} port ${found[3]} over ${found[1]}: ${what[found[4]] ?? found[4]}.`) : null,
    make("pre", { tabindex: 0 }, readableText(message)));
}

function sectionElement(section, former, index, hasFormer) {
  const match = former.find((each) => section.mid !== undefined && each.mid === section.mid)
    ?? (section.mid === undefined ? former[index] : undefined);
  const lines = hasFormer ? differences(match?.lines ?? [], section.lines)
    : section.lines.map((line) => ({ line, change: "same" }));
  const changes = lines.filter(({ change }) => change !== "same").length;
  const shown = exchange.isWhole || !hasFormer ? lines
    : lines.filter(({ change }) => change !== "same");
  const title = section.kind === "session" ? "Session"
    : [section.kind, section.mid === undefined ? "" : `mid ${section.mid}`, wayOf(section)]
      .filter(Boolean).join(", ");
  const words = !hasFormer ? `${section.lines.length} lines` : changes ? `${changes} lines differ`
    : "nothing differs";
  return make("details", { class: `section ${section.kind}`, open: changes > 0 || !hasFormer
    || exchange.isWhole },
    make("summary", {}, `${title}: ${words}`),
    ...shown.map(({ line, change }) => lineElement(line, change)));
}

function lineElement(line, change) {
  const cut = line.startsWith("a=") ? (line.indexOf(":") < 0 ? line.length : line.indexOf(":")) : 1;
  const kind = /^a=candidate:.* typ (\w+)/.exec(line)?.[1];
  return make("div", { class: `text ${change === "same" ? "" : change}` },
    make("b", {}, line.slice(0, cut)), line.slice(cut),
    candidateTypes[kind] ? make("span", { class: "why" }, `  ${candidateTypes[kind]}`) : null);
}
