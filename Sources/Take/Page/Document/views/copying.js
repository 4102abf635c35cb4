// Copying: links, commands, a summary in Markdown, a picture.
import { addressText } from "../clock/address.js";
import { clock } from "../clock/clock.js";
import { timeText } from "../clock/times.js";
import { announce, place } from "../shared/elements.js";
import { take, takeFacts } from "../take/take.js";

/** The text last copied, for tests. */
export const copied = { text: undefined };

/** Copies text to the clipboard. */
export async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // Some browsers refuse the clipboard to pages from files.
    const field = document.createElement("textarea");
    field.value = text;
    document.body.append(field);
    field.select();
    document.execCommand("copy");
    field.remove();
  }
  announce("Copied");
  copied.text = text;
}

export function copyLink() {
  copyText(`${location.href.split("#")[0]}#${addressText()}`);
}

/** The call as Markdown: cards, findings, values at the cursor. */
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

/** The visible lanes as a picture. */
export function picture(lanes, colours) {
  const shown = lanes.filter((lane) => lane.isDrawn);
  const ratio = window.devicePixelRatio || 1;
  const axis = /** @type {HTMLCanvasElement} */ (place("axis"));
  const [labels, width] = [160, axis.clientWidth];
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
  context.drawImage(axis, labels, 8, width, 20);
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

/** Copies a picture, or saves it if copying is refused. */
export function copyPicture(canvas) {
  canvas.toBlob(async (blob) => {
    try {
      await navigator.clipboard.write([new ClipboardItem({ "image/png": blob })]);
      announce("Copied as a picture");
    } catch {
      const link = document.createElement("a");
      link.href = URL.createObjectURL(blob);
      link.download = `${take.file}.png`;
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
      announce("Saved as a picture");
    }
  });
}
