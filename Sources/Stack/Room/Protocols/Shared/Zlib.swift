import CZlib

/// Data in the zlib format (RFC 1950), which compressed data channels use.
///
/// Compression is implemented here, because the same text must compress to the same bytes in every
/// replay, regardless of library versions; it uses only the fixed codes of RFC 1951 section 3.2.6.
/// Decompression is left to zlib, because its result is always the same.
enum Zlib {
  /// The reason that bytes cannot be expanded: they are invalid, or the result is too long.
  enum Failure: Error, Hashable { case malformed, tooLong }

  /// Returns the format's checksum (RFC 1950 section 8).
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
    // The header states a 32 KiB window and no dictionary; its check bits make the two bytes a
    // multiple of 31.
    return [0x78, 0x01] + writer.finish() + tail
  }

  /// The number of bytes that are decompressed at a time.
  private static let pieceLength = 1 << 16

  /// Returns the decompressed bytes.
  ///
  /// - Parameter limit: the maximum length of the result.
  static func expanded(_ bytes: [UInt8], limit: Int) throws(Failure) -> [UInt8] {
    // The stream contains a pointer to itself, so it must not move.
    let stream = UnsafeMutablePointer<z_stream>.allocate(capacity: 1)
    stream.initialize(to: z_stream())
    defer { stream.deallocate() }
    guard inflateInit_(stream, ZLIB_VERSION, Int32(MemoryLayout<z_stream>.size)) == Z_OK else {
      throw .malformed
    }
    defer { inflateEnd(stream) }
    return try bytes.withUnsafeBufferPointer { (input) throws(Failure) -> [UInt8] in
      stream.pointee.next_in = UnsafeMutablePointer(mutating: input.baseAddress)
      stream.pointee.avail_in = UInt32(clamping: input.count)
      var out: [UInt8] = []
      var code = Z_OK
      while code == Z_OK {
        // One byte beyond the limit shows that the result is too long.
        let room = min(limit - out.count + 1, pieceLength)
        out += [UInt8](unsafeUninitializedCapacity: room) { buffer, count in
          stream.pointee.next_out = buffer.baseAddress
          stream.pointee.avail_out = UInt32(clamping: room)
          code = inflate(stream, Z_NO_FLUSH)
          count = room - Int(stream.pointee.avail_out)
        }
        guard out.count <= limit else { throw .tooLong }
      }
      // For truncated input, the code is Z_BUF_ERROR.
      guard code == Z_STREAM_END else { throw .malformed }
      return out
    }
  }
}

/// Base values and extra bits for lengths and distances (RFC 1951 section 3.2.5).
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

/// Writes a single block with the fixed codes.
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
    // The last row that starts at or below the value; length 258 has its own row.
    let row = CopyTable.lengths.lastIndex { $0.base <= length } ?? 0
    putSymbol(257 + row)
    put(length - CopyTable.lengths[row].base, CopyTable.lengths[row].bits)
    let far = CopyTable.distances.lastIndex { $0.base <= distance } ?? 0
    putCode(far, 5)
    put(distance - CopyTable.distances[far].base, CopyTable.distances[far].bits)
  }

  mutating func write(_ bytes: [UInt8]) {
    // The last index of each three-byte sequence, by hash.
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
