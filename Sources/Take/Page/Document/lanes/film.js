// Thumbnails of video along a lane, decoded by the browser.
import { make } from "../shared/elements.js";
import { beginning, blobOf, isAtHand, keyOf, mediaOf } from "../views/media.js";

/** The thumbnails of each way; they are kept when the lanes are rebuilt. */
const films = new Map();

/** A lane of video thumbnails, created by a separate player. */
export function filmLane(way, redrawn) {
  if (!mediaOf(way)) return null;
  const key = keyOf(way);
  if (!films.has(key)) films.set(key, { pictures: new Map(), queue: [], isBusy: false, width: 64 });
  const film = films.get(key);
  const height = 44;
  return {
    label: "seen", height, tone: "video",
    isWaiting: () => way.frames.isWaiting,
    draw({ context, width: all, from, to }) {
      if (way.frames.isWaiting) return;
      const { width } = film;
      // Requests made for another view are dropped.
      film.view = `${from} ${to} ${all}`;
      film.queue.length = 0;
      const step = width + 4;
      // How late a thumbnail may be without looking wrong between its neighbours.
      film.near = Math.max((step * (to - from)) / all / 4, latest);
      for (let left = 0; left < all; left += step) {
        const time = from + ((left + width / 2) / all) * (to - from);
        const place = Math.round(time * placesPerSecond);
        const picture = film.pictures.get(place)?.canvas
          ?? nearestPicture(film, place, (placesPerSecond * step * (to - from)) / (2 * all));
        // Video that has stood still for more than two seconds is drawn pale.
        const last = way.frames.before(time);
        context.globalAlpha = last < 0 ? 0 : time - way.frames.at[last] > 2 ? 0.2 : 1;
        if (picture) context.drawImage(picture, left, 0, width, height);
        context.globalAlpha = 1;
        if (!isGood(film, place) && time > way.frames.at[0]) film.queue.push([place, time]);
      }
      // A server's media is loaded only on demand.
      if (!isAtHand(way)) film.queue.length = 0;
      if (film.queue.length && !film.isBusy) makePictures(film, way, height, (wide) => {
        film.width = wide;
        redrawn();
      });
    },
    at: () => "",
  };
}

/** Whether a picture is near enough to its place for this view. */
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

/** The number of thumbnails that can be stored per second of the take. */
const placesPerSecond = 50;

const pictureMaximum = 400;

/** The number of thumbnails created before the queue is read again. */
const pictureBatch = 60;

/** The distance from a key frame beyond which playing is faster than seeking. */
const framesToSeek = 150;

const quickRate = 16;

/** The minimum rate at which browsers report displayed frames, per second. */
const callsPerSecond = 30;

/** The tolerance for the time of a thumbnail, in seconds. */
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
    // A player that failed to load is not retried here.
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
    // After its end, a video shows its last frame.
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
      // If playback made no progress, seek instead.
      if (wanted.length === length) pace.isLate = true;
    }
  }
  film.isBusy = false;
  redrawn(wide);
}

/** The number of frames that a decoder has to process from a key frame to a time. */
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
 * Plays a video fast across the wanted times and stores the displayed frames. If the decoder skips
 * too many frames, seeks once and then plays slower.
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
      // The shown frame may be later than the reported one.
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
    // Times after the end are reached by seeking.
    element.addEventListener("ended", done, { once: true, signal: over.signal });
    element.play().catch(() => {
      wanted.length = 0;
      done();
    });
  });
  over.abort();
  element.pause();
}

/** Whether thumbnails are being created. */
export const isFilming = () => [...films.values()].some(({ isBusy, queue }) =>
  isBusy || queue.length > 0);

/** The thumbnails on lanes, with the requested and actual time of each. */
export const seenPictures = () => [...films].flatMap(([key, { pictures }]) =>
  [...pictures].map(([place, { canvas, shown }]) =>
    ({ key, time: place / placesPerSecond, shown, canvas })));
