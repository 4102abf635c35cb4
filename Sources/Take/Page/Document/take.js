// The take as the other modules see it: who is in it, what flows between them, and all series.
// This is the one place that knows the shape of the data: see PageContent.swift and the article.
import { counted, place } from "./basics.js";
import { Series, unpacked } from "./columns.js";
import { askJSON, askBytes, askReading, chosenTake } from "./server.js";
import { inPieces } from "./pieces.js";

/** Everything that is known of the take; filled by `loadTake`. */
export const take = { peers: [], people: [], series: [], flows: [], findings: [] };

/** Reads what the page carries or its server has; false when there are several takes to choose. */
export async function loadTake() {
  const data = JSON.parse(place("data").textContent);
  if (data.form !== "served") {
    adopt(data, await unpacked(place("series").textContent));
    return true;
  }
  const catalogue = await askJSON("takes");
  if (!chosenTake && catalogue.isFolder) return false;
  const name = chosenTake || catalogue.takes[0].name;
  const reading = await askReading("take", { name, overview: 1 });
  // Findings take longer than all the rest.
  take.reading = {
    data: { ...reading.data, name, findings: [], isExamined: false }, bytes: reading.bytes,
  };
  take.others = catalogue.takes.map((entry) => entry.name).filter((each) => each !== name);
  adopt(take.reading.data, reading.bytes);
  return true;
}

/** Whether values of long series are still to come. */
export const hasLateValues = () => take.series.some((series) => series.isWaiting);

/** Asks for the values that were left out at first, and reads them; overviews go on standing. */
export function fetchLate() {
  lateValues = completeSeries();
  return lateValues;
}

let lateValues = Promise.resolve();
/** Waits for the values that were left out at first, where they were asked for. */
export const valuesThere = () => lateValues;

async function completeSeries() {
  const waiting = take.series.filter((series) => series.isWaiting);
  // Two takes that are compared have a session each.
  for (const session of new Set(waiting.map((series) => series.session))) {
    const bytes = await askBytes("late", { session });
    await inPieces(completed(waiting.filter((series) => series.session === session), bytes));
  }
  await inPieces(repairsKnown());
}

function* completed(waiting, bytes) {
  for (const series of waiting) {
    yield* series.complete(bytes);
    yield;
  }
}

/** Reads what tells whom others repair. */
function* repairsKnown() {
  for (const way of take.flows.flatMap(({ sent, received }) => [sent, received])) {
    const others = way ? besideMedia(way) : [];
    for (const series of others.length ? [...others, ...way.packets] : []) {
      yield* series.reading("rtpTime");
    }
  }
}

/** In so many turns values take the place of overviews, so that in each few lanes are drawn anew. */
const settlingTurns = 12;
const settlingMilliseconds = 35;

/** Has values that have been read stand for themselves from now on; tells of each turn. */
export async function settleLate(settled) {
  const waiting = take.series.filter((series) => series.isWaiting && series.isRead);
  const many = Math.ceil(waiting.length / settlingTurns);
  while (waiting.length) {
    for (const series of waiting.splice(0, many)) series.settle();
    settled();
    await new Promise((done) => setTimeout(done, settlingMilliseconds));
  }
}

/** Lists that a take without rows for them does not have. */
const optionalLists = [
  "states", "path", "channels", "speakers", "dominant", "freezes", "limits", "stats",
];

/** Takes a reading: the first one, or a later one of a take that grows. */
export function adopt(data, bytes) {
  const series = seriesIn(data, bytes);
  const former = take.series;
  const { findings } = take;
  if (!data.isBrief) for (const list of optionalLists) delete take[list];
  Object.assign(take, { findings }, data);
  take.series = former.length ? joined(former, series, data.isBrief) : series;
  take.seconds = Math.max(take.seconds, 0.001);
  take.people = people();
  take.flows = flows();
}

/** The series of a reading; `moved` gives peers the numbers that they have here. */
const seriesIn = ({ series, session }, bytes, moved = (peer) => peer) =>
  series.map((facts) => new Series({ ...facts, peer: moved(facts.peer), session }, bytes));

/** What is added to the numbers of the peers of a second take. */
const secondPeers = 1000;

/** Which take a peer is of: 0, or 1 for the second one. */
export const takeOf = (peer) => Math.floor(peer / secondPeers);

/**
 * Puts a second take beside the first, from its own beginning on: its peers get numbers and names of
 * their own.
 */
