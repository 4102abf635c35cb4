import Wire

/// The paths that packets of a take refer to by number.
struct PathMemory {
  private typealias Ends = (local: SocketAddress, remote: SocketAddress)

  private var paths: [Int64: Ends] = [:]
  /// The paths that were asked for lately, each in the place of the one that stands there longest:
  /// most packets take one of them.
  private var recent: [(number: Int64, ends: Ends)] = []
  private var oldest = 0

  private static let recentLimit = 4

  /// Records a path; false when its addresses are none.
  mutating func add(_ row: PathRow) -> Bool {
    guard let local = SocketAddress(row.local), let remote = SocketAddress(row.remote) else {
      return false
    }
    recent.removeAll(keepingCapacity: true)
    paths[row.number] = (local, remote)
    // The recorder has forgotten paths that are so old; see `Numbering`.
    paths[row.number &- 131_072] = nil
    return true
  }

  /// A packet with its ends; nil when its path is not known.
  mutating func datagram(_ row: PacketRow) -> Datagram? {
    guard let ends = ends(row.path.number) else { return nil }
    return Datagram(
      local: ends.local, remote: ends.remote, bytes: row.bytes,
      ecn: row.ecn.map { ECNMark(rawValue: $0) })
  }

  private mutating func ends(_ number: Int64) -> Ends? {
    for index in recent.indices where recent[index].number == number { return recent[index].ends }
    guard let ends = paths[number] else { return nil }
    if recent.count < PathMemory.recentLimit {
      recent.append((number, ends))
    } else {
      oldest = (oldest + 1) % PathMemory.recentLimit
      recent[oldest] = (number, ends)
    }
    return ends
  }
}
