// The lanes of a connection: states, paths, congestion control.
import { curvesOf, spansOf } from "./curves.js";
import { curveLane, spanLane, tickLane, toneOf } from "./kinds.js";
import { rateLane } from "./mediakinds.js";
import { counted, possessive } from "../shared/words.js";
import { once } from "../take/columns.js";
import { peerName, seriesOf, take } from "../take/take.js";

/** The states that are unfolded at first. */
const mainStates = ["connection", "ice-connection"];

const stateNames = {
  connection: "connection", "ice-connection": "ICE", "ice-gathering": "gathering", dtls: "DTLS",
  sctp: "SCTP", signaling: "signaling",
};

export function connectionGroup({ peer }) {
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

/** The states of each candidate pair over time; initially unfolded if no pair succeeded. */
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

/** The number of pairs shown without expanding the group when a connection failed. */
const failedPairsShown = 6;

/** The maximum number of pairs on lanes; the connection view has all of them. */
const pairsShown = 24;

/** The estimate of congestion control and the feedback that it receives. */
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

/** All packets, of any kind. */
function wholeLanes(peer) {
  return ["in", "out"].flatMap((direction) => {
    const list = seriesOf("packets", { peer, direction });
    if (!list.length) return [];
    return [rateLane(direction === "in" ? "all received" : "all sent", list, "off", [],
      { isExtra: true, height: 34 })];
  });
}
