// Session descriptions (SDP) in messages: their sections, and differences between two.

/** Parses a message as JSON; undefined when it is something else. */
export function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The maximum depth of a description in a message: servers wrap it in objects of their own. */
const deepest = 4;

/** The description within a value: in its member `sdp`, or as a string. */
function descriptionIn(value, depth = 0) {
  if (typeof value === "string") return /^v=0\r?\n/.test(value) ? value : null;
  if (typeof value !== "object" || value === null || depth > deepest) return null;
  if (typeof value.sdp === "string" && value.sdp.startsWith("v=")) return value.sdp;
  for (const each of Object.values(value).slice(0, 50)) {
    const found = descriptionIn(each, depth + 1);
    if (found) return found;
  }
  return null;
}

/** The description in a message, which is the message itself or part of its JSON. */
export function description(row) {
  const text = row?.message ?? "";
  return text.startsWith("v=") ? text : descriptionIn(parsed(text));
}

/** Splits a description into the session part and media sections. */
export function sectionsOf(sdp) {
  const found = [{ kind: "session", title: "Session", lines: [] }];
  for (const line of sdp.split(/\r?\n/)) {
    if (!line) continue;
    if (line.startsWith("m=")) {
      found.push({ kind: line.slice(2).split(" ")[0], title: line, lines: [] });
    }
    const section = found.at(-1);
    section.lines.push(line);
    if (line.startsWith("a=mid:")) section.mid = line.slice(6);
  }
  return found;
}

/**
 * Compares two lists of lines: each is `same`, `added` or `gone`, with the fewest changes.
 *
 * In very long descriptions, a line is only looked for in the other description.
 */
export function differences(before, after) {
  // Most descriptions are short enough for the quadratic algorithm.
  const [rows, columns] = [before.length, after.length];
  if (rows * columns > 250_000) return after.map((line) =>
    ({ line, change: before.includes(line) ? "same" : "added" }));
  const common = Array.from({ length: rows + 1 }, () => new Uint16Array(columns + 1));
  for (let row = rows - 1; row >= 0; row -= 1) {
    for (let column = columns - 1; column >= 0; column -= 1) {
      common[row][column] = before[row] === after[column] ? common[row + 1][column + 1] + 1
        : Math.max(common[row + 1][column], common[row][column + 1]);
    }
  }
  const found = [];
  let [row, column] = [0, 0];
  while (row < rows || column < columns) {
    if (row < rows && column < columns && before[row] === after[column]) {
      found.push({ line: after[column], change: "same" });
      row += 1;
      column += 1;
    } else if (column >= columns || (row < rows
      && common[row + 1][column] >= common[row][column + 1])) {
      found.push({ line: before[row], change: "gone" });
      row += 1;
    } else {
      found.push({ line: after[column], change: "added" });
      column += 1;
    }
  }
  return found;
}

/** The direction of a section, or its rejection (RFC 9429 section 5.3.1). */
export function wayOf({ kind, title, lines }) {
  if (/^m=\S+ 0 /.test(title) && !lines.includes("a=bundle-only")) return "rejected";
  if (kind === "application") return "";
  return lines.map((line) => /^a=(sendrecv|sendonly|recvonly|inactive)$/.exec(line)?.[1])
    .find(Boolean) ?? "";
}

/** The types of candidates in words (RFC 8445 section 5.1.1). */
export const candidateTypes = { host: "local address", srflx: "seen by a STUN server",
  prflx: "seen by the peer", relay: "on a relay" };
