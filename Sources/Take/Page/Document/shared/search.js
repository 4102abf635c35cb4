// Binary search in sorted values.

/** The place of the first of sorted values that is more than a limit. */
export function upperBound(values, limit, low = 0, high = values.length) {
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] <= limit) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The place of the first of sorted values that is a limit or more. */
export function lowerBound(values, limit, low = 0, high = values.length) {
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] < limit) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The same as `lowerBound` for a limit that lies little beyond `low`. */
export function nextBound(values, limit, low, end = values.length) {
  let step = 16;
  let begin = low;
  while (begin + step < end && values[begin + step] < limit) {
    begin += step;
    step *= 2;
  }
  return lowerBound(values, limit, begin, Math.min(begin + step, end));
}
