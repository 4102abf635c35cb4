// What a person takes along: links, commands, a summary as Markdown, a picture.
import { place, say } from "./basics.js";
import { addressText, clock, timeText } from "./clock.js";
import { take, takeFacts } from "./take.js";

/** Puts a text where it can be pasted from. */
export async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // A page from a file may not use the clipboard by itself in every browser.
    const field = document.createElement("textarea");
    field.value = text;
    document.body.append(field);
    field.select();
    document.execCommand("copy");
    field.remove();
  }
  say("Copied");
  copyText.last = text;
}

export function copyLink() {
  copyText(`${location.href.split("#")[0]}#${addressText()}`);
}

/** The call in words: what stands at the top, and what is at the cursor. */
export function markdown(cards, findings, values) {
  const lines = [`# ${take.title}`, "", takeFacts(), ""];
  for (const card of cards) lines.push(`- ${card.title}: **${card.value}**${card.note ? ` (${card.note})` : ""}`);
  if (findings.length) lines.push("", "## Findings", "",
    ...findings.map((text, index) => `${index + 1}. ${text}`));
  if (values.length) {
    lines.push("", `## At ${timeText(clock.cursor)}`, "", "| | |", "|---|---|");
    for (const [label,
      value] of values) lines.push(`| ${label} | ${value.replaceAll("|", "\\|")} |`);
  }
  return `${lines.join("\n")}\n`;
}

/** The lanes that are in sight as a picture. */
export function picture(lanes, colours) {
  const shown = lanes.filter((lane) => lane.isDrawn);
  const ratio = window.devicePixelRatio || 1;
  const [labels, width] = [160, place("axis").clientWidth];
  const tops = [];
  let height = 34;
  let group = null;
  for (const lane of shown) {
    if (lane.group !== group) height += 20;
    group = lane.group;
    tops.push(height);
    height += lane.height + 4;
  }
  const canvas = document.createElement("canvas");
  canvas.width = (labels + width + 20) * ratio;
  canvas.height = (height + 10) * ratio;
  const context = canvas.getContext("2d");
  context.scale(ratio, ratio);
  context.fillStyle = colours.card;
  context.fillRect(0, 0, labels + width + 20, height + 10);
  context.font = '11px system-ui, "DejaVu Sans", sans-serif';
  context.drawImage(place("axis"), labels, 8, width, 20);
  group = null;
  shown.forEach((lane, index) => {
    if (lane.group !== group) {
      context.fillStyle = colours.ink;
      context.fillText(lane.group.name, 8, tops[index] - 6);
    }
    group = lane.group;
    context.fillStyle = colours.dim;
    context.fillText(`${lane.label}${lane.unit ? `, ${lane.unit}` : ""}`, 16, tops[index] + 12,
      labels - 24);
    context.drawImage(lane.canvas, labels, tops[index], width, lane.height);
  });
  return canvas;
}

/** Hands a picture to the clipboard, or to the downloads where that cannot be. */
export function copyPicture(canvas) {
  canvas.toBlob(async (blob) => {
    try {
      await navigator.clipboard.write([new ClipboardItem({ "image/png": blob })]);
      say("Copied as a picture");
    } catch {
      const link = document.createElement("a");
      link.href = URL.createObjectURL(blob);
      link.download = `${take.file}.png`;
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
      say("Saved as a picture");
    }
    copyPicture.last = blob.size;
  });
}
