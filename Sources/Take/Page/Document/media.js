// Audio and video of the take, played in step with the cursor: the browser decodes what the take
// has.
import { button, make, place, say } from "./basics.js";
import { clock, onClock, point, show } from "./clock.js";
import { ask } from "./server.js";
import { codecName, take, valuesThere } from "./take.js";

/** What can be played: a player for each direction of a track. */
const players = new Map();
const media = { isPlaying: false, muted: new Set(), timer: 0 };

export const keyOf = ({ peer, direction, track, kind }) => `${peer} ${direction} ${track} ${kind}`;

/** What the page has of the media of a way, or its server. */
export const mediaOf = (way) =>
  way && take.media?.find((entry) => keyOf(entry) === keyOf(way));

/** The first frame that a file begins with, by the frames of the way. */
export function beginning(way) {
  const { frames } = way;
  const [size, flags] = [frames.column("size"), frames.column("flags")];
  const index = size.findIndex((bytes, at) => bytes > 0 && flags[at] >> 1 !== 4
    && (way.kind === "audio" || (flags[at] & 1) === 1));
  return index < 0 ? 0 : frames.at[index];
}

/** The file of a way: the page carries it, or its server makes it. */
export async function blobOf(way) {
  const entry = mediaOf(way);
  if (take.form === "served") {
    const { name, peer } = entry.from ?? { name: take.name, peer: way.peer };
    const reply = await ask("media", {
      name, peer, direction: way.direction, track: way.track, kind: way.kind,
    });
    return reply.blob();
  }
  const text = atob(place(`media-${take.media.indexOf(entry)}`).textContent);
  return new Blob([Uint8Array.from(text, (character) => character.charCodeAt(0))],
    { type: entry.type });
}

/** The player of a way; made when it is first asked for. */
export function playerOf(way) {
  if (!mediaOf(way)) return null;
  const key = keyOf(way);
  if (!players.has(key)) {
    const element = make(way.kind, { preload: "auto", playsinline: true, "data-way": key });
    element.muted = way.kind === "video";
    const player = { way, element, begin: 0, isReady: false, wanted: null };
    players.set(key, player);
    player.loading = valuesThere().then(() => blobOf(way)).then((blob) => {
      player.begin = beginning(way);
      element.src = URL.createObjectURL(blob);
      return new Promise((done) => {
        element.addEventListener("loadeddata", () => {
          player.isReady = true;
          done(true);
        }, { once: true });
        element.addEventListener("error", () => {
          player.error = element.error?.message || "the browser cannot play it";
          done(false);
        }, { once: true });
      });
    }).catch((error) => {
      player.error = error.message;
      return false;
    });
    element.addEventListener("seeked", () => {
      if (player.wanted === null) return;
      const wanted = player.wanted;
      player.wanted = null;
      seek(player, wanted);
    });
  }
  return players.get(key);
}

/** Brings a player to a time of the take; while it seeks, the latest wish counts. */
function seek(player, time) {
  const { element } = player;
  if (!player.isReady) return;
  if (element.seeking) {
    player.wanted = time;
    return;
  }
  const at = Math.min(Math.max(time - player.begin + 0.0012, 0), element.duration || Infinity);
  if (Math.abs(element.currentTime - at) > 0.0005) element.currentTime = at;
}

/* ---- Beside the lanes ---- */

export function makeMedia(redraw) {
  media.redraw = redraw;
  const flows = take.flows.filter((flow) => mediaOf(flow.received) || mediaOf(flow.sent));
  if (!flows.length) return;
  const videos = flows.filter(({ kind }) => kind === "video");
  const audios = flows.filter(({ kind }) => kind === "audio");
  const section = make("section", { id: "media" }, make("h2", {}, "Seen and heard"),
    ...videos.slice(0, 4).map(screens),
    make("div", { class: "tools" },
      button("▶ play", togglePlaying, { id: "play", title: "Play from the cursor (space)" }),
      audios.slice(0, 4).map(voice)));
  media.section = section;
  place("selected").before(section);
  // What the page carries itself is at hand; a server is asked when somebody wants to see it.
  if (take.form !== "served") setTimeout(loadMedia, 800);
  onClock("cursor", follow);
  onClock("view", follow);
}

/** One video as it was seen, beside what was sent where the take has both. */
function screens(flow) {
  const ways = [flow.received, flow.sent].filter(mediaOf);
  return make("div", { class: ways.length > 1 ? "screens" : "" },
    ways.map((way) => screen(flow, way)));
}

function captionOf({ flow, way }) {
  return way === flow.sent ? `${flow.name}, as it was sent`
    : `${flow.name}, as ${flow.to} saw it`;
}