export function adoptBeside(data, bytes) {
  const mark = (label) => `${label} (${data.file})`;
  const moved = (peer) => (peer === undefined || peer === null ? peer : peer + secondPeers);
  for (const list of ["tracks", "streams", "signaling", "candidates", "pairs", "channelList",
    "secured", "settings"]) {
    take[list] = [...take[list], ...data[list].map((row) => ({ ...row, peer: moved(row.peer) }))];
  }
  for (const list of ["states", "path", "channels", "freezes", "limits", "sizes"]) {
    take[list] = [...take[list] ?? [], ...(data[list]
      ?? []).map(([peer, ...rest]) => [moved(peer), ...rest])];
  }
  for (const list of ["speakers", "dominant"]) {
    take[list] = [...take[list] ?? [], ...(data[list] ?? []).map(([peer, who, ...rest]) =>
      [moved(peer), mark(who), ...rest])];
  }
  take.peers = [...take.peers.map((peer) => ({ ...peer, label: `${peer.label} (${take.file})` })),
    ...data.peers.map((peer) => ({ ...peer, peer: moved(peer.peer), label: mark(peer.label) }))];
  take.timeline = [...take.timeline, ...data.timeline.map(([at, step, peer, ...rest]) =>
    [at, step, moved(peer), ...rest])].sort((a, b) => a[0] - b[0]);
  take.series = [...take.series, ...seriesIn(data, bytes, moved)];
  take.media = [...take.media ?? [], ...(data.media ?? []).map((entry) =>
    ({ ...entry, peer: moved(entry.peer), from: { name: data.name, peer: entry.peer } }))];
  const movedFinding = (finding) => ({ ...finding, peer: moved(finding.peer),
    symptoms: (finding.symptoms ?? []).map(movedFinding) });
  take.findings = [...take.findings, ...data.findings.map(movedFinding)];
  take.seconds = Math.max(take.seconds, data.seconds);
  take.presence = [...take.presence, ...data.presence.map((row) =>
    ({ ...row, actor: moved(row.actor) }))];
  take.carriage = [...take.carriage, ...data.carriage.map((row) =>
    ({ ...row, actor: moved(row.actor), peer: moved(row.peer) }))];
  take.title = `${take.file} and ${data.file}`;
  take.people = people();
  take.flows = flows();
}

/** Series that go on, and those that are whole each time. */
function joined(former, later, isBrief = false) {
  const name = (series) => [
    series.what, series.of, series.peer, series.direction, series.protocol, series.ssrc,
    series.track, series.kind, series.type, series.channel,
  ].join(" ");
  const grows = (series) => series.what === "packets" || series.what === "frames";
  const kept = new Map(former.filter(grows).map((series) => [name(series), series]));
  for (const series of later.filter(grows)) {
    const known = kept.get(name(series));
    if (known) known.append(series);
    else kept.set(name(series), series);
  }
  const others = later.filter((series) => !grows(series));
  if (!isBrief) return [...kept.values(), ...others];
  // A brief reading has the losses anew, and says nothing of the rest.
  return [...kept.values(), ...others,
    ...former.filter((series) => !grows(series) && series.what !== "lost")];
}

/* ---- People of rooms ---- */

/** Who was in a room and when, in the order of their coming. */
function people() {
  const found = new Map();
  for (const { actor, at, participant, id, name: called, local, present } of take.presence) {
    const key = `${actor} ${participant}`;
    if (!found.has(key)) found.set(key, { actor, participant, isLocal: local === 1, stays: [] });
    const person = found.get(key);
    person.called = called ?? person.called;
    person.id = id ?? person.id;
    const last = person.stays.at(-1);
    if (!present && last) last.to = at;
    // Somebody who is there may be told of again, under another name.
    else if (present && !(last?.to > at)) person.stays.push({ from: at, to: take.seconds });
  }
  for (const person of found.values()) {
    person.name = person.called || (person.isLocal ? thisSide
      : person.id || `person ${person.participant}`);
  }
  return [...found.values()];
}

/** Which tracks carried somebody's media, from when to when. */
export const carriedBy = (person) => take.carriage.filter((row) =>
  row.actor === person.actor && row.participant === person.participant);

/** Whose media a way carries, one after the other. */
export function carriersOf({ peer, track, direction }) {
  const rows = take.carriage.filter((row) =>
    row.peer === peer && row.track === track && row.direction === direction);
  return take.people.filter((person) => rows.some((row) =>
    row.actor === person.actor && row.participant === person.participant));
}

/** What a way carries when it is not a camera or a microphone: a screen. */
const extraOf = ({ peer, track, direction }) => take.carriage.find((row) =>
  row.peer === peer && row.track === track && row.direction === direction && row.extra)?.extra;

/** The recorded side of a room, where it has no name. */
export const thisSide = "this side";

/** Who is at a peer: in a room its one local person, whichever connections carry the media. */
export function sideName(peer) {
  const room = take.carriage.find((row) => row.peer === peer)?.actor;
  return take.people.find(({ actor, isLocal }) => isLocal && actor === room)?.name
    ?? peerName(peer);
}

/** The series of a kind that have some facts. */
export const seriesOf = (what, facts = {}) =>
  take.series.filter(
    (series) => series.what === what
      && Object.entries(facts).every(([name, value]) => series[name] === value));

/** What a peer is called. */
export function peerName(number) {
  const peer = take.peers.find((each) => each.peer === number);
  if (peer) return peer.label || `peer ${number}`;
  const actor = take.actors.find((each) => each.kind !== "observer");
  return number % secondPeers === 0 && actor ? actor.label || actor.kind : `peer ${number}`;
}

