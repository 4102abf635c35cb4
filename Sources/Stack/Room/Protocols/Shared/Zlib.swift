/// The zlib format (RFC 1950), as compressed data channels carry it.
///
/// Implemented here rather than by a library, because the same text has to be the same bytes in
/// every replay. It uses only the fixed codes of RFC 1951 section 3.2.6, which leave no choice to a
/// library's version.
enum Zlib {
  /// The bytes are invalid, or expand to too much.
  enum Failure: Error, Hashable { case malformed, tooLong }

  /// The checksum of the format (RFC 1950 section 8).
  static func adler32(_ bytes: [UInt8]) -> UInt32 {
    var (low, high): (UInt32, UInt32) = (1, 0)
    for byte in bytes {
      low = (low + UInt32(byte)) % 65_521
      high = (high + low) % 65_521
    }
    return high << 16 | low
  }

  static func compressed(_ bytes: [UInt8]) -> [UInt8] {
    var writer = DeflateWriter()
    writer.write(bytes)
    let sum = adler32(bytes)
    let tail = [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: sum >> $0) }
    // A window of 32 KiB, no dictionary, and a check that makes both bytes a multiple of 31.
    return [0x78, 0x01] + writer.finish() + tail
  }

  /// - Parameter limit: the most bytes of output.
  static func expanded(_ bytes: [UInt8], limit: Int) throws(Failure) -> [UInt8] {
    guard bytes.count >= 6, bytes[0] & 0x0f == 8, bytes[0] >> 4 <= 7, bytes[1] & 0x20 == 0,
      (UInt16(bytes[0]) << 8 | UInt16(bytes[1])) % 31 == 0
    else { throw .malformed }
    var reader = InflateReader(bytes, from: 2, limit: limit)
    let out = try reader.read()
    guard let sum = reader.uint32(), sum == adler32(out) else { throw .malformed }
    return out
  }
}

/// Base values and extra bits of lengths and distances (RFC 1951 section 3.2.5).
private enum CopyTable {
  static let lengths: [(base: Int, bits: Int)] =
    table(
      [0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5], from: 3)
    + [(258, 0)]
  static let distances: [(base: Int, bits: Int)] = table(
    [
      0, 0, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 8, 9, 9, 10, 10, 11, 11, 12, 12,
      13, 13,
    ], from: 1)

  private static func table(_ bits: [Int], from start: Int) -> [(base: Int, bits: Int)] {
    var base = start
    return bits.map { bits in
      defer { base += 1 << bits }
      return (base, bits)
    }
  }
}

/// Writes one block with the fixed codes.
private struct DeflateWriter {
  private static let windowLength = 32_768
  private static let copyRange = 3...258

  private var out: [UInt8] = []
  private var bits: UInt64 = 0
  private var bitCount = 0

  init() { put(0b011, 3) }

  /// Writes bits, lowest first.
  private mutating func put(_ value: Int, _ count: Int) {
    bits |= UInt64(value) << UInt64(bitCount)
    bitCount += count
    while bitCount >= 8 {
      out.append(UInt8(truncatingIfNeeded: bits))
      bits >>= 8
      bitCount -= 8
    }
  }

  /// Writes a code, highest bit first.
  private mutating func putCode(_ code: Int, _ count: Int) {
    var reversed = 0
    for bit in 0..<count where code >> bit & 1 == 1 { reversed |= 1 << (count - 1 - bit) }
    put(reversed, count)
  }

  private mutating func putSymbol(_ symbol: Int) {
    switch symbol {
    case 0...143: putCode(0x30 + symbol, 8)
    case 144...255: putCode(0x190 + symbol - 144, 9)
    case 256...279: putCode(symbol - 256, 7)
    default: putCode(0xc0 + symbol - 280, 8)
    }
  }

