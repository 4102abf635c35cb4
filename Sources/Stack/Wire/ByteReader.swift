/// Why bytes could not be read.
@frozen
public enum ReadError: Error, Hashable, Sendable {
  /// The bytes ended before the value did.
  case truncated
  /// The bytes have a value that the format does not allow.
  case malformed
}

/// Reads big-endian values from borrowed bytes, front to back; never reads past their end.
///
/// Every field of every packet is read here, so the smallest functions are inlined.
package struct ByteReader: ~Escapable {
  @usableFromInline
  let bytes: RawSpan
  /// The number of bytes read so far.
  @inlinable @inline(__always)
  package var offset: Int { position }
  @usableFromInline
  var position = 0

  @_lifetime(copy bytes)
  @inlinable @inline(__always)
  package init(_ bytes: RawSpan) { self.bytes = bytes }

  /// How many bytes are left.
  @inlinable @inline(__always)
  package var remaining: Int { bytes.byteCount - offset }

  /// Whether everything was read.
  @inlinable @inline(__always)
  package var isAtEnd: Bool { remaining == 0 }

  @inlinable @inline(__always)
  package mutating func uint8() throws(ReadError) -> UInt8 {
    guard remaining >= 1 else { throw .truncated }
    let value = unsafe bytes.unsafeLoad(fromUncheckedByteOffset: offset, as: UInt8.self)
    position += 1
    return value
  }

  @inlinable @inline(__always)
  package mutating func uint16() throws(ReadError) -> UInt16 { try integer() }

  package mutating func uint24() throws(ReadError) -> UInt32 {
    guard remaining >= 3 else { throw .truncated }
    let high = UInt32(try uint16())
    return high << 8 | UInt32(try uint8())
  }

  @inlinable @inline(__always)
  package mutating func uint32() throws(ReadError) -> UInt32 { try integer() }

  package mutating func uint64() throws(ReadError) -> UInt64 { try integer() }

  /// Skips bytes.
  @inlinable @inline(__always)
  package mutating func skip(_ count: Int) throws(ReadError) {
    guard count >= 0, remaining >= count else { throw .truncated }
    position += count
  }

  /// Borrows the next `count` bytes and skips them.
  @_lifetime(copy self)
  package mutating func span(_ count: Int) throws(ReadError) -> RawSpan {
    guard count >= 0, remaining >= count else { throw .truncated }
    let part = bytes.extracting(offset..<offset + count)
    position += count
    return part
  }

  /// Borrows the rest without skipping it.
  @_lifetime(copy self)
  package func rest() -> RawSpan { bytes.extracting(offset..<bytes.byteCount) }

  package mutating func array(_ count: Int) throws(ReadError) -> [UInt8] {
    [UInt8](try span(count))
  }

  @inlinable @inline(__always)
  mutating func integer<Value: FixedWidthInteger & BitwiseCopyable>()
    throws(ReadError) -> Value
  {
    let width = MemoryLayout<Value>.size
    guard remaining >= width else { throw .truncated }
    let value = unsafe bytes.unsafeLoadUnaligned(fromUncheckedByteOffset: offset, as: Value.self)
    position += width
    return Value(bigEndian: value)
  }
}

extension [UInt8] {
  /// Copies borrowed bytes into an array.
  package init(_ span: RawSpan) {
    self = unsafe span.withUnsafeBytes { unsafe Array($0) }
  }
}

extension RawSpan {
  /// The byte at an offset, which must be in range.
  @inlinable @inline(__always)
  package func byte(at offset: Int) -> UInt8 {
    precondition(offset >= 0 && offset < byteCount)
    return unsafe unsafeLoad(fromUncheckedByteOffset: offset, as: UInt8.self)
  }

  /// The big-endian integer at an offset; its bytes must be in range.
  @inlinable @inline(__always)
  package func uint16(at offset: Int) -> UInt16 {
    UInt16(byte(at: offset)) << 8 | UInt16(byte(at: offset + 1))
  }

  /// As `uint16(at:)`.
  @inlinable @inline(__always)
  package func uint32(at offset: Int) -> UInt32 {
    UInt32(uint16(at: offset)) << 16 | UInt32(uint16(at: offset + 2))
  }

  /// As `uint16(at:)`.
  @inlinable @inline(__always)
  package func uint64(at offset: Int) -> UInt64 {
    UInt64(uint32(at: offset)) << 32 | UInt64(uint32(at: offset + 4))
  }
}
