// Replaces and observes the browser's own functions before other scripts can replace them.
import { measured } from "./cost.js";
import { reason } from "./values.js";

/**
 * Replaces a function with one that calls it and has the same name and length.
 * @param {any} object
 * @param {string} name
 * @param {(native: (...values: any[]) => any) => (this: any, ...values: any[]) => any} make
 */
export function replace(object, name, make) {
  const property = object && Object.getOwnPropertyDescriptor(object, name);
  const native = property?.value;
  if (typeof native !== "function" || !property.configurable) return;
  const made = make(native);
  Object.defineProperty(made, "name", { value: native.name, configurable: true });
  Object.defineProperty(made, "length", { value: native.length, configurable: true });
  Object.defineProperty(object, name, { ...property, value: made });
}

/**
 * Observes a function's calls with their arguments and results.
 *
 * Functions that return promises may also be called with callbacks, an older form of the API.
 * @template Entry
 * @param {any} object
 * @param {string} name
 * @param {{
 *   begin: (self: any, values: any[]) => Entry,
 *   succeed?: (entry: Entry, result: any, self: any) => void,
 *   fail?: (entry: Entry, why: string) => void,
 * }} observer
 */
export function observe(object, name, observer) {
  replace(object, name, (native) => function (...values) {
    const entry = measured(() => observer.begin(this, values));
    if (entry === undefined) return native.apply(this, values);
    const self = this;
    /** @param {any} result */
    const succeed = (result) => measured(() => observer.succeed?.(entry, result, self));
    /** @param {any} error */
    const fail = (error) => measured(() => observer.fail?.(entry, reason(error)));
    const first = values.findIndex((each) => typeof each === "function");
    let given = values;
    if (first >= 0 && observer.succeed) {
      given = values.map((each, place) => typeof each !== "function" ? each
        : /** @param {any[]} results */ function (...results) {
          (place === first ? succeed : fail)(results[0]);
          return each.apply(this, results);
        });
    }
    let result;
    try {
      result = native.apply(this, given);
    } catch (error) {
      fail(error);
      throw error;
    }
    if (first >= 0 || !observer.succeed) return result;
    if (!(result instanceof Promise)) {
      succeed(result);
      return result;
    }
    // Return the chained promise, so that a rejection the page does not handle is still reported.
    return result.then(
      (value) => {
        succeed(value);
        return value;
      },
      (error) => {
        fail(error);
        throw error;
      });
  });
}

/**
 * Observes an object's event.
 * @param {EventTarget | null | undefined} target
 * @param {string} name
 * @param {(event: any) => void} use
 */
export function listen(target, name, use) {
  target?.addEventListener(name, (event) => {
    measured(() => use(event));
  });
}
