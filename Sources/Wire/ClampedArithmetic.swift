extension FixedWidthInteger {
  /// The sum; the nearest end of the range where it does not fit.
  ///
  /// For counts and times that files and packets state: whoever writes those may write any number.
  @inlinable
  package func addingClamped(_ other: Self) -> Self {
    let (sum, overflow) = addingReportingOverflow(other)
    return overflow ? (other < 0 ? .min : .max) : sum
  }

  /// The difference; the nearest end of the range where it does not fit.
  @inlinable
  package func subtractingClamped(_ other: Self) -> Self {
    let (difference, overflow) = subtractingReportingOverflow(other)
    return overflow ? (other < 0 ? .max : .min) : difference
  }
}
