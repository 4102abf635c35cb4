// The lanes of speakers.
import { spansOf } from "./curves.js";
import { spanLane } from "./kinds.js";
import { carriersOf } from "../take/people.js";
import { take } from "../take/take.js";

export function speakerGroup() {
  const rows = take.speakers ?? [];
  if (!rows.length) return [];
  const people = new Map();
  for (const [peer, participant, from, to, text] of rows) {
    if (!people.has(participant)) people.set(participant, { peer, list: [] });
    people.get(participant).list.push({ from, to, text, tone: peer === take.peers[0]?.peer
      ? "audio" : "data" });
  }
  const names = [...people.keys()];
  const nameOf = (participant) => speakerName(participant, people.get(participant)?.peer);
  // Audio received by one peer is audio sent by the other.
  const hasBoth = names.some((each) => each.split("/")[1] === "out")
    && take.flows.some((flow) => flow.kind === "audio" && flow.sent && flow.received);
  const lanes = names.map((participant, index) => spanLane(
    nameOf(participant), people.get(participant).list.map((span) => ({
      ...span, tone: ["audio", "data", "control", "video"][index % 4],
    })), { query: "speakers", isExtra: index > 7
      || (hasBoth && participant.split("/")[1] === "in") }));
  const dominant = spansOf("dominant", () => true, "audio");
  if (dominant.length) {
    lanes.push(spanLane("dominant", dominant.map((span) =>
      ({ ...span, text: nameOf(span.text) })),
      { query: "dominant", isExtra: true }));
  }
  return [{
    id: "speakers", name: "Who speaks", note: "as each peer received it", peers: [], kind: "audio",
    // In a room, the participants' lanes already show who spoke.
    isFolded: take.people.length > 0, lanes,
  }];
}

/** The name of a participant such as `caller/in/1`: the one whom the caller receives. */
export function speakerName(participant, peer) {
  const [label, direction, track, contributor] = participant.split("/");
  const carriers = contributor ? []
    : carriersOf({ peer, direction, track: Number(track) });
  if (carriers.length) return carriers.map(({ name }) => name).join(", then ");
  if (contributor) return `${label} hears ${contributor}`;
  const flow = take.flows.find(({ kind, sent, received }) => kind === "audio"
    && [sent, received].some((way) => way?.peer === peer && way.direction === direction
      && way.track === Number(track)));
  if (flow) return flow.name.replace(" audio", "").replace(/['\u2019]s?(?= \d+$|$)/, "");
  return direction === "out" ? label : direction === "in" ? `whom ${label} hears` : participant;
}
