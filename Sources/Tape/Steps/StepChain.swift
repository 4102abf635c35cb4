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
  private var message: [UInt8] = []

  /// How many bytes are not worth a copy.
  private static let longBytes = 256

  /// Begins with the digest of the `take` row.
  init(takeDigest: [UInt8]) { digest = takeDigest }

  /// Takes in a step and gives the first four bytes of the new digest.
  mutating func advance(_ head: borrowing StepHead, _ rows: borrowing RowList, _ range: Range<Int>)
    -> UInt32
  {
    message.removeAll(keepingCapacity: true)
    message.append(contentsOf: digest)
    message.append(word: UInt64(head.number))
    message.append(head.kind.rawValue)
    message.append(word: UInt64(head.actor))
    message.append(word: UInt64(bitPattern: head.at.nanoseconds))
    message.append(head.deadline == nil ? UInt8(0) : 1)
    message.append(word: UInt64(bitPattern: head.deadline?.nanoseconds ?? 0))
    message.append(word: head.entropyDrawn)
    message.append(word: UInt64(range.count))
    for row in range {
      message.append(rows.table(row).rawValue)
      for index in rows.range(row) {
        // Long bytes go into the digest from where they are.
        if case .blob(let bytes) = rows.values[index], bytes.count >= StepChain.longBytes {
          message.append(blobOf: bytes.count)
          sha.update(message)
          message.removeAll(keepingCapacity: true)
          sha.update(bytes)
        } else {
          message.append(value: rows.values[index])
        }
      }
    }
    sha.update(message)
    digest = sha.finish()
    return UInt32(digest[0]) << 24 | UInt32(digest[1]) << 16 | UInt32(digest[2]) << 8
      | UInt32(digest[3])
  }
}

extension [UInt8] {
  /// Appends eight bytes, low byte first.
  fileprivate mutating func append(word: UInt64) {
    Swift.withUnsafeBytes(of: word.littleEndian) { append(contentsOf: $0) }
  }

  /// Appends what stands before bytes: their type and how many they are.
  fileprivate mutating func append(blobOf count: Int) {
    append(4)
    append(word: UInt64(count))
  }

  /// Appends a value with its type and, where it has one, its length.
  fileprivate mutating func append(value: borrowing Value) {
    switch copy value {
    case .null: append(0)
    case .integer(let number):
      append(1)
      append(word: UInt64(bitPattern: number))
    case .real(let number):
      append(2)
      append(word: number.bitPattern)
    case .text(let text):
      append(3)
      append(word: UInt64(text.utf8.count))
      append(contentsOf: text.utf8)
    case .blob(let bytes):
      append(blobOf: bytes.count)
      append(contentsOf: bytes)
    }
  }

  /// The digest of a list of values.
  static func digest(of values: [Value]) -> [UInt8] {
    var message: [UInt8] = []
    for value in values { message.append(value: value) }
    return SHA256.hash(message)
  }
}
