// The signaling lane: messages as arrows between two ends.
import { clock } from "../clock/clock.js";
import { grid, ink, label } from "./draw.js";
import { otherSide, peerName, take, thisSide } from "../take/take.js";

export function signalingGroup() {
  const rows = take.signaling;
  if (!rows.length) return [];
  const peers = take.peers.map(({ peer }) => peer);
  // With both ends in the take, a message is one arrow.
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

/** Types that accompany others and are not labelled. */
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
  // Labels are drawn on top of all arrows.
  for (const [text, left, top, colour] of words) label(view, text, left, top, ink[colour]);
}
