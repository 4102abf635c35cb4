// The findings, worst first, and the cards above them.
import { clock, point, select, showAround } from "../clock/clock.js";
import { timeText } from "../clock/times.js";
import { coverageLines } from "../lanes/coverage.js";
import { button, make, place } from "../shared/elements.js";
import { counted } from "../shared/words.js";
import { seekCommand, take } from "../take/take.js";
import { cards } from "./cards.js";
import { copyText } from "./copying.js";

export function fillCards() {
  place("cards").replaceChildren(...cards().map((card) => make("div", { class: "card" },
    make("span", {}, card.title),
    make("b", { class: card.tone ? `${card.tone}` : "" }, card.value),
    make("span", {}, card.note))));
}

/** The table of media, in the words of `retake summary`. */
export function fillQuality() {
  const box = place("quality");
  const { columns, media, media_cut: cut } = take.quality ?? { media: [] };
  if (!media.length) {
    box.replaceChildren();
    return;
  }
  // A column is omitted if no stream has a value for it.
  const shown = columns.map((title, at) => ({ title, at }))
    .filter(({ at }) => media.some(({ cells }) => cells[at]));
  const kind = (at) => (at > 2 ? "number" : false);
  box.replaceChildren(make("div", { class: "wide", tabindex: 0, role: "region",
    "aria-label": "Table of media" },
  make("table", { class: "grid" },
    make("thead", {}, make("tr", {}, shown.map(({ title, at }) =>
      make("th", { scope: "col", class: kind(at) }, title)))),
    make("tbody", {}, media.map(({ cells }) => make("tr", {}, shown.map(({ at }) =>
      make("td", { class: kind(at) }, cells[at])))))),
  cut ? make("p", {}, `and ${counted(cut, "more stream")}`) : null));
}

/** The tones of severities: 5 is critical, 1 is informational. */
const severityTones = { 5: "bad", 4: "bad", 3: "wait", 2: "off", 1: "off" };

/** A finding as a sentence, in the words of `retake findings`. */
export const findingText = (finding) => finding.text;

/** The side on which the cause of a finding lies, and how certain that is. */
const causeText = ({ side, confidence }) => [side, confidence].filter(Boolean).join(", ");

/** A finding as a line of text. */
export const findingLine = (finding) =>
  findingText(finding) + (causeText(finding) ? ` [${causeText(finding)}]` : "");

/** The symptoms of a finding as a nested list. */
const symptomList = (finding) => finding.symptoms.map((symptom) => make("li", {},
  button(findingText(symptom), () => visitFinding(symptom), { class: "plain go" }),
  symptom.symptoms.length ? make("ul", {}, symptomList(symptom)) : null));

/** Shows and selects one of a finding's spans. */
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
    const text = take.isExamined === false ? "Searching for problems …"
      : unseen.length ? "Nothing seems wrong in what was observed." : "Nothing seems wrong.";
    box.replaceChildren(make("p", {
      class: take.isExamined === false ? "note" : "none", role: "status",
    }, text), ...unseen);
    return;
  }
  const rows = take.findings.map((finding) => {
    const tone = severityTones[finding.severity] ?? "wait";
    const [from, to] = finding.spans[0];
    const command = seekCommand(from);
    const more = make("div", { class: "more", hidden: true },
      make("code", { class: "command" }, command),
      button("copy", () => copyText(command)),
      make("ul", {}, finding.spans.slice(0, spansTold).map(([begin, end, text]) => make("li", {},
        `${timeText(begin, 0.1)} – ${timeText(end, 0.1)}: ${text}`))),
      make("pre", { tabindex: 0 }, finding.sql));
    return make("div", { class: "finding" },
      make("span", { class: `pill ${tone}` }, finding.level),
      button(findingText(finding), () => visitFinding(finding), { class: "plain go" }),
      make("p", { class: "cause" }, causeText(finding)),
      make("p", {}, `${timeText(from, 0.1)} – ${timeText(to, 0.1)}`),
      button("query", (event) => {
        more.hidden = !more.hidden;
        event.currentTarget.setAttribute("aria-expanded", String(!more.hidden));
      }, { "aria-expanded": "false", title: "The command to go there, and the query" }),
      finding.symptoms.length ? make("ul", { class: "symptoms" }, symptomList(finding)) : null,
      more);
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

/** A row about gaps in coverage, which weaken every finding. */
function coverageRow() {
  const lines = coverageLines();
  if (!lines.length) return [];
  return [make("div", { class: "finding", id: "unseen" },
    make("span", { class: "pill off" }, "not seen"),
    make("p", {}, lines.join(" ")))];
}

/** The maximum number of listed places of a finding. */
const spansTold = 10;

/** The number of findings shown before all are requested. */
const findingsShown = 5;

/**
 * Shows beside the title whether the take is complete, has findings, and has gaps in coverage.
 */
export function fillPills() {
  const bad = take.findings.filter(({ severity }) => severity > 2).length;
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
 * The spans of all findings for stepping: the worst finding first, and the longest spans of each,
 * limited so that one finding does not hide the others.
 */
export const findingSpans = () =>
  take.findings.flatMap((finding) => finding.spans.slice(0, spansTold)
    .map(([from, to], index) => ({ finding, index, from, to }))
    // Detections on several streams may cover the same span.
    .filter(({ from, to }, place, all) =>
      all.findIndex((other) => other.from === from && other.to === to) === place));

let isWallShown = false;

/** Updates the times of findings when the clock's display changes. */
export function refreshFindingTimes() {
  if (isWallShown === clock.isWall || !place("findings").childElementCount) return;
  isWallShown = clock.isWall;
  fillFindings();
}
