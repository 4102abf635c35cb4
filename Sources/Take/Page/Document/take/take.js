// The take as the other modules use it. Nothing here contacts a server or touches the document.
import { counted, shellWord } from "../shared/words.js";

/**
 * The take; filled by `loadTake`.
 * @type {Take}
 */
// @ts-expect-error: the first reading adds the missing members.
export const take = { peers: [], people: [], series: [], flows: [], findings: [] };

/** Whether values of long series are still loading. */
export const hasLateValues = () => take.series.some((series) => series.isWaiting);

/** Offset of the peer numbers of a second take. */
export const secondPeers = 1000;

/** The take that a peer belongs to: 0, or 1 for the second one. */
export const takeNumber = (peer) => Math.floor(peer / secondPeers);

/** The name of a room's local participant without a name. */
export const thisSide = "the local participant";

/** The name of the end of a call that is not in the take. */
export const otherSide = "the remote peer";

/** The series of a kind whose members have the values in `facts`. */
export const seriesOf = (what, facts = {}) =>
  take.series.filter(
    (series) => series.what === what
      && Object.entries(facts).every(([name, value]) => series[name] === value));

/**
 * A peer's label or number; for a take's number 0, the label or kind of its room or other machine.
 */
export function peerName(number) {
  const peer = take.peers.find((each) => each.peer === number);
  if (peer) return peer.label || `peer ${number}`;
  const actor = take.actors.find((each) => each.kind !== "observer");
  return number % secondPeers === 0 && actor ? actor.label || actor.kind : `peer ${number}`;
}

const codecNames = { opus: "Opus", vp8: "VP8", vp9: "VP9", h264: "H.264", av1: "AV1" };

export const codecName = (codec) => codecNames[codec] ?? codec ?? "";

/**
 * The number of packets or bytes on the wire. A packet of an observed call counts once, although it
 * left one end and reached another.
 */
export const onWire = (name) => take.peers.reduce((sum, peer) =>
  sum + (peer.role === "observed" ? 0 : peer[`${name}In`]) + peer[`${name}Out`], 0);

/** The take's start, duration, packets and file in one line. */
export function takeFacts() {
  const parts = [take.start.replace("T", ", ").replace(/\.\d+Z$/, " UTC")];
  const packets = onWire("packets");
  parts.push(`${take.seconds.toFixed(1)} s`);
  if (packets) parts.push(counted(packets, "packet"));
  if (hasLateValues()) parts.push("details follow");
  parts.push(take.file, `Retake ${take.version}`);
  return parts.join(" · ");
}

/**
 * All findings of a list with their symptoms.
 * @param {Finding[]} findings
 * @returns {Finding[]}
 */
export const allFindings = (findings) =>
  findings.flatMap((finding) => [finding, ...allFindings(finding.symptoms ?? [])]);

/** The command that goes to a time. */
export const seekCommand = (seconds) =>
  `retake debug ${shellWord(take.file)} -c 'seek ${Math.max(seconds, 0).toFixed(3)}s'`;
