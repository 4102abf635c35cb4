package import Wire

/// A take's datagrams ordered by time, for export to other formats.
package final class DatagramHistory {
  /// A sent or received datagram, or a segment of a TCP stream.
  package struct Entry: Sendable {
    package var atNanoseconds: Int64
    /// Whether it was received rather than sent.
    package var isInbound: Bool
    package var source: SocketAddress
    package var destination: SocketAddress
    /// The UDP payload, or the bytes of the TCP segment.
    package var bytes: [UInt8]
    /// For a TCP segment, the number of missing bytes before it and whether it is the last.
    package var stream: (lost: Int, isEnd: Bool)?
    /// The ECN field with which it was received; nil if unknown.
    package var ecn: ECNMark?
  }

  /// Unix time at `atNanoseconds` = 0.
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
  /// - Parameter peer: restricts the history to one peer; in an observed call, to the traffic
  ///   between its pairs' ends.
  package init(path: String, peer: Int64? = nil) throws(TapeError) {
    self.path = path
    let connection = try TakeFile.openForQueries(path)
    startUnixNanoseconds = try TakeHeader.read(from: connection, path: path).startUnixNanoseconds
    let from =
      peer.map { "FROM packet_store JOIN path_end USING (path) WHERE path_end.peer = \($0)" }
      // Packets that an observer extracted from others (decrypted, or unwrapped from TURN) would be
      // duplicates.
      ?? "FROM packet_store JOIN path USING (path) WHERE NOT (path.peer = 0 AND direction = 'out')"
    do throws(SQLiteError) {
      let statement = try connection.prepare("SELECT peer, label FROM peer ORDER BY row")
      var found: [(number: Int64, label: String)] = []
      while try statement.step() { found.append(statement.values(Int64.self, String.self)) }
      peers = found
      // Only row numbers are sorted, so that sorting never holds a long call's bytes in memory.
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

  /// TCP segments that observers received.
  private static let segments = """
    UNION ALL
    SELECT row, 'in', at_ns, 1 FROM call_request WHERE peer = 0 AND name = 'segment'
    """

  /// A datagram with its path, from the storage tables: the `packet` view lacks those without a
  /// peer, and has those of two observed peers twice.
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

  /// Returns the next datagram; nil after the last one.
  package func next() throws(TapeError) -> Entry? {
    let isFound: Bool
    do throws(SQLiteError) {
      guard try rows.step() else { return nil }
      if rows.integer(3) == 1 { return try nextSegment() }
      packet.reset()
      packet.bind(rows.values(Int64.self), at: 1)
      isFound = try packet.step()
    } catch {
      throw TapeError(path: path, place: "packet", error)
    }
    guard isFound else { throw unreadable() }
    let (at, owner, direction, from, to, bytes, ecn) = packet.values(
      Int64.self, Int64.self, String.self, String.self, String.self, [UInt8].self, UInt8?.self)
    guard let local = SocketAddress(from), let remote = SocketAddress(to),
      local.ip.isIPv4 == remote.ip.isIPv4
    else { throw unreadable() }
    // Observed packets go from the first address to the second, whatever their direction column
    // says.
    let isReversed = owner > 0 && direction == directionName(true)
    return Entry(
      atNanoseconds: at, isInbound: rows.values(Int64.self, String.self).1 == directionName(true),
      source: isReversed ? remote : local, destination: isReversed ? local : remote, bytes: bytes,
      ecn: ecn.map { ECNMark(rawValue: $0) })
  }

  private func nextSegment() throws(SQLiteError) -> Entry? {
    segment.reset()
    segment.bind(rows.integer(0), at: 1)
    guard try segment.step() else { return nil }
    let (at, name, arguments) = segment.values(Int64.self, String.self, String.self)
    guard
      case .segment(let from, let to, let bytes, let lost, let isEnd)? = CallText(
        name: name, arguments: arguments
      ).value(ObserverCall.self), let source = SocketAddress(from),
      let destination = SocketAddress(to), source.ip.isIPv4 == destination.ip.isIPv4
    else { return nil }
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

/// A take's paths by number.
struct PathMemory {
  private typealias Ends = (local: SocketAddress, remote: SocketAddress)

  private var paths: [Int64: Ends] = [:]
  /// The most recently used paths, replaced round-robin: most packets use one of these.
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
    // The recorder has forgotten paths this old; see `Numbering`.
    paths[row.number &- 131_072] = nil
    return true
  }

  /// Returns a packet with its two addresses; nil if its path is unknown.
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
