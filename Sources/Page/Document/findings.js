// What a person asks first: the numbers of the call, and what went wrong in it, worst first.
import { button, counted, digits, duration, make, percent, place } from "./basics.js";
import { onClock, showAround, clock, point, select, timeText } from "./clock.js";
import { outcomeOf, quantile } from "./measures.js";
import { peerName, seekCommand, seriesOf, take } from "./take.js";
import { speakerName } from "./lanes.js";
import { copyText } from "./copying.js";

/* ---- Cards ---- */

/** The numbers: each is `{title, value, note, tone}`, or nothing when the take cannot tell. */
export function cards() {
  return [setUp(), frozen(), concealed(), missing(), roundTrip(), spoken(), data(), traffic()]
    .filter(Boolean).slice(0, 6);
}

/** How long a machine took to a state: `[from, to]`. */
function reached(peer, machine, state) {
  const spans = (take.states ?? []).filter(([owner, name]) => owner === peer && name === machine);
  const end = spans.find(([, , , , text]) => state.includes(text));
  return end ? [spans[0][2], end[2]] : null;
}

function setUp() {
  const times = take.peers.map(({ peer }) => {
    const first = take.signaling.find((row) => row.peer === peer)?.at;
    const whole = reached(peer, "connection", ["connected"])
      ?? reached(peer, "ice-connection", ["connected", "completed"]);
    const ice = reached(peer, "ice-connection", ["connected", "completed"]);
    const dtls = reached(peer, "dtls", ["connected"]);
    return { peer, whole: whole && whole[1] - Math.min(first ?? whole[0], whole[1]), ice, dtls };
  });
  const failed = times.filter(({ whole }) => whole === null);
  if (failed.length && failed.length === times.length) {
    return (take.states ?? []).length
      ? { title: "Set up", value: "never", note: "no connection came about", tone: "bad" } : null;
  }
  const slowest = times.filter(({ whole }) => whole !== null).sort((a, b) => b.whole - a.whole)[0];
  if (!slowest) return null;
  const notes = [["ICE", slowest.ice], ["DTLS", slowest.dtls]]
    .filter(([, span]) => span).map(([name, [from, to]]) => `${name} ${duration(to - from)}`);
  return { title: "Set up in", value: duration(slowest.whole), note: notes.join(" · "),
    tone: slowest.whole > 3 ? "wait" : undefined };
}

function frozen() {
  if (!seriesOf("frames", { kind: "video", direction: "in" }).length) return null;
  const byPeer = new Map();
  for (const [peer, , from, to] of take.freezes ?? []) {
    const sum = byPeer.get(peer) ?? { seconds: 0, count: 0, longest: 0 };
    sum.seconds += to - from;
    sum.count += 1;
    sum.longest = Math.max(sum.longest, to - from);
    byPeer.set(peer, sum);
  }
  if (!byPeer.size) return { title: "Froze", value: "never", note: "no freeze of video" };
  const [peer, worst] = [...byPeer].sort((a, b) => b[1].seconds - a[1].seconds)[0];
  return {
    title: `Froze at ${peerName(peer)}`, value: duration(worst.seconds),
    note: `${counted(worst.count, "time")}, longest ${duration(worst.longest)}`, tone: "bad",
  };
}

function concealed() {
  const shares = seriesOf("frames", { kind: "audio", direction: "in" }).map((series) => {
    const flags = series.column("flags");
    const made = flags.reduce((sum, each) => sum + (outcomeOf(each) === "concealed" ? 1 : 0), 0);
    return { peer: series.peer, share: made / series.count };
  });
  if (!shares.length) return null;
  shares.sort((a, b) => b.share - a.share);
  const others = shares.filter(({ peer }) => peer !== shares[0].peer);
  return {
    title: "Audio concealed", value: percent(shares[0].share),
    note: `at ${peerName(shares[0].peer)}`
      + (others.length ? `; ${peerName(others[0].peer)} ${percent(others[0].share)}` : ""),
    tone: shares[0].share > 0.05 ? "bad" : shares[0].share > 0.01 ? "wait" : undefined,
  };
}

