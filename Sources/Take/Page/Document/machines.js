// Lanes of what is no peer: rooms with their people, audio sessions with their device, and what an
// observer could not see.
import { counted, digits, duration } from "./basics.js";
import { grid, ink, spanMarks } from "./draw.js";
import { spanLane, toneOf, waveLane } from "./kinds.js";
import { outcomeOf } from "./measures.js";
import { carriedBy, seriesOf, take, takeOf } from "./take.js";

/* ---- States of machines ---- */

/** The states that belong to no peer, by the number of their take and of their machine. */
function machineStates() {
  const found = new Map();
  for (const [owner, machine, from, to, text] of take.states ?? []) {
    if (take.peers.some(({ peer }) => peer === owner)) continue;
    const key = `${takeOf(owner)} ${machine}`;
    if (!found.has(key)) found.set(key, { take: takeOf(owner), machine, list: [] });
    found.get(key).list.push({ from, to, text, tone: toneOf(text) });
  }
  return [...found.values()];
}

const isOfAudio = ({ machine }) => machine.startsWith("audio-");
const isOfRoom = ({ machine }) => machine === "room" || machine.startsWith("room-");

const stateLane = (label, list, more = {}) =>
  spanLane(label, list, { isState: true, query: "states", ...more });

const labelOf = (kind) => take.actors.find((actor) => actor.kind === kind)?.label || kind;

/* ---- Rooms ---- */

/** A room: its state, its connections, and who is in it. */
function roomGroups(states) {
  const own = states.filter(isOfRoom).map(calmed);
  if (!own.length && !take.people.length) return [];
  const others = take.people.filter(({ isLocal }) => !isLocal).length;
  const lanes = own.map(({ machine, list }) => stateLane(
    machine === "room" ? "room" : machine.replace("room-", "").replaceAll("-", " "), list,
    { isExtra: machine !== "room" }));
  lanes.sort((a, b) => Number(a.isExtra) - Number(b.isExtra));
  lanes.push(...take.people.map((person, index) =>
    personLane(person, index >= peopleShown)));
  return [{
    id: "room", name: `Room: ${labelOf("room")}`, kind: "room", peers: [], lanes,
    note: others ? `${counted(others, "other person", "other people")}; violet: speaks` : "",
  }];
}

/** Who leaves a room is not connected any more, which is nothing bad. */
const calmed = ({ machine, list }) => ({
  machine,
  list: list.map((span, index) => (span.text === "disconnected"
    && list[index - 1]?.text === "disconnecting" ? { ...span, tone: "off" } : span)),
});

/** How many people are in sight before all are asked for. */
const peopleShown = 12;

/** When somebody was in a room, with what, and when they spoke. */
function personLane(person, isExtra) {
  const stays = person.stays.map(({ from, to }) => {
    const media = carriedBy(person).filter((row) => row.from < to && (row.to ?? take.seconds) > from)
      .map(({ extra, kind }) => extra || kind);
    const words = [...new Set(media)].join(" and ");
    return { from, to, tone: "good", text: words ? `in the room with ${words}` : "in the room" };
  });
  const speech = (take.speakers ?? []).filter(([peer, participant]) => {
    const [, direction, track] = participant.split("/");
    return carriedBy(person).some((row) => row.peer === peer && row.direction === direction
      && row.track === Number(track));
  }).map(([, , from, to, text]) => ({ from, to, text }));
  const lane = spanLane(person.name, stays, { isExtra, height: 22, query: "presence" });
  return {
    ...lane,
    draw(view) {
      grid(view);
      spanMarks(view, stays);
      view.context.fillStyle = ink.audio;
      for (const { from, to } of speech) {
        if (to < view.from || from > view.to) continue;
        const left = Math.max(view.x(from), 0);
        view.context.fillRect(left, 17, Math.max(view.x(to) - left, 1), 4);
      }
    },
    at(time) {
      const said = speech.find(({ from, to }) => from <= time && time < to);
      return [lane.at(time), said && `speaks at ${said.text}`].filter(Boolean).join(", ");
    },
    marks: [...lane.marks, ...speech.map(({ from }) => from)],
  };
}

/* ---- Audio sessions ---- */

