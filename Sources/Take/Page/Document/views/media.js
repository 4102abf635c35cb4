// Audio and video synchronized with the cursor.
import { clock, onClock, point, show } from "../clock/clock.js";
import { announce, button, make, place } from "../shared/elements.js";
import { ask } from "../shared/server.js";
import { valuesThere } from "../take/reading.js";
import { codecName, take } from "../take/take.js";

/** Players by the key of their way. */
const players = new Map();

const media = {
  isPlaying: false,
  isStarting: false,
  muted: new Set(),
  timer: 0,
  /** When playing began, on the take's clock and on the browser's. */
  startTime: 0,
  startedAt: 0,
  playing: [],
  /** Redraws the lanes. */
  redraw: () => {},
  /** The section of the page; null without media. */
  section: null,
  /** The displayed videos: `{flow, way, box, caption, load}`. */
  screens: [],
  /** The check boxes for audio: `{way, box}`. */
  voices: [],
};

export const keyOf = ({ peer, direction, track, kind }) => `${peer} ${direction} ${track} ${kind}`;

/** The entry of a way in the list of media; undefined if it has none. */
export const mediaOf = (way) =>
  way && take.media?.find((entry) => keyOf(entry) === keyOf(way));

/** The time of the first frame in the file of a way. */
export function beginning(way) {
  const { frames } = way;
  const [size, flags] = [frames.column("size"), frames.column("flags")];
  const index = size.findIndex((bytes, at) => bytes > 0 && flags[at] >> 1 !== 4
    && (way.kind === "audio" || (flags[at] & 1) === 1));
  return index < 0 ? 0 : frames.at[index];
}

/** Loads the file of a way from the page or its server. */
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

/** Returns the player of a way, creating it if it is missing. */
function playerOf(way) {
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
          player.error = element.error?.message || "the browser cannot play this";
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

/** Seeks a player to a time of the take; of several requests during a seek, the last counts. */
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
  // Media in the page is loaded at once; a server's media is loaded on demand.
  if (take.form !== "served") setTimeout(loadMedia, 800);
  onClock("cursor", follow);
  onClock("view", follow);
}

/** The received video, beside the sent one if the take has both. */
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
  media.screens.push({ flow, way, box, caption, load });
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
  media.voices.push({ way, box });
  return make("label", {}, box, ` ${flow.name}`);
}

/** Whether the media of a way is loaded or embedded. */
export const isAtHand = (way) =>
  take.form !== "served" || Boolean(players.get(keyOf(way))?.isReady);

/** Loads the videos that still show a load button. */
function loadMedia() {
  for (const { load } of media.screens) if (load.isConnected) load.click();
}

/** While nothing plays, shows the frames at the cursor or in the middle of the visible part. */
function follow() {
  if (media.isPlaying || !media.section) return;
  const time = clock.cursor ?? (clock.from + clock.to) / 2;
  for (const screen of media.screens) {
    const player = players.get(keyOf(screen.way));
    if (player?.isReady) seek(player, time);
    describeFreeze(screen, time);
  }
}

/** Shows in a video's caption how long the freeze at a time lasts. */
function describeFreeze({ flow, way, box, caption }, time) {
  const frozen = way === flow.received
    && (take.freezes ?? []).find(([peer, track, from, to]) =>
      peer === way.peer && Number(track) === way.track && from <= time && time < to);
  box.classList.toggle("frozen", Boolean(frozen));
  caption.textContent = frozen
    ? `${flow.to} saw this for ${Math.round((frozen[3] - frozen[2]) * 1000)} ms`
    : captionOf({ flow, way });
}

export async function togglePlaying() {
  if (media.isPlaying) {
    stop();
    return;
  }
  // While media is loading, a second request must not start a second clock.
  if (media.isStarting) return;
  if (!media.section) {
    announce("The page has no media");
    return;
  }
  media.isStarting = true;
  loadMedia();
  const audios = media.voices.filter(({ box }) => box.checked);
  const all = [...audios, ...media.screens].map(({ way }) => playerOf(way)).filter(Boolean);
  await Promise.all(all.map((player) => player.loading));
  media.isStarting = false;
  const ready = all.filter((player) => player.isReady);
  if (!ready.length) {
    announce(all[0]?.error ?? "There is nothing to play");
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
  for (const { element } of media.playing) element.pause();
  if (place("play")) place("play").textContent = "▶ play";
}

/** Follows the clock of the page, correcting players that drift. */
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
  for (const screen of media.screens) describeFreeze(screen, time);
  media.timer = requestAnimationFrame(tick);
}

/** The positions of all players, for tests. */
export const mediaTimes = () => [...players.values()].map(({ way, element, begin, isReady }) => ({
  key: keyOf(way), kind: way.kind, isReady, begin, time: element.currentTime + begin,
    end: begin + element.duration, isPlaying: !element.paused, width: element.videoWidth ?? 0,
}));
