// Formatted numbers and times. Nothing here touches the document.

/** A number with significant digits, and thin spaces between thousands. */
export function digits(value, significant = 3) {
  if (!Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  const places = size >= 1 ? Math.max(0, significant - 1 - Math.floor(Math.log10(size)))
    : significant;
  const text = Number(value.toFixed(Math.min(places, 6))).toString();
  return size >= 10000 ? text.replace(/\B(?=(\d{3})+(?!\d))/g, "\u202f") : text;
}

/** A duration: `346 ms`, `2.4 s`, `12 min 5 s`. */
export function duration(seconds) {
  if (!Number.isFinite(seconds)) return "–";
  if (seconds < 1) return `${digits(seconds * 1000, seconds < 0.01 ? 2 : 3)}\u00a0ms`;
  if (seconds < 120) return `${digits(seconds, 3)}\u00a0s`;
  const whole = Math.round(seconds);
  if (whole < 7200) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  const minutes = Math.round(seconds / 60);
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/** A bit rate: `85 kbit/s`, `1.25 Mbit/s`. */
export const bitRate = (perSecond) =>
  perSecond >= 1e6 ? `${digits(perSecond / 1e6)}\u00a0Mbit/s`
    : `${digits(perSecond / 1e3)}\u00a0kbit/s`;

/** Bytes: `812 B`, `1.2 MB`. */
export function byteCount(bytes) {
  if (bytes < 1000) return `${bytes}\u00a0B`;
  return bytes < 1e6 ? `${digits(bytes / 1e3)}\u00a0kB` : `${digits(bytes / 1e6)}\u00a0MB`;
}

export const percent = (share) => `${digits(100 * share, share < 0.1 ? 2 : 3)}\u00a0%`;

/** `1 packet`, `3 packets`. */
export const counted = (count, noun, nouns = `${noun}s`) =>
  `${digits(count, 9)} ${count === 1 ? noun : nouns}`;

/** A word, quoted for a shell if necessary. */
export const shellWord = (word) =>
  /^[\w./:@%+=-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;

/** `caller's`, `the Smiths'`. */
export const possessive = (name) => `${name}${name.endsWith("s") ? "'" : "'s"}`;
