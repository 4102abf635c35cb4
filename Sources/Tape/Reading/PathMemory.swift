import Wire

/// The paths that packets of a take refer to by number.
struct PathMemory {
  private var paths: [Int64: (local: SocketAddress, remote: SocketAddress)] = [:]

  /// Takes note of a path; false when its addresses are none.
  mutating func add(_ row: PathRow) -> Bool {
    guard let local = SocketAddress(row.local), let remote = SocketAddress(row.remote) else {
      return false
    }
    paths[row.number] = (local, remote)
    // The recorder has forgotten paths that are so old; see `Numbering`.
    paths[row.number &- 131_072] = nil
    return true
  }

  /// A packet with its ends; nil when its path is not known.
  func datagram(_ row: PacketRow) -> Datagram? {
    paths[row.path.number].map { Datagram(local: $0.local, remote: $0.remote, bytes: row.bytes) }
  }
}
