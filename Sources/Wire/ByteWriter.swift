/// Writes big-endian values to the end of a growing array.
package struct ByteWriter {
  /// What was written so far.
  package private(set) var bytes: [UInt8]

  /// Creates a writer with room for so many bytes.
  package init(capacity: Int = 0) {
    bytes = []
    bytes.reserveCapacity(capacity)
  }

  /// How many bytes were written.
  package var count: Int { bytes.count }

  /// Appends one byte.
  package mutating func uint8(_ value: UInt8) { bytes.append(value) }

  /// Appends a 16-bit integer.
  package mutating func uint16(_ value: UInt16) { integer(value) }

  /// Appends the low 24 bits of an integer.
  package mutating func uint24(_ value: UInt32) {
    uint8(UInt8(truncatingIfNeeded: value >> 16))
    uint16(UInt16(truncatingIfNeeded: value))
  }

  /// Appends a 32-bit integer.
  package mutating func uint32(_ value: UInt32) { integer(value) }

  /// Appends a 64-bit integer.
  package mutating func uint64(_ value: UInt64) { integer(value) }

  /// Appends bytes.
  package mutating func append(_ more: [UInt8]) { bytes.append(contentsOf: more) }

  /// Appends borrowed bytes.
  package mutating func append(_ more: RawSpan) {
    unsafe more.withUnsafeBytes { unsafe bytes.append(contentsOf: $0) }
  }

  /// Appends the UTF-8 bytes of a string.
  package mutating func append(_ text: String) { bytes.append(contentsOf: text.utf8) }

  /// Appends so many zero bytes.
  package mutating func zeros(_ count: Int) {
    bytes.append(contentsOf: repeatElement(0, count: max(0, count)))
  }

  /// Overwrites a 16-bit integer that was written before.
  package mutating func patch(uint16 value: UInt16, at offset: Int) {
    bytes[offset] = UInt8(truncatingIfNeeded: value >> 8)
    bytes[offset + 1] = UInt8(truncatingIfNeeded: value)
  }

  /// Appends an unsigned integer in 7-bit groups, lowest first (LEB128).
  package mutating func variable(_ value: UInt64) {
    var rest = value
    while rest >= 0x80 {
      uint8(UInt8(truncatingIfNeeded: rest) | 0x80)
      rest >>= 7
    }
    uint8(UInt8(truncatingIfNeeded: rest))
  }

  private mutating func integer<Value: FixedWidthInteger>(_ value: Value) {
    withUnsafeBytes(of: value.bigEndian) { unsafe bytes.append(contentsOf: $0) }
  }
}
