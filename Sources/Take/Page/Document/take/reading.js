// Reads a take from the page itself or from its server, once or repeatedly while it grows. Only
// this module knows the shape of the data: see PageContent.swift and the article.
import { place } from "../shared/elements.js";
import { inPieces } from "../shared/pieces.js";
import { askBytes, askJSON, askReading, chosenTake } from "../shared/server.js";
import { unpacked } from "./columns.js";
import { besideMedia, flows } from "./flows.js";
import { people } from "./people.js";
import { Series } from "./series.js";
import { secondPeers, take } from "./take.js";

/**
 * Reads the take from the page or its server; returns false if there are several takes to choose
 * from.
 */
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
  // Findings arrive later, because they take longest.
  take.reading = {
    data: { ...reading.data, name, findings: [], isExamined: false }, bytes: reading.bytes,
  };
  take.others = catalogue.takes.map((entry) => entry.name).filter((each) => each !== name);
  adopt(take.reading.data, reading.bytes);
  return true;
}

/** Loads and decodes the values that the first response omitted; overviews are drawn meanwhile. */
export function fetchLate() {
  lateValues = completeSeries();
  return lateValues;
}

let lateValues = Promise.resolve();

/** Waits for the omitted values, if they were requested. */
export const valuesThere = () => lateValues;

async function completeSeries() {
  const waiting = take.series.filter((series) => series.isWaiting);
  // Two compared takes have a session each.
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

/** Decodes the timestamps that connect repairs with media. */
function* repairsKnown() {
  for (const way of take.flows.flatMap(({ sent, received }) => [sent, received])) {
    const others = way ? besideMedia(way) : [];
    for (const series of others.length ? [...others, ...way.packets] : []) {
      yield* series.reading("rtpTime");
    }
  }
}

/** The number of turns in which overviews are replaced, so that each turn redraws few lanes. */
const settlingTurns = 12;

const settlingMilliseconds = 35;

/** Replaces overviews by decoded values, calling back after each turn. */
export async function settleLate(settled) {
  const waiting = take.series.filter((series) => series.isWaiting && series.isRead);
  const many = Math.ceil(waiting.length / settlingTurns);
  while (waiting.length) {
    for (const series of waiting.splice(0, many)) series.settle();
    settled();
    await new Promise((done) => setTimeout(done, settlingMilliseconds));
  }
}

/** Lists that are omitted if they have no rows. */
const optionalLists = [
  "states", "path", "channels", "speakers", "dominant", "freezes", "limits", "stats",
];

/** Applies a reading: the first one, or a later one of a growing take. */
export function adopt(data, bytes) {
  const series = seriesIn(data, bytes);
  const former = take.series;
  const { findings, quality } = take;
  if (!data.isBrief) for (const list of optionalLists) delete take[list];
  Object.assign(take, { findings, quality }, data);
  take.series = former.length ? joined(former, series, data.isBrief) : series;
  take.seconds = Math.max(take.seconds, 0.001);
  take.people = people();
  take.flows = flows();
}

/** The series of a reading, with the peer numbers that `moved` returns. */
const seriesIn = ({ series, session }, bytes, moved = (peer) => peer) =>
  series.map((facts) => new Series({ ...facts, peer: moved(facts.peer), session }, bytes));

/**
 * Adds a second take beside the first, aligned at its start; its peers get new numbers and names.
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

/** Extends the series that grow, and replaces those that are complete in each reading. */
function joined(former, later, isBrief = false) {
  const identity = (series) => [
    series.what, series.of, series.peer, series.direction, series.protocol, series.ssrc,
    series.track, series.kind, series.type, series.channel,
  ].join(" ");
  const grows = (series) => series.what === "packets" || series.what === "frames";
  const kept = new Map(former.filter(grows).map((series) => [identity(series), series]));
  for (const series of later.filter(grows)) {
    const known = kept.get(identity(series));
    if (known) known.append(series);
    else kept.set(identity(series), series);
  }
  const others = later.filter((series) => !grows(series));
  if (!isBrief) return [...kept.values(), ...others];
  // A brief reading contains all losses again; series of other kinds stay as they were.
  return [...kept.values(), ...others,
    ...former.filter((series) => !grows(series) && series.what !== "lost")];
}
