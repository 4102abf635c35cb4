import Digests
import Wire

/// The digest that is chained from step to step over everything a take says.
///
/// The digest after a step is the SHA-256 of the digest before it, the step's head and all its rows
/// in order, each value with its type and length. So whatever is changed, removed or added in a
/// file shows at its step, before any replay.
struct StepChain: ~Copyable {
  private(set) var digest: [UInt8]
  private var sha = SHA256()
  private var message = Message()

  /// How many bytes are not worth a copy.
  private static let longBytes = 256

  /// Begins with the digest of the `take` row.
  init(takeDigest: [UInt8]) { digest = takeDigest }

  /// Takes in a step and gives the first four bytes of the new digest.
  mutating func advance(_ head: borrowing StepHead, _ rows: borrowing RowList, _ range: Range<Int>)
    -> UInt32
  {
    message.removeAll()
    message.append(digest)
    message.append(word: UInt64(head.number))
    message.append(byte: head.kind.rawValue)
    message.append(word: UInt64(head.actor))
    message.append(word: UInt64(bitPattern: head.at.nanoseconds))
    message.append(byte: head.deadline == nil ? 0 : 1)
    message.append(word: UInt64(bitPattern: head.deadline?.nanoseconds ?? 0))
    message.append(word: head.entropyDrawn)
    message.append(word: UInt64(range.count))
    for row in range {
      message.append(byte: rows.table(row).rawValue)
      for index in rows.range(row) {
        // Long bytes go into the digest from where they are.
        if case .blob(let bytes) = rows.values[index], bytes.count >= StepChain.longBytes {
          message.append(blobOf: bytes.count)
          message.update(&sha)
          message.removeAll()
          sha.update(bytes)
        } else {
          message.append(rows.values[index])
        }
      }
    }
    message.update(&sha)
    digest = sha.finish()
    return UInt32(digest[0]) << 24 | UInt32(digest[1]) << 16 | UInt32(digest[2]) << 8
      | UInt32(digest[3])
  }
}

/// Values one after another, each with its type and, where it has one, its length.
///
/// Every value of every row goes through here, so the storage is its own: an array would ask before
/// each value whether somebody else holds it.
private struct Message: ~Copyable {
  private var storage = UnsafeMutableRawBufferPointer.allocate(byteCount: 4_096, alignment: 8)
  private var count = 0

  deinit { storage.deallocate() }

  mutating func removeAll() { count = 0 }

  /// Makes room for more bytes.
  @inline(__always)
  private mutating func reserve(_ more: Int) {
    if count + more > storage.count { grow(by: more) }
  }

  @inline(never)
  private mutating func grow(by more: Int) {
    let larger = UnsafeMutableRawBufferPointer.allocate(
      byteCount: max(2 * storage.count, count + more), alignment: 8)
    larger.copyMemory(from: UnsafeRawBufferPointer(rebasing: storage[..<count]))
    storage.deallocate()
    storage = larger
  }

  @inline(__always)
  mutating func append(byte: UInt8) {
    reserve(1)
    storage[count] = byte
    count += 1
  }

  /// Appends eight bytes, low byte first.
  @inline(__always)
  mutating func append(word: UInt64) {
    reserve(8)
    storage.storeBytes(of: word.littleEndian, toByteOffset: count, as: UInt64.self)
    count += 8
  }

  mutating func append(_ bytes: [UInt8]) { bytes.withUnsafeBytes { append($0) } }

  private mutating func append(_ bytes: UnsafeRawBufferPointer) {
    reserve(bytes.count)
    UnsafeMutableRawBufferPointer(rebasing: storage[count...]).copyMemory(from: bytes)
    count += bytes.count
  }

  /// Appends what stands before bytes: their type and how many they are.
  mutating func append(blobOf count: Int) {
    append(byte: 4)
    append(word: UInt64(count))
  }

  mutating func append(_ value: borrowing Value) {
    switch copy value {
    case .null: append(byte: 0)
    case .integer(let number):
      append(byte: 1)
      append(word: UInt64(bitPattern: number))
    case .real(let number):
      append(byte: 2)
      append(word: number.bitPattern)
    case .text(var text):
      append(byte: 3)
      append(word: UInt64(text.utf8.count))
      text.withUTF8 { append(UnsafeRawBufferPointer($0)) }
    case .blob(let bytes):
      append(blobOf: bytes.count)
      append(bytes)
    }
  }

  /// Adds what was appended to a digest.
  borrowing func update(_ sha: inout SHA256) {
    sha.update(UnsafeRawBufferPointer(rebasing: storage[..<count]).bytes)
  }
}

extension [UInt8] {
  /// The digest of a list of values.
  static func digest(of values: [Value]) -> [UInt8] {
    var message = Message()
    for value in values { message.append(value) }
    var sha = SHA256()
    message.update(&sha)
    return sha.finish()
  }
}
