// How the peers are connected: candidates, a grid of their pairs, and the security of the path.
import { timeText } from "../clock/times.js";
import { coverageGaps } from "../lanes/coverage.js";
import { toneOf } from "../lanes/kinds.js";
import { make, place } from "../shared/elements.js";
import { byteCount, counted, duration } from "../shared/words.js";
import { peerName, take } from "../take/take.js";
import { candidateTypes } from "./descriptions.js";

export function makeConnection() {
  place("connection").replaceChildren(
    ...take.peers.map(peerCard), ...others());
}

function peerCard({ peer, role, bytesIn, bytesOut }) {
  const pairs = latestPairs(peer);
  const secured = take.secured.filter((row) => row.peer === peer).at(-1);
  return make("div", { class: "card" },
    make("h2", {}, `${peerName(peer)}${role && role !== peerName(peer) ? `, ${role}` : ""}`),
    make("p", {},
      `${byteCount(bytesIn)} received, ${byteCount(bytesOut)} sent. `,
      policiesOf(peer),
      secured ? [versionName(secured.version), secured.cipherSuite, secured.profile,
        secured.role && `as ${secured.role}`].filter(Boolean).join(", ") : "Not encrypted."),
    make("h3", {}, counted(pairs.length, "candidate pair")), gridOf(pairs),
    make("h3", {}, "Candidates"), candidatesOf(peer));
}

/** A sentence about a connection's ICE servers and policies. */
function policiesOf(peer) {
  const asked = take.settings.find((row) => row.peer === peer);
  if (!asked?.transportPolicy) return "";
  return `ICE servers: ${asked.servers ?? "none"}; transport policy ${asked.transportPolicy}, `
    + `bundle policy ${asked.bundlePolicy}. `;
}

/** DTLS versions as on the wire (RFC 6347 section 4.1, RFC 9147 section 4.2.1). */
const versionNames = { FEFF: "1.0", FEFD: "1.2", FEFC: "1.3" };

const versionName = (version) =>
  ["DTLS", versionNames[String(version).toUpperCase()] ?? version].filter(Boolean).join(" ");

/** The last row of each pair, with the number of its changes. */
function latestPairs(peer) {
  const found = new Map();
  for (const row of take.pairs) {
    if (row.peer !== peer) continue;
    const former = found.get(row.pair);
    found.set(row.pair, { ...row, first: former?.first ?? row.at,
      was: (former?.was || row.selected) });
  }
  return [...found.values()];
}

const kindNames = { host: "host", srflx: "reflexive", prflx: "peer-reflexive", relay: "relay" };

/** Local candidates as rows, remote ones as columns, and the result of each pair. */
function gridOf(pairs) {
  if (!pairs.length) return make("p", {}, "There were none.");
  const locals = [...new Set(pairs.map(({ local }) => local))];
  const remotes = [...new Set(pairs.map(({ remote }) => remote))];
  const type = (side, address) => kindNames[pairs.find((pair) =>
    pair[side] === address)?.[`${side}Type`]] ?? "";
  return make("table", { class: "grid" },
    make("thead", {}, make("tr", {}, make("th", {}, "local \\ remote"),
      remotes.map((remote) => make("th", { scope: "col" }, remote, make("br"),
        type("remote", remote))))),
    make("tbody", {}, locals.map((local) => make("tr", {},
      make("th", { scope: "row" }, local, make("br"), type("local", local)),
      remotes.map((remote) => {
        const pair = pairs.filter((each) => each.local === local && each.remote === remote).at(-1);
        return pair ? pairCell(pair) : make("td", {}, "");
      })))));
}

function pairCell(pair) {
  const words = [pair.state];
  if (pair.selected) words.push("selected");
  else if (pair.was) words.push("was selected");
  else if (pair.nominated) words.push("nominated");
  const notes = [`since ${timeText(pair.first)}`];
  if (pair.sent) notes.push(`${pair.answered} of ${pair.sent} checks answered`);
  if (pair.roundTrip) notes.push(`round trip ${duration(pair.roundTrip)}`);
  return make("td", {}, make("span", { class: `pill ${toneOf(pair.state)}` }, words.join(", ")),
    make("br"), notes.join(", "));
}

function candidatesOf(peer) {
  const rows = take.candidates.filter((row) => row.peer === peer);
  if (!rows.length) return make("p", {}, "There were none.");
  const cells = (row) => [
    timeText(row.at), row.type.replace("-candidate", ""),
    kindNames[row.candidateType] ?? row.candidateType, candidateTypes[row.candidateType] ?? "",
    row.protocol, `${row.address} port ${row.port}`,
    row.relatedAddress ? `${row.relatedAddress} port ${row.relatedPort}` : "",
      String(row.priority),
  ];
  const heads = ["time", "side", "type", "meaning", "over", "address", "seen from", "priority"];
  return make("table", { class: "grid" },
    make("thead", {}, make("tr", {}, heads.map((text) => make("th", { scope: "col" }, text)))),
    make("tbody", {}, rows.map((row) => make("tr", {},
      cells(row).map((text) => make("td", {}, text))))));
}

/** Machines that are not peers, and gaps in coverage. */
function others() {
  const lines = [
    ...take.actors.map((actor) => `${actor.label || `actor ${actor.actor}`}: ${actor.kind}`),
    ...take.people.map((person) => `In the room: ${person.name}, ${person.stays.map(({ from, to }) =>
      `${timeText(from)} to ${timeText(to)}`).join(", ")}`),
    ...coverageGaps().map(({ from, to, text }) =>
      `Not seen from ${timeText(from)} to ${timeText(to)}: ${text}`),
  ];
  return lines.length ? [make("div", { class: "card" }, make("h2", {}, "Besides"),
    make("ul", {}, lines.map((line) => make("li", {}, line))))] : [];
}
