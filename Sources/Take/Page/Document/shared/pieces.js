// Splits long work into pieces of a few milliseconds, so that navigation never waits for it.

/** The minimum duration of a piece, in milliseconds. */
const pieceMilliseconds = 4;

/** The longest wait for an idle browser, in milliseconds. */
const patience = 100;

/** How long work waits after the last movement, and at most in total, in milliseconds. */
const restMilliseconds = 150;

const longestRest = 3000;

let movedAt = -Infinity;

/** Records that the view is moving now. */
export const recordMove = () => { movedAt = performance.now(); };

let workBefore = Promise.resolve();

/** Runs generators to completion, one at a time, while the browser is idle. */
export function inPieces(work) {
  const result = workBefore.then(() => new Promise((done, fail) => {
    let restedAt = performance.now();
    const go = (deadline) => {
      const now = performance.now();
      if (now - movedAt < restMilliseconds && now - restedAt < longestRest) {
        setTimeout(() => requestIdleCallback(go, { timeout: patience }), restMilliseconds / 3);
        return;
      }
      const free = Math.min(deadline.timeRemaining() - 1, 2 * pieceMilliseconds);
      const end = now + Math.max(free, pieceMilliseconds);
      try {
        let step;
        do step = work.next();
        while (!step.done && performance.now() < end);
        // Work that has waited too long continues even while the view is moving.
        if (now - movedAt >= restMilliseconds) restedAt = now;
        if (step.done) done(step.value);
        else requestIdleCallback(go, { timeout: patience });
      } catch (error) {
        fail(error);
      }
    };
    requestIdleCallback(go, { timeout: patience });
  }));
  workBefore = result.catch(() => {});
  return result;
}
