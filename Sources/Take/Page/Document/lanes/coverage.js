// Lanes and sentences about what an observer could not see.
import { spanLane } from "./kinds.js";
import { counted } from "../shared/words.js";
import { take } from "../take/take.js";

const gapWords = {
  "no-keys": "not decrypted, without a key", "not-opened": "not decrypted by the given keys",
  "waiting-overflow": "dropped while waiting for keys", "late-start": "before the capture began",
  "one-direction": "", "cut-capture": "", "unused-key": "", "unused-key-log": "", "unknown-clock": "",
  "damaged-capture": "", truncated: "captured in part",
  cryptex: "with encrypted header extensions", unsupported: "under an unsupported protection",
  "unknown-peer": "over a relay whose other leg was not seen", tls: "under TLS",
  "stream-gap": "after a gap in their stream", description: "descriptions that cannot be read",
  "relayed-twice": "seen twice", ignored: "of no call",
  "data-not-opened": "of data channels that were not opened",
  redundancy: "with redundant payloads that were not used", dropped: "lost while capturing",
  "outside-of-time": "with a date that no take can have",
  "unread-layer": "inside layers that are not opened",
};

/** Gaps in coverage: the last row of each actor, peer and kind. */
export function coverageGaps() {
  const found = new Map();
  for (const gap of take.coverage) {
    // A `deduced` row is about values inferred from packets, which are not a gap.
    if (gap.what === "deduced") continue;
    const key = `${gap.actor} ${gap.peer} ${gap.what}`;
    const former = found.get(key);
    const [from, to] = [gap.fromNanoseconds / 1e9, gap.toNanoseconds / 1e9];
    found.set(key, {
      what: gap.what, text: gapText(gap), tone: "off",
      from: Math.min(from, former?.from ?? from), to: Math.max(to, former?.to ?? to),
    });
  }
  return [...found.values()];
}

function gapText({ what, reason }) {
  const words = gapWords[what];
  const [, count, more] = /^(\d+)(?:: (.*))?$/.exec(reason) ?? [];
  if (!words || count === undefined) return `${what.replaceAll("-", " ")}: ${reason}`;
  if (what === "late-start") return "What happened before the capture began";
  if (what === "one-direction") return "The packets in one direction";
  if (what === "unknown-clock") return `The jitter of streams of an unknown clock rate: ${more}`;
  if (what === "damaged-capture") return "The damaged parts of the capture";
  if (what === "cut-capture") return "What came after the point where the capture is cut off";
  const noun = what === "description" ? `${count} ${words}`
    : `${counted(Number(count), "packet")} ${words}`;
  return more && !noun.includes(more) ? `${noun}: ${more}` : noun;
}

/** The gaps as sentences. */
export const coverageLines = () => coverageGaps().map(({ text }) => `${text}.`);

export function coverageGroups() {
  const gaps = coverageGaps();
  if (!gaps.length) return [];
  return [{
    id: "coverage", name: "Not seen", note: "what this take does not cover", peers: [],
    kind: "coverage",
    lanes: gaps.map((gap) => spanLane(gap.what.replaceAll("-", " "), [gap])),
  }];
}
