// The list of packets, and the dissection of one of them.
import { setAddressPart } from "../clock/address.js";
import { clock, visit } from "../clock/clock.js";
import { timeText } from "../clock/times.js";
import { announce, button, make, place } from "../shared/elements.js";
import { scroller } from "../shared/scroller.js";
import { askJSON } from "../shared/server.js";
import { byteCount, counted, duration, shellWord } from "../shared/words.js";
import { codecName, peerName, take } from "../take/take.js";

const packets = { filter: "", total: 0, pages: new Map(), waiting: new Set(), chosen: null };

const pageLength = 200;

const hasPackets = () => take.form === "served";

export function makePackets() {
  const box = place("packets");
  if (!hasPackets()) {
    box.replaceChildren(make("div", { class: "card" },
      make("p", {},
        "A page in a file has no packets. This command serves the same page with all of them:"),
      make("code", { class: "command" }, `retake open ${shellWord(take.file)}`)));
    return;
  }
  const words = make("input", {
    type: "search", id: "packet-filter", placeholder: "in rtp ssrc=… size>1000, rtcp pli, stun …",
    "aria-label": "Show packets that match", size: 46,
    change: () => applyFilter(words.value),
  });
  packets.words = words;
  packets.note = make("span", { role: "status", id: "packet-count" });
  const quick = ["stun", "dtls", "in rtp", "out rtp", "rtcp nack", "rtcp pli", "rtcp"];
  packets.list = scroller(packetHead(), () => packets.total, packetElement);
  packets.detail = make("div", { id: "packet" },
    make("p", {}, "Choose a packet to see its fields."));
  box.replaceChildren(make("div", { class: "card" },
    make("div", { class: "tools" }, words,
      button("all", () => applyFilter("")), quick.map((text) =>
        button(text, () => applyFilter(text))),
      button("go to the cursor", showCursor, { id: "packet-cursor" }), packets.note),
    make("div", { class: "packets" }, packets.list.element, packets.detail)));
}

/** Loads the first packets, or draws those that are loaded. */
export function showPackets() {
  if (hasPackets() && !packets.pages.size && !packets.waiting.size) applyFilter(packets.filter);
  else packets.list?.refresh();
}

export async function applyFilter(text) {
  packets.filter = text;
  if (packets.words) packets.words.value = text;
  packets.pages.clear();
  packets.waiting.clear();
  packets.total = 0;
  setAddressPart("filter", text);
  try {
    await fetchPage(0);
    packets.list.show(0);
  } catch (error) {
    packets.note.textContent = error.message;
    packets.list.refresh();
  }
}

async function fetchPage(page) {
  if (packets.pages.has(page) || packets.waiting.has(page)) return;
  packets.waiting.add(page);
  const filter = packets.filter;
  const found = await askJSON("packets", {
    name: take.name, filter, from: page * pageLength, count: pageLength,
  });
  packets.waiting.delete(page);
  if (filter !== packets.filter) return;
  packets.total = found.total;
  packets.pages.set(page, found.rows);
  packets.note.textContent = counted(found.total, "packet");
  packets.list.refresh();
}

const packetColumns = "grid-template-columns: 88px 64px 90px 26px 52px 54px minmax(0, 1fr)";

function packetHead() {
  const head = make("div", { class: "line head" },
    ["time", "step", "who", "", "what", "bytes", ""].map((text) => make("span", {}, text)));
  head.style.cssText = packetColumns;
  return head;
}

/** The bytes of a packet, two hexadecimal digits each. */
const pairsOf = (hex) => (hex ?? "").match(/../g) ?? [];

function packetElement(index) {
  const row = packets.pages.get(Math.floor(index / pageLength))?.[index % pageLength];
  const line = make("div", { class: "line" });
  line.style.cssText = packetColumns;
  if (!row) {
    fetchPage(Math.floor(index / pageLength)).catch((error) => announce(error.message));
    line.append("…");
    return line;
  }
  const [number, step, peer, at, direction, protocol, size] = row;
  line.append(...[timeText(at, 1e-4), String(step), peerName(peer), direction === "in" ? "←" : "→",
    protocol, String(size), infoOf(row)].map((text) => make("span", {}, text)));
  if (number === packets.chosen) line.classList.add("here");
  line.addEventListener("click", () => choosePacket(number));
  return line;
}

function infoOf(row) {
  const [, , , , , protocol, , ssrc, payloadType, sequence, rtpTime, marker, transport, , , what,
    reports] = row;
  if (protocol === "rtp") {
    return `${streamName(row)}, ${sequence}, time ${rtpTime}${marker ? ", marker" : ""}, type ${payloadType}`
      + (transport === null ? "" : `, transport-wide ${transport}`);
  }
  if (protocol === "rtcp") return reports ? reports.replaceAll(" ", ", ") : `from ${ssrc}`;
  return what ?? "";
}

/** The name of the flow that a packet belongs to. */
function streamName(row) {
  const [, , peer, , direction, , , ssrc] = row;
  const flow = take.flows.find((each) => [each.sent, each.received].some(
    (way) => way && way.peer === peer && way.direction === direction && way.ssrcs.has(ssrc)));
  return flow ? flow.name : `SSRC ${ssrc}`;
}

