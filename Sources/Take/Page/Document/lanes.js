// What lanes there are, in groups by person and purpose.
import { byteCount, counted, digits } from "./basics.js";
import { clock } from "./clock.js";
import { finished, manyAtOnce, once } from "./columns.js";
import { grid, ink, label } from "./draw.js";
import {
  curveLane, frameLane, rateLane, spanLane, stillToCome, tickLane, toneOf, waveLane,
} from "./kinds.js";
import { delays, isKeyFrame, readPeaks, shownFrames, waits } from "./measures.js";
import { inPieces } from "./pieces.js";
import { filmLane } from "./film.js";
import { machineGroups } from "./machines.js";
import {
  besideMedia, carriersOf, codecName, otherSide, peerName, possessive, repairsOf, seriesOf, take,
  thisSide,
} from "./take.js";

/* ---- Pieces of lanes ---- */

/** Curves of a kind of some streams, in the unit they are told in. */
export function curvesOf(name, { peer, direction, ssrcs }, tone, more = {}) {
  return seriesOf("curve", { of: name, peer })
    .filter((series) => (direction === undefined || series.direction === direction)
      && (!ssrcs || ssrcs.has(Number(series.ssrc))))
    .map((series) => ({ at: series.at, value: parted(series, series.divisor), tone, ...more }));
}

/** The values of a series in parts of them; what is known of a list stays when lanes are remade. */
const parted = (series, divisor) => once(series.derived, `parts ${divisor}`, () =>
  series.column("value").map((value) => value / divisor));

/** Spans of a table `[peer, subject, from, to, text]` that a test picks. */
export const spansOf = (name, test, tone) =>
  (take[name] ?? []).filter(test).map(([, subject, from, to, text]) => ({
    from, to, text, subject, tone: typeof tone === "function" ? tone(text, subject) : tone,
  }));

const fateWords = ["lost", "sent again", "late"];
const fateTones = ["bad", "wait", "off"];

function lossLane(way) {
  if (!way.lost.length) return [];
  const lostOf = (series, isLate) => once(series.derived, isLate ? "late" : "lost", () => {
    const fates = series.column("fate");
    const places = [...fates.keys()].filter((index) => (fates[index] === 2) === isLate);
    const [at, fate, sequence] = ["at", "fate", "sequence"].map((name) => {
      const column = series.column(name);
      return Float64Array.from(places, (index) => column[index]);
    });
    return {
      at, height: (index) => [14, 8, 5][fate[index]], tone: (index) => fateTones[fate[index]],
      name: "packet missing", names: "packets missing",
      text: (index) => `${fateWords[fate[index]]}, sequence number ${sequence[index]}`,
    };
  });
  const listsOf = (isLate) => way.lost.map((series) => lostOf(series, isLate))
    .filter(({ at: { length } }) => length);
  const [lost, late] = [listsOf(false), listsOf(true)];
  const lanes = lost.length ? [tickLane("lost, repaired", lost, { query: "lost", tone: "bad" })]
    : [];
  if (late.length) {
    lanes.push(tickLane("out of order", late, { query: "lost", tone: "off", isExtra: true }));
  }
  return lanes;
}

/** Feedback on a way and what was sent again: NACK, PLI, FIR, RTX. */
function feedbackLane(flow) {
  const way = flow.received ?? flow.sent;
  const lists = [];
  const kinds = { nack: [6, "control"], pli: [14, "bad"], fir: [14, "bad"] };
  for (const [type, [height, tone]] of Object.entries(kinds)) {
    for (const series of way.reports.filter((each) => each.type === type)) {
      const value = series.column("value");
      const word = type.toUpperCase();
      lists.push({
        at: series.at, height, tone, name: word, names: `${word}s`,
        text: (index) => (type === "nack" ? `NACK of ${counted(value[index], "packet")}` : word),
      });
    }
  }
  for (const series of repairsOf(way)) {
    lists.push({
      series, get at() { return series.isWaiting ? series.overview.at : series.at; },
      height: 4, tone: "video", name: "packet sent again", names: "packets sent again",
    });
  }
  return lists.length ? [tickLane("NACK, PLI, RTX", lists, {
    query: "rtcp", tone: "control",
    isWaiting: () => besideMedia(way).some((series) => series.isWaiting),
  })] : [];
}