function missing() {
  const byPeer = new Map();
  for (const series of seriesOf("packets", { direction: "in", protocol: "rtp", isMedia: true })) {
    const sum = byPeer.get(series.peer) ?? { came: 0, lost: 0, repaired: 0 };
    sum.came += series.count;
    for (const lost of seriesOf("lost", { peer: series.peer, ssrc: series.ssrc })) {
      for (const fate of lost.column("fate")) {
        if (fate === 0) sum.lost += 1;
        else if (fate === 1) sum.repaired += 1;
      }
    }
    byPeer.set(series.peer, sum);
  }
  if (!byPeer.size) return null;
  const share = ({ came, lost, repaired }) => (lost + repaired) / (came + lost + repaired);
  const [peer, worst] = [...byPeer].sort((a, b) => share(b[1]) - share(a[1]))[0];
  const all = worst.lost + worst.repaired;
  return {
    title: `Lost to ${peerName(peer)}`, value: percent(share(worst)),
    note: all ? `repaired ${percent(worst.repaired / all)}` : "every packet came",
    tone: share(worst) > 0.05 ? "bad" : share(worst) > 0.01 ? "wait" : undefined,
  };
}

function roundTrip() {
  let curves = seriesOf("curve", { of: "path-round-trip" });
  if (!curves.length) curves = seriesOf("curve", { of: "round-trip" });
  const values = curves.flatMap((series) => [...series.column("value")].map((each) => each / series.divisor));
  if (!values.length) return null;
  const middle = quantile(values, 0.5);
  return {
    title: "Round trip", value: duration(middle / 1e3),
    note: `95 % within ${duration(quantile(values, 0.95) / 1e3)}`,
    tone: middle > 300 ? "bad" : middle > 150 ? "wait" : undefined,
  };
}

function spoken() {
  const byPerson = new Map();
  for (const [, participant, from, to] of take.speakers ?? []) {
    byPerson.set(participant, (byPerson.get(participant) ?? 0) + to - from);
  }
  const ranked = [...byPerson].sort((a, b) => b[1] - a[1]).slice(0, 2);
  if (!ranked.length) return null;
  return {
    title: "Spoke", value: ranked.map(([, seconds]) => digits((100 * seconds) / take.seconds, 2)).join(" : ") + " %",
    note: ranked.map(([participant]) => speakerName(participant)).join(" : "),
  };
}

function data() {
  const messages = seriesOf("messages");
  if (!take.channelList.length) return null;
  const count = messages.reduce((sum, series) => sum + series.count, 0);
  return { title: "Messages", value: digits(count, 6), note: `on ${counted(take.channelList.length, "channel")}` };
}

function traffic() {
  const bytes = take.peers.reduce((sum, peer) => sum + peer.bytesIn + peer.bytesOut, 0);
  if (!bytes) return null;
  const packets = take.peers.reduce((sum, peer) => sum + peer.packetsIn + peer.packetsOut, 0);
  return { title: "On the wire", value: `${digits(bytes / 1e6)} MB`, note: counted(packets, "packet") };
}

export function fillCards() {
  place("cards").replaceChildren(...cards().map((card) => make("div", { class: "card" },
    make("span", {}, card.title),
    make("b", { class: card.tone ? `${card.tone}` : "" }, card.value),
    make("span", {}, card.note))));
}

/* ---- Findings ---- */

const words = { 3: ["bad", "bad"], 2: ["wait", "costs"], 1: ["off", "note"] };

