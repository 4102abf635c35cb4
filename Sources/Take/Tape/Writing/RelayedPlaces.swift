import Crypto
import Peer

/// Finds the stored bytes of a relay's packets, so that a packet that both a leg of the relay and
/// the observer record is stored only once.
///
/// A packet that a leg sends is an input of the observer. Both machines record it, in either order,
/// within a few milliseconds of each other, or within a minute if a fault delays the packet.
/// Digests and comparisons are not affected.
final class RelayedPlaces {
  /// Half of a SHA-256, which is long enough that no one can craft two packets with the same key.
  private struct Key: Hashable {
    var first: UInt64
    var second: UInt64
  }

  private var sha = SHA256()
  private var digest: [UInt8] = []

  /// The positions of the most recent packets, and of the packets in the previous full table.
  private var recent: [Key: Int64] = [:]
  private var former: [Key: Int64] = [:]
  /// The numbers of the paths that an observer sees.
  private var observedPaths: Set<Int64> = []
  /// Whether the take has legs of a relay; otherwise nothing is looked up.
  private var hasLegs = false

  /// The number of packets per table: more than an observer's backlog can hold, and more than a
  /// fault can delay.
  private static let limit = 65_536
  private static let pathColumn = Table.packet.column("path") ?? 0

  /// Learns from a row whether there is a relay, and which paths an observer sees.
  func learn(_ rows: borrowing RowList, _ row: Int) {
    switch rows.table(row) {
    case .peer where !hasLegs:
      let configuration = PeerRow(rows, row)?.configuration ?? ""
      hasLegs =
        CanonicalJSON.value(PeerConfiguration.self, from: configuration)?.relays == true
    case .path where hasLegs:
      guard let path = PathRow(rows, row), path.peer.number == 0 else { return }
      observedPaths.insert(path.number)
    default: break
    }
  }

  /// Returns the length and position of a row's bytes if they are already stored.
  ///
  /// Otherwise, it records that they will be stored at `position`, and returns nil.
  func find(
    _ rows: borrowing RowList, _ row: Int, next position: Int64
  ) -> (length: Int, position: Int64)? {
    guard hasLegs, isOfRelay(rows, row) else { return nil }
    let length = rows.withStreamBytes(row) { bytes -> Int in
      sha.update(bytes)
      return bytes.byteCount
    }
    sha.finish(into: &digest)
    guard let length, (1...WirePiece.repeatedMaximum).contains(length) else { return nil }
    let key = Key(first: word(at: 0), second: word(at: 8))
    if let known = recent[key] ?? former[key] { return (length, known) }
    if recent.count == RelayedPlaces.limit {
      former = recent
      recent = [:]
    }
    recent[key] = position
    return nil
  }

  private func word(at start: Int) -> UInt64 {
    digest[start..<start + 8].reduce(0) { $0 << 8 | UInt64($1) }
  }

  private func isOfRelay(_ rows: borrowing RowList, _ row: Int) -> Bool {
    switch rows.table(row) {
    case .relayed: return true
    case .packet:
      guard case .integer(let path) = rows[row, RelayedPlaces.pathColumn] else { return false }
      return observedPaths.contains(path)
    default: return false
    }
  }
}
