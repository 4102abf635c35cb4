// The lanes of an audio track from its sender to its receiver.
import { parted } from "./curves.js";
import { lossLane, reportLanes, summaryOf, waitLanes } from "./flows.js";
import { curveLane } from "./kinds.js";
import { rateLane, waveLane } from "./mediakinds.js";
import { seriesOf } from "../take/take.js";

export function audioGroup(flow) {
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
    note: summaryOf(flow, way), flow, lanes,
  };
}
