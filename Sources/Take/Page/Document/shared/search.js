// Binary search in sorted values.

/** The index of the first sorted value greater than a limit. */
export function upperBound(values, limit, low = 0, high = values.length) {
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] <= limit) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The index of the first sorted value not less than a limit. */
export function lowerBound(values, limit, low = 0, high = values.length) {
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] < limit) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Like `lowerBound`, for a limit shortly after `low`. */
export function nextBound(values, limit, low, end = values.length) {
  let step = 16;
  let begin = low;
  while (begin + step < end && values[begin + step] < limit) {
    begin += step;
    step *= 2;
  }
  return lowerBound(values, limit, begin, Math.min(begin + step, end));
}