async function showCursor() {
  const at = clock.cursor ?? clock.from;
  const { index } = await askJSON("packet-at", { name: take.name, filter: packets.filter, at });
  await fetchPage(Math.floor(index / pageLength));
  packets.list.show(index);
  const row = packets.pages.get(Math.floor(index / pageLength))?.[index % pageLength];
  if (row) choosePacket(row[0]);
}

/** Shows a packet with its fields and related packets. */
export async function choosePacket(number) {
  packets.chosen = number;
  packets.list.refresh();
  setAddressPart("packet", number);
  const found = await askJSON("packet", { name: take.name, row: number });
  const [packet] = found.packet;
  if (!packet || packets.chosen !== number) return;
  const { parts, hex } = contents(packet.bytes, found.layers);
  packets.detail.replaceChildren(
    make("h2", {},
      `${packet.protocol.toUpperCase()} ${packet.direction === "in" ? "received by" : "sent by"} `
      + `${peerName(packet.peer)}, ${byteCount(packet.size)}`),
    make("p", {}, `${timeText(packet.at, 1e-5)}, step ${packet.step}, ${packet.local} `
      + `${packet.direction === "in" ? "←" : "→"} ${packet.remote} `,
    button("on the clock", () => {
      place("tab-call").click();
      visit(packet.at);
    })),
    make("code", { class: "command" }, `retake debug ${shellWord(take.file)} -c 'seek step:${packet.step}'`),
    ...(["rtp", "rtcp", "dtls"].includes(packet.protocol)
      ? [button("show decrypted contents", (event) => showInside(packet.row, event.currentTarget),
        { id: "inside", title: "Replays the take to decrypt the packet" })] : []),
    ...parts, ...reportsOf(found.reports),
    ...lifeOf(packet, found.frames), ...linksOf(found.links), hex);
}

/**
 * A packet's fields, layer by layer, above its bytes in hexadecimal.
 * @param {string} digits
 * @param {Layer[]} layers
 */
function contents(digits, layers) {
  const bytes = pairsOf(digits);
  const hex = make("pre", { class: "hex", tabindex: 0 });
  const mark = (from, length) => showBytes(hex, bytes, from, length);
  mark(0, 0);
  return { parts: layers.map((layer) => layerElement(layer, mark)), hex };
}

function layerElement(layer, mark) {
  return make("details", { open: true, class: "layer" }, make("summary", {}, layer.name),
    make("table", {}, make("tbody", {}, layer.fields.map((field) => make("tr", {},
      make("td", {}, button(field.name, () => mark(field.from, field.length), {
        class: "plain", mouseenter: () => mark(field.from, field.length),
          focus: () => mark(field.from, field.length),
      })), make("td", {}, field.value))))));
}

/** Shows the decrypted contents of a packet, which the server obtains by replaying the take. */
async function showInside(row, asked) {
  asked.textContent = "replaying …";
  try {
    const found = await askJSON("clear", { name: take.name, row });
    const parts = found.flatMap(({ bytes, layers }) => {
      const inside = contents(bytes, layers);
      return [...inside.parts, inside.hex];
    });
    asked.replaceWith(...(parts.length ? parts : [make("p", {}, "It has no decrypted contents.")]));
  } catch (error) {
    asked.textContent = error.message;
  }
}

/** All bytes, with those of one field highlighted. */
function showBytes(box, bytes, from, length) {
  const parts = [[0, from, false], [from, from + length, true],
    [from + length, bytes.length, false]];
  box.replaceChildren(...parts.filter(([begin, end]) => end > begin).map(([begin, end, isMarked]) =>
    make(isMarked ? "mark" : "span", {}, `${bytes.slice(begin, end).join(" ")} `)));
}

function reportsOf(reports) {
  if (!reports.length) return [];
  return [make("details", { open: true, class: "layer" }, make("summary", {}, "RTCP in the clear"),
    make("table", {}, make("tbody", {}, reports.map(({ type, ssrc, fields }) => make("tr", {},
      make("td", {}, type), make("td", {}, `SSRC ${ssrc} ${fields}`))))))];
}

/** The path of a packet from the socket to the screen. */
function lifeOf(packet, frames) {
  if (!frames.length) return [];
  const [frame] = frames;
  const steps = [
    ["came", packet.at, ""],
    [`first of ${frame.packets} packets of its frame`, frame.first, ""],
    [`${frame.outcome}, ${codecName(frame.codec)}${frame.width ? ` ${frame.width}x${frame.height}` : ""}`
      + `${frame.key && frame.kind === "video" ? ", key frame" : ""}`, frame.at,
    `${duration(frame.at - packet.at)} after it arrived, ${duration(frame.at - frame.first)} after the first`],
  ].sort((a, b) => a[1] - b[1]);
  return [make("details", { open: true, class: "layer" }, make("summary", {}, "Its life"),
    make("table", {}, make("tbody", {}, steps.map(([what, at, wait]) => make("tr", {},
      make("td", {}, timeText(at, 1e-4)), make("td", {}, what), make("td", {}, wait))))))];
}

function linksOf(links) {
  if (!links.length) return [];
  return [make("details", { open: true, class: "layer" }, make("summary", {}, "What answers what"),
    make("ul", {}, links.map(({ what, row, at, direction }) => make("li", {},
      button(`${direction === "in" ? "←" : "→"} ${what}, ${timeText(at, 1e-4)}`,
        () => (what === "key frame after it" ? visitCall(at) : choosePacket(row)),
          { class: "plain link" })))))];
}

function visitCall(at) {
  place("tab-call").click();
  visit(at);
}