/** What the lanes of an audio session are called, in the order in which they are shown. */
const audioLanes = {
  "audio-route": "route", "audio-interruption": "interruption", "audio-session": "session",
  "audio-unit": "unit", "audio-recording": "recording", "audio-playout": "playout",
  "audio-permission": "microphone", "audio-server": "audio server", "audio-lock": "lock",
};

/** Shown when asked for, unless something is wrong with it. */
const quietLanes = ["audio-permission", "audio-server", "audio-lock"];

/** `headset (16000 Hz, 1 channel) and …` in the words of a small space. */
const routeText = (text) => text.replace(/ \((\d+) Hz, (\d+) channels?\)/g,
  (_, rate, channels) => ` ${digits(rate / 1000)} kHz${channels === "1" ? "" : ` ×${channels}`}`)
  .replace(" and ", " in, ").concat(text.includes(" and ") ? " out" : "");

function audioGroups(states) {
  const own = states.filter(isOfAudio);
  const blocks = seriesOf("frames", { kind: "pcm" });
  if (!own.length && !blocks.length) return [];
  const rank = ({ machine }) => {
    const index = Object.keys(audioLanes).indexOf(machine);
    return index < 0 ? 99 : index;
  };
  const lanes = own.sort((a, b) => rank(a) - rank(b)).map(audioLane).filter(Boolean);
  for (const series of blocks) lanes.push(...blockLanes(series));
  return [{
    id: "audio", name: "Audio session", note: labelOf("audio session"), peers: [], kind: "audio",
    lanes,
  }];
}

function audioLane({ machine, list }) {
  const label = audioLanes[machine]
    ?? machine.replace(/^audio-source-\d+-/, "source ").replace("audio-", "");
  if (machine === "audio-route") {
    return stateLane(label, list.map((span) =>
      ({ ...span, tone: "audio", text: routeText(span.text) })));
  }
  // What did not happen needs no field.
  const shown = machine === "audio-interruption" ? list.filter(({ text }) => text !== "none")
    : list;
  if (!shown.length) return null;
  const isQuiet = quietLanes.includes(machine) && !shown.some(({ tone }) => tone === "bad");
  return stateLane(label, shown, { isExtra: isQuiet });
}

/** What the device captured and played, block by block. */
function blockLanes(series) {
  const flags = series.column("flags");
  const isPlayed = (place) => ["played", "silence"].includes(outcomeOf(flags[place]));
  const lanes = [];
  if (flags.some((each, place) => !isPlayed(place))) {
    lanes.push(waveLane("captured", series, (place) => !isPlayed(place)));
  }
  const runs = playedRuns(series, isPlayed);
  if (runs.length) lanes.push(spanLane("played", runs, { query: "frames", tone: "audio" }));
  return lanes;
}

/** More than anybody looks at. */
const runMaximum = 5000;

/** Blocks of one kind that follow each other, as one span. */
function playedRuns(series, isPlayed) {
  const [at, flags] = [series.at, series.column("flags")];
  const runs = [];
  for (let place = 0; place < at.length && runs.length < runMaximum; place += 1) {
    if (!isPlayed(place)) continue;
    const isSilence = outcomeOf(flags[place]) === "silence";
    const text = isSilence ? "silence" : "received audio";
    const last = runs.at(-1);
    const gap = last ? at[place] - last.to : Infinity;
    if (last && gap < 0.25 && last.text === text) last.to = at[place];
    else {
      if (last && gap < 0.25) last.to = at[place];
      runs.push({ from: at[place], to: at[place], text, tone: isSilence ? "off" : "audio" });
    }
  }
  return runs;
}

/* ---- What nobody saw ---- */

const gapWords = {
  "no-keys": "not opened, as there is no key", "not-opened": "not opened by the keys there are",
  "waiting-overflow": "given up while they waited for keys", "late-start": "before the capture began",
  "one-direction": "", "cut-capture": "", "unused-key": "", "unused-key-log": "", "unknown-clock": "",
  "damaged-capture": "", truncated: "captured in part",
  cryptex: "with encrypted header extensions", unsupported: "under a protection that is not read",
  "unknown-peer": "over a relay whose other end was not seen", tls: "under TLS",
  "stream-gap": "after a gap in their stream", description: "descriptions that cannot be read",
  "relayed-twice": "seen twice", ignored: "of no call",
  "data-not-opened": "of data channels that were not opened",
  redundancy: "with older payloads that were not used", dropped: "lost while capturing",
  "outside-of-time": "of a date that no take can have",
  "unread-layer": "in layers that are not opened",
};