function screen(flow, way) {
  const box = make("figure", { class: "screen" });
  const caption = make("figcaption", {}, captionOf({ flow, way }));
  const load = button("load video", () => {
    const player = playerOf(way);
    load.textContent = "loading …";
    player.loading.then((isGood) => {
      if (!isGood) {
        load.textContent = `${codecName(flow.codec)}: ${player.error}`;
        return;
      }
      load.replaceWith(player.element);
      follow();
      media.redraw();
    });
  }, { class: "load" });
  box.append(load, caption);
  box.caption = caption;
  box.flow = flow;
  box.way = way;
  box.load = () => load.isConnected && load.click();
  return box;
}

function voice(flow) {
  const way = mediaOf(flow.received) ? flow.received : flow.sent;
  const box = make("input", { type: "checkbox", change: () => {
    if (box.checked) media.muted.delete(flow.id);
    else media.muted.add(flow.id);
    const player = playerOf(way);
    player.element.muted = !box.checked;
  } });
  box.checked = true;
  box.way = way;
  return make("label", {}, box, ` ${flow.name}`);
}

/** Whether the media of a way are here, and need not be asked for. */
export const isAtHand = (way) =>
  take.form !== "served" || Boolean(players.get(keyOf(way))?.isReady);

/** Loads what the section shows. */
export function loadMedia() {
  for (const box of media.section?.querySelectorAll(".screen") ?? []) box.load();
}

/** Shows what was seen at the cursor. */
function follow() {
  if (media.isPlaying || !media.section) return;
  const time = clock.cursor ?? (clock.from + clock.to) / 2;
  for (const box of media.section.querySelectorAll(".screen")) {
    const player = players.get(keyOf(box.way));
    if (player?.isReady) seek(player, time);
    tellFreeze(box, time);
  }
}

/** Says for how long a picture was all that was seen. */
function tellFreeze(box, time) {
  const frozen = box.way === box.flow.received
    && (take.freezes ?? []).find(([peer, track, from, to]) =>
    peer === box.way.peer && Number(track) === box.way.track && from <= time && time < to);
  box.classList.toggle("frozen", Boolean(frozen));
  box.caption.textContent = frozen
    ? `${box.flow.to} saw this for ${Math.round((frozen[3] - frozen[2]) * 1000)} ms`
    : captionOf(box);
}

/* ---- Playing ---- */

export async function togglePlaying() {
  if (media.isPlaying) {
    stop();
    return;
  }
  // Whoever asks again while media are loaded gets no second clock.
  if (media.isStarting) return;
  if (!media.section) {
    say("The page has no media");
    return;
  }
  media.isStarting = true;
  loadMedia();
  const audios = [...media.section.querySelectorAll("input")].filter((box) => box.checked)
    .map((box) => playerOf(box.way));
  const all = [...audios, ...[...media.section.querySelectorAll(".screen")].map((box) =>
    playerOf(box.way))]
    .filter(Boolean);
  await Promise.all(all.map((player) => player.loading));
  media.isStarting = false;
  const ready = all.filter((player) => player.isReady);
  if (!ready.length) {
    say(all[0]?.error ?? "Nothing can be played");
    return;
  }
  media.isPlaying = true;
  place("play").textContent = "❚❚ pause";
  media.startTime = clock.cursor ?? clock.from;
  if (media.startTime > take.seconds - 0.05) media.startTime = 0;
  media.startedAt = performance.now();
  media.playing = ready;
  for (const player of ready) seek(player, media.startTime);
  tick();
}

function stop() {
  media.isPlaying = false;
  cancelAnimationFrame(media.timer);
  for (const { element } of media.playing ?? []) element.pause();
  if (place("play")) place("play").textContent = "▶ play";
}

/** The clock of the page leads; players that fall behind are brought back. */
function tick() {
  const time = media.startTime + (performance.now() - media.startedAt) / 1000;
  if (time >= take.seconds) {
    stop();
    return;
  }
  for (const player of media.playing) {
    const { element, begin } = player;
    const at = time - begin;
    const isInside = at >= 0 && at < (element.duration || Infinity);
    if (isInside && element.paused && !element.ended) element.play().catch(() => {});
    if (!isInside && !element.paused) element.pause();
    if (isInside && Math.abs(element.currentTime - at) > 0.15
      && !element.seeking) element.currentTime = at;
  }
  if (time > clock.to || time < clock.from) {
    const length = clock.to - clock.from;
    show(time - length * 0.05, time + length * 0.95);
  }
  point(time, true);
  for (const box of media.section.querySelectorAll(".screen")) tellFreeze(box, time);
  media.timer = requestAnimationFrame(tick);
}

/** The time at which a loaded video stands, for tests. */
export const mediaTimes = () => [...players.values()].map(({ way, element, begin, isReady }) => ({
  key: keyOf(way), kind: way.kind, isReady, begin, time: element.currentTime + begin,
    end: begin + element.duration, isPlaying: !element.paused, width: element.videoWidth ?? 0,
}));
