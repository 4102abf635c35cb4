// Flows between peers: one direction of a track, from its sender to its receiver.
import { possessive } from "../shared/words.js";
import { carriersOf, extraOf } from "./people.js";
import { otherSide, peerName, seriesOf, take, takeNumber, thisSide } from "./take.js";

/** One direction of a track of one peer, with the streams that it had. */
function ways() {
  const found = new Map();
  const repairing = ["rtx", "red", "ulpfec", "flexfec-03"];
  for (const row of [...take.tracks, ...take.streams]) {
    const key = `${row.peer} ${row.track} ${row.direction} ${row.kind}`;
    if (!found.has(key)) {
      found.set(key, {
        peer: row.peer, track: row.track, direction: row.direction, kind: row.kind,
        mid: undefined, codec: undefined, clockRate: row.kind === "audio" ? 48000 : 90000,
        ssrcs: new Set(),
      });
    }
    const way = found.get(key);
    if (row.ssrc) way.ssrcs.add(row.ssrc);
    if (row.mid !== undefined) way.mid = row.mid;
    if (row.codec && !repairing.includes(row.codec)) {
      way.codec = row.codec;
      way.clockRate = row.clockRate || way.clockRate;
    }
  }
  return [...found.values()].map(filled).filter((way) => way.packets.length || way.frames);
}

/** Fills a way with its packets, losses, frames and RTCP reports. */
function filled(way) {
  const { peer, direction, track, kind } = way;
  way.packets = seriesOf("packets", { peer, direction, protocol: "rtp", isMedia: true })
    .filter((series) => way.ssrcs.has(series.ssrc));
  way.lost = seriesOf("lost", { peer, direction }).filter((series) => way.ssrcs.has(series.ssrc));
  way.frames = seriesOf("frames", { peer, direction, track, kind })[0];
  way.reports = seriesOf("rtcp", { peer }).filter((series) => way.ssrcs.has(series.ssrc));
  if (way.frames) way.codec = way.frames.codec || way.codec;
  return way;
}

/**
 * The flows: one direction of a track from its sender to its receiver, either of whom may be
 * missing.
 */
export function flows() {
  const all = ways();
  const received = all.filter((way) => way.direction === "in");
  const found = [];
  for (const sent of all.filter((way) => way.direction === "out")) {
    const match = received.findIndex(
      (way) => way.peer !== sent.peer && way.kind === sent.kind
        && takeNumber(way.peer) === takeNumber(sent.peer)
        && [...way.ssrcs].some((ssrc) => sent.ssrcs.has(ssrc)));
    found.push({ sent, received: match < 0 ? undefined : received.splice(match, 1)[0] });
  }
  for (const way of received) found.push({ received: way });
  const counts = new Map();
  const order = { video: 0, audio: 1 };
  found.sort((a, b) => (order[(a.sent ?? a.received).kind]
    ?? 2) - (order[(b.sent ?? b.received).kind] ?? 2));
  for (const flow of found) nameFlow(flow, counts);
  return found;
}

/** Names a flow; several of one kind are numbered. */
function nameFlow(flow, counts) {
  const way = flow.received ?? flow.sent;
  flow.kind = way.kind;
  flow.mid = way.mid ?? flow.sent?.mid;
  flow.codec = flow.sent?.codec ?? way.codec;
  flow.clockRate = way.clockRate;
  flow.peers = [flow.sent?.peer, flow.received?.peer].filter((peer) => peer !== undefined);
  const carriers = carriersOf(way);
  if (carriers.length) nameByPeople(flow, way, carriers);
  else {
    flow.from = flow.sent ? peerName(flow.sent.peer) : otherOf(way.peer);
    flow.to = flow.received ? peerName(flow.received.peer) : otherOf(way.peer);
  }
  const what = extraOf(way) ?? flow.kind;
  const base = `${flow.from} ${what} ${flow.to}`;
  const count = (counts.get(base) ?? 0) + 1;
  counts.set(base, count);
  // An observer sees each packet once, as both sent and received.
  flow.isSeenOnce = take.actors.some((actor) => actor.kind === "observer");
  flow.name = `${possessive(flow.from)} ${what}${count > 1 ? ` ${count}` : ""}`;
  flow.id = `${flow.sent ? `${flow.sent.peer}.${flow.sent.track}` : "-"}`
    + `to${flow.received ? `${flow.received.peer}.${flow.received.track}` : "-"}${flow.kind}`;
}

/** In a room, flows are named after participants, whichever connection carries them. */
function nameByPeople(flow, way, carriers) {
  const local = take.people.find(({ actor, isLocal }) => isLocal && actor === carriers[0].actor);
  flow.person = take.people.indexOf(carriers[0]);
  flow.from = carriers.map((person) => person.name).join(", then ");
  flow.to = way.direction === "in" ? local?.name ?? thisSide : "the room";
}

/** The name of the peer at the other end, or a placeholder if the take lacks that end. */
function otherOf(peer) {
  const others = take.peers.filter((each) => each.peer !== peer);
  return take.peers.length === 2 && take.actors.some((actor) => actor.kind === "observer")
    ? peerName(others[0].peer) : otherSide;
}

/** Streams that may carry repairs of a way: non-media RTP of the same peer and direction. */
export const besideMedia = (way) => seriesOf("packets", {
  peer: way.peer, direction: way.direction, protocol: "rtp", isMedia: false,
});

/** The known streams that repair a way. */
export function repairsOf(way) {
  const others = besideMedia(way);
  if (!others.length) return [];
  const alone = take.flows.filter(
    (flow) => flow.kind === way.kind
      && [flow.sent, flow.received].some(
        (each) => each && each.peer === way.peer && each.direction === way.direction)).length === 1;
  if (alone && way.kind === "video") return others;
  // The timestamps are not loaded yet.
  if ([...others, ...way.packets].some((series) => series.isWaiting)) return [];
  // A retransmission has the timestamp of the packet that it repeats (RFC 4588 section 4).
  return others.filter((series) => {
    const time = series.column("rtpTime")[0];
    return way.packets.some((packets) => packets.column("rtpTime").includes(time));
  });
}
