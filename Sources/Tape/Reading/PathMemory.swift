import Wire

/// The paths that packets of a take refer to by number.
struct PathMemory {
  private typealias Ends = (local: SocketAddress, remote: SocketAddress)

  private var paths: [Int64: Ends] = [:]
  /// The path that was asked for last: most packets take the same one as the packet before.
  private var last: (number: Int64, ends: Ends)?

  /// Takes note of a path; false when its addresses are none.
  mutating func add(_ row: PathRow) -> Bool {
    guard let local = SocketAddress(row.local), let remote = SocketAddress(row.remote) else {
      return false
    }
    last = nil
    paths[row.number] = (local, remote)
    // The recorder has forgotten paths that are so old; see `Numbering`.
    paths[row.number &- 131_072] = nil
    return true
  }

  /// A packet with its ends; nil when its path is not known.
  mutating func datagram(_ row: PacketRow) -> Datagram? {
    guard let ends = ends(row.path.number) else { return nil }
    return Datagram(local: ends.local, remote: ends.remote, bytes: row.bytes)
  }

  private mutating func ends(_ number: Int64) -> Ends? {
    if let last, last.number == number { return last.ends }
    guard let ends = paths[number] else { return nil }
    last = (number, ends)
    return ends
  }
}
