// Measures how much of the page's time the recorder uses.

let depth = 0;
let begun = 0;
let total = 0;

/** Returns the time used since the page was loaded, in milliseconds. */
export function spent() {
  return total;
}

/**
 * Runs a part of the recorder; its errors never reach the page.
 * @template Value
 * @param {() => Value} work
 * @returns {Value | undefined}
 */
export function measured(work) {
  if (depth === 0) begun = performance.now();
  depth += 1;
  try {
    return work();
  } catch (error) {
    failures.count += 1;
    failures.last = String(error);
    return undefined;
  } finally {
    depth -= 1;
    if (depth === 0) total += performance.now() - begun;
  }
}

/** Adds time that was measured elsewhere. */
/** @param {number} milliseconds */
export function charge(milliseconds) {
  total += milliseconds;
}

/** The recorder's own errors. */
export const failures = { count: 0, last: "" };
