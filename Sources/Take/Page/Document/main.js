// Starts the page and switches between its views.
import { choosePeer, findLane, makeBoard, updateBoard } from "./board/board.js";
import { drawingTime, readAhead, readFurtherAhead, redraw, soon } from "./board/redraw.js";
import { board } from "./board/state.js";
import { showCatalogue } from "./catalogue/catalogue.js";
import { addressParts, readAddress, setAddressPart } from "./clock/address.js";
import { clock, onClock, point, release, select, show, visit } from "./clock/clock.js";
import { isFilming, seenPictures } from "./lanes/film.js";
import { announce, button, place } from "./shared/elements.js";
import { inPieces } from "./shared/pieces.js";
import {
  askJSON, askReading, chosenTake, currentToken, enter, otherTake,
} from "./shared/server.js";
import { drawQuery, makeQuery } from "./sql/query.js";
import { adopt, fetchLate, loadTake, settleLate } from "./take/reading.js";
import { hasLateValues, take, takeFacts } from "./take/take.js";
import { fillSelection, makeAside } from "./views/aside.js";
import { besides, fillComparison, isComparing } from "./views/comparing.js";
import { makeConnection } from "./views/connection.js";
import { copied } from "./views/copying.js";
import { differences } from "./views/descriptions.js";
import { filterEvents, makeEvents } from "./views/events.js";
import {
  fillCards, fillFindings, fillPills, fillQuality, refreshFindingTimes,
} from "./views/findings.js";
import { chooseScheme, listenToKeys } from "./views/keys.js";
import { makeMedia, mediaTimes } from "./views/media.js";
import { applyFilter, choosePacket, makePackets, showPackets } from "./views/packets.js";
import { listenToPrinting } from "./views/printing.js";
import { chooseMessage, makeSignaling } from "./views/signaling.js";
import { makeStats, showStats } from "./views/stats.js";

const views = [
  { id: "call", name: "Call" },
  { id: "events", name: "Events", shown: filterEvents },
  { id: "signaling", name: "Signaling" },
  { id: "connection", name: "Connection" },
  { id: "packets", name: "Packets", shown: showPackets },
  { id: "stats", name: "Stats", shown: showStats },
  { id: "sql", name: "SQL" },
];

/** Shows one of the views and hides the others. */
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

/** Restores the view that the address names. */
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
  else {
    fillCards();
    fillQuality();
  }
  fillFindings();
}

/** Requests the findings, which take longest. */
async function addFindings() {
  Object.assign(take, await askJSON("findings", { name: take.name }));
  take.isExamined = true;
  fillPills();
  // Most cards show figures that come with the findings.
  if (!isComparing()) {
    fillCards();
    fillQuality();
  }
  fillFindings();
  soon();
}

/**
 * Loads the values that the first response omitted, and draws them as soon as the lanes' data is
 * computed.
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

/** The interval between reads of a growing take, in milliseconds. */
const liveMilliseconds = 300;

/**
 * One of this many reads is complete; the others read only packets, frames and states.
 */
const roundsToAll = 8;

/** Reads what was added to the take; a view that ended at the take's end stays at the end. */
async function readMore(isBrief) {
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
    await readMore(round % roundsToAll !== 0);
    if (round % (2 * roundsToAll) === 0) await addFindings();
  }
  if (take.isComplete && take.isLive) await readMore(false);
  await addFindings();
}

async function begin() {
  await enter();
  if (currentToken()) addressParts.set("token", currentToken());
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
  onClock("view", refreshFindingTimes);
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
    late.then(isComparing() ? undefined : followRecording).catch((error) => announce(error.message));
    if (!isComparing()) addFindings().catch((error) => announce(error.message));
  }
  Promise.allSettled([readAhead(), late]).then(readFurtherAhead)
    .then(() => { window.retake.isPrepared = true; });
}

// For scripts that drive the page, as the tests do.
window.retake = {
  take, clock, board, mediaTimes, seenPictures, isFilming, differences, show, select,
  point, release, visit, redraw, onClock, hasLateValues, isPrepared: false,
  get drawingTime() { return drawingTime(); },
  get copied() { return copied.text; },
};

begin().catch((error) => {
  console.error(error);
  place("title").textContent = "This page cannot be shown";
  place("facts").textContent = String(error?.message ?? error);
});
