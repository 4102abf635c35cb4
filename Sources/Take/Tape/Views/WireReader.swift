/// Reads the bytes of datagrams from `wire`; neighbours are mostly in the same piece.
final class WireReader {
  private let pieces: SQLiteStatement
  /// The piece that the statement is at.
  private var piece: Int64 = -1
  private var isThere = false

  private static let pieceLength = Int64(WirePiece.length)
  /// The maximum size of a datagram in bytes.
  private static let longest: Int64 = 65_535

  init(_ facts: ViewFacts) throws(SQLiteError) {
    pieces = try facts.prepare("SELECT bytes FROM wire WHERE piece = ?1")
  }

  /// Returns the bytes at an offset; fewer if the take lacks some.
  func bytes(at position: Int64, count: Int64) throws(SQLiteError) -> [UInt8] {
    guard position >= 0, (1...Self.longest).contains(count) else { return [] }
    var bytes: [UInt8] = []
    bytes.reserveCapacity(Int(count))
    var offset = Int(position % Self.pieceLength)
    let last = (position + count - 1) / Self.pieceLength
    for number in position / Self.pieceLength...last {
      guard try move(to: number) else { return bytes }
      let piece = pieces.lentBytes(0).dropFirst(offset)
      bytes.append(contentsOf: piece.prefix(Int(count) - bytes.count))
      offset = 0
    }
    return bytes
  }

  /// Returns the byte at an offset; nil if the take lacks it.
  func byte(at position: Int64) throws(SQLiteError) -> UInt8? {
    guard position >= 0, try move(to: position / Self.pieceLength) else { return nil }
    return pieces.lentBytes(0).dropFirst(Int(position % Self.pieceLength)).first
  }

  private func move(to number: Int64) throws(SQLiteError) -> Bool {
    guard number != piece else { return isThere }
    // Unknown while the statement may fail.
    piece = -1
    pieces.reset()
    pieces.bind(number, at: 1)
    isThere = try pieces.step()
    piece = number
    return isThere
  }
}
