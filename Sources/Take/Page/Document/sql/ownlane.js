// The result of a query as a lane.
import { curveLane, spanLane, tickLane } from "../lanes/kinds.js";

/** Columns for time and peer; the others are values. */
const placeColumns = ["peer", "at_ns", "from_ns", "to_ns"];

/**
 * A lane of spans, a curve or events, depending on the columns of a result.
 * @param {string} sql
 * @param {{columns: string[], rows: any[][]}} answer
 * @returns {Lane}
 */
export function ownLane(sql, { columns, rows }) {
  const place = (name) => columns.indexOf(name);
  const others = [...columns.keys()].filter((index) => !placeColumns.includes(columns[index]));
  const title = (row) =>
    others.map((index) => row[index]).filter((value) => value !== null).join(", ");
  const more = { label: "SQL", sql };
  if (place("from_ns") >= 0 && place("to_ns") >= 0) {
    return spanLane("SQL", rows.map((row) => ({
      from: row[place("from_ns")] / 1e9, to: row[place("to_ns")] / 1e9, text: title(row),
      tone: "data",
    })), more);
  }
  const at = place("at_ns");
  if (at < 0 || !others.length) {
    throw new Error("a lane needs the columns at_ns and a value, or from_ns, to_ns and a text");
  }
  const sorted = rows.filter((row) => typeof row[at] === "number").sort((a, b) => a[at] - b[at]);
  const times = Float64Array.from(sorted, (row) => row[at] / 1e9);
  const number = others.find((index) => sorted.every((row) => typeof row[index] === "number"));
  if (number === undefined || !sorted.length) {
    return tickLane("SQL", [{
      at: times, tone: "data", name: "row", text: (index) => title(sorted[index]),
    }], more);
  }
  return curveLane("SQL", columns[number], [{
    at: times, value: Float64Array.from(sorted, (row) => row[number]), tone: "data",
  }], more);
}
