// The lanes of a room and its participants.
import { grid, ink, spanMarks } from "./draw.js";
import { spanLane } from "./kinds.js";
import { isOfRoom, labelOf, stateLane } from "./states.js";
import { counted } from "../shared/words.js";
import { carriedBy } from "../take/people.js";
import { take } from "../take/take.js";

/** A room: its state, its connections, and its participants. */
export function roomGroups(states) {
  const own = states.filter(isOfRoom).map(calmed);
  if (!own.length && !take.people.length) return [];
  const others = take.people.filter(({ isLocal }) => !isLocal).length;
  const lanes = own.map(({ machine, list }) => stateLane(
    machine === "room" ? "room" : machine.replace("room-", "").replaceAll("-", " "), list,
    { isExtra: machine !== "room" }));
  lanes.sort((a, b) => Number(a.isExtra) - Number(b.isExtra));
  lanes.push(...take.people.map((person, index) =>
    personLane(person, index >= peopleShown)));
  return [{
    id: "room", name: `Room: ${labelOf("room")}`, kind: "room", peers: [], lanes,
    note: others ? `${counted(others, "other person", "other people")}; violet: speaks` : "",
  }];
}

/** Disconnecting on leaving is not an error. */
const calmed = ({ machine, list }) => ({
  machine,
  list: list.map((span, index) => (span.text === "disconnected"
    && list[index - 1]?.text === "disconnecting" ? { ...span, tone: "off" } : span)),
});

/** The number of participants shown before all are requested. */
const peopleShown = 12;

/** The presence of a participant, with media and speech. */
function personLane(person, isExtra) {
  const stays = person.stays.map(({ from, to }) => {
    const media = carriedBy(person).filter((row) => row.from < to && (row.to ?? take.seconds) > from)
      .map(({ extra, kind }) => extra || kind);
    const words = [...new Set(media)].join(" and ");
    return { from, to, tone: "good", text: words ? `in the room with ${words}` : "in the room" };
  });
  const speech = (take.speakers ?? []).filter(([peer, participant]) => {
    const [, direction, track] = participant.split("/");
    return carriedBy(person).some((row) => row.peer === peer && row.direction === direction
      && row.track === Number(track));
  }).map(([, , from, to, text]) => ({ from, to, text }));
  const lane = spanLane(person.name, stays, { isExtra, height: 22, query: "presence" });
  return {
    ...lane,
    draw(view) {
      grid(view);
      spanMarks(view, stays);
      view.context.fillStyle = ink.audio;
      for (const { from, to } of speech) {
        if (to < view.from || from > view.to) continue;
        const left = Math.max(view.x(from), 0);
        view.context.fillRect(left, 17, Math.max(view.x(to) - left, 1), 4);
      }
    },
    at(time) {
      const said = speech.find(({ from, to }) => from <= time && time < to);
      return [lane.at(time), said && `speaks at ${said.text}`].filter(Boolean).join(", ");
    },
    marks: [...lane.marks, ...speech.map(({ from }) => from)],
  };
}

export function roomCard() {
  const others = take.people.filter(({ isLocal }) => !isLocal);
  if (!take.people.length) return null;
  const names = others.map(({ name }) => name);
  const rest = names.length > 2 ? ` and ${names.length - 2} more` : "";
  return {
    title: "In the room", value: counted(take.people.length, "person", "people"),
    note: names.length ? names.slice(0, 2).join(", ") + rest : "nobody else joined",
  };
}
