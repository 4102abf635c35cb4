import STUN

/// Cuts a stream of a TURN server into its messages: STUN, and channel data with padding
/// (RFC 8656 section 12.5).
package struct TURNFraming: Sendable {
  /// What cannot be cut: bytes that begin no message.
  package struct Refusal: Error, Hashable, Sendable {}

  private var waiting: [UInt8] = []
  private var start = 0

  package init() {}

  /// Adds bytes of the stream.
  package mutating func append(_ bytes: some Sequence<UInt8>) {
    if start > 0 {
      waiting.removeFirst(start)
      start = 0
    }
    waiting.append(contentsOf: bytes)
  }

  /// The next whole message, without padding; nil until more bytes are there.
  package mutating func next() throws(Refusal) -> [UInt8]? {
    guard waiting.count - start >= 4 else { return nil }
    let length = Int(waiting[start + 2]) << 8 | Int(waiting[start + 3])
    let count: Int
    switch waiting[start] {
    case 0...3:
      // STUN says so in four further bytes, and counts in fours.
      guard length % 4 == 0 else { throw Refusal() }
      count = STUNMessage.headerLength + length
    case 0x40...0x4f: count = ChannelData.headerLength + length
    default: throw Refusal()
    }
    let padded = STUNMessage.padded(count)
    guard waiting.count - start >= padded else { return nil }
    defer { start += padded }
    return Array(waiting[start..<start + count])
  }

  /// A message as it goes onto the stream.
  package static func framed(_ message: [UInt8]) -> [UInt8] {
    let missing = STUNMessage.padded(message.count) - message.count
    return missing == 0 ? message : message + [UInt8](repeating: 0, count: missing)
  }
}
