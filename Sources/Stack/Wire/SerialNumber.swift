extension FixedWidthInteger where Self: UnsignedInteger {
  /// Returns whether this number comes after `other` in serial-number arithmetic (RFC 1982
  /// section 3).
  @inlinable
  package func isNewer(than other: Self) -> Bool {
    let distance = self &- other
    return distance != 0 && distance < (1 as Self) << (Self.bitWidth - 1)
  }
}

/// Extends 16-bit sequence numbers to 64 bits across wrap-arounds.
package struct SequenceUnwrapper: Sendable {
  private var last: Int64?

  package init() {}

  /// Extends a number to the value nearest to the highest one so far.
  package mutating func unwrap(_ number: UInt16) -> Int64 {
    let extended = peek(number)
    last = max(last ?? extended, extended)
    return extended
  }

  /// Extends a number without recording it.
  package func peek(_ number: UInt16) -> Int64 {
    guard let last else { return Int64(number) }
    return last + Int64(Int16(truncatingIfNeeded: Int64(number) &- last))
  }
}

/// Extends 32-bit RTP timestamps to 64 bits across wrap-arounds.
package struct TimestampUnwrapper: Sendable {
  private var last: Int64?

  package init() {}

  /// Extends a timestamp to the value nearest to the highest one so far.
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

// MARK: - Saturating

// Saturating arithmetic for numbers from files and the network, where Swift's operators would trap.
// Numbers that are not quantities (sequence numbers, checksums) wrap with Swift's own `&+`.

infix operator +| : AdditionPrecedence
infix operator -| : AdditionPrecedence
infix operator *| : MultiplicationPrecedence
infix operator +|= : AssignmentPrecedence

extension FixedWidthInteger {
  /// Adds two values; saturates.
  @inlinable
  package static func +| (left: Self, right: Self) -> Self {
    let (sum, overflow) = left.addingReportingOverflow(right)
    return overflow ? (right < 0 ? .min : .max) : sum
  }

  /// Subtracts a value; saturates.
  @inlinable
  package static func -| (left: Self, right: Self) -> Self {
    let (difference, overflow) = left.subtractingReportingOverflow(right)
    return overflow ? (right < 0 ? .max : .min) : difference
  }

  /// Multiplies two values; saturates.
  @inlinable
  package static func *| (left: Self, right: Self) -> Self {
    let (product, overflow) = left.multipliedReportingOverflow(by: right)
    return overflow ? ((left < 0) == (right < 0) ? .max : .min) : product
  }

  /// Adds in place, saturating.
  @inlinable
  package static func +|= (sum: inout Self, number: Self) { sum = sum +| number }

  /// Rounds to an integer, saturating; 0 for NaN.
  @inlinable
  package init(saturating value: Double) {
    let rounded = value.rounded()
    self = Self(exactly: rounded) ?? (rounded > 0 ? .max : rounded < 0 ? .min : 0)
  }
}

// MARK: - Hexadecimal

/// Formats bytes in hexadecimal; with more than `limit` bytes, appends their count.
package func hexadecimal(_ bytes: some Collection<UInt8>, limit: Int = .max) -> String {
  let digits = Array("0123456789abcdef".utf8)
  var text: [UInt8] = []
  for byte in bytes.prefix(limit) {
    text.append(digits[Int(byte >> 4)])
    text.append(digits[Int(byte & 15)])
  }
  let hex = String(decoding: text, as: UTF8.self)
  return bytes.count > limit ? "\(hex)... (\(bytes.count) bytes)" : hex
}

extension [UInt8] {
  /// Parses pairs of hexadecimal digits; nil if the text contains anything else.
  package init?(hexadecimal digits: some Collection<UInt8>) {
    guard digits.count.isMultiple(of: 2) else { return nil }
    self = []
    reserveCapacity(digits.count / 2)
    var high: UInt8?
    for digit in digits {
      let value: UInt8
      switch digit {
      case UInt8(ascii: "0")...UInt8(ascii: "9"): value = digit - UInt8(ascii: "0")
      case UInt8(ascii: "a")...UInt8(ascii: "f"): value = digit - UInt8(ascii: "a") + 10
      case UInt8(ascii: "A")...UInt8(ascii: "F"): value = digit - UInt8(ascii: "A") + 10
      default: return nil
      }
      if let first = high {
        append(first << 4 | value)
        high = nil
      } else {
        high = value
      }
    }
  }

  /// Parses a string of hexadecimal digit pairs; nil if it contains anything else.
  package init?(hexadecimal text: some StringProtocol) {
    self.init(hexadecimal: text.utf8)
  }
}

/// A digest for distinguishing packets; it does not resist deliberate collisions.
package struct ContentDigest: Sendable {
  package var value: UInt64

  @inlinable
  package init(seed: UInt64) { value = seed ^ 0x9e37_79b9_7f4a_7c15 }

  @inlinable @inline(__always)
  package mutating func mix(_ word: UInt64) {
    let product = (value ^ word).multipliedFullWidth(by: 0xd6e8_feb8_6659_fd93)
    value = product.low ^ product.high ^ word &* 0x9e37_79b9_7f4a_7c15
  }

  package mutating func mix(_ address: IPAddress) {
    let (high, low) = address.words
    mix(high)
    mix(low)
  }

  @inlinable
  package mutating func mix(_ bytes: RawSpan) {
    let count = bytes.byteCount
    var offset = 0
    while offset + 8 <= count {
      mix(
        unsafe bytes.unsafeLoadUnaligned(fromUncheckedByteOffset: offset, as: UInt64.self))
      offset += 8
    }
    var rest = UInt64(truncatingIfNeeded: count)
    while offset < count {
      rest = rest << 8 | UInt64(bytes.byte(at: offset))
      offset += 1
    }
    mix(rest)
  }
}

/// A certificate's hash, stated in descriptions and verified in the handshake (RFC 8122 section 5).
public struct CertificateFingerprint: Hashable, Sendable {
  /// The hash function's name in lower case: `sha-256`, ...
  public var algorithm: String
  /// The hash as upper-case hexadecimal bytes separated by colons.
  public var value: String

  /// Creates a fingerprint; both strings are case-insensitive.
  public init(algorithm: String, value: String) {
    self.algorithm = algorithm.lowercased()
    self.value = value.uppercased()
  }
}
