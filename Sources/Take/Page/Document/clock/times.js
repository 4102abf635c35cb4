// Formatted times, and round times for an axis.
import { clock } from "./clock.js";
import { take } from "../take/take.js";

/** The number of decimals that distinguish times a step apart. */
export const decimals = (step) => Math.min(Math.max(Math.ceil(-Math.log10(step)), 0), 5);

/** Formats a time with the decimals that a step needs. */
export function timeText(seconds, step = 0.001) {
  const places = decimals(step);
  if (clock.isWall) {
    const wall = new Date(Date.parse(take.start) + seconds * 1000);
    if (!Number.isNaN(wall.getTime())) {
      const text = wall.toISOString().slice(11, places ? 20 + Math.min(places, 3) : 19);
      return text.replace(/\.$/, "");
    }
  }
  if (take.seconds < 120) return `${seconds.toFixed(places)} s`;
  const whole = Math.floor(seconds + 1e-9);
  const hours = Math.floor(whole / 3600);
  const minutes = Math.floor((whole % 3600) / 60);
  const rest = (seconds - hours * 3600 - minutes * 60).toFixed(places);
  const two = (text) => (text.split(".")[0].length < 2 ? `0${text}` : text);
  return hours ? `${hours}:${two(String(minutes))}:${two(rest)}` : `${minutes}:${two(rest)}`;
}

/** About `count` round numbers in a range. */
export function ticks(from, to, count) {
  const rough = (to - from) / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  let choices = [1, 2, 5, 10].map((each) => each * power);
  if (rough > 8) choices = [10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 18000, 36000];
  const step = choices.find((each) => each >= rough) ?? choices.at(-1);
  const found = [];
  for (let at = Math.ceil(from / step) * step; at <= to + step / 1e6; at += step) {
    found.push(Number(at.toPrecision(12)));
  }
  return { step, at: found };
}