function sizeLane(way) {
  const rows = take.sizes.filter(
    ([peer, direction, track]) => peer === way.peer && direction === way.direction
      && track === way.track);
  if (!rows.length) return [];
  const most = Math.max(...rows.map((row) => row[4] * row[5]));
  const list = rows.map(([, , , from, width, height], index) => ({
    from, to: rows[index + 1]?.[3] ?? take.seconds, text: `${width}x${height}`,
    tone: width * height < most ? "wait" : "good",
  }));
  return [spanLane("size", list, { tone: "video" })];
}

/* ---- Groups ---- */

function videoGroup(flow, redrawn) {
  const { sent, received } = flow;
  const way = received ?? sent;
  const target = sent ? curvesOf("target", { ...sent, direction: "out" }, "control",
    { name: "target" }) : [];
  const estimate = sent
    ? curvesOf("estimate", { peer: sent.peer, direction: "out" }, "control", { name: "estimate" })
    : [];
  const lanes = [];
  const film = way.frames && filmLane(way, redrawn);
  if (film) lanes.push(film);
  if (way.packets.length) {
    lanes.push(rateLane("bit rate", way.packets, "video", target.length ? target : estimate));
  }
  if (sent && received) lanes.push(rateLane("sent", sent.packets, "video", target,
    { isExtra: true }));
  lanes.push(...(received ? lossLane(received) : []), ...feedbackLane(flow), ...sizeLane(way));
  const limits = sent ? spansOf("limits", (row) => row[0] === sent.peer
    && sent.ssrcs.has(Number(row[1])), (text) => (text === "none" ? "good" : "wait")).map((span) =>
    (span.text === "none" ? { ...span, text: "not limited" } : span)) : [];
  if (limits.some(({ tone }) => tone !== "good")) {
    lanes.push(spanLane("limited by", limits, { query: "limits" }));
  } else if (limits.length) lanes.push(spanLane("limited by", limits,
    { query: "limits", isExtra: true }));
  if (way.frames) lanes.push(frameLane(way.frames));
  lanes.push(...waitLanes(flow, "video"));
  if (way.frames) lanes.push(...encodedLanes(flow, way.frames));
  lanes.push(...reportLanes(flow, "video"));
  return {
    id: flow.id, name: `${flow.name} → ${flow.to}`, peers: flow.peers, kind: "video",
    note: noteOf(flow, way), flow, lanes,
  };
}

function audioGroup(flow) {
  const { received, sent } = flow;
  const way = received ?? sent;
  const lanes = [];
  if (way.frames) lanes.push(waveLane(received ? "heard" : "sent audio", way.frames));
  if (received && sent?.frames) {
    lanes.push({ ...waveLane("spoken", sent.frames), isExtra: true });
  }
  lanes.push(...(received ? lossLane(received) : []));
  if (way.packets.length) lanes.push(rateLane("bit rate", way.packets, "audio", [],
    { isExtra: true, height: 34 }));
  lanes.push(...waitLanes(flow, "audio"));
  const levels = seriesOf("curve", { of: "level", peer: way.peer, direction: way.direction })
    .filter((series) => Number(series.ssrc) === way.track)
    .map((series) => ({ at: series.at, value: parted(series, 10), tone: "audio" }));
  if (levels.length) {
    lanes.push(curveLane("level", "dBov", levels,
      { query: "level", low: -90, top: 0, isExtra: true }));
  }
  lanes.push(...reportLanes(flow, "audio"));
  return {
    id: flow.id, name: `${flow.name} → ${flow.to}`, peers: flow.peers, kind: "audio",
    note: noteOf(flow, way), flow, lanes,
  };
}

/** `VP8, mid 1`, and who of the two was recorded. */
function noteOf(flow, way) {
  const parts = [codecName(flow.codec)];
  if (flow.mid !== undefined && flow.mid !== "") parts.push(`mid ${flow.mid}`);
  const sizes = take.sizes.filter(
    ([peer, direction, track]) => peer === way.peer && direction === way.direction
      && track === way.track);
  if (flow.kind === "video" && sizes.length) {
    const [, , , , width, height] = sizes.at(-1);
    parts.push(`${width}x${height}`);
  }
  if (way.frames?.count > 1 && flow.kind === "video" && !way.frames.isWaiting) {
    const { at, count } = shownFrames(way.frames);
    if (at.length > 1) {
      parts.push(`${digits(count.at(-1) / (at.at(-1) - at[0]), 2)} frames per s`);
    }
  }
  return parts.filter(Boolean).join(", ");
}

