// States of machines that are not peers.
import { spanLane, toneOf } from "./kinds.js";
import { take, takeNumber } from "../take/take.js";

/** The states of machines that are not peers, by take and machine. */
export function machineStates() {
  const found = new Map();
  for (const [owner, machine, from, to, text] of take.states ?? []) {
    if (take.peers.some(({ peer }) => peer === owner)) continue;
    const key = `${takeNumber(owner)} ${machine}`;
    if (!found.has(key)) found.set(key, { take: takeNumber(owner), machine, list: [] });
    found.get(key).list.push({ from, to, text, tone: toneOf(text) });
  }
  return [...found.values()];
}

export const isOfAudio = ({ machine }) => machine.startsWith("audio-");

export const isOfRoom = ({ machine }) => machine === "room" || machine.startsWith("room-");

export const stateLane = (label, list, more = {}) =>
  spanLane(label, list, { isState: true, query: "states", ...more });

export const labelOf = (kind) => take.actors.find((actor) => actor.kind === kind)?.label || kind;

export const spansOfMachine = (machine) =>
  machineStates().filter((each) => each.machine === machine).flatMap(({ list }) => list);
