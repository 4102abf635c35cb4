/// Bytes that come in pieces and are taken from the front as soon as enough are there.
struct PieceBuffer {
  private var bytes: [UInt8] = []
  private var start = 0
  /// How many bytes were taken or dropped before the first one that waits.
  private(set) var position = 0

  /// How many bytes wait.
  var count: Int { bytes.count - start }

  /// Appends a piece.
  mutating func append(_ piece: RawSpan) {
    if start > 0, start == bytes.count || start > 1 << 16 {
      bytes.removeFirst(start)
      start = 0
    }
    unsafe piece.withUnsafeBytes { unsafe bytes.append(contentsOf: $0) }
  }

  /// The byte at a place among those that wait, which must be there.
  subscript(index: Int) -> UInt8 { bytes[start + index] }

  /// Takes so many bytes, or nothing when they are not all there.
  mutating func read(_ count: Int) -> [UInt8]? {
    guard count >= 0, count <= self.count else { return nil }
    let taken = Array(bytes[start..<start + count])
    start += count
    position += count
    return taken
  }

  /// Drops up to so many bytes and gives how many there were.
  mutating func drop(_ count: Int) -> Int {
    let dropped = min(max(count, 0), self.count)
    start += dropped
    position += dropped
    return dropped
  }

  /// Where a byte stands among the first `limit` that wait.
  func firstIndex(of byte: UInt8, within limit: Int) -> Int? {
    let end = start + min(limit, count)
    return bytes[start..<end].firstIndex(of: byte).map { $0 - start }
  }
}
