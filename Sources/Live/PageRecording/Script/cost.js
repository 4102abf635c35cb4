// How much of the page's time the recorder takes: every entrance into it is measured.

let depth = 0;
let begun = 0;
let total = 0;

/** The time that was taken since the page was loaded, in milliseconds. */
export function spent() {
  return total;
}

/**
 * Runs a part of the recorder. What goes wrong in it never reaches the page.
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

/** What went wrong in the recorder itself. */
export const failures = { count: 0, last: "" };
