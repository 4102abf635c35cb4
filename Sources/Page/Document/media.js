// Audio and video of the take, played in step with the cursor: the browser decodes what the take
// has.
import { button, make, place, say } from "./basics.js";
import { clock, onClock, point, show } from "./clock.js";
import { ask } from "./server.js";
import { codecName, take } from "./take.js";

/** What can be played: a player for each direction of a track. */
const players = new Map();
const media = { isPlaying: false, muted: new Set(), timer: 0 };

const keyOf = ({ peer, direction, track, kind }) => `${peer} ${direction} ${track} ${kind}`;

/** What the page has of the media of a way, or its server. */
export const mediaOf = (way) =>
  way && take.media?.find((entry) => keyOf(entry) === keyOf(way));

/** The first frame that a file begins with, by the frames of the way. */
function beginning(way) {
  const { frames } = way;
  const [size, flags] = [frames.column("size"), frames.column("flags")];
  const index = size.findIndex((bytes, at) => bytes > 0 && flags[at] >> 1 !== 4
    && (way.kind === "audio" || (flags[at] & 1) === 1));
  return index < 0 ? 0 : frames.at[index];
}

async function blobOf(way) {
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
    const player = { way, element, begin: beginning(way), isReady: false, wanted: null };
    players.set(key, player);
    player.loading = blobOf(way).then((blob) => {
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

/* ---- Pictures along a lane ---- */

/** The pictures of each way, which stay when lanes are made anew. */
const films = new Map();

/** A lane with small pictures of what was seen, made by a player of its own. */
export function filmLane(way, redrawn) {
  if (!mediaOf(way)) return null;
  const key = keyOf(way);
  if (!films.has(key)) films.set(key, { pictures: new Map(), queue: [], isBusy: false, width: 64 });
  const film = films.get(key);
  // A server is asked for media only when somebody wants to see them.
  const isAtHand = () => take.form !== "served" || players.get(key)?.isReady;
  const height = 44;
  return {
    label: "seen", height, tone: "video",
    draw({ context, width: all, from, to }) {
      const { width } = film;
      // What was wanted for another view is not waited for.
      film.view = `${from} ${to} ${all}`;
      film.queue.length = 0;
      const step = width + 4;
      // A picture may be as late as is not seen between its neighbours.
      film.near = Math.max((step * (to - from)) / all / 4, latest);
      for (let left = 0; left < all; left += step) {
        const time = from + ((left + width / 2) / all) * (to - from);
        const place = Math.round(time * placesPerSecond);
        const picture = film.pictures.get(place)?.canvas
          ?? nearestPicture(film, place, (placesPerSecond * step * (to - from)) / (2 * all));
        // Long after the last frame its picture is only what may still have been seen.
        const last = way.frames.before(time);
        context.globalAlpha = last < 0 ? 0 : time - way.frames.at[last] > 2 ? 0.2 : 1;
        if (picture) context.drawImage(picture, left, 0, width, height);
        context.globalAlpha = 1;
        if (!isGood(film, place) && time > way.frames.at[0]) film.queue.push([place, time]);
      }
      if (!isAtHand()) film.queue.length = 0;
      if (film.queue.length && !film.isBusy) makePictures(film, way, height, (wide) => {
        film.width = wide;
        redrawn();
      });
    },
    at: () => "",
  };
}

/** Whether there is a picture for a place that is near enough to it for what is in sight. */
function isGood(film, place) {
  const picture = film.pictures.get(place);
  return Boolean(picture) && (picture.isLast
    || picture.shown - place / placesPerSecond < film.near + 1 / placesPerSecond);
}

function nearestPicture(film, key, most) {
  let best = null;
  let distance = most;
  for (const [each, { canvas }] of film.pictures) {
    if (Math.abs(each - key) < distance) {
      distance = Math.abs(each - key);
      best = canvas;
    }
  }
  return best;
}

/** Pictures are kept by their time in so many parts of a second. */
const placesPerSecond = 50;
const pictureMaximum = 400;
/** How many pictures are made before others that are wanted by then. */
const pictureBatch = 60;
/** A picture that so many frames lead to is waited for while the video runs, not sought. */
const framesToSeek = 40;
const quickRate = 16;
/** How often a browser tells at least of the frames that it shows. */
const callsPerSecond = 30;
/** By how much a picture may be late at least, in seconds. */
const latest = 0.04;

async function makePictures(film, way, height, redrawn) {
  film.isBusy = true;
  if (!film.player) {
    const blob = await blobOf(way).catch(() => null);
    const element = make("video", { muted: true, preload: "auto" });
    element.muted = true;
    const isGood = blob && await new Promise((done) => {
      element.addEventListener("loadeddata", () => done(true), { once: true });
      element.addEventListener("error", () => done(false), { once: true });
      element.src = URL.createObjectURL(blob);
    });
    // Once it failed it is not tried again.
    if (!isGood) return;
    film.player = { element, begin: beginning(way) };
  }
  const { element, begin } = film.player;
  const wide = Math.max(24, Math.round((height * element.videoWidth) / element.videoHeight));
  const keep = (key, shown, isLast = false) => {
    const canvas = make("canvas", { width: wide * 2, height: height * 2 });
    canvas.getContext("2d").drawImage(element, 0, 0, wide * 2, height * 2);
    film.pictures.set(key, { canvas, shown: shown + begin, isLast });
    if (film.pictures.size > pictureMaximum) {
      film.pictures.delete(film.pictures.keys().next().value);
    }
    redrawn(wide);
  };
  const wanted = film.queue.splice(0).filter(([key]) => !isGood(film, key))
    .sort((a, b) => a[1] - b[1]).slice(0, pictureBatch)
    .map(([key, time]) => [key, Math.max(time - begin, 0)]);
  const { view, near } = film;
  const isStale = () => film.view !== view;
  const pace = { rate: Math.max(Math.min(quickRate, near * callsPerSecond), 1), isLate: false };
  const end = (element.duration || Infinity) - latest;
  while (wanted.length && !isStale()) {
    const [[key, time]] = wanted;
    // After the end of the video its last frame stays.
    const at = Math.min(time, end);
    if (pace.isLate || time > end || framesBefore(way, at + begin) < framesToSeek
      || !element.requestVideoFrameCallback) {
      await seekTo(element, at);
      keep(key, at, time > end);
      wanted.shift();
      pace.isLate = false;
    } else {
      const { length } = wanted;
      await runOver(element, wanted, { keep, pace, near, isStale });
      // Whatever kept it from going on does not keep it for ever.
      if (wanted.length === length) pace.isLate = true;
    }
  }
  film.isBusy = false;
  redrawn(wide);
}

/** How many frames a decoder has to go through from a key frame on to a time. */
function framesBefore(way, time) {
  const flags = way.frames.column("flags");
  const last = way.frames.before(time);
  for (let index = last; index >= 0 && last - index < framesToSeek; index -= 1) {
    if (flags[index] & 1) return last - index;
  }
  return framesToSeek;
}

const seekTo = (element, at) => new Promise((done) => {
  element.addEventListener("seeked", done, { once: true });
  element.currentTime = at;
});

/**
 * Runs a video quickly over the times that are wanted, and keeps what it shows then. A decoder that
 * leaves out so much that another picture would be shown for one is sought once, and run slower.
 */
async function runOver(element, wanted, { keep, pace, near, isStale }) {
  if (element.currentTime > wanted[0][1] || element.ended) await seekTo(element, wanted[0][1]);
  element.playbackRate = pace.rate;
  const over = new AbortController();
  await new Promise((done) => {
    const look = (_, { mediaTime }) => {
      if (isStale()) {
        done();
        return;
      }
      // When this is called, what is shown may have gone on.
      const shown = Math.max(mediaTime, element.currentTime);
      while (wanted.length && wanted[0][1] <= shown + latest / 2) {
        if (shown - wanted[0][1] > near) {
          pace.isLate = true;
          pace.rate = Math.max(pace.rate / 2, 1);
          done();
          return;
        }
        keep(wanted.shift()[0], shown);
      }
      if (wanted.length && !element.ended) element.requestVideoFrameCallback(look);
      else done();
    };
    element.requestVideoFrameCallback(look);
    // What is wanted after the end is sought there.
    element.addEventListener("ended", done, { once: true, signal: over.signal });
    element.play().catch(() => {
      wanted.length = 0;
      done();
    });
  });
  over.abort();
  element.pause();
}

/** Whether pictures for lanes are being made. */
export const isFilming = () => [...films.values()].some(({ isBusy, queue }) =>
  isBusy || queue.length > 0);

/** The pictures that stand on lanes: for which time each was made, and which one it shows. */
export const seenPictures = () => [...films].flatMap(([key, { pictures }]) =>
  [...pictures].map(([place, { canvas, shown }]) =>
    ({ key, time: place / placesPerSecond, shown, canvas })));

/** The time at which a loaded video stands, for tests. */
export const mediaTimes = () => [...players.values()].map(({ way, element, begin, isReady }) => ({
  key: keyOf(way), kind: way.kind, isReady, begin, time: element.currentTime + begin,
    end: begin + element.duration, isPlaying: !element.paused, width: element.videoWidth ?? 0,
}));
