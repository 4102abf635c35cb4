// The buttons above the lanes.
import { soon } from "./redraw.js";
import { kept, parts } from "./state.js";
import { placeMarks } from "./strip.js";
import { addressParts } from "../clock/address.js";
import { clock, pan, showAll, showAround, zoom } from "../clock/clock.js";
import { button, make, place } from "../shared/elements.js";
import { peerName, take } from "../take/take.js";

export function makeTools({ fill, choosePeer }) {
  const words = make("input", {
    type: "search", placeholder: "Lanes with …", "aria-label": "Show lanes with these words",
    id: "lane-words",
    input: () => {
      kept.words = words.value.toLowerCase();
      fill();
    },
  });
  const peers = take.peers.length < 2 ? null : make("select", {
    "aria-label": "Peer", id: "peer-choice",
    change: () => choosePeer(Number(peers.value)),
  }, make("option", { value: 0 }, "all peers"),
    ...take.peers.map(({ peer }) => make("option", { value: peer }, peerName(peer))));
  parts.peers = peers;
  const title = (text) => ({ title: text, "aria-label": text });
  return make("div", { class: "tools" },
    button("−", () => zoom(2), title("Zoom out (−)")),
    button("+", () => zoom(0.5), title("Zoom in (+)")),
    button("◂", () => pan(-0.5), title("Earlier (←)")),
    button("▸", () => pan(0.5), title("Later (→)")),
    button("whole take", showAll, { ...title("Show the whole take (0)"), id: "all" }),
    button("selection", zoomToSelection, { ...title("Zoom to the selection (z)"),
      id: "zoom-selection" }),
    peers, words, otherChoice(), make("span", { class: "grow" }),
    button("time of day", toggleWall, { "aria-pressed": "false", id: "wall" }));
}

/** A list of the takes that can be compared with this one. */
function otherChoice() {
  if (!take.others?.length) return null;
  const choice = make("select", {
    "aria-label": "Show another take beside this one", id: "other-choice",
    change: () => {
      const parts = new URLSearchParams(location.hash.slice(1));
      if (choice.value) parts.set("with", choice.value);
      else parts.delete("with");
      location.hash = parts.toString();
      location.reload();
    },
  }, make("option", { value: "" }, "beside …"),
    take.others.slice(0, 500).map((name) => make("option", { value: name }, name)));
  choice.value = addressParts.get("with") ?? "";
  return choice;
}

/** Toggles between wall-clock time and time since the start. */
export function toggleWall() {
  clock.isWall = !clock.isWall;
  place("wall").setAttribute("aria-pressed", String(clock.isWall));
  soon();
  placeMarks();
}

export function zoomToSelection() {
  if (clock.selection) showAround(...clock.selection);
}
