// Long work in pieces, so that nobody who moves through the page waits for it.

/** How long a piece may take where nothing tells how much time there is, in milliseconds. */
const pieceMilliseconds = 4;

/** The longest wait for time that nobody else needs. */
const patience = 200;

let workBefore = Promise.resolve();

/** Does what generators have to do, one after the other, while nothing else is to do. */
export function inPieces(work) {
  const result = workBefore.then(() => new Promise((done, fail) => {
    const go = (deadline) => {
      const free = Math.min(deadline.timeRemaining() - 1, 2 * pieceMilliseconds);
      const end = performance.now() + Math.max(free, pieceMilliseconds);
      try {
        let step;
        do step = work.next();
        while (!step.done && performance.now() < end);
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
