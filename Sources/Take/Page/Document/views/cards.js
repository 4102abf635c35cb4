// The key figures.
import { machineCards } from "../lanes/groups.js";
import { speakerName } from "../lanes/speakers.js";
import { outcomeOf } from "../measures/frames.js";
import { quantile } from "../measures/peaks.js";
import { counted, digits, duration, percent } from "../shared/words.js";
import { sideName } from "../take/people.js";
import { allFindings, onWire, seriesOf, take } from "../take/take.js";
import { readMembers } from "./stats.js";

/** The cards; those without data are omitted. */
export function cards() {
  return [setUp(), frozen(), concealed(), missing(), roundTrip(), ...machineCards(), data(),
    spoken(), traffic()].filter(Boolean).slice(0, cardsShown);
}

/** The number of cards in a row. */
const cardsShown = 6;

/** When a machine began and when it reached a state: `[from, to]`. */
function reached(peer, machine, state) {
  const spans = (take.states ?? []).filter(([owner, name]) => owner === peer && name === machine);
  const end = spans.find(([, , , , text]) => state.includes(text));
  return end ? [spans[0][2], end[2]] : null;
}

function setUp() {
  const times = take.peers.map(({ peer }) => {
    const first = take.signaling.find((row) => row.peer === peer)?.at;
    const ice = reached(peer, "ice-connection", ["connected", "completed"]);
    const dtls = reached(peer, "dtls", ["connected"]);
    // For an observed call, ICE and DTLS are known, but not the state of the connection as a whole.
    const whole = reached(peer, "connection", ["connected"])
      ?? (ice && [ice[0], Math.max(ice[1], dtls?.[1] ?? 0)]);
    return { peer, whole: whole && whole[1] - Math.min(first ?? whole[0], whole[1]), ice, dtls };
  });
  const failed = times.filter(({ whole }) => whole === null);
  if (failed.length && failed.length === times.length) {
    return (take.states ?? []).length
      ? { title: "Set up", value: "never", note: "no connection was established", tone: "bad" } : null;
  }
  const [slowest] = times.filter(({ whole }) => whole !== null)
    .sort((a, b) => Number(b.whole) - Number(a.whole));
  if (!slowest) return null;
  const notes = [{ name: "ICE", span: slowest.ice }, { name: "DTLS", span: slowest.dtls }]
    .filter(({ span }) => span)
    .map(({ name, span: [from, to] }) => `${name} ${duration(to - from)}`);
  return { title: "Set up in", value: duration(slowest.whole), note: notes.join(" · "),
    tone: slowest.whole > 3 ? "wait" : undefined };
}

function frozen() {
  if (!seriesOf("frames", { kind: "video", direction: "in" }).length) return null;
  // Findings take precedence once they are loaded: a static screen is not a freeze.
  /** @type {Map<number, {seconds: number, count: number, longest: number}>} */
  const byPeer = new Map();
  const count = (peer, seconds, times, longest) => {
    const sum = byPeer.get(peer) ?? { seconds: 0, count: 0, longest: 0 };
    sum.seconds += seconds;
    sum.count += times;
    sum.longest = Math.max(sum.longest, longest);
    byPeer.set(peer, sum);
  };
  if (take.isExamined === false) {
    for (const [peer, , from, to] of take.freezes ?? []) count(peer, to - from, 1, to - from);
  } else {
    for (const { rule, peer, seconds, count: times, spans } of allFindings(take.findings ?? [])) {
      if (rule !== "freeze" && rule !== "video-stopped") continue;
      count(peer, seconds, times, spans[0][1] - spans[0][0]);
    }
  }
  if (!byPeer.size) return { title: "Froze", value: "never", note: "no freeze of video" };
  const [peer, worst] = [...byPeer].sort((a, b) => b[1].seconds - a[1].seconds)[0];
  return {
    title: `Froze at ${sideName(peer)}`, value: duration(worst.seconds),
    note: `${counted(worst.count, "time")}, longest ${duration(worst.longest)}`, tone: "bad",
  };
}

