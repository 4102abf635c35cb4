// The history of queries. The browser stores it for the address of this server, whose port changes
// each time unless `--port` is set.

const key = "retake.queries";
const most = 50;
const longest = 20_000;

/**
 * The history in the browser's storage, or in memory if storage is refused.
 * @param {Pick<Storage, "getItem" | "setItem" | "removeItem"> | undefined} storage
 */
export function createHistory(storage) {
  let queries = stored(storage);
  /** The index selected by keys; -1 is the typed text. */
  let at = -1;
  let typed = "";
  const keep = () => {
    try {
      if (queries.length) storage?.setItem(key, JSON.stringify(queries));
      else storage?.removeItem(key);
    } catch {
      // If the storage is full, it stays unchanged.
    }
  };
  return {
    /** All queries, newest first. */
    list: () => [...queries],

    /** Adds a query, or moves it to the front. */
    add(sql) {
      const text = sql.trim();
      at = -1;
      if (!text || text.length > longest) return;
      queries = [text, ...queries.filter((each) => each !== text)].slice(0, most);
      keep();
    },

    /** The query before or after the one shown; null if there is none. */
    step(by, shown) {
      if (at < 0) typed = shown;
      // If the newest query is still shown, the step skips it.
      const next = at < 0 && by > 0 && queries[0] === shown.trim() ? 1 : at + by;
      if (next < -1 || next >= queries.length) return null;
      at = next;
      return at < 0 ? typed : queries[at];
    },

    clear() {
      queries = [];
      at = -1;
      keep();
    },
  };
}

/** The stored queries, ignoring invalid contents of the storage. */
function stored(storage) {
  try {
    const list = JSON.parse(storage?.getItem(key) ?? "[]");
    return !Array.isArray(list) ? []
      : list.filter((each) => typeof each === "string").slice(0, most);
  } catch {
    return [];
  }
}
