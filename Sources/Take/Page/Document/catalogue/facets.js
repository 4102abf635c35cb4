// The facets of a catalogue. Nothing here touches the document.

/**
 * Assigns a value to a band: the first one whose bound is greater.
 * @param {(entry: Entry) => number | undefined} value
 * @param {[name: string, below: number][]} bands
 * @returns {(entry: Entry) => string[]}
 */
const banded = (value, bands) => (entry) => {
  const found = value(entry);
  if (found === undefined || found === null) return [];
  return [(bands.find(([, below]) => found < below) ?? bands.at(-1))[0]];
};

/**
 * Bands of shares from 0 to 1, with the bounds that a take's cards use for loss and
 * concealment.
 */
const shares = [["none", 1e-9], ["below 1 %", 0.01], ["1 to 5 %", 0.05], ["5 % and more", Infinity]];

/**
 * The facets: each returns the values of a take, or an empty list if unknown.
 * @type {{id: string, name: string, values: (entry: Entry) => string[], order?: string[]}[]}
 */
export const facets = [
  { id: "finding", name: "Finding", values: ({ details }) => details?.facts?.findings
    ?? (details?.findings.worst ? [details.findings.worst] : []) },
  { id: "codec", name: "Codec", values: ({ details }) => details?.facts?.codecs ?? [] },
  banding("relay", "Path", ({ details }) => (details?.facts ? Number(details.facts.relay) : undefined),
    [["direct", 1], ["over a relay", Infinity]]),
  banding("loss", "Loss", ({ details }) => details?.facts?.loss_share, shares),
  banding("concealed", "Concealed", ({ details }) => details?.facts?.concealed_share, shares),
  banding("frozen", "Frozen", ({ details }) => details?.facts?.frozen_ns,
    [["never", 1], ["below 1 s", 1e9], ["1 s and more", Infinity]]),
  banding("trip", "Round trip", ({ details }) => details?.facts?.round_trip_ms,
    [["below 50 ms", 50], ["50 to 150 ms", 150], ["150 to 300 ms", 300],
      ["300 ms and more", Infinity]]),
  banding("length", "Length", ({ seconds }) => seconds,
    [["below 10 s", 10], ["10 s to 1 min", 60], ["1 to 10 min", 600], ["10 min and more", Infinity]]),
];

function banding(id, name, value, bands) {
  return { id, name, values: banded(value, bands), order: bands.map(([band]) => band) };
}

/**
 * Whether a take has one of the chosen values of each facet, and all words.
 * @param {Entry} entry
 * @param {Map<string, Set<string>>} chosen - values by the ids of facets
 * @param {string} [words]
 * @param {string} [except] - a facet to ignore
 */
export function matches(entry, chosen, words = "", except = "") {
  const text = [entry.name, entry.label, entry.peers, entry.details?.findings.worst,
    ...entry.details?.facts?.codecs ?? []].filter(Boolean).join(" ").toLowerCase();
  return words.toLowerCase().split(/\s+/).every((word) => text.includes(word))
    && facets.every(({ id, values }) => {
      const wanted = chosen.get(id);
      if (!wanted?.size || id === except) return true;
      return values(entry).some((value) => wanted.has(value));
    });
}

/**
 * The values of a facet, each with the number of takes that choosing it would leave, given the
 * choices in the other facets.
 * @returns {{value: string, count: number}[]}
 */
export function countsOf(facet, entries, chosen, words = "") {
  const counts = new Map((facet.order ?? []).map((value) => [value, 0]));
  for (const value of chosen.get(facet.id) ?? []) counts.set(value, 0);
  for (const entry of entries) {
    if (!matches(entry, chosen, words, facet.id)) continue;
    for (const value of facet.values(entry)) counts.set(value, (counts.get(value) ?? 0) + 1);
  }
  const found = [...counts].map(([value, count]) => ({ value, count }));
  if (!facet.order) found.sort((a, b) => b.count - a.count || (a.value < b.value ? -1 : 1));
  return found;
}

/** The choice as a part of an address, such as `codec=vp8,h264`. */
export const chosenText = (chosen) => Object.fromEntries([...chosen]
  .filter(([, values]) => values.size)
  .map(([id, values]) => [id, [...values].map(encodeURIComponent).join(",")]));

/**
 * The choice in an address; other parts are ignored.
 * @param {URLSearchParams} parts
 * @returns {Map<string, Set<string>>}
 */
export const chosenIn = (parts) => new Map(facets.map(({ id }) => [id,
  new Set((parts.get(id) ?? "").split(",").filter(Boolean).map(decoded))]));

/** Decodes a part of an address; malformed text stays as it is. */
function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
