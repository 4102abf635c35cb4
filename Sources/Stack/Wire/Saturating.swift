// Arithmetic on numbers that a file or the network gives: what does not fit is the largest or the
// smallest number instead of a trap. Numbers that stand for more than a quantity (sequence numbers,
// checksums) wrap with Swift's own `&+`.

infix operator +| : AdditionPrecedence
infix operator -| : AdditionPrecedence
infix operator *| : MultiplicationPrecedence
infix operator +|= : AssignmentPrecedence

extension FixedWidthInteger {
  /// The sum, or the nearest number that fits.
  @inlinable
  package static func +| (left: Self, right: Self) -> Self {
    let (sum, overflow) = left.addingReportingOverflow(right)
    return overflow ? (right < 0 ? .min : .max) : sum
  }

  /// The difference, or the nearest number that fits.
  @inlinable
  package static func -| (left: Self, right: Self) -> Self {
    let (difference, overflow) = left.subtractingReportingOverflow(right)
    return overflow ? (right < 0 ? .max : .min) : difference
  }

  /// The product, or the nearest number that fits.
  @inlinable
  package static func *| (left: Self, right: Self) -> Self {
    let (product, overflow) = left.multipliedReportingOverflow(by: right)
    return overflow ? ((left < 0) == (right < 0) ? .max : .min) : product
  }

  /// Adds a number, up to the nearest sum that fits.
  @inlinable
  package static func +|= (sum: inout Self, number: Self) { sum = sum +| number }

  /// The nearest integer of a number, at most the largest one; 0 of what is no number.
  @inlinable
  package init(saturating value: Double) {
    let rounded = value.rounded()
    self = Self(exactly: rounded) ?? (rounded > 0 ? .max : rounded < 0 ? .min : 0)
  }
}
