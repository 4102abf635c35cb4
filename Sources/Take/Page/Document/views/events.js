// The list of all events in words.
import { clock, onClock, visit } from "../clock/clock.js";
import { timeText } from "../clock/times.js";
import { button, make, place } from "../shared/elements.js";
import { scroller } from "../shared/scroller.js";
import { counted } from "../shared/words.js";
import { peerName, take } from "../take/take.js";

const events = { off: new Set(), words: "", isPart: false, shown: [], list: null };

export function makeEvents() {
  const lanes = [...new Set(take.timeline.map(([, , , lane]) => lane))];
  const words = make("input", {
    type: "search", placeholder: "Words to look for", "aria-label": "Words to look for",
      id: "event-words",
    input: () => {
      events.words = words.value.toLowerCase();
      filterEvents();
    },
  });
  const part = make("input", {
    type: "checkbox", id: "event-part",
    change: () => {
      events.isPart = part.checked;
      filterEvents();
    },
  });
  const columns = "grid-template-columns: 90px 70px 110px 90px minmax(0, 1fr)";
  const cells = (texts, attributes) => {
    const line = make("div", attributes, texts.map((text) =>
      make("span", { title: text.length > 60 ? text : false }, text)));
    line.style.cssText = columns;
    return line;
  };
  events.count = make("span", { role: "status" });
  events.list = scroller(
    cells(["time", "step", "who", "what", ""], { class: "line head" }),
    () => events.shown.length,
    (index) => {
      const [at, step, peer, lane, what] = events.shown[index];
      const line = cells([timeText(at), String(step), peerName(peer), lane, what],
        { class: "line" });
      line.addEventListener("click", () => {
        place("tab-call").click();
        visit(at);
      });
      return line;
    });
  const toggles = lanes.map((lane) => button(lane, (event) => {
    const isOn = events.off.delete(lane);
    if (!isOn) events.off.add(lane);
    event.currentTarget.setAttribute("aria-pressed", String(isOn));
    filterEvents();
  }, { "aria-pressed": "true" }));
  place("events").replaceChildren(make("div", { class: "card" },
    make("div", { class: "tools" }, words, make("label", {}, part, " only the visible range"),
      toggles, events.count),
    events.list.element));
  onClock("view", () => {
    if (events.isPart) filterEvents();
  });
  filterEvents();
}

/** Applies the filters to the list. */
export function filterEvents() {
  if (!events.list) return;
  events.shown = take.timeline.filter(([at, , peer, lane, what]) =>
    !events.off.has(lane)
    && (!events.isPart || (at >= clock.from && at <= clock.to))
    && (!events.words || `${peerName(peer)} ${lane} ${what}`.toLowerCase().includes(events.words)));
  events.count.textContent = counted(events.shown.length, "event");
  events.list.refresh();
}
