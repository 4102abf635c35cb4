// The lanes of a video track from its sender to its receiver.
import { curvesOf, lazyCurve, spansOf } from "./curves.js";
import { filmLane } from "./film.js";
import { feedbackLane, lossLane, reportLanes, summaryOf, waitLanes } from "./flows.js";
import { spanLane, tickLane } from "./kinds.js";
import { frameLane, rateLane } from "./mediakinds.js";
import { isKeyFrame } from "../measures/frames.js";
import { byteCount } from "../shared/words.js";
import { once } from "../take/columns.js";
import { take } from "../take/take.js";

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

export function videoGroup(flow, redrawn) {
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
    note: summaryOf(flow, way), flow, lanes,
  };
}

/** Whether frames have quantizers, unlike forwarded ones. */
function hasMeasures(series) {
  if (series.isWaiting) return series.overview.column("peak").some((most) => most > 0);
  return once(series.derived, "isMeasured", () =>
    series.column("measure").some((measure) => measure > 0));
}

/** Quantizers and sizes of frames. */
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

/** Frame sizes as ticks, relative to the largest. */
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