/** The share of concealed samples by the statistics, without those inserted for deceleration. */
function concealedByStats() {
  const byPeer = new Map();
  for (const { peer, type, members } of take.stats ?? []) {
    if (type !== "inbound-rtp") continue;
    const of = readMembers(members);
    if (of.kind !== "audio" || !of.totalSamplesReceived) continue;
    const sum = byPeer.get(peer) ?? { made: 0, all: 0 };
    sum.made += of.concealedSamples ?? 0;
    sum.all += of.totalSamplesReceived;
    byPeer.set(peer, sum);
  }
  return [...byPeer].map(([peer, { made, all }]) => ({ peer, share: made / all }));
}

/** The share of concealed blocks, for takes without statistics. */
function concealedByFrames() {
  return seriesOf("frames", { kind: "audio", direction: "in" }).map((series) => {
    const made = series.isWaiting ? series.overview.total("concealed")
      : series.column("flags").reduce(
        (sum, each) => sum + (outcomeOf(each) === "concealed" ? 1 : 0), 0);
    return { peer: series.peer, share: made / series.count };
  });
}

function concealed() {
  const told = concealedByStats();
  const shares = told.length ? told : concealedByFrames();
  if (!shares.length) return null;
  shares.sort((a, b) => b.share - a.share);
  const others = shares.filter(({ peer }) => peer !== shares[0].peer);
  return {
    title: "Audio concealed", value: percent(shares[0].share),
    note: `at ${sideName(shares[0].peer)}`
      + (others.length ? `; ${sideName(others[0].peer)} ${percent(others[0].share)}` : ""),
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
    title: `Lost to ${sideName(peer)}`, value: percent(share(worst)),
    note: all ? `repaired ${percent(worst.repaired / all)}` : "every packet arrived",
    tone: share(worst) > 0.05 ? "bad" : share(worst) > 0.01 ? "wait" : undefined,
  };
}

function roundTrip() {
  let curves = seriesOf("curve", { of: "path-round-trip" });
  if (!curves.length) curves = seriesOf("curve", { of: "round-trip" });
  const values = curves.flatMap((series) => [...series.column("value")].map((each) =>
    each / series.divisor));
  if (!values.length) return null;
  const middle = quantile(values, 0.5);
  return {
    title: "Round trip", value: duration(middle / 1e3),
    note: `95 % within ${duration(quantile(values, 0.95) / 1e3)}`,
    tone: middle > 300 ? "bad" : middle > 150 ? "wait" : undefined,
  };
}

function spoken() {
  // If the take has both ends, sent audio counts rather than received.
  const byPerson = new Map();
  for (const [peer, participant, from, to] of take.speakers ?? []) {
    const name = speakerName(participant, peer);
    const [, direction] = participant.split("/");
    const sums = byPerson.get(name) ?? { out: 0, in: 0 };
    sums[direction === "out" ? "out" : "in"] += to - from;
    byPerson.set(name, sums);
  }
  const ranked = [...byPerson].map(([name, sums]) => [name, sums.out || sums.in])
    .sort((a, b) => b[1] - a[1]).slice(0, 2);
  if (!ranked.length) return null;
  return {
    title: "Spoke", value: ranked.map(([, seconds]) =>
      digits((100 * seconds) / take.seconds, 2)).join(" : ") + " %",
    note: ranked.map(([name]) => name).join(" : "),
  };
}

function data() {
  if (!take.channelList.length) return null;
  // A take with both ends has each channel and each message twice.
  const own = take.channelList.filter(({ remote }) => !remote);
  const isTwice = take.peers.length > 1 && 2 * own.length === take.channelList.length;
  const channels = isTwice ? own : take.channelList;
  const messages = seriesOf("messages", isTwice ? { direction: "out" } : {});
  const count = messages.reduce((sum, series) => sum + series.count, 0);
  // Unused channels matter only where there is nothing else.
  if (!count && take.flows.length) return null;
  return { title: "Messages", value: digits(count, 6),
    note: `on ${counted(channels.length, "channel")}` };
}

function traffic() {
  const bytes = onWire("bytes");
  if (!bytes) return null;
  return { title: "On the wire", value: `${digits(bytes / 1e6)} MB`,
    note: counted(onWire("packets"), "packet") };
}
