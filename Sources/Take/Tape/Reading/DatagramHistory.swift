package import Wire

/// The datagrams of a take in time order, for export.
package final class DatagramHistory {
  /// A datagram that was sent or received, or a segment of an observed TCP stream.
  package struct Entry: Sendable {
    package var atNanoseconds: Int64
    /// Whether the datagram or segment was received rather than sent; always true for observed
    /// ones, unless the history is limited to one peer.
    package var isInbound: Bool
    package var source: SocketAddress
    package var destination: SocketAddress
    /// The UDP payload, or the bytes of the TCP segment.
    package var bytes: [UInt8]
    /// For TCP, the number of bytes missing before the segment and whether the stream ends with it;
    /// nil for UDP.
    package var stream: (lost: Int, isEnd: Bool)?
    /// The ECN field of the IP header; nil if unknown.
    package var ecn: ECNMark?
  }

  /// The Unix time, in nanoseconds, at which the take begins.
  package let startUnixNanoseconds: Int64
  /// The numbers and labels of the take's peers.
  package let peers: [(number: Int64, label: String)]
  package let count: Int

  private let path: String
  private let rows: SQLiteStatement
  private let packet: SQLiteStatement
  private let segment: SQLiteStatement

  /// Opens a take.
  ///
  /// - Parameter peer: limits the history to one peer; for an observed peer, this means the
  ///   datagrams between the addresses of its candidate pairs.
  package init(path: String, peer: Int64? = nil) throws(TapeError) {
    self.path = path
    let connection = try TakeFile.openForQueries(path)
    startUnixNanoseconds = try TakeHeader.read(from: connection, path: path).startUnixNanoseconds
    let from =
      peer.map { "FROM packet_store JOIN path_end USING (path) WHERE path_end.peer = \($0)" }
      // Observers also store packets that they decrypted or unwrapped; these would be duplicates.
      ?? "FROM packet_store JOIN path USING (path) WHERE NOT (path.peer = 0 AND direction = 'out')"
    do throws(SQLiteError) {
      let statement = try connection.prepare("SELECT peer, label FROM peer ORDER BY row")
      var found: [(number: Int64, label: String)] = []
      while try statement.step() { found.append(statement.values(Int64.self, String.self)) }
      peers = found
      // Only row numbers are sorted, because sorting whole rows would keep the bytes of a long call
      // in memory.
      let chosen = """
        SELECT packet_store.row AS row, direction, packet_store.at_ns AS at_ns, 0 AS is_stream
        \(from)
        \(peer == nil ? DatagramHistory.segments : "")
        """
      count = Int(try connection.integer("SELECT count(*) FROM (\(chosen))") ?? 0)
      rows = try connection.prepare("\(chosen) ORDER BY at_ns, row")
      packet = try connection.prepare(DatagramHistory.packet)
      segment = try connection.prepare(
        "SELECT at_ns, name, arguments FROM call_request WHERE row = ?1")
    } catch {
      throw TapeError(path: path, place: "packet", error)
    }
  }

  /// Selects the TCP segments that observers received.
  private static let segments = """
    UNION ALL
    SELECT row, 'in', at_ns, 1 FROM call_request WHERE peer = 0 AND name = 'segment'
    """

  /// Selects a datagram and its path.
  ///
  /// It reads storage tables, because the `packet` view omits packets without a peer and lists
  /// observed packets twice.
  private static let packet = """
    SELECT packet_store.at_ns, path.peer, path.direction, path.local, path.remote,
      CASE
        WHEN packet_store.size = 0 THEN x''
        ELSE substr((
          SELECT CAST(group_concat(part, '') AS BLOB) FROM (
            SELECT wire.bytes AS part FROM wire
            WHERE wire.piece BETWEEN packet_store.position / 8152
              AND (packet_store.position + packet_store.size - 1) / 8152
            ORDER BY wire.piece
          )
        ), packet_store.position % 8152 + 1, packet_store.size)
      END,
      packet_store.ecn
    FROM packet_store JOIN path USING (path) WHERE packet_store.row = ?1
    """

  /// Returns the next datagram or segment; nil after the last one.
  package func next() throws(TapeError) -> Entry? {
    let isFound: Bool
    do throws(SQLiteError) {
      guard try rows.step() else { return nil }
      if rows.integer(3) == 1 {
        segment.reset()
        segment.bind(rows.integer(0), at: 1)
        isFound = try segment.step()
      } else {
        packet.reset()
        packet.bind(rows.values(Int64.self), at: 1)
        isFound = try packet.step()
      }
    } catch {
      throw TapeError(path: path, place: "packet", error)
    }
    guard isFound else { throw unreadable() }
    if rows.integer(3) == 1 { return try readSegment() }
    let (at, owner, direction, from, to, bytes, ecn) = packet.values(
      Int64.self, Int64.self, String.self, String.self, String.self, [UInt8].self, UInt8?.self)
    guard let local = SocketAddress(from), let remote = SocketAddress(to),
      local.ip.isIPv4 == remote.ip.isIPv4
    else { throw unreadable() }
    // The path of an observed packet always leads from the local address to the remote one.
    let isReversed = owner > 0 && direction == directionName(true)
    return Entry(
      atNanoseconds: at, isInbound: rows.values(Int64.self, String.self).1 == directionName(true),
      source: isReversed ? remote : local, destination: isReversed ? local : remote, bytes: bytes,
      ecn: ecn.map { ECNMark(rawValue: $0) })
  }

  private func readSegment() throws(TapeError) -> Entry {
    let (at, name, arguments) = segment.values(Int64.self, String.self, String.self)
    guard
      case .segment(let from, let to, let bytes, let lost, let isEnd)? = CallText(
        name: name, arguments: arguments
      ).value(ObserverCall.self), let source = SocketAddress(from),
      let destination = SocketAddress(to), source.ip.isIPv4 == destination.ip.isIPv4
    else { throw unreadable() }
    return Entry(
      atNanoseconds: at, isInbound: true, source: source, destination: destination,
      bytes: [UInt8](bytes), stream: (lost, isEnd))
  }

  private func unreadable() -> TapeError {
    let row = rows.values(Int64.self)
    return TapeError(
      path: path, place: "packet, step \(row >> 16)",
      reason: "the datagram was altered; retake replay says more")
  }
}

// MARK: - PathMemory

/// The addresses of a take's paths, by number.
struct PathMemory {
  private typealias Ends = (local: SocketAddress, remote: SocketAddress)

  private var paths: [Int64: Ends] = [:]
  /// The most recently used paths, which most packets use; the oldest is replaced.
  private var recent: [(number: Int64, ends: Ends)] = []
  private var oldest = 0

  private static let recentLimit = 4

  /// Adds a path; returns false if an address is malformed.
  mutating func add(_ row: PathRow) -> Bool {
    guard let local = SocketAddress(row.local), let remote = SocketAddress(row.remote) else {
      return false
    }
    recent.removeAll(keepingCapacity: true)
    paths[row.number] = (local, remote)
    // The recorder no longer refers to paths this old; see `Numbering`.
    paths[row.number &- 131_072] = nil
    return true
  }

  /// Returns a packet with the addresses of its path; nil if the path is unknown.
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