/** Delay on the way, and the wait for the decoder. */
function waitLanes(flow, tone) {
  const lanes = [];
  if (!flow.received) return lanes;
  if (flow.received.packets.length) {
    const isWhole = Boolean(flow.sent?.packets.length) && !flow.isSeenOnce;
    lanes.push(lazyCurve(isWhole ? "on the way" : "late by", "ms", flow, () => delays(flow),
      "control", { query: "packets" }));
  }
  if (flow.received.frames && flow.received.packets.length) {
    // Of a call of others it is that of a model: the peer's own shows nowhere on the wire.
    const label = flow.isSeenOnce ? "jitter buffer (model)" : "jitter buffer";
    lanes.push(lazyCurve(label, "ms", flow, () => waits(flow.received), tone,
      { query: "frames" }));
  }
  return lanes;
}

/** Which lanes did not have to wait any more. */
const prepared = new Set();
let whenPrepared = () => {};

/** A curve that is worked out, a piece at a time, when it is first in sight. */
function lazyCurve(label, unit, flow, read, tone, more) {
  let lane;
  let isAsked = false;
  const key = `${flow.id} ${label}`;
  const sources = [flow.sent, flow.received].filter(Boolean).flatMap((way) =>
    [way.frames, ...way.packets]).filter(Boolean);
  const isWaiting = () => sources.some((series) => series.isWaiting);
  function* prepare() {
    if (lane || !sources.every((series) => series.isRead)) return;
    const values = yield* read();
    for (const sign of [1, -1]) yield* readPeaks(values.value, sign);
    prepared.add(key);
    lane = curveLane(label, unit, [{ ...values, tone }], { height: 30 });
  }
  const isSmall = sources.every((series) => series.count <= manyAtOnce);
  const whole = () => {
    if (isWaiting()) return undefined;
    if (isSmall || prepared.has(key)) finished(prepare());
    return lane;
  };
  return {
    label, unit, height: 30, tone, prepare, isWaiting,
    draw(view) {
      if (whole()) {
        lane.draw(view);
        return;
      }
      grid(view);
      if (isAsked || isWaiting()) return;
      isAsked = true;
      inPieces(prepare()).then(whenPrepared);
    },
    at: (time) => (isWaiting() ? stillToCome : whole()?.at(time) ?? ""),
    ...more,
  };
}

/** Whether anything was measured of frames: nobody knows quantisers of what is only passed on. */
function hasMeasures(series) {
  if (series.isWaiting) return series.overview.column("peak").some((most) => most > 0);
  return once(series.derived, "isMeasured", () =>
    series.column("measure").some((measure) => measure > 0));
}

/** Quantisers and sizes of frames. */
function encodedLanes(flow, series) {
  const lanes = [];
  if (hasMeasures(series)) {
    lanes.push(lazyCurve("quantiser", "QP", flow,
      function* quantisers() {
        return { at: yield* series.reading("at"), value: yield* series.reading("measure") };
      }, "video", { isExtra: true, query: "frames" }));
  }
  lanes.push(tickLane("frame sizes", [once(series.derived, "sizes", () => frameSizes(series))],
    { isExtra: true, height: 28, tone: "video", query: "frames" }));
  return lanes;
}

/** The sizes of frames as ticks, beside the greatest of them. */
function frameSizes(series) {
  let most = 0;
  const sizeAt = (index) => series.column("size")[index];
  const greatest = () => (most ||= series.column("size").reduce(
    (high, size) => Math.max(high, size), 1));
  const isKey = (index) => isKeyFrame(series.column("flags")[index]);
  return {
    series, get at() { return series.isWaiting ? [] : series.at; }, name: "frame",
    height: (index) => 2 + 22 * Math.sqrt(sizeAt(index) / greatest()),
    tone: (index) => (isKey(index) ? "control" : "video"),
    text: (index) => `${isKey(index) ? "key frame" : "frame"} of ${byteCount(sizeAt(index))}`,
    * prepare() {
      yield* series.reading("size");
      yield* series.reading("flags");
    },
  };
}

