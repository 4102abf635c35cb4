// Long work in pieces, so that nobody who moves through the page waits for it.

/** How long a piece may take where nothing tells how much time there is, in milliseconds. */
const pieceMilliseconds = 4;

/** The longest wait for time that nobody else needs. */
const patience = 100;

/** Whoever moves goes on moving for so long; work waits for that, but not for ever. */
const restMilliseconds = 150;
const longestRest = 3000;

let movedAt = -Infinity;

/** Tells that somebody moves through the page. */
export const noteMove = () => { movedAt = performance.now(); };

let workBefore = Promise.resolve();

/** Does what generators have to do, one after the other, while nothing else is to do. */
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
        // Work that waited for too long goes on until nobody moves.
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
