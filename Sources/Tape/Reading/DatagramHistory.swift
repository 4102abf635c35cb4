package import Wire

/// The datagrams of a take in the order of their times, for export to other formats.
package final class DatagramHistory {
  /// A datagram as it was sent or received.
  package struct Entry: Hashable, Sendable {
    package var atNanoseconds: Int64
    /// Whether it was received; else it was sent.
    package var isInbound: Bool
    package var source: SocketAddress
    package var destination: SocketAddress
    /// The UDP payload.
    package var bytes: [UInt8]
  }

  /// Unix time at `atNanoseconds` = 0.
  package let startUnixNanoseconds: Int64
  /// The numbers and labels of the peers in the take.
  package let peers: [(number: Int64, label: String)]
  /// How many datagrams there are.
  package let count: Int

  private let path: String
  private let rows: SQLiteStatement
  private let packet: SQLiteStatement

  /// Opens a take; with a number of a peer, only what that one sent and received is given.
  package init(path: String, peer: Int64? = nil) throws(TapeError) {
    self.path = path
    let connection = try TakeFile.open(path)
    startUnixNanoseconds = try TakeHeader.read(from: connection, path: path).startUnixNanoseconds
    let which = peer.map { "WHERE path.peer = \($0)" } ?? ""
    let from = "FROM packet_store JOIN path USING (path) \(which)"
    do throws(SQLiteError) {
      let statement = try connection.prepare("SELECT peer, label FROM peer ORDER BY row")
      var found: [(number: Int64, label: String)] = []
      while try statement.step() { found.append(statement.values(Int64.self, String.self)) }
      peers = found
      count = Int(try connection.integer("SELECT count(*) \(from)") ?? 0)
      // Row numbers are sorted alone, so that sorting never holds the bytes of a long call.
      rows = try connection.prepare(
        "SELECT packet_store.row \(from) ORDER BY packet_store.at_ns, packet_store.row")
      packet = try connection.prepare(
        "SELECT at_ns, direction, local, remote, bytes FROM packet WHERE row = ?1")
    } catch {
      throw TapeError(path: path, place: "packet", error)
    }
  }

  /// The next datagram; nil after the last one.
  package func next() throws(TapeError) -> Entry? {
    do throws(SQLiteError) {
      guard try rows.step() else { return nil }
      packet.reset()
      packet.bind(rows.values(Int64.self), at: 1)
      _ = try packet.step()
    } catch {
      throw TapeError(path: path, place: "packet", error)
    }
    let (at, direction, from, to, bytes) = packet.values(
      Int64.self, String.self, String.self, String.self, [UInt8].self)
    guard let local = SocketAddress(from), let remote = SocketAddress(to),
      local.ip.isIPv4 == remote.ip.isIPv4
    else { throw unreadable() }
    let isInbound = direction == directionName(true)
    return Entry(
      atNanoseconds: at, isInbound: isInbound, source: isInbound ? remote : local,
      destination: isInbound ? local : remote, bytes: bytes)
  }

  private func unreadable() -> TapeError {
    let row = rows.values(Int64.self)
    return TapeError(
      path: path, place: "packet, step \(row >> 16)",
      reason: "the datagram was altered; retake replay tells more")
  }
}