/** What getStats and reports say of a flow: jitter, loss, round trips, times of codecs. */
function reportLanes(flow, tone) {
  const { sent, received } = flow;
  const lanes = [];
  const add = (label, unit, curves, query) => {
    if (curves.length) lanes.push(curveLane(label, unit, curves,
      { isExtra: true, query, height: 30 }));
  };
  if (received) {
    add("jitter", "ms", curvesOf("jitter", { ...received, direction: "in" }, tone), "jitter");
    add("buffer target", "ms", curvesOf("buffer-target", { ...received, direction: "in" }, tone),
      "buffer-target");
    add("decode time", "ms", curvesOf("decode-time", { ...received, direction: "in" }, tone),
      "decode-time");
  }
  if (sent) {
    add("reported jitter", "ms", curvesOf("jitter", { ...sent, direction: "out" }, tone), "jitter");
    add("reported loss", "%", curvesOf("fraction-lost", { ...sent, direction: "out" }, "bad"),
      "fraction-lost");
    add("round trip", "ms", curvesOf("round-trip", { ...sent, direction: "out" }, "control"),
      "round-trip");
    add("encode time", "ms", curvesOf("encode-time", { ...sent, direction: "out" }, tone),
      "encode-time");
  }
  return lanes;
}

/** Which states are in sight before all others are asked for. */
const mainStates = ["connection", "ice-connection"];
const stateNames = {
  connection: "connection", "ice-connection": "ICE", "ice-gathering": "gathering", dtls: "DTLS",
  sctp: "SCTP", signaling: "signaling",
};

function connectionGroup({ peer }) {
  const states = new Map();
  for (const [owner, machine, from, to, text] of take.states ?? []) {
    if (owner !== peer) continue;
    if (!states.has(machine)) states.set(machine, []);
    states.get(machine).push({ from, to, text, tone: toneOf(text) });
  }
  const rank = (machine) => {
    const index = Object.keys(stateNames).indexOf(machine);
    return index < 0 ? 99 : index;
  };
  const machines = [...states.keys()].sort((a, b) => rank(a) - rank(b));
  const hasMain = machines.some((machine) => mainStates.includes(machine));
  const lanes = machines.map((machine) => spanLane(
    stateNames[machine] ?? machine, states.get(machine),
    { isState: true, query: "states", isExtra: hasMain && !mainStates.includes(machine) }));
  const paths = spansOf("path", (row) => row[0] === peer).map((span) => {
    const isRelayed = span.subject.includes("relay");
    return { ...span, text: `${span.subject.split(" ")[0]} ${span.text}`, tone: isRelayed ? "wait"
      : "good" };
  });
  if (paths.length) lanes.splice(2, 0, spanLane("ICE pair", paths, { query: "path" }));
  lanes.push(...pairLanes(peer, paths.length > 0));
  const trips = curvesOf("path-round-trip", { peer }, "control",
    { name: "ICE", hasSteps: true });
  const media = curvesOf("round-trip", { peer }, "control", { name: "RTCP", dash: [4, 3] });
  if (trips.length || media.length) {
    lanes.push(curveLane("round trip", "ms", trips.length ? [...trips, ...media.slice(0, 1)]
      : media.slice(0, 1),
      { query: trips.length ? "path-round-trip" : "round-trip" }));
  }
  lanes.push(...estimateLanes(peer), ...wholeLanes(peer));
  const path = paths.at(-1);
  return {
    id: `connection${peer}`, name: `${possessive(peerName(peer))} connection`, peers: [peer],
    kind: "connection", note: path ? path.text : "", lanes,
  };
}

/** The states of each candidate pair over time, in sight at first where none came to anything. */
function pairLanes(peer, hasPath) {
  const rows = take.pairs.filter((row) => row.peer === peer);
  const pairs = new Map();
  for (const row of rows) {
    if (!pairs.has(row.pair)) pairs.set(row.pair, []);
    const list = pairs.get(row.pair);
    const last = list.at(-1);
    const answers = row.state === "failed" && row.sent
      ? `, ${row.answered ?? 0} of ${row.sent} checks answered` : "";
    const text = `${row.state}${row.selected ? ", selected" : row.nominated ? ", nominated" : ""}`
      + answers;
    if (last?.text === text) continue;
    if (last) last.to = row.at;
    list.push({ from: row.at, to: take.seconds, text, tone: toneOf(row.state), row });
  }
  return [...pairs.values()].slice(0, pairsShown).map((list, index) => {
    const [{ row }] = list;
    return spanLane(`${row.localType} → ${row.remoteType}`, list.map((span) => ({
      ...span, text: `${span.text}: ${row.local} → ${row.remote}`,
    })), { isExtra: hasPath || index >= failedPairsShown, query: "pairs" });
  });
}

/** How many pairs of a connection that never came about are in sight at first. */
const failedPairsShown = 6;

