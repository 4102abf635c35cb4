// The exchanges of descriptions: each by its sections, folded to what differs from the one before
// of the same side, and from what it answers.
import { button, make, place } from "./basics.js";
import { setAddressPart, timeText, visit } from "./clock.js";
import { copyText } from "./copying.js";
import { peerName, take } from "./take.js";

const exchange = { chosen: 0, isWhole: false, against: "before" };

/** What a message is as JSON; undefined when it is something else. */
function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** How deep a description may stand in a message: servers wrap it in their own words. */
const deepest = 4;

/** The description somewhere in a value: as its member `sdp`, or as a text of its own. */
function descriptionIn(value, depth = 0) {
  if (typeof value === "string") return /^v=0\r?\n/.test(value) ? value : null;
  if (typeof value !== "object" || value === null || depth > deepest) return null;
  if (typeof value.sdp === "string" && value.sdp.startsWith("v=")) return value.sdp;
  for (const each of Object.values(value).slice(0, 50)) {
    const found = descriptionIn(each, depth + 1);
    if (found) return found;
  }
  return null;
}

/** The description in a message: its own text, or that in JSON. */
function description(row) {
  const text = row?.message ?? "";
  return text.startsWith("v=") ? text : descriptionIn(parsed(text));
}

/** A description as sections: the session, then each of its media. */
function sectionsOf(sdp) {
  const found = [{ kind: "session", title: "Session", lines: [] }];
  for (const line of sdp.split(/\r?\n/)) {
    if (!line) continue;
    if (line.startsWith("m=")) {
      found.push({ kind: line.slice(2).split(" ")[0], title: line, lines: [] });
    }
    const section = found.at(-1);
    section.lines.push(line);
    if (line.startsWith("a=mid:")) section.mid = line.slice(6);
  }
  return found;
}

/** Lines with what became of them: `same`, `added` or `gone`; as few changes as can be. */
export function differences(before, after) {
  // Descriptions are short, so that the plain table of common subsequences will do.
  const [rows, columns] = [before.length, after.length];
  if (rows * columns > 250_000) return after.map((line) =>
    ({ line, change: before.includes(line) ? "same" : "added" }));
  const common = Array.from({ length: rows + 1 }, () => new Uint16Array(columns + 1));
  for (let row = rows - 1; row >= 0; row -= 1) {
    for (let column = columns - 1; column >= 0; column -= 1) {
      common[row][column] = before[row] === after[column] ? common[row + 1][column + 1] + 1
        : Math.max(common[row + 1][column], common[row][column + 1]);
    }
  }
  const found = [];
  let [row, column] = [0, 0];
  while (row < rows || column < columns) {
    if (row < rows && column < columns && before[row] === after[column]) {
      found.push({ line: after[column], change: "same" });
      row += 1;
      column += 1;
    } else if (column >= columns || (row < rows
      && common[row + 1][column] >= common[row][column + 1])) {
      found.push({ line: before[row], change: "gone" });
      row += 1;
    } else {
      found.push({ line: after[column], change: "added" });
      column += 1;
    }
  }
  return found;
}

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
  }, make("option", { value: "before" }, "the one before of the same side"),
  make("option", { value: "offer" }, "what it answers, or the latest of the other side"));
  box.replaceChildren(make("div", { class: "card" },
    make("div", { class: "tools" },
      make("label", { for: "sdp-against" }, "Differences to"), against,
      make("label", {}, whole, " also what is the same")),
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

/** Shows one message. */
export function chooseMessage(index) {
  if (!take.signaling[index] || !exchange.steps) return;
  exchange.chosen = index;
  [...exchange.steps.children].forEach((each, at) =>
    each.setAttribute("aria-pressed", String(at === index)));
  setAddressPart("message", index || "");
  fillMessage();
}

/** The message that the chosen one is compared with. */
function counterpart(row, index) {
  const isSame = (each) => each.direction === row.direction;
  const earlier = take.signaling.slice(0, index).reverse().filter(
    (each) => each.peer === row.peer && description(each) !== null
      && (exchange.against === "before") === isSame(each));
  // An offer differs from an answer in much that means nothing.
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
      button("go there", () => {
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
      : "There is none to compare with."),
    ...sectionsOf(sdp).map((section, index) =>
      sectionElement(section, former, index, Boolean(other))));
}

/** JSON with a line for each member; other texts as they are. */
function readableText(message) {
  const value = parsed(message);
  return typeof value === "object" ? JSON.stringify(value, null, 2) : message;
}

/** A message that is no description; a candidate is explained. */
function candidateText(message) {
  const found = /candidate:\S+ \d+ (\w+) \d+ (\S+) (\d+) typ (\w+)/.exec(message);
  const what = { host: "an address of its own", srflx: "its address as a STUN server sees it",
    prflx: "its address as the other side sees it", relay: "an address of a relay" };
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

/** In which direction a section goes, or that it was refused (RFC 9429 section 5.3.1). */
function wayOf({ kind, title, lines }) {
  if (/^m=\S+ 0 /.test(title) && !lines.includes("a=bundle-only")) return "rejected";
  if (kind === "application") return "";
  return lines.map((line) => /^a=(sendrecv|sendonly|recvonly|inactive)$/.exec(line)?.[1])
    .find(Boolean) ?? "";
}

/** What the types of candidates mean (RFC 8445 section 5.1.1). */
export const candidateTypes = { host: "own address", srflx: "seen by a STUN server",
  prflx: "seen by the peer", relay: "of a relay" };

function lineElement(line, change) {
  const cut = line.startsWith("a=") ? (line.indexOf(":") < 0 ? line.length : line.indexOf(":")) : 1;
  const kind = /^a=candidate:.* typ (\w+)/.exec(line)?.[1];
  return make("div", { class: `text ${change === "same" ? "" : change}` },
    make("b", {}, line.slice(0, cut)), line.slice(cut),
    candidateTypes[kind] ? make("span", { class: "why" }, `  ${candidateTypes[kind]}`) : null);
}
