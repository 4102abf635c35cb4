/// All randomness of one peer: a 32-byte seed expanded into independent labelled streams.
///
/// Each label selects its own ChaCha20 nonce (RFC 8439 section 2.3), so an extra draw in one layer
/// does not shift another layer's values. The take records how many bytes have been drawn from each
/// stream, because a divergence often shows there first.
package final class Entropy {
  package static let seedLength = 32

  private let key: [8 of UInt32]
  private let total = EntropyTotal()
  private let scripts: [String: [UInt8]]
  private var streams: [EntropyStream] = []

  /// Creates the streams of a peer from its seed; a shorter seed is padded with zeros.
  ///
  /// - Parameter scripts: the first bytes of each stream in hexadecimal, by label, for takes whose
  ///   seed was removed; afterwards the streams continue with the new seed.
  package init(seed: [UInt8], scripts: [String: String] = [:]) {
    self.scripts = scripts.compactMapValues { [UInt8](hexadecimal: $0.utf8) }
    var key: [8 of UInt32] = .init(repeating: 0)
    for (index, byte) in seed.prefix(Entropy.seedLength).enumerated() {
      key[index / 4] |= UInt32(byte) << UInt32(8 * (index % 4))
    }
    self.key = key
  }

  /// Returns the stream of a label of 1 to 12 ASCII characters; the same label always returns the
  /// same stream.
  package func stream(_ label: StaticString) -> EntropyStream { stream(named: label.description) }

  /// Returns the numbered stream of one of several objects that share a label; number 0 uses the
  /// label alone.
  package func stream(_ label: StaticString, number: Int) -> EntropyStream {
    stream(named: number == 0 ? label.description : "\(label) \(number)")
  }

  private func stream(named name: String) -> EntropyStream {
    precondition((1...12).contains(name.utf8.count), "a label has 1 to 12 characters")
    if let known = streams.first(where: { $0.label == name }) { return known }
    let made = EntropyStream(key: key, label: name, total: total, script: scripts[name] ?? [])
    streams.append(made)
    return made
  }

  /// The total bytes drawn from all streams so far.
  package var drawn: UInt64 { total.drawn }

  /// Each stream's label and the number of bytes drawn from it, in order of first use.
  package var ledger: [(label: String, drawn: UInt64)] { streams.map { ($0.label, $0.drawn) } }
}

/// The bytes drawn from all of a peer's streams; read after every step.
private final class EntropyTotal {
  var drawn: UInt64 = 0
}

