// Saturating arithmetic for numbers from files and the network, where Swift's operators would trap.
// Numbers that are not quantities (sequence numbers, checksums) wrap with Swift's own `&+`.

infix operator +| : AdditionPrecedence
infix operator -| : AdditionPrecedence
infix operator *| : MultiplicationPrecedence
infix operator +|= : AssignmentPrecedence

extension FixedWidthInteger {
  /// The saturated sum.
  @inlinable
  package static func +| (left: Self, right: Self) -> Self {
    let (sum, overflow) = left.addingReportingOverflow(right)
    return overflow ? (right < 0 ? .min : .max) : sum
  }

  /// The saturated difference.
  @inlinable
  package static func -| (left: Self, right: Self) -> Self {
    let (difference, overflow) = left.subtractingReportingOverflow(right)
    return overflow ? (right < 0 ? .max : .min) : difference
  }

  /// The saturated product.
  @inlinable
  package static func *| (left: Self, right: Self) -> Self {
    let (product, overflow) = left.multipliedReportingOverflow(by: right)
    return overflow ? ((left < 0) == (right < 0) ? .max : .min) : product
  }

  /// Adds with saturation.
  @inlinable
  package static func +|= (sum: inout Self, number: Self) { sum = sum +| number }

  /// Rounds to an integer, saturating; 0 for NaN.
  @inlinable
  package init(saturating value: Double) {
    let rounded = value.rounded()
    self = Self(exactly: rounded) ?? (rounded > 0 ? .max : rounded < 0 ? .min : 0)
  }
}