  private mutating func putCopy(length: Int, distance: Int) {
    // The last row that starts at or below the value; 258 has its own.
    let row = CopyTable.lengths.lastIndex { $0.base <= length } ?? 0
    putSymbol(257 + row)
    put(length - CopyTable.lengths[row].base, CopyTable.lengths[row].bits)
    let far = CopyTable.distances.lastIndex { $0.base <= distance } ?? 0
    putCode(far, 5)
    put(distance - CopyTable.distances[far].base, CopyTable.distances[far].bits)
  }

  mutating func write(_ bytes: [UInt8]) {
    // Where three bytes last occurred, by their hash.
    var places = [Int](repeating: -1, count: 4096)
    var index = 0
    while index < bytes.count {
      let length = copyLength(bytes, index, &places)
      if length.count > 0 {
        putCopy(length: length.count, distance: index - length.from)
        index += length.count
      } else {
        putSymbol(Int(bytes[index]))
        index += 1
      }
    }
  }

  private func copyLength(_ bytes: [UInt8], _ index: Int, _ places: inout [Int])
    -> (count: Int, from: Int)
  {
    guard index + 2 < bytes.count else { return (0, 0) }
    let three = Int(bytes[index]) << 16 | Int(bytes[index + 1]) << 8 | Int(bytes[index + 2])
    let slot = (three &* 0x9e37_79b1 >> 8) & 4095
    let from = places[slot]
    places[slot] = index
    guard from >= 0, index - from <= DeflateWriter.windowLength else { return (0, 0) }
    var count = 0
    let maximum = min(DeflateWriter.copyRange.upperBound, bytes.count - index)
    while count < maximum, bytes[from + count] == bytes[index + count] { count += 1 }
    return DeflateWriter.copyRange.contains(count) ? (count, from) : (0, 0)
  }

  mutating func finish() -> [UInt8] {
    putSymbol(256)
    if bitCount > 0 { put(0, 8 - bitCount) }
    return out
  }
}

/// Reads blocks of all three kinds (RFC 1951).
private struct InflateReader {
  private let bytes: [UInt8]
  private let limit: Int
  private var index: Int
  private var bits: UInt32 = 0
  private var bitCount = 0
  private var out: [UInt8] = []

  init(_ bytes: [UInt8], from start: Int, limit: Int) {
    self.bytes = bytes
    self.limit = limit
    index = start
  }

  mutating func read() throws(Zlib.Failure) -> [UInt8] {
    var isLast = false
    while !isLast {
      isLast = try read(1) == 1
      switch try read(2) {
      case 0: try stored()
      case 1: try block(HuffmanCode.fixedSymbols, HuffmanCode.fixedDistances)
      case 2:
        let (symbols, distances) = try codes()
        try block(symbols, distances)
      default: throw .malformed
      }
    }
    return out
  }

  /// Reads four bytes after the blocks.
  mutating func uint32() -> UInt32? {
    guard bytes.count - index >= 4 else { return nil }
    defer { index += 4 }
    return bytes[index..<(index + 4)].reduce(0) { $0 << 8 | UInt32($1) }
  }

  private mutating func read(_ count: Int) throws(Zlib.Failure) -> Int {
    while bitCount < count {
      guard index < bytes.count else { throw .malformed }
      bits |= UInt32(bytes[index]) << UInt32(bitCount)
      index += 1
      bitCount += 8
    }
    let value = bits & (1 << UInt32(count) - 1)
    bits >>= UInt32(count)
    bitCount -= count
    return Int(value)
  }

  private mutating func append(_ byte: UInt8) throws(Zlib.Failure) {
    guard out.count < limit else { throw .tooLong }
    out.append(byte)
  }

  private mutating func stored() throws(Zlib.Failure) {
    // Discard the rest of the byte, and put whole bytes that were read ahead back.
    index -= bitCount / 8
    (bits, bitCount) = (0, 0)
    guard bytes.count - index >= 4 else { throw .malformed }
    let length = Int(bytes[index]) | Int(bytes[index + 1]) << 8
    let check = Int(bytes[index + 2]) | Int(bytes[index + 3]) << 8
    index += 4
    guard length == check ^ 0xffff, bytes.count - index >= length else { throw .malformed }
    guard out.count + length <= limit else { throw .tooLong }
    out += bytes[index..<(index + length)]
    index += length
  }