/** More pairs than that are for the grid of the view of the connection. */
const pairsShown = 24;

/** What congestion control reckons with and hears. */
function estimateLanes(peer) {
  const lanes = [];
  const estimate = curvesOf("estimate", { peer, direction: "out" }, "control",
    { name: "estimate", hasSteps: true });
  const sent = seriesOf("packets", { peer, direction: "out", protocol: "rtp" });
  if (estimate.length && sent.length) {
    lanes.push(rateLane("sent, estimate", sent, "video", estimate,
      { query: "estimate", height: 40 }));
  }
  const heard = seriesOf("rtcp", { peer, type: "transport-cc", direction: "in" });
  if (heard.length) {
    lanes.push(tickLane("feedback", heard.map((series) => once(series.derived, "reports", () => {
      const missing = series.column("value");
      return {
        at: series.at, name: "report", height: (index) => 4 + Math.min(2 * missing[index], 10),
        tone: (index) => (missing[index] ? "bad" : "control"),
        text: (index) => (missing[index]
          ? `${counted(missing[index], "packet")} did not arrive` : "all arrived"),
      };
    })), { isExtra: true, query: "rtcp", tone: "control" }));
  }
  return lanes;
}

/** All that went over the wire, whatever it was. */
function wholeLanes(peer) {
  return ["in", "out"].flatMap((direction) => {
    const list = seriesOf("packets", { peer, direction });
    if (!list.length) return [];
    return [rateLane(direction === "in" ? "all received" : "all sent", list, "off", [],
      { isExtra: true, height: 34 })];
  });
}

function signalingGroup() {
  const rows = take.signaling;
  if (!rows.length) return [];
  const peers = take.peers.map(({ peer }) => peer);
  // What one peer sent and another of the take got is one arrow.
  const two = peers.length === 2 && rows.some((row) => row.direction === "out"
    && row.peer === peers[1]);
  const list = two ? rows.filter((row) => row.direction === "out") : rows;
  const isUp = (row) => (two ? row.peer === peers[0] : row.direction === "out");
  const isRoom = take.people.length > 0 && list.every((row) => !peers.includes(row.peer));
  const [above, below] = two ? [peerName(peers[0]), peerName(peers[1])]
    : isRoom ? [take.people.find(({ isLocal }) => isLocal)?.name ?? thisSide, "the server"]
      : peers.length === 1 ? [peerName(peers[0]), otherSide] : ["sent", "received"];
  const lane = {
    label: "messages", height: 40, tone: "data", query: "signaling",
    marks: list.map(({ at }) => at),
    draw: (view) => ladder(view, list, isUp),
    at(time) {
      const near = 6 * ((clock.to - clock.from) / 1000);
      return list.filter((row) => Math.abs(row.at - time) <= near)
        .map((row) => `${isUp(row) ? above : below}: ${row.type}`).join(", ");
    },
    open: "signaling",
  };
  return [{
    id: "signaling", name: "Signaling", note: `${above} above, ${below} below`, peers: [],
    kind: "signaling", lanes: [lane],
  }];
}

/** Messages that come with others and need no words in the ladder. */
const minorTypes = ["candidate", "trickle", "ack", "success", "keepalive", "ping", "pong"];

function ladder(view, list, isUp) {
  grid(view);
  const { context, x, height } = view;
  const middle = height / 2;
  context.fillStyle = ink.line;
  context.fillRect(0, middle, view.width, 1);
  const free = { true: -Infinity, false: -Infinity };
  const words = [];
  for (const row of list) {
    if (row.at < view.from - 1 || row.at > view.to) continue;
    const at = x(row.at);
    const up = isUp(row) ? -1 : 1;
    const isMain = !minorTypes.includes(row.type);
    const colour = row.type === "bye" ? "bad" : isMain ? "data" : "off";
    context.strokeStyle = ink[colour];
    context.lineWidth = 1.5;
    context.beginPath();
    context.moveTo(at, middle);
    context.lineTo(at, middle + up * 12);
    context.moveTo(at - 3, middle + up * 9);
    context.lineTo(at, middle + up * 13);
    context.lineTo(at + 3, middle + up * 9);
    context.stroke();
    const wide = context.measureText(row.type).width;
    if (isMain && at > free[up < 0] && at + wide < view.width + 40) {
      words.push([row.type, at + 5, middle + up * 12, colour === "data" ? "ink" : `${colour}-text`]);
      free[up < 0] = at + wide + 14;
    }
  }
  // Over the arrows that come later.
  for (const [text, left, top, colour] of words) label(view, text, left, top, ink[colour]);
}

