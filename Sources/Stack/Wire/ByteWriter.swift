/// Appends big-endian values to a growing array.
///
/// Every field of every packet is written here, so the smallest functions are inlined.
package struct ByteWriter {
  @inlinable @inline(__always)
  package var bytes: [UInt8] { written }
  @usableFromInline
  var written: [UInt8]

  /// Creates a writer with a capacity in bytes.
  package init(capacity: Int = 0) {
    written = []
    written.reserveCapacity(capacity)
  }

  @inlinable @inline(__always)
  package var count: Int { written.count }

  @inlinable @inline(__always)
  package mutating func uint8(_ value: UInt8) { written.append(value) }

  @inlinable @inline(__always)
  package mutating func uint16(_ value: UInt16) { integer(value) }

  /// Appends the low 24 bits of an integer.
  package mutating func uint24(_ value: UInt32) {
    uint8(UInt8(truncatingIfNeeded: value >> 16))
    uint16(UInt16(truncatingIfNeeded: value))
  }

  @inlinable @inline(__always)
  package mutating func uint32(_ value: UInt32) { integer(value) }

  package mutating func uint64(_ value: UInt64) { integer(value) }

  package mutating func append(_ more: [UInt8]) { written.append(contentsOf: more) }

  package mutating func append(_ more: RawSpan) {
    unsafe more.withUnsafeBytes { unsafe written.append(contentsOf: $0) }
  }

  /// Appends the UTF-8 bytes of a string.
  package mutating func append(_ text: String) { written.append(contentsOf: text.utf8) }

  package mutating func zeros(_ count: Int) {
    written.append(contentsOf: repeatElement(0, count: max(0, count)))
  }

  /// Overwrites a 16-bit integer that was written before.
  package mutating func patch(uint16 value: UInt16, at offset: Int) {
    written[offset] = UInt8(truncatingIfNeeded: value >> 8)
    written[offset + 1] = UInt8(truncatingIfNeeded: value)
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

  @inlinable @inline(__always)
  mutating func integer<Value: FixedWidthInteger>(_ value: Value) {
    var shift = Value.bitWidth
    while shift > 0 {
      shift -= 8
      written.append(UInt8(truncatingIfNeeded: value >> Value(truncatingIfNeeded: shift)))
    }
  }
}