/** What the other end of a call is called that is not in the take. */
export const otherSide = "the other side";

/** `caller's`, `the Smiths'`. */
export const possessive = (name) => `${name}${name.endsWith("s") ? "'" : "'s"}`;

const codecNames = { opus: "Opus", vp8: "VP8", vp9: "VP9", h264: "H.264", av1: "AV1" };
export const codecName = (codec) => codecNames[codec] ?? codec ?? "";

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

/** A way with its series. */
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
 * What flows: one direction of a track from the one who sends it to the one who receives it, of
 * whom the take may have both.
 */
function flows() {
  const all = ways();
  const received = all.filter((way) => way.direction === "in");
  const found = [];
  for (const sent of all.filter((way) => way.direction === "out")) {
    const match = received.findIndex(
      (way) => way.peer !== sent.peer && way.kind === sent.kind
        && takeOf(way.peer) === takeOf(sent.peer)
        && [...way.ssrcs].some((ssrc) => sent.ssrcs.has(ssrc)));
    found.push({ sent, received: match < 0 ? undefined : received.splice(match, 1)[0] });
  }
  for (const way of received) found.push({ received: way });
  const counts = new Map();
  const order = { video: 0, audio: 1 };
  found.sort((a, b) => (order[(a.sent ?? a.received).kind]
    ?? 2) - (order[(b.sent ?? b.received).kind] ?? 2));
  for (const flow of found) name(flow, counts);
  return found;
}

/** Gives a flow what it is called; several of one kind are counted. */
function name(flow, counts) {
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
  // What an observer saw left one and reached the other at the same time.
  flow.isSeenOnce = take.actors.some((actor) => actor.kind === "observer");
  flow.name = `${possessive(flow.from)} ${what}${count > 1 ? ` ${count}` : ""}`;
  flow.id = `${flow.sent ? `${flow.sent.peer}.${flow.sent.track}` : "-"}`
    + `to${flow.received ? `${flow.received.peer}.${flow.received.track}` : "-"}${flow.kind}`;
}

/** In a room, people send and receive, whichever connections carry it. */
function nameByPeople(flow, way, carriers) {
  const local = take.people.find(({ actor, isLocal }) => isLocal && actor === carriers[0].actor);
  flow.person = take.people.indexOf(carriers[0]);
  flow.from = carriers.map((person) => person.name).join(", then ");
  flow.to = way.direction === "in" ? local?.name ?? thisSide : "the room";
}

/** The other one of two peers, else somebody who is not in the take. */
function otherOf(peer) {
  const others = take.peers.filter((each) => each.peer !== peer);
  return take.peers.length === 2 && take.actors.some((actor) => actor.kind === "observer")
    ? peerName(others[0].peer) : otherSide;
}

/** What may repair a way: what came with it and is no media. */
export const besideMedia = (way) => seriesOf("packets", {
  peer: way.peer, direction: way.direction, protocol: "rtp", isMedia: false,
});

/** Retransmissions and what else repairs a way, as far as it can be told. */
export function repairsOf(way) {
  const others = besideMedia(way);
  if (!others.length) return [];
  const alone = take.flows.filter(
    (flow) => flow.kind === way.kind
      && [flow.sent, flow.received].some(
        (each) => each && each.peer === way.peer && each.direction === way.direction)).length === 1;
  if (alone && way.kind === "video") return others;
  // It is not known yet.
  if ([...others, ...way.packets].some((series) => series.isWaiting)) return [];
  // A retransmission has the timestamp of what it repeats (RFC 4588 section 4).
  return others.filter((series) => {
    const time = series.column("rtpTime")[0];
    return way.packets.some((packets) => packets.column("rtpTime").includes(time));
  });
}

/**
 * How many packets or bytes went over the wire. What was only seen went out of one end and into
 * another, and counts once.
 */
export const onWire = (name) => take.peers.reduce((sum, peer) =>
  sum + (peer.role === "observed" ? 0 : peer[`${name}In`]) + peer[`${name}Out`], 0);

/** One line on what the take is. */
export function takeFacts() {
  const parts = [take.start.replace("T", ", ").replace(/\.\d+Z$/, " UTC")];
  const packets = onWire("packets");
  parts.push(`${take.seconds.toFixed(1)} s`);
  if (packets) parts.push(counted(packets, "packet"));
  if (hasLateValues()) parts.push("details follow");
  parts.push(take.file, `Retake ${take.version}`);
  return parts.join(" · ");
}

/** The name of a file as a shell takes it. */
export const shellWord = (word) =>
  /^[\w./:@%+=-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;

/** All findings of a list, those beneath others among them. */
export const allFindings = (findings) =>
  findings.flatMap((finding) => [finding, ...allFindings(finding.symptoms ?? [])]);

/** The command that goes to a time. */
export const seekCommand = (seconds) =>
  `retake debug ${shellWord(take.file)} -c 'seek ${Math.max(seconds, 0).toFixed(3)}s'`;