function speakerGroup() {
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
  // What one peer heard, the other one said.
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
    id: "speakers", name: "Who speaks", note: "as each peer heard it", peers: [], kind: "audio",
    // In a room the lanes of its people say the same.
    isFolded: take.people.length > 0, lanes,
  }];
}

/** Who `caller/in/1` is: whom the caller hears, or the caller; in a room, its people. */
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

/** How many channels are in sight before all are asked for. */
const channelsShown = 6;

function dataGroup({ peer }) {
  const channels = take.channelList.filter((channel) => channel.peer === peer);
  if (!channels.length) return [];
  const messages = seriesOf("messages", { peer });
  const busy = (channel) => messages.filter((series) => series.channel === channel)
    .reduce((sum, series) => sum + series.count, 0);
  const ranked = channels.map((channel) => ({ ...channel, count: busy(channel.channel) }))
    .sort((a, b) => b.count - a.count || a.channel - b.channel);
  const lanes = ranked.map((channel, index) => channelLane(peer, channel, messages, index));
  const used = ranked.filter(({ count }) => count > 0).length;
  return [{
    id: `data${peer}`, name: `${possessive(peerName(peer))} data`, peers: [peer], kind: "data",
    note: `${counted(channels.length, "channel")}, ${used} with messages, by activity`, lanes,
  }];
}

function channelLane(peer, channel, messages, index) {
  const label = channel.label || `channel ${channel.channel}`;
  const more = { isExtra: index >= channelsShown, query: "messages", tone: "data" };
  const own = messages.filter((series) => series.channel === channel.channel);
  const lists = own.map((series) => once(series.derived, "messages", () => {
    const size = series.column("value");
    return {
      at: series.at, tone: series.direction === "out" ? "data" : "data-text", name: "message",
      height: (place) => 4 + Math.min(3 * Math.log10(size[place] + 1), 10),
      text: (place) =>
        `${series.direction === "out" ? "sent" : "received"} ${byteCount(size[place])}`,
    };
  }));
  const open = spansOf("channels", (row) => row[0] === peer && Number(row[1]) === channel.channel,
    (text) => (text === "open" ? "data" : "wait"));
  if (!lists.length) {
    return spanLane(label, open.map((span) => ({ ...span,
      text: span.text === "open" ? "open, no message" : `${span.text}, never opened` })), more);
  }
  const lane = tickLane(label, lists, more);
  const { draw } = lane;
  lane.draw = (view) => {
    for (const { from, to } of open) {
      view.context.fillStyle = ink["data-back"];
      view.context.fillRect(view.x(from), view.height - 3, view.x(to) - view.x(from), 2);
    }
    draw(view);
  };
  return lane;
}

/** How many flows of people in a room are unfolded at first. */
const flowsShown = 8;

/** What flows: video, then audio; in a room, person by person. */
function mediaGroups(redrawn) {
  const groups = take.flows.map((flow) =>
    (flow.kind === "video" ? videoGroup(flow, redrawn) : audioGroup(flow)));
  groups.sort((a, b) => (a.flow.person ?? -1) - (b.flow.person ?? -1));
  groups.forEach((group, index) => {
    group.isFolded = group.flow.person !== undefined && index >= flowsShown;
  });
  return groups;
}

/** All groups of the take, in the order in which a call is understood. */
export function allGroups(redrawn) {
  whenPrepared = redrawn;
  const groups = [
    ...signalingGroup(),
    ...take.peers.map(connectionGroup).filter(({ lanes }) => lanes.length),
    ...mediaGroups(redrawn),
    ...speakerGroup(),
    ...take.peers.flatMap(dataGroup),
  ];
  const machines = machineGroups();
  // Who is in a room stands before what flows to them; what was not seen stands last.
  const isFirst = ({ kind }) => kind === "room" || (kind === "audio" && !take.flows.length);
  groups.splice(groups.findIndex(({ kind }) => kind !== "signaling") >>> 0, 0,
    ...machines.filter(isFirst));
  groups.push(...machines.filter((group) => !isFirst(group)));
  for (const group of groups) {
    group.lanes.forEach((lane, index) => {
      lane.id = `${group.id}.${lane.label.replace(/[^\w]+/g, "-")}${index}`;
      lane.group = group;
    });
  }
  return groups;
}
