/// The reason that bytes could not be read.
@frozen
public enum ReadError: Error, Hashable, Sendable {
  /// The bytes ended before the value did.
  case truncated
  /// The bytes have a value that the format does not allow.
  case malformed
}

/// Reads big-endian values from borrowed bytes, front to back; never reads past their end.
///
/// Packets are parsed with this reader, so its smallest functions are inlined.
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

  /// The number of bytes left.
  @inlinable @inline(__always)
  package var remaining: Int { bytes.byteCount - offset }

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
  /// Returns the byte at an offset, which must be in range.
  @inlinable @inline(__always)
  package func byte(at offset: Int) -> UInt8 {
    precondition(offset >= 0 && offset < byteCount)
    return unsafe unsafeLoad(fromUncheckedByteOffset: offset, as: UInt8.self)
  }

  /// Returns the big-endian integer at an offset; its bytes must be in range.
  @inlinable @inline(__always)
  package func uint16(at offset: Int) -> UInt16 {
    UInt16(byte(at: offset)) << 8 | UInt16(byte(at: offset + 1))
  }

  /// Returns the big-endian integer at an offset; its bytes must be in range.
  @inlinable @inline(__always)
  package func uint32(at offset: Int) -> UInt32 {
    UInt32(uint16(at: offset)) << 16 | UInt32(uint16(at: offset + 2))
  }

  /// Returns the big-endian integer at an offset; its bytes must be in range.
  @inlinable @inline(__always)
  package func uint64(at offset: Int) -> UInt64 {
    UInt64(uint32(at: offset)) << 32 | UInt64(uint32(at: offset + 4))
  }
}

// MARK: - ByteWriter

/// Appends big-endian values to a growing array.
///
/// Packets are built with this writer, so its smallest functions are inlined.
package struct ByteWriter {
  @inlinable @inline(__always)
  package var bytes: [UInt8] { written }
  @usableFromInline
  var written: [UInt8]

  /// Creates a writer with room for `capacity` bytes.
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

  package mutating func append(_ text: String) { written.append(contentsOf: text.utf8) }

  package mutating func zeros(_ count: Int) {
    written.append(contentsOf: repeatElement(0, count: max(0, count)))
  }

  /// Overwrites a 16-bit integer that was written earlier.
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

// MARK: - StreamCutter

/// A way of delimiting messages in a byte stream.
package protocol MessageFraming: Sendable {
  /// Returns the range of the first message and where the next one starts; nil if more bytes are
  /// needed.
  ///
  /// Throws if the bytes are not the start of a message.
  static func first(in bytes: RawSpan) throws(FramingError) -> (message: Range<Int>, next: Int)?
  static func framed(_ message: [UInt8]) -> [UInt8]
}

/// Thrown when the bytes of a stream do not start a message, so nothing after them can be
/// delimited.
package struct FramingError: Error, Hashable, Sendable {
  package init() {}
}

/// Splits a stream into its messages, however its bytes arrive.
package struct StreamCutter: Sendable {
  private let framing: any MessageFraming.Type
  private var waiting: [UInt8] = []
  private var start = 0

  package init(_ framing: any MessageFraming.Type) { self.framing = framing }

  package mutating func append(_ bytes: some Sequence<UInt8>) {
    if start > 0 {
      waiting.removeFirst(start)
      start = 0
    }
    waiting.append(contentsOf: bytes)
  }

  /// Returns the next complete message; nil if more bytes are needed.
  package mutating func next() throws(FramingError) -> [UInt8]? {
    let begin = start
    guard let (message, next) = try framing.first(in: waiting.span.extracting(begin...).bytes)
    else { return nil }
    start = begin + next
    return Array(waiting[begin + message.lowerBound..<begin + message.upperBound])
  }
}
