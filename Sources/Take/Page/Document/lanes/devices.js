// The lanes of an audio session and of its device.
import { spanLane } from "./kinds.js";
import { waveLane } from "./mediakinds.js";
import { isOfAudio, labelOf, machineStates, spansOfMachine, stateLane } from "./states.js";
import { outcomeOf } from "../measures/frames.js";
import { counted, digits, duration } from "../shared/words.js";
import { seriesOf } from "../take/take.js";

/** The names of an audio session's lanes, in display order. */
const audioLanes = {
  "audio-route": "route", "audio-interruption": "interruption", "audio-session": "session",
  "audio-unit": "unit", "audio-recording": "recording", "audio-playout": "playout",
  "audio-permission": "microphone", "audio-server": "audio server", "audio-lock": "lock",
};

/** Machines whose lanes start folded, unless something is wrong. */
const quietLanes = ["audio-permission", "audio-server", "audio-lock"];

/** Shortens `headset (16000 Hz, 1 channel) and …` to `headset 16 kHz and …`. */
const routeText = (text) => text.replace(/ \((\d+) Hz, (\d+) channels?\)/g,
  (_, rate, channels) => ` ${digits(rate / 1000)} kHz${channels === "1" ? "" : ` ×${channels}`}`)
  .replace(" and ", " in, ").concat(text.includes(" and ") ? " out" : "");

export function audioGroups(states) {
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
  // States without an interruption are left out.
  const shown = machine === "audio-interruption" ? list.filter(({ text }) => text !== "none")
    : list;
  if (!shown.length) return null;
  const isQuiet = quietLanes.includes(machine) && !shown.some(({ tone }) => tone === "bad");
  return stateLane(label, shown, { isExtra: isQuiet });
}

/** Captured and played audio, block by block. */
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

/** The maximum number of runs drawn; later ones are left out. */
const runMaximum = 5000;

/** Consecutive blocks of one kind as a span. */
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

export function interruptionCard() {
  if (!machineStates().some(isOfAudio)) return null;
  const spans = spansOfMachine("audio-interruption").filter(({ text }) => text === "interrupted");
  const seconds = spans.reduce((sum, { from, to }) => sum + to - from, 0);
  return {
    title: "Interrupted", value: spans.length ? duration(seconds) : "never",
    note: spans.length ? counted(spans.length, "time") : "the device was never interrupted",
    tone: spans.length ? "wait" : undefined,
  };
}

export function routeCard() {
  const spans = spansOfMachine("audio-route");
  if (!spans.length) return null;
  return { title: "Route", value: counted(spans.length, "change"),
    note: routeText(spans.at(-1).text) };
}

/** How much silence replaced captured audio. */
export function silenceCard() {
  const blocks = seriesOf("frames", { kind: "pcm" }).flatMap((series) =>
    [...series.column("flags")].map(outcomeOf))
    .filter((outcome) => ["captured", "mixed", "filler"].includes(outcome));
  if (!blocks.length) return null;
  const filled = blocks.filter((outcome) => outcome === "filler").length;
  return {
    title: "Silence inserted", value: duration(filled / 100),
    note: `of ${duration(blocks.length / 100)} captured`,
    tone: filled > blocks.length / 100 ? "bad" : filled ? "wait" : undefined,
  };
}