/** What a rule is about, as the beginning of a sentence. */
const subjects = {
  "never-connected": "No connection came about",
  disconnected: "The connection was lost",
  "ice-flapping": "The path changed again and again",
  "relay-in-use": "A relay carried the call",
  "high-round-trip": "The path was slow",
  "one-way-media": "Media went one way only",
  loss: "Packets were lost on the way",
  "loss-burst": "Many packets in a row were lost",
  "loss-at-peer": "The other side missed packets",
  "no-key-frame": "A key frame was asked for in vain",
  freeze: "Video stood still",
  "concealed-audio": "Sound was made up",
  "silent-audio": "Sound was digital silence",
  "silent-while-speaking": "Somebody spoke and was not heard",
  "speech-while-muted": "Somebody spoke into a muted microphone",
  "encoder-limited": "The encoder was held back",
};

const readable = (rule) => {
  const text = rule.replaceAll("-", " ");
  return text[0].toUpperCase() + text.slice(1);
};

/** A finding as a sentence. */
export function findingText(finding) {
  const subject = subjects[finding.rule] ?? readable(finding.rule);
  const many = finding.count > 1
    ? `, ${counted(finding.count, "time")}, ${duration(finding.seconds)} in all; the longest` : "";
  return `${subject} at ${peerName(finding.peer)}${many}: ${finding.spans[0][2]}`;
}

/** Shows where a finding is. */
export function visitFinding(finding, index = 0) {
  const [from, to] = finding.spans[index % finding.spans.length];
  showAround(from, to);
  select(from, to);
  point(from, true);
}

export function fillFindings() {
  const box = place("findings");
  if (!take.findings.length) {
    box.replaceChildren(make("p", { class: "none" }, "Nothing seems wrong."));
    return;
  }
  const rows = take.findings.map((finding) => {
    const [tone, word] = words[finding.severity] ?? words[2];
    const [from, to] = finding.spans[0];
    const command = seekCommand(from);
    const more = make("div", { class: "more", hidden: true },
      make("code", { class: "command" }, command),
      button("copy", () => copyText(command)),
      make("pre", { tabindex: 0 }, finding.sql));
    return make("div", { class: "finding" },
      make("span", { class: `pill ${tone}` },
        finding === take.findings[0] && tone === "bad" ? "worst" : word),
      button(findingText(finding), () => visitFinding(finding), { class: "plain go" }),
      make("p", {}, `${timeText(from, 0.1)} – ${timeText(to, 0.1)}`),
      button("query", (event) => {
        more.hidden = !more.hidden;
        event.currentTarget.setAttribute("aria-expanded", String(!more.hidden));
      }, { "aria-expanded": "false", title: "The command that goes there, and the query" }), more);
  });
  const rest = rows.splice(findingsShown);
  box.replaceChildren(...rows);
  if (!rest.length) return;
  const all = button(`${counted(rest.length, "more finding")}`, () => {
    all.parentElement.remove();
    box.append(...rest);
  });
  box.append(make("div", { class: "tools" }, all));
}

/** How many findings are in sight before all are asked for. */
const findingsShown = 5;

/** The pills beside the title. */
export function fillPills() {
  const bad = take.findings.filter(({ severity }) => severity > 1).length;
  const pills = [];
  if (take.form === "served" && take.ending && !take.isComplete) {
    pills.push(["wait", take.isLive ? "recording" : "cut short"]);
  } else pills.push(take.isComplete ? ["good", "complete"] : ["wait", "cut short"]);
  pills.push(bad ? ["bad", counted(bad, "finding")] : ["good", "no findings"]);
  if (take.coverage.length) pills.push(["off", "not all was seen"]);
  place("pills").replaceChildren(...pills.map(([tone, text]) => make("span", { class: `pill ${tone}` }, text)));
}

/** All spans of findings that matter, in the order of time: for going from one to the next. */
export const findingSpans = () =>
  take.findings.flatMap((finding) => finding.spans.map(([from, to], index) => ({ finding, index, from, to })))
    .sort((a, b) => a.from - b.from);

onClock("view", () => {
  // The times of findings follow the way in which times are told.
  if (fillFindings.isWall !== clock.isWall && place("findings").childElementCount) {
    fillFindings.isWall = clock.isWall;
    fillFindings();
  }
});
