// What a person asks first: the numbers of the call, and what went wrong in it, worst first.
import { button, counted, duration, make, place } from "./basics.js";
import { cards } from "./cards.js";
import { onClock, showAround, clock, point, select, timeText } from "./clock.js";
import { coverageLines } from "./machines.js";
import { seekCommand, sideName, take } from "./take.js";
import { copyText } from "./copying.js";

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
  "stream-gap": "A stream broke off",
  "late-first-frame": "The first picture came late",
  "video-stopped": "Video stopped",
  "video-paused": "A camera or a screen paused",
  "audio-paused": "A microphone paused",
  loss: "Packets were lost on the way",
  "loss-burst": "Many packets in a row were lost",
  "loss-at-peer": "The other side missed packets",
  "no-key-frame": "A key frame was asked for in vain",
  freeze: "Video stood still",
  "concealed-audio": "Audio was concealed",
  "silent-audio": "Audio was digital silence",
  "silent-while-speaking": "Somebody spoke and was not heard",
  "speech-while-muted": "Somebody spoke into a muted microphone",
  "encoder-limited": "The encoder was held back",
  "refused-section": "Media was refused, as no codec is in common",
  "sequence-restart": "Sequence numbers began anew",
  "rtcp-other-ssrc": "Reports are of another source than the media",
  "uneven-timestamps": "Timestamps step unevenly",
};

const readable = (rule) => {
  const text = rule.replaceAll("-", " ");
  return text[0].toUpperCase() + text.slice(1);
};

/** A finding as a sentence. */
export function findingText(finding) {
  const subject = subjects[finding.rule] ?? readable(finding.rule);
  const streams = new Set(finding.spans.map(([, , text]) => /\bssrc (\d+)/.exec(text)?.[1]));
  const isOncePerStream = !streams.has(undefined) && streams.size === finding.count;
  const many = finding.count > 1
    ? `, ${isOncePerStream ? `on ${finding.count} streams` : counted(finding.count, "time")}`
      + `, ${duration(finding.seconds)} in all; the longest` : "";
  const evidence = inNames(finding.spans[0][2], finding.peer);
  return `${subject} at ${sideName(finding.peer)}${many}: ${evidence}`;
}

/** Evidence with the names of streams and tracks in the place of their numbers. */
function inNames(evidence, peer) {
  return evidence
    .replace(/\bssrc (\d+)/g, (all, ssrc) => take.flows.find(({ sent, received }) =>
      [sent, received].some((way) => way?.ssrcs.has(Number(ssrc))))?.name ?? all)
    .replace(/\b(audio|video) track (\d+)(?: \((in|out)\))?/g, (all, kind, track, direction) =>
      take.flows.find((flow) => flow.kind === kind && [flow.sent, flow.received].some((way) =>
        way?.peer === peer && way.track === Number(track)
        && way.direction === (direction ?? "in")))?.name ?? all);
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
  const unseen = coverageRow();
  if (!take.findings.length) {
    const text = take.isExamined === false ? "Looking for what went wrong …"
      : unseen.length ? "Nothing seems wrong in what was seen." : "Nothing seems wrong.";
    box.replaceChildren(make("p", {
      class: take.isExamined === false ? "note" : "none", role: "status",
    }, text), ...unseen);
    return;
  }
  const rows = take.findings.map((finding) => {
    const [tone, word] = words[finding.severity] ?? words[2];
    const [from, to] = finding.spans[0];
    const command = seekCommand(from);
    const more = make("div", { class: "more", hidden: true },
      make("code", { class: "command" }, command),
      button("copy", () => copyText(command)),
      make("ul", {}, finding.spans.slice(0, spansTold).map(([begin, end, text]) => make("li", {},
        `${timeText(begin, 0.1)} – ${timeText(end, 0.1)}: ${text}`))),
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
  box.replaceChildren(...rows, ...unseen);
  if (!rest.length) return;
  const all = button(`${counted(rest.length, "more finding")}`, () => {
    all.parentElement.remove();
    box.append(...rest, ...unseen);
  });
  box.append(make("div", { class: "tools" }, all));
}

/** What could not be seen weakens whatever is said here: a row of its own. */
function coverageRow() {
  const lines = coverageLines();
  if (!lines.length) return [];
  return [make("div", { class: "finding", id: "unseen" },
    make("span", { class: "pill off" }, "not seen"),
    make("p", {}, lines.join(" ")))];
}

/** How many places of a finding are told, in the words and with the numbers of its query. */
const spansTold = 10;

/** How many findings are in sight before all are asked for. */
const findingsShown = 5;

/** The pills beside the title. */
export function fillPills() {
  const bad = take.findings.filter(({ severity }) => severity > 1).length;
  const pills = [];
  if (take.form === "served" && take.ending && !take.isComplete) {
    pills.push(["wait", take.isLive ? "recording" : "cut short"]);
  } else pills.push(take.isComplete ? ["good", "complete"] : ["wait", "cut short"]);
  if (bad) pills.push(["bad", counted(bad, "finding")]);
  else if (take.isExamined !== false) pills.push(["good", "no findings"]);
  if (take.coverage.length) pills.push(["off", "not all was seen"]);
  place("pills").replaceChildren(...pills.map(([tone, text]) =>
    make("span", { class: `pill ${tone}` }, text)));
}

/**
 * The spans of all findings, for going from one to the next: the worst finding first, and of each
 * the longest spans first, so few that one finding does not hide the others.
 */
export const findingSpans = () =>
  take.findings.flatMap((finding) => finding.spans.slice(0, spansTold).map(([from, to], index) =>
    ({ finding, index, from, to })));

onClock("view", () => {
  // The times of findings follow the way in which times are told.
  if (fillFindings.isWall !== clock.isWall && place("findings").childElementCount) {
    fillFindings.isWall = clock.isWall;
    fillFindings();
  }
});