  private mutating func symbol(_ code: HuffmanCode) throws(Zlib.Failure) -> Int {
    var (value, first, start) = (0, 0, 0)
    for length in 1...HuffmanCode.longest {
      value |= try read(1)
      let count = code.counts[length]
      if value - first < count { return code.symbols[start + value - first] }
      start += count
      first = (first + count) << 1
      value <<= 1
    }
    throw .malformed
  }

  private mutating func block(_ symbols: HuffmanCode, _ distances: HuffmanCode)
    throws(Zlib.Failure)
  {
    while true {
      let found = try symbol(symbols)
      if found == 256 { break }
      if found < 256 {
        try append(UInt8(found))
        continue
      }
      guard found - 257 < CopyTable.lengths.count else { throw .malformed }
      let length = CopyTable.lengths[found - 257]
      let count = length.base + (try read(length.bits))
      let row = try symbol(distances)
      guard row < CopyTable.distances.count else { throw .malformed }
      let distance = CopyTable.distances[row]
      let back = distance.base + (try read(distance.bits))
      guard back <= out.count else { throw .malformed }
      for _ in 0..<count { try append(out[out.count - back]) }
    }
    // Put whole bytes that were read ahead back; they belong to what follows.
    index -= bitCount / 8
    bitCount %= 8
    bits &= 1 << UInt32(bitCount) - 1
  }

  private static let order = [
    16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15,
  ]

  /// Reads the codes of a dynamic block (RFC 1951 section 3.2.7).
  private mutating func codes() throws(Zlib.Failure) -> (HuffmanCode, HuffmanCode) {
    let symbolCount = 257 + (try read(5))
    let distanceCount = 1 + (try read(5))
    let orderCount = 4 + (try read(4))
    var lengths = [Int](repeating: 0, count: 19)
    for place in InflateReader.order.prefix(orderCount) { lengths[place] = try read(3) }
    let code = try HuffmanCode(lengths)
    var all: [Int] = []
    while all.count < symbolCount + distanceCount {
      switch try symbol(code) {
      case let length where length < 16: all.append(length)
      case 16:
        guard let last = all.last else { throw .malformed }
        all += [Int](repeating: last, count: 3 + (try read(2)))
      case 17: all += [Int](repeating: 0, count: 3 + (try read(3)))
      default: all += [Int](repeating: 0, count: 11 + (try read(7)))
      }
    }
    guard all.count == symbolCount + distanceCount else { throw .malformed }
    return (
      try HuffmanCode(Array(all[..<symbolCount])), try HuffmanCode(Array(all[symbolCount...]))
    )
  }
}

/// A Huffman code by the lengths of its words (RFC 1951 section 3.2.2).
private struct HuffmanCode {
  static let longest = 15

  /// The number of words per length.
  var counts = [Int](repeating: 0, count: longest + 1)
  /// The symbols in the order of their words.
  var symbols: [Int] = []

  init(_ lengths: [Int]) throws(Zlib.Failure) {
    for length in lengths where length > 0 { counts[length] += 1 }
    var room = 1
    for length in 1...HuffmanCode.longest {
      room = room << 1 - counts[length]
      // Over-subscribed: more words than there is room for.
      guard room >= 0 else { throw .malformed }
    }
    for length in 1...HuffmanCode.longest {
      for (symbol, other) in lengths.enumerated() where other == length { symbols.append(symbol) }
    }
  }

  private init(fixed lengths: [Int]) {
    for length in lengths { counts[length] += 1 }
    for length in 1...HuffmanCode.longest {
      for (symbol, other) in lengths.enumerated() where other == length { symbols.append(symbol) }
    }
  }

  static let fixedSymbols = HuffmanCode(
    fixed: (0..<288).map { $0 < 144 ? 8 : $0 < 256 ? 9 : $0 < 280 ? 7 : 8 })
  static let fixedDistances = HuffmanCode(fixed: [Int](repeating: 5, count: 30))
}
