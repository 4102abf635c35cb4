// Brings everything up, and switches between the views.
import { button, place, say } from "./basics.js";
import {
  addressParts, clock, onClock, point, readAddress, release, select, setAddressPart, show, visit,
} from "./clock.js";
import {
  board, choosePeer, drawingTime, findLane, makeBoard, readAhead, readFurtherAhead, redraw,
  soon, updateBoard,
} from "./board.js";
import { fillSelection, makeAside } from "./aside.js";
import { showCatalogue } from "./catalogue.js";
import { makeConnection } from "./connection.js";
import { copyText } from "./copying.js";
import { dissect } from "./dissect.js";
import { filterEvents, makeEvents } from "./events.js";
import { fillCards, fillFindings, fillPills } from "./findings.js";
import { chooseScheme, listenToKeys } from "./keys.js";
import { chooseMessage, differences, makeSignaling } from "./signaling.js";
import { isFilming, seenPictures } from "./film.js";
import { makeMedia, mediaTimes } from "./media.js";
import { applyFilter, choosePacket, makePackets, showPackets } from "./packets.js";
import { inPieces } from "./pieces.js";
import { listenToPrinting } from "./printing.js";
import { drawQuery, makeQuery } from "./query.js";
import { besides, fillComparison, isComparing } from "./comparing.js";
import { askJSON, askReading, chosenTake, enter, otherTake, token } from "./server.js";
import { makeStats, showStats } from "./stats.js";
import {
  adopt, fetchLate, hasLateValues, loadTake, settleLate, take, takeFacts,
} from "./take.js";

const views = [
  { id: "call", name: "Call" },
  { id: "events", name: "Events", shown: filterEvents },
  { id: "signaling", name: "Signaling" },
  { id: "connection", name: "Connection" },
  { id: "packets", name: "Packets", shown: showPackets },
  { id: "stats", name: "Stats", shown: showStats },
  { id: "sql", name: "SQL" },
];

/** Shows one of the views. */
function chooseView(id, isAddressed = true) {
  for (const view of views) {
    const isChosen = view.id === id;
    const tab = place(`tab-${view.id}`);
    tab.setAttribute("aria-selected", String(isChosen));
    tab.tabIndex = isChosen ? 0 : -1;
    place(view.id).hidden = !isChosen;
    if (isChosen) view.shown?.();
  }
  if (isAddressed) setAddressPart("view", id === views[0].id ? "" : id);
  if (id === "call") soon();
}

function makeViews() {
  place("views").append(...views.map((view, index) => button(view.name, () => chooseView(view.id), {
    role: "tab", id: `tab-${view.id}`, "aria-controls": view.id,
    keydown: (event) => {
      const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!by) return;
      const next = place(`tab-${views[(index + by + views.length) % views.length].id}`);
      next.focus();
      next.click();
    },
  })));
  chooseView(views[0].id, false);
}

/** Goes where the address says. */
function followAddress() {
  const parts = readAddress();
  chooseScheme(parts.get("scheme"));
  const peer = Number(parts.get("peer"));
  if (take.peers.some((each) => each.peer === peer)) choosePeer(peer);
  if (parts.get("lane")) findLane(parts.get("lane"));
  const entry = take.timeline.find(([, step]) => step === Number(parts.get("step")));
  if (entry) visit(entry[0]);
  if (parts.get("message")) chooseMessage(Number(parts.get("message")));
  if (views.some(({ id }) => id === parts.get("view"))) chooseView(parts.get("view"));
  return parts;
}

function fill() {
  document.title = `${take.title} · Retake`;
  place("title").textContent = take.title;
  place("facts").textContent = takeFacts();
  fillPills();
  if (isComparing()) fillComparison();
  else fillCards();
  fillFindings();
}

/** Asks for the findings, which take longer than all the rest. */
async function addFindings() {
  take.findings = await askJSON("findings", { name: take.name });
  take.isExamined = true;
  fillPills();
  // What was frozen is a finding.
  if (!isComparing()) fillCards();
  fillFindings();
  soon();
}

/**
 * Has the values that were left out at first, and draws with them as soon as all that lanes need of
 * them is worked out.
 */
async function addLate() {
  if (!hasLateValues()) return;
  await fetchLate();
  await readAhead();
  await settleLate(soon);
  await inPieces(lateShown());
}

function* lateShown() {
  updateBoard();
  place("facts").textContent = takeFacts();
  yield;
  if (!isComparing()) fillCards();
  yield;
  fillSelection();
}

/** How often a take that is recorded is asked for what came. */
const liveMilliseconds = 300;

/** Packets, frames and states are asked for each time, all else now and then. */
const roundsToAll = 8;

/** Takes what came since the last time; the view goes along while it reaches to the end. */
async function takeMore(isBrief) {
  const reading = await askReading("more", {
    session: take.session, ...(isBrief ? { brief: 1 } : {}),
  });
  const isAtEnd = clock.to >= take.seconds - 0.05;
  const isWhole = isAtEnd && clock.from === 0;
  adopt(reading.data, reading.bytes);
  fillPills();
  fillCards();
  place("facts").textContent = takeFacts();
  updateBoard();
  if (isWhole) show(0, take.seconds);
  else if (isAtEnd) show(take.seconds - (clock.to - clock.from), take.seconds);
  if (!isBrief) filterEvents();
}

/** Follows a take while it is recorded. */
async function followRecording() {
  for (let round = 1; take.isLive && !take.isComplete; round += 1) {
    await new Promise((done) => setTimeout(done, liveMilliseconds));
    await takeMore(round % roundsToAll !== 0);
    if (round % (2 * roundsToAll) === 0) await addFindings();
  }
  if (take.isComplete && take.isLive) await takeMore(false);
  await addFindings();
}

async function begin() {
  await enter();
  if (token) addressParts.set("token", token);
  if (!await loadTake()) {
    await showCatalogue();
    window.addEventListener("hashchange", () => location.reload());
    document.documentElement.dataset.ready = "yes";
    return;
  }
  if (chosenTake) addressParts.set("take", chosenTake);
  if (otherTake) {
    addressParts.set("with", otherTake);
    await besides(otherTake);
  }
  fill();
  makeBoard();
  makeAside();
  makeEvents();
  makeSignaling();
  makeConnection();
  makePackets();
  makeQuery();
  makeStats();
  makeMedia(soon);
  makeViews();
  listenToKeys();
  listenToPrinting();
  const parts = followAddress();
  window.addEventListener("hashchange", followAddress);
  if (parts.get("filter")) applyFilter(parts.get("filter"));
  if (parts.get("packet")) choosePacket(Number(parts.get("packet")));
  if (parts.get("sql")) drawQuery(parts.get("sql"));
  redraw();
  window.retake.readyAt = performance.now();
  document.documentElement.dataset.ready = "yes";
  let late = null;
  if (take.form === "served") {
    late = addLate();
    late.then(isComparing() ? undefined : followRecording).catch((error) => say(error.message));
    if (!isComparing()) addFindings().catch((error) => say(error.message));
  }
  Promise.allSettled([readAhead(), late]).then(readFurtherAhead)
    .then(() => { window.retake.isPrepared = true; });
}

// For whoever drives the page by a script, as the tests do.
window.retake = {
  take, clock, board, mediaTimes, seenPictures, isFilming, dissect, differences, show, select,
  point, release, visit, redraw, onClock, hasLateValues, isPrepared: false,
  get drawingTime() { return drawingTime; },
  get copied() { return copyText.last; },
};
begin().catch((error) => {
  console.error(error);
  place("title").textContent = "This page cannot be shown";
  place("facts").textContent = String(error?.message ?? error);
});
