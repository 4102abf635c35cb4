// Participants of rooms, and the tracks that carried their media.
import { peerName, take, thisSide } from "./take.js";

/** Participants of the take's rooms, in order of arrival. */
export function people() {
  const found = new Map();
  for (const { actor, at, participant, id, name: called, local, present } of take.presence) {
    const key = `${actor} ${participant}`;
    if (!found.has(key)) found.set(key, { actor, participant, isLocal: local === 1, stays: [] });
    const person = found.get(key);
    person.called = called ?? person.called;
    person.id = id ?? person.id;
    const last = person.stays.at(-1);
    if (!present && last) last.to = at;
    // A participant who is present may be announced again under another name.
    else if (present && !(last?.to > at)) person.stays.push({ from: at, to: take.seconds });
  }
  for (const person of found.values()) {
    person.name = person.called || (person.isLocal ? thisSide
      : person.id || `person ${person.participant}`);
  }
  return [...found.values()];
}

/** The tracks that carried a participant's media, with their times. */
export const carriedBy = (person) => take.carriage.filter((row) =>
  row.actor === person.actor && row.participant === person.participant);

/** The participants whose media a way carried, in order. */
export function carriersOf({ peer, track, direction }) {
  const rows = take.carriage.filter((row) =>
    row.peer === peer && row.track === track && row.direction === direction);
  return take.people.filter((person) => rows.some((row) =>
    row.actor === person.actor && row.participant === person.participant));
}

/** What a way carried other than camera or microphone, such as a screen. */
export const extraOf = ({ peer, track, direction }) => take.carriage.find((row) =>
  row.peer === peer && row.track === track && row.direction === direction && row.extra)?.extra;

/** The name of the user of a peer: in a room the local participant, whatever the connection. */
export function sideName(peer) {
  const room = take.carriage.find((row) => row.peer === peer)?.actor;
  return take.people.find(({ actor, isLocal }) => isLocal && actor === room)?.name
    ?? peerName(peer);
}
