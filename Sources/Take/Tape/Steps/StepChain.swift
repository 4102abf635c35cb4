import Crypto
import Wire

/// The digest that is chained from step to step over everything a take says.
///
/// The digest after a step is the SHA-256 of the digest before it, the step's head and all its rows
/// in order, each value with its type and length. So whatever is changed, removed or added in a
/// file shows at its step, before any replay.
struct StepChain: ~Copyable {
  private(set) var digest: [UInt8]
  private var sha = SHA256()
  private var message = ValueBytes()

  /// Begins with the digest of the `take` row.
  init(takeDigest: [UInt8]) { digest = takeDigest }

  /// Takes in a step and gives the first four bytes of the new digest.
  mutating func advance(_ head: borrowing StepHead, _ rows: borrowing RowList, _ range: Range<Int>)
    -> UInt32
  {
    message.removeAll()
    digest.withUnsafeBytes { message.append($0) }
    message.append(word: UInt64(head.number))
    message.append(byte: head.kind.rawValue)
    message.append(word: UInt64(head.actor))
    message.append(word: UInt64(bitPattern: head.at.nanoseconds))
    message.append(byte: head.deadline == nil ? 0 : 1)
    message.append(word: UInt64(bitPattern: head.deadline?.nanoseconds ?? 0))
    message.append(word: head.entropyDrawn)
    message.append(word: UInt64(range.count))
    message.update(&sha, 0..<message.count)
    // Rows go into the digest from where they are, in the form that they have there.
    rows.bytes.update(&sha, rows.range(range))
    sha.finish(into: &digest)
    return UInt32(digest[0]) << 24 | UInt32(digest[1]) << 16 | UInt32(digest[2]) << 8
      | UInt32(digest[3])
  }
}

extension [UInt8] {
  /// The digest of a list of values.
  static func digest(of values: [Value]) -> [UInt8] {
    var sha = SHA256()
    let message = ValueBytes(values)
    message.update(&sha, 0..<message.count)
    return sha.finish()
  }
}
