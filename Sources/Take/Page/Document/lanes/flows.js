// Lanes shared by audio and video: losses, feedback, delays, reports.
import { curvesOf, lazyCurve } from "./curves.js";
import { curveLane, tickLane } from "./kinds.js";
import { delays, waits } from "../measures/delays.js";
import { shownFrames } from "../measures/frames.js";
import { counted, digits } from "../shared/words.js";
import { once } from "../take/columns.js";
import { besideMedia, repairsOf } from "../take/flows.js";
import { codecName, take } from "../take/take.js";

const fateWords = ["lost", "sent again", "late"];

const fateTones = ["bad", "wait", "off"];

export function lossLane(way) {
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

/** Feedback on a way and retransmissions: NACK, PLI, FIR, RTX. */
export function feedbackLane(flow) {
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

/** Codec, mid, size and frame rate, such as `VP8, mid 1`. */
export function summaryOf(flow, way) {
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

/** One-way delay and the wait in the jitter buffer. */
export function waitLanes(flow, tone) {
  const lanes = [];
  if (!flow.received) return lanes;
  if (flow.received.packets.length) {
    const isWhole = Boolean(flow.sent?.packets.length) && !flow.isSeenOnce;
    lanes.push(lazyCurve(isWhole ? "on the way" : "late by", "ms", flow, () => delays(flow),
      "control", { query: "packets" }));
  }
  if (flow.received.frames && flow.received.packets.length) {
    // In an observed call, this is a modelled buffer: packets do not show the peer's real one.
    const label = flow.isSeenOnce ? "jitter buffer (model)" : "jitter buffer";
    lanes.push(lazyCurve(label, "ms", flow, () => waits(flow.received), tone,
      { query: "frames" }));
  }
  return lanes;
}

/** Values of getStats and reports: jitter, loss, round trips, encode and decode times. */
export function reportLanes(flow, tone) {
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