/** What could not be seen: one entry for each kind, as it stood last. */
export function coverageGaps() {
  const found = new Map();
  for (const gap of take.coverage) {
    // What was concluded from packets was seen.
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
  if (what === "late-start") return "What was before the capture began";
  if (what === "one-direction") return "The packets of one direction";
  if (what === "unknown-clock") return `The jitter of streams whose clock nothing tells: ${more}`;
  if (what === "damaged-capture") return "What is damaged in the capture";
  if (what === "cut-capture") return "What followed where the capture is cut off";
  const noun = what === "description" ? `${count} ${words}`
    : `${counted(Number(count), "packet")} ${words}`;
  return more && !noun.includes(more) ? `${noun}: ${more}` : noun;
}

/** Each as a sentence. */
export const coverageLines = () => coverageGaps().map(({ text }) => `${text}.`);

function coverageGroups() {
  const gaps = coverageGaps();
  if (!gaps.length) return [];
  return [{
    id: "coverage", name: "Not seen", note: "what this take says nothing about", peers: [],
    kind: "coverage",
    lanes: gaps.map((gap) => spanLane(gap.what.replaceAll("-", " "), [gap])),
  }];
}

/* ---- All of them ---- */

/** Machines whose kinds the page knows nothing about. */
function otherGroups(states) {
  const others = states.filter((each) => !isOfAudio(each) && !isOfRoom(each));
  if (!others.length) return [];
  return [{
    id: "machine", name: take.actors.find(({ kind }) => kind !== "observer")?.label || "Machines",
    note: "its states", peers: [], kind: "machine",
    lanes: others.map(({ machine, list }) => stateLane(machine, list)),
  }];
}

/** The groups of machines that are no peers, and of what could not be seen. */
export function machineGroups() {
  const states = machineStates();
  return [...roomGroups(states), ...audioGroups(states), ...otherGroups(states),
    ...coverageGroups()];
}

/* ---- Their numbers ---- */

/** The numbers of rooms and audio sessions, as cards. */
export const machineCards = () =>
  [roomCard(), interruptionCard(), routeCard(), silenceCard()].filter(Boolean);

function roomCard() {
  const others = take.people.filter(({ isLocal }) => !isLocal);
  if (!take.people.length) return null;
  const names = others.map(({ name }) => name);
  const rest = names.length > 2 ? ` and ${names.length - 2} more` : "";
  return {
    title: "In the room", value: counted(take.people.length, "person", "people"),
    note: names.length ? names.slice(0, 2).join(", ") + rest : "nobody else came",
  };
}

const spansOfMachine = (machine) =>
  machineStates().filter((each) => each.machine === machine).flatMap(({ list }) => list);

function interruptionCard() {
  if (!machineStates().some(isOfAudio)) return null;
  const spans = spansOfMachine("audio-interruption").filter(({ text }) => text === "interrupted");
  const seconds = spans.reduce((sum, { from, to }) => sum + to - from, 0);
  return {
    title: "Interrupted", value: spans.length ? duration(seconds) : "never",
    note: spans.length ? counted(spans.length, "time") : "nobody took the device",
    tone: spans.length ? "wait" : undefined,
  };
}

function routeCard() {
  const spans = spansOfMachine("audio-route");
  if (!spans.length) return null;
  return { title: "Route", value: counted(spans.length, "change"),
    note: routeText(spans.at(-1).text) };
}

/** How much of what went to the senders was silence in the place of audio. */
function silenceCard() {
  const blocks = seriesOf("frames", { kind: "pcm" }).flatMap((series) =>
    [...series.column("flags")].map(outcomeOf))
    .filter((outcome) => ["captured", "mixed", "filler"].includes(outcome));
  if (!blocks.length) return null;
  const filled = blocks.filter((outcome) => outcome === "filler").length;
  return {
    title: "Silence put in", value: duration(filled / 100),
    note: `of ${duration(blocks.length / 100)} captured`,
    tone: filled > blocks.length / 100 ? "bad" : filled ? "wait" : undefined,
  };
}
