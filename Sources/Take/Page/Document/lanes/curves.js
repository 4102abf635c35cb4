// Curves and spans of the take as lanes.
import { grid } from "./draw.js";
import { curveLane, stillToCome } from "./kinds.js";
import { readPeaks } from "../measures/peaks.js";
import { inPieces } from "../shared/pieces.js";
import { finished, manyAtOnce, once } from "../take/columns.js";
import { seriesOf, take } from "../take/take.js";

/**
 * The curves of a kind for some streams, in their display unit.
 * @param {string} name
 * @param {{peer: number, direction?: string, ssrcs?: Set<number>}} streams
 * @param {string} tone
 * @returns {Curve[]}
 */
export function curvesOf(name, { peer, direction, ssrcs }, tone, more = {}) {
  return seriesOf("curve", { of: name, peer })
    .filter((series) => (direction === undefined || series.direction === direction)
      && (!ssrcs || ssrcs.has(Number(series.ssrc))))
    .map((series) => ({ at: series.at, value: parted(series, series.divisor), tone, ...more }));
}

/** The values of a series divided by a divisor; the result is kept when the lanes are rebuilt. */
export const parted = (series, divisor) => once(series.derived, `parts ${divisor}`, () =>
  series.column("value").map((value) => value / divisor));

/**
 * The rows of a table of spans that satisfy a test.
 * @param {string} name
 * @param {(row: Spell) => boolean} test
 * @param {string | ((text: string, subject: string) => string)} [tone]
 * @returns {Span[]}
 */
export const spansOf = (name, test, tone) =>
  (take[name] ?? []).filter(test).map(([, subject, from, to, text]) => ({
    from, to, text, subject, tone: typeof tone === "function" ? tone(text, subject) : tone,
  }));

/** Keys of the curves that have been computed already. */
const prepared = new Set();

let whenPrepared = () => {};

/** Sets the listener that is called when a visible curve has been computed. */
export const onPrepared = (listener) => { whenPrepared = listener; };

/** A curve that is computed in pieces when it first becomes visible. */
export function lazyCurve(label, unit, flow, read, tone, more) {
  let lane;
  let isAsked = false;
  const key = `${flow.id} ${label}`;
  const sources = [flow.sent, flow.received].filter(Boolean).flatMap((way) =>
    [way.frames, ...way.packets]).filter(Boolean);
  const isWaiting = () => sources.some((series) => series.isWaiting);
  function* prepare() {
    if (lane || !sources.every((series) => series.isRead)) return;
    const values = yield* read();
    for (const sign of [1, -1]) yield* readPeaks(values.value, sign);
    prepared.add(key);
    lane = curveLane(label, unit, [{ ...values, tone }], { height: 30 });
  }
  const isSmall = sources.every((series) => series.count <= manyAtOnce);
  const whole = () => {
    if (isWaiting()) return undefined;
    if (isSmall || prepared.has(key)) finished(prepare());
    return lane;
  };
  return {
    label, unit, height: 30, tone, prepare, isWaiting,
    draw(view) {
      if (whole()) {
        lane.draw(view);
        return;
      }
      grid(view);
      if (isAsked || isWaiting()) return;
      isAsked = true;
      inPieces(prepare()).then(whenPrepared);
    },
    at: (time) => (isWaiting() ? stillToCome : whole()?.at(time) ?? ""),
    ...more,
  };
}
