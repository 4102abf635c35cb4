// The W3C statistics as getStats returned them: at the end of the take, or at the cursor if there
// is a server. Every number can be drawn as a lane.
import { clock } from "../clock/clock.js";
import { timeText } from "../clock/times.js";
import { button, make, place } from "../shared/elements.js";
import { askJSON } from "../shared/server.js";
import { counted } from "../shared/words.js";
import { drawQuery } from "../sql/query.js";
import { peerName, take } from "../take/take.js";

const stats = { words: "", at: null };

export function makeStats() {
  stats.body = make("div");
  stats.note = make("span", { role: "status" });
  const words = make("input", {
    type: "search", placeholder: "Words of types and members", id: "stat-words",
    "aria-label": "Show statistics with these words",
    input: () => {
      stats.words = words.value.toLowerCase();
      fillStats();
    },
  });
  place("stats").replaceChildren(make("div", { class: "card" },
    make("div", { class: "tools" }, words,
      take.form === "served" ? button("at the cursor", showStats, { id: "stats-at" }) : null,
      stats.note),
    stats.body));
  stats.objects = (take.stats ?? []).map((object) =>
    ({ ...object, members: readMembers(object.members) }));
}

/** Parses the members of an object; empty if the take has something else. */
export function readMembers(text) {
  try {
    return Object(JSON.parse(text));
  } catch {
    return {};
  }
}

/** Loads the objects at the cursor, or at the end. */
export async function showStats() {
  if (take.form === "served") {
    const at = clock.cursor ?? take.seconds;
    stats.at = at;
    const found = await askJSON("stats", { name: take.name, at });
    stats.objects = found.flatMap(({ peer, objects }) => objects.map(
      ({ id, type, timestamp, ...members }) => ({ peer, id, type, members })));
  }
  fillStats();
}

function fillStats() {
  const shown = stats.objects.filter((object) =>
    `${object.type} ${JSON.stringify(object.members)}`.toLowerCase().includes(stats.words));
  stats.note.textContent = `${counted(shown.length, "object")} `
    + `${stats.at === null ? "at the end" : `at ${timeText(stats.at)}`}`;
  stats.body.replaceChildren(...shown.map(objectElement));
}

function objectElement({ peer, id, type, members }) {
  const title = ["kind", "ssrc", "mid", "label", "state"]
    .map((name) => members[name]).filter((value) => value !== undefined).join(" ");
  const rows = Object.entries(members).filter(([name]) =>
    !stats.words || `${type} ${name}`.toLowerCase().includes(stats.words)
    || title.toLowerCase().includes(stats.words));
  return make("details", { class: "layer" },
    make("summary", {}, `${peerName(peer)}: ${type} ${title}`),
    make("table", { class: "grid" }, make("tbody", {}, rows.map(([name, value]) => make("tr", {},
      make("td", {}, name),
      make("td", {}, typeof value === "object" ? JSON.stringify(value) : String(value)),
      make("td", {}, typeof value === "number" && take.form === "served"
        ? button("draw", () => drawMember(peer, id, name)) : ""))))));
}

/** Draws a member of an object as a lane over the whole take. */
function drawMember(peer, id, name) {
  const quoted = (text) => `'${text.replaceAll("'", "''")}'`;
  drawQuery(`SELECT at_ns, members ->> ${quoted(`$.${name}`)} AS ${name} FROM stat `
    + `WHERE peer = ${peer} AND id = ${quoted(id)}`);
  place("tab-call").click();
}
