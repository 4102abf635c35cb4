extension FixedWidthInteger where Self: UnsignedInteger {
  /// Whether this number comes after another one in serial-number arithmetic (RFC 1982 section 3).
  @inlinable
  package func isNewer(than other: Self) -> Bool {
    let distance = self &- other
    return distance != 0 && distance < (1 as Self) << (Self.bitWidth - 1)
  }
}

/// Extends 16-bit sequence numbers to 64 bits, following them across wrap-arounds.
package struct SequenceUnwrapper: Sendable {
  private var last: Int64?

  package init() {}

  /// Extends a number to the value nearest to the newest one seen.
  package mutating func unwrap(_ number: UInt16) -> Int64 {
    let extended = peek(number)
    last = max(last ?? extended, extended)
    return extended
  }

  /// Extends a number without recording it as seen.
  package func peek(_ number: UInt16) -> Int64 {
    guard let last else { return Int64(number) }
    return last + Int64(Int16(truncatingIfNeeded: Int64(number) &- last))
  }
}

/// Extends 32-bit RTP timestamps to 64 bits, following them across wrap-arounds.
package struct TimestampUnwrapper: Sendable {
  private var last: Int64?

  package init() {}

  /// Extends a timestamp to the value nearest to the newest one seen.
  package mutating func unwrap(_ timestamp: UInt32) -> Int64 {
    guard let last else {
      self.last = Int64(timestamp)
      return Int64(timestamp)
    }
    let extended = last + Int64(Int32(truncatingIfNeeded: Int64(timestamp) &- last))
    self.last = max(last, extended)
    return extended
  }
}
