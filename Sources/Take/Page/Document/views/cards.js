// The key figures.
import { machineCards } from "../lanes/groups.js";
import { speakerName } from "../lanes/speakers.js";
import { counted, digits, duration, percent } from "../shared/words.js";
import { sideName } from "../take/people.js";
import { allFindings, onWire, seriesOf, take } from "../take/take.js";

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

/** The figures of `retake summary`; empty until the take has been examined. */
const media = () => (take.quality?.media ?? []).map(({ facts }) => facts);
const connections = () => take.quality?.connections ?? [];

/** The element with the greatest value; elements without a value are ignored. */
const greatest = (list, value) => list.filter((one) => value(one) !== undefined)
  .sort((a, b) => value(b) - value(a))[0];

/** The tone of a share from 0 to 1. */
const shareTone = (share) => (share > 0.05 ? "bad" : share > 0.01 ? "wait" : undefined);

/** A card to show until its figures have arrived. */
const waiting = (title) => (take.quality ? null : { title, value: "…", note: "being analysed" });

function setUp() {
  const slowest = greatest(connections(), ({ connected_ns: time }) => time);
  if (!slowest) {
    return take.quality && (take.states ?? []).length
      ? { title: "Set up", value: "never", note: "no connection was established", tone: "bad" }
      : null;
  }
  const notes = [
    { name: "ICE", span: reached(slowest.peer, "ice-connection", ["connected", "completed"]) },
    { name: "DTLS", span: reached(slowest.peer, "dtls", ["connected"]) },
  ].filter(({ span }) => span)
    .map(({ name, span: [from, to] }) => `${name} ${duration(to - from)}`);
  const seconds = slowest.connected_ns / 1e9;
  return { title: "Set up in", value: duration(seconds), note: notes.join(" · "),
    tone: seconds > 3 ? "wait" : undefined };
}

function frozen() {
  const videos = media().filter(({ kind, direction }) => kind === "video" && direction === "in");
  if (!videos.length) {
    return seriesOf("frames", { kind: "video", direction: "in" }).length ? waiting("Froze") : null;
  }
  const worst = greatest(videos, ({ frozen_ns: time }) => time);
  if (!worst) return { title: "Froze", value: "never", note: "no freeze of video" };
  const longest = Math.max(...allFindings(take.findings ?? [])
    .filter(({ rule, peer }) => peer === worst.peer
      && (rule === "freeze" || rule === "video-stopped"))
    .map(({ spans }) => spans[0][1] - spans[0][0]));
  return {
    title: `Froze at ${sideName(worst.peer)}`, value: duration(worst.frozen_ns / 1e9),
    note: [worst.name, counted(worst.freezes, "time"),
      ...(longest > 0 ? [`longest ${duration(longest)}`] : [])].join(", "),
    tone: "bad",
  };
}

function concealed() {
  const worst = greatest(media(), ({ concealed_share: share }) => share);
  if (!worst) {
    return seriesOf("frames", { kind: "audio", direction: "in" }).length
      ? waiting("Audio concealed") : null;
  }
  return { title: "Audio concealed", value: percent(worst.concealed_share), note: worst.name,
    tone: shareTone(worst.concealed_share) };
}

function missing() {
  const worst = greatest(media(), ({ loss_share: share }) => share);
  if (!worst) return take.quality || !take.flows.length ? null : waiting("Lost");
  const { peer, ssrc, direction, loss_share: share, packets_refused: refused } = worst;
  const fates = seriesOf("lost", { peer, ssrc, direction })
    .flatMap((series) => [...series.column("fate")]);
  const repaired = fates.filter((fate) => fate === 1).length;
  const notes = [
    worst.packets_lost ? worst.name : "every packet arrived",
    ...(repaired && worst.packets_lost ? [`repaired ${percent(repaired / worst.packets_lost)}`] : []),
    ...(refused ? [`${refused} refused`] : []),
  ];
  return {
    title: direction === "in" ? `Lost to ${sideName(peer)}` : `Lost from ${sideName(peer)}`,
    value: percent(share), note: notes.join(", "), tone: shareTone(share),
  };
}

function roundTrip() {
  const slowest = greatest(connections(), ({ round_trip_ns: time }) => time);
  if (!slowest) return null;
  const middle = slowest.round_trip_ns / 1e6;
  return {
    title: "Round trip", value: duration(middle / 1e3),
    note: `at most ${duration(slowest.longest_round_trip_ns / 1e9)}`,
    tone: middle > 300 ? "bad" : middle > 150 ? "wait" : undefined,
  };
}

function spoken() {
  // If the take has both ends, a person's speech is in it twice, so only the sent audio is counted.
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