/// One labelled stream of random values.
package final class EntropyStream {
  /// The label that selects the stream.
  package let label: String
  package private(set) var drawn: UInt64 = 0

  /// The total that draws are added to; nil for a copy.
  private let total: EntropyTotal?
  private var cipher: ChaCha20
  private var block: [16 of UInt32] = .init(repeating: 0)
  private var position = 64
  /// The stream's first values; the cipher starts after them.
  private let script: [UInt8]

  fileprivate init(key: [8 of UInt32], label: String, total: EntropyTotal, script: [UInt8]) {
    self.label = label
    self.total = total
    self.script = script
    var nonce: [3 of UInt32] = .init(repeating: 0)
    for (index, byte) in label.utf8.enumerated() {
      nonce[index / 4] |= UInt32(byte) << UInt32(8 * (index % 4))
    }
    cipher = ChaCha20(key: key, nonce: nonce)
  }

  /// A copy that continues with the same values but whose draws are not counted.
  package var copy: EntropyStream { EntropyStream(of: self) }

  private init(of other: EntropyStream) {
    label = other.label
    total = nil
    drawn = other.drawn
    cipher = other.cipher
    block = other.block
    position = other.position
    script = other.script
  }

  package func byte() -> UInt8 {
    if drawn < UInt64(script.count) {
      let byte = script[Int(drawn)]
      drawn += 1
      total?.drawn += 1
      return byte
    }
    if position == 64 {
      block = cipher.next()
      position = 0
    }
    let word = block[position / 4]
    let byte = UInt8(truncatingIfNeeded: word >> UInt32(8 * (position % 4)))
    position += 1
    drawn += 1
    total?.drawn += 1
    return byte
  }

  package func bytes(_ count: Int) -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(count)
    for _ in 0..<count { bytes.append(byte()) }
    return bytes
  }

  /// Returns a random integer of any fixed width, read in little-endian order.
  package func integer<Value: FixedWidthInteger & UnsignedInteger>(_: Value.Type) -> Value {
    var value: Value = 0
    for index in 0..<(Value.bitWidth / 8) { value |= Value(byte()) << Value(8 * index) }
    return value
  }

  /// Returns a random integer below a positive bound; the bias of reducing 64 bits is negligible.
  package func integer(below bound: UInt64) -> UInt64 {
    integer(UInt64.self).multipliedFullWidth(by: bound).high
  }

  /// Returns a random string of ice-chars (RFC 8839 section 5.4), each with 6 bits of entropy.
  package func iceString(_ count: Int) -> String {
    let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
    return String(decoding: bytes(count).map { alphabet[Int($0 & 63)] }, as: UTF8.self)
  }

  /// Returns a random UUID in lower case (RFC 9562 section 5.4).
  package func uuid() -> String {
    var bytes = bytes(16)
    bytes[6] = bytes[6] & 0x0f | 0x40
    bytes[8] = bytes[8] & 0x3f | 0x80
    return [0..<4, 4..<6, 6..<8, 8..<10, 10..<16].map { hexadecimal(bytes[$0]) }
      .joined(separator: "-")
  }
}

// MARK: - ChaCha20

/// The key stream of ChaCha20, block by block (RFC 8439 sections 2.3 and 2.4).
struct ChaCha20: Sendable {
  /// Constants, key, block counter and nonce.
  private var state: [16 of UInt32]

  /// Creates a stream that starts at a block counter; words are little-endian.
  init(key: [8 of UInt32], counter: UInt32 = 0, nonce: [3 of UInt32]) {
    var state: [16 of UInt32] = .init(repeating: 0)
    state[0] = 0x6170_7865
    state[1] = 0x3320_646e
    state[2] = 0x7962_2d32
    state[3] = 0x6b20_6574
    for index in 0..<8 { state[4 + index] = key[index] }
    state[12] = counter
    for index in 0..<3 { state[13 + index] = nonce[index] }
    self.state = state
  }

  /// Returns the next 64 bytes of the stream as little-endian words.
  mutating func next() -> [16 of UInt32] {
    var block = state
    for _ in 0..<10 {
      Self.quarter(&block, 0, 4, 8, 12)
      Self.quarter(&block, 1, 5, 9, 13)
      Self.quarter(&block, 2, 6, 10, 14)
      Self.quarter(&block, 3, 7, 11, 15)
      Self.quarter(&block, 0, 5, 10, 15)
      Self.quarter(&block, 1, 6, 11, 12)
      Self.quarter(&block, 2, 7, 8, 13)
      Self.quarter(&block, 3, 4, 9, 14)
    }
    for index in 0..<16 { block[index] &+= state[index] }
    state[12] &+= 1
    return block
  }

  @inline(__always)
  private static func quarter(_ s: inout [16 of UInt32], _ a: Int, _ b: Int, _ c: Int, _ d: Int) {
    s[a] &+= s[b]
    s[d] = rotated(s[d] ^ s[a], 16)
    s[c] &+= s[d]
    s[b] = rotated(s[b] ^ s[c], 12)
    s[a] &+= s[b]
    s[d] = rotated(s[d] ^ s[a], 8)
    s[c] &+= s[d]
    s[b] = rotated(s[b] ^ s[c], 7)
  }

  @inline(__always)
  private static func rotated(_ word: UInt32, _ count: UInt32) -> UInt32 {
    word << count | word >> (32 - count)
  }
}
