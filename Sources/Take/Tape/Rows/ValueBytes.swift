import Crypto
import Glibc
import Wire

/// Consecutive values as bytes, each with its type and, if needed, its length.
///
/// Rows are stored, hashed, compared and passed between threads in this form. A step's digest
/// covers exactly these bytes, so two steps are equal if their bytes are equal.
package struct ValueBytes: Sendable {
  /// The byte before each value that states its type; the numbers are hashed, so they must never
  /// change.
  private enum Mark {
    static let null: UInt8 = 0
    static let integer: UInt8 = 1
    static let real: UInt8 = 2
    static let text: UInt8 = 3
    static let blob: UInt8 = 4
  }

  /// The length of a type byte and the eight-byte number after it.
  private static let numberLength = 9

  /// The bytes of the values; only the first `count` bytes are valid.
  private var storage: [UInt8] = []
  private(set) var count = 0

  init() {}

  init(_ values: some Sequence<Value>) {
    for value in values { append(value) }
  }

  @_lifetime(borrow self)
  private func bytes(_ range: Range<Int>) -> RawSpan { storage.span.bytes.extracting(range) }

  /// Adds a range of the bytes to a hash.
  func update(_ sha: inout SHA256, _ range: Range<Int>) { sha.update(bytes(range)) }

  /// Removes all values, but keeps the memory for new ones.
  mutating func removeAll() { count = 0 }

  // MARK: Writing

  /// Reserves memory for a total number of bytes.
  mutating func makeRoom(for total: Int) { reserve(total - count) }

  /// Reserves memory for more bytes.
  @inline(__always)
  private mutating func reserve(_ more: Int) {
    if storage.count - count < more { grow(by: more) }
  }

  @inline(never)
  private mutating func grow(by more: Int) {
    var larger = [UInt8](
      repeating: 0, count: max(2 * storage.count, count + more, ValueBytes.smallestRoom))
    swap(&storage, &larger)
    let used = count
    count = 0
    larger.withUnsafeBytes { append(UnsafeRawBufferPointer(rebasing: $0[..<used])) }
  }

  private static let smallestRoom = 1_024

  /// Appends a raw byte, such as a step's kind, rather than an encoded value.
  @inline(__always)
  mutating func append(byte: UInt8) {
    reserve(1)
    storage[count] = byte
    count += 1
  }

  /// Appends a number that does not belong to a value, least significant byte first.
  mutating func append(word: UInt64) {
    withUnsafeBytes(of: word.littleEndian) { append($0) }
  }

  @inline(__always)
  private mutating func append(_ mark: UInt8, _ number: UInt64) {
    reserve(ValueBytes.numberLength)
    let place = count
    storage.withUnsafeMutableBytes { storage in
      storage[place] = mark
      storage.storeBytes(of: number.littleEndian, toByteOffset: place + 1, as: UInt64.self)
    }
    count = place + ValueBytes.numberLength
  }

  @inline(__always)
  mutating func appendNull() { append(byte: Mark.null) }

  @inline(__always)
  mutating func append(integer number: Int64) { append(Mark.integer, UInt64(bitPattern: number)) }

  /// Appends a real number, which must be neither NaN nor -0.0; `Value.measure` ensures that.
  mutating func append(real number: Double) { append(Mark.real, number.bitPattern) }

  mutating func append(text: String) {
    var text = text
    text.withUTF8 { appendText($0) }
  }

  /// Appends text in UTF-8.
  mutating func appendText(_ text: UnsafeBufferPointer<UInt8>) {
    append(Mark.text, UInt64(text.count))
    append(UnsafeRawBufferPointer(text))
  }

  mutating func append(blob: [UInt8]) { blob.withUnsafeBytes { append(blob: $0) } }

  mutating func append(blob: UnsafeRawBufferPointer) {
    beginBlob(blob.count)
    append(blob)
  }

  /// Begins a blob of a known size; the caller then appends its bytes.
  mutating func beginBlob(_ count: Int) { append(Mark.blob, UInt64(count)) }

  /// Appends bytes of the current blob.
  mutating func append(_ bytes: UnsafeRawBufferPointer) {
    guard let source = bytes.baseAddress, !bytes.isEmpty else { return }
    reserve(bytes.count)
    let place = count
    storage.withUnsafeMutableBytes { storage in
      storage.baseAddress.map { _ = memcpy($0 + place, source, bytes.count) }
    }
    count = place + bytes.count
  }

  mutating func append(_ value: Value) {
    switch value {
    case .null: appendNull()
    case .integer(let number): append(integer: number)
    case .real(let number): append(real: number)
    case .text(let text): append(text: text)
    case .blob(let bytes): append(blob: bytes)
    }
  }

  /// Appends a range of another list, which must contain complete values.
  mutating func append(_ other: borrowing ValueBytes, _ range: Range<Int>) {
    other.storage.withUnsafeBytes { append(UnsafeRawBufferPointer(rebasing: $0[range])) }
  }

  /// Removes everything from an offset on.
  mutating func truncate(to offset: Int) { count = min(count, offset) }

  // MARK: Reading

  func withBytes<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
    storage.withUnsafeBytes { body(UnsafeRawBufferPointer(rebasing: $0[..<count])) }
  }

  /// Returns the offset after the value at an offset.
  func end(ofValueAt offset: Int) -> Int {
    switch storage[offset] {
    case Mark.null: offset + 1
    case Mark.text, Mark.blob: offset + ValueBytes.numberLength + length(at: offset)
    default: offset + ValueBytes.numberLength
    }
  }

  func value(at offset: Int) -> Value {
    switch storage[offset] {
    case Mark.integer: return .integer(Int64(bitPattern: word(at: offset)))
    case Mark.real: return .real(Double(bitPattern: word(at: offset)))
    case Mark.text:
      return .text(
        withContents(at: offset) { String(decoding: $0, as: UTF8.self) })
    case Mark.blob: return .blob(withContents(at: offset) { [UInt8]($0) })
    default: return .null
    }
  }

  /// Lends the bytes of a string or blob without copying them.
  func withContents<Result, Failure: Error>(
    at offset: Int, _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    let start = offset + ValueBytes.numberLength
    let end = start + length(at: offset)
    return try bytes(start..<end).withUnsafeBytes(body)
  }

  /// The type of a value, and the value itself if it is a number.
  enum Form {
    case null
    case integer(Int64)
    case real(Double)
    case text
    case blob
  }

  func form(at offset: Int) -> Form {
    switch storage[offset] {
    case Mark.integer: .integer(Int64(bitPattern: word(at: offset)))
    case Mark.real: .real(Double(bitPattern: word(at: offset)))
    case Mark.text: .text
    case Mark.blob: .blob
    default: .null
    }
  }

  func isBlob(at offset: Int) -> Bool { storage[offset] == Mark.blob }

  func isNull(at offset: Int) -> Bool {
    if case .null = form(at: offset) { true } else { false }
  }

  /// Returns the integer at an offset; nil if the value there is not an integer.
  @inline(__always)
  func integer(at offset: Int) -> Int64? {
    storage[offset] == Mark.integer ? Int64(bitPattern: word(at: offset)) : nil
  }

  private func word(at offset: Int) -> UInt64 {
    UInt64(
      littleEndian: storage.span.bytes.unsafeLoadUnaligned(
        fromByteOffset: offset + 1, as: UInt64.self))
  }

  private func length(at offset: Int) -> Int { Int(truncatingIfNeeded: word(at: offset)) }

  // MARK: Comparison

  /// Returns whether two ranges have the same bytes.
  func equals(_ range: Range<Int>, _ other: borrowing ValueBytes, _ otherRange: Range<Int>)
    -> Bool
  {
    guard range.count == otherRange.count else { return false }
    return storage.withUnsafeBytes { bytes in
      other.storage.withUnsafeBytes { others in
        guard let left = bytes.baseAddress, let right = others.baseAddress else { return true }
        return memcmp(
          left + range.lowerBound, right + otherRange.lowerBound, range.count) == 0
      }
    }
  }
}

extension ValueBytes: Hashable {
  package static func == (left: Self, right: Self) -> Bool {
    left.equals(0..<left.count, right, 0..<right.count)
  }

  package func hash(into hasher: inout Hasher) { withBytes { hasher.combine(bytes: $0) } }
}
