/** Whole numbers that are the same in every run (Park, Miller 1988). */
export function generator(seed) {
  let state = seed;
  return () => (state = (state * 48271) % 2147483647);
}

/** Encodes a column's numbers: zigzag varints, of the differences if the coding is 1. */
export function column(values, coding = 0) {
  const bytes = [];
  let last = 0;
  for (const value of values) {
    const number = coding ? value - last : value;
    last = value;
    let rest = number < 0 ? -2 * number - 1 : 2 * number;
    while (rest > 127) {
      bytes.push((rest % 128) + 128);
      rest = Math.floor(rest / 128);
    }
    bytes.push(rest);
  }
  return bytes;
}

/** Returns the facts and bytes of a series with some columns; times are in 10 µs. */
export function seriesOfColumns(facts, columns) {
  const bytes = [];
  const places = {};
  for (const [name, values] of Object.entries(columns)) {
    const coded = column(values, name === "at" ? 1 : 0);
    places[name] = [bytes.length, coded.length, name === "at" ? 1 : 0];
    bytes.push(...coded);
  }
  return [
    { ...facts, count: columns.at.length, columns: places }, Uint8Array.from(bytes),
  ];
}
