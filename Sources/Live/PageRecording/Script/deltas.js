// Computes the changes between two getStats reports; the recorder restores the reports from them.

/**
 * Converts a report to plain objects by id.
 * @param {{ forEach: (each: (object: any, id: string) => void) => void }} report
 * @returns {Statistics}
 */
export function objectsOf(report) {
  /** @type {Statistics} */
  const objects = {};
  report.forEach((object, id) => {
    /** @type {Record<string, any>} */
    const copy = {};
    for (const name in object) copy[name] = object[name];
    delete copy.id;
    objects[String(id)] = copy;
  });
  return objects;
}

/** @param {any} one @param {any} other */
function isSame(one, other) {
  if (one === other) return true;
  if (typeof one !== "object" || typeof other !== "object") return false;
  return JSON.stringify(one) === JSON.stringify(other);
}

/** Returns the time that most objects share: the connection's, or else the latest local one. */
/** @param {Statistics} objects */
function sharedTime(objects) {
  let latest = 0;
  for (const id in objects) {
    const { type, timestamp } = objects[id];
    if (type === "peer-connection" || type === "transport") return timestamp;
    const isOwn = type === "remote-candidate" || !String(type).startsWith("remote-");
    if (isOwn && timestamp > latest) latest = timestamp;
  }
  return latest;
}

/**
 * Returns the parts of a report that differ from the previous one.
 *
 * A member that vanished cannot be expressed as a change: then the complete report is returned.
 * @param {Statistics | null} before
 * @param {Statistics} now
 */
export function changes(before, now) {
  const timestamp = sharedTime(now);
  /** @type {Record<string, any>} */
  const objects = {};
  if (before === null) return whole(now, timestamp);
  for (const id in now) {
    const old = before[id];
    const object = now[id];
    if (old === undefined) {
      objects[id] = stamped(object, object, timestamp);
      continue;
    }
    /** @type {Record<string, any>} */
    const changed = {};
    let isChanged = false;
    for (const name in object) {
      if (name === "timestamp" || isSame(object[name], old[name])) continue;
      changed[name] = object[name];
      isChanged = true;
    }
    for (const name in old) if (!(name in object)) return whole(now, timestamp);
    const hasOwnTime = object.timestamp !== timestamp && object.timestamp !== old.timestamp;
    if (isChanged || hasOwnTime) objects[id] = stamped(changed, object, timestamp);
  }
  for (const id in before) if (!(id in now)) objects[id] = null;
  return { form: "changes", timestamp, objects };
}

/** @param {Statistics} now @param {number} timestamp */
function whole(now, timestamp) {
  /** @type {Record<string, any>} */
  const objects = {};
  for (const id in now) objects[id] = stamped(now[id], now[id], timestamp);
  return { form: "whole", timestamp, objects };
}

/**
 * Returns an object's members, with its time only if that differs from the report's.
 * @param {Record<string, any>} members
 * @param {Record<string, any>} object
 * @param {number} timestamp
 */
function stamped(members, object, timestamp) {
  const { timestamp: _, ...rest } = members;
  return object.timestamp === timestamp ? rest : { ...rest, timestamp: object.timestamp };
}
