package import Tape

/// What the peers of a take are called.
struct PeerLabels: Sendable {
  /// In the order of the take.
  private(set) var entries: [(peer: Int64, label: String)] = []

  init() {}

  /// Reads the labels.
  init(_ connection: borrowing SQLiteConnection) throws(SQLiteError) {
    let rows = try connection.prepare("SELECT peer, label FROM peer ORDER BY row")
    while try rows.step() { entries.append(rows.values(Int64.self, String.self)) }
  }

  /// The label of a peer; nil when the take has no such peer.
  subscript(peer: Int64) -> String? { entries.first { $0.peer == peer }?.label }
}

/// The peers of a take.
package enum TakePeers {
  /// The numbers and labels of all peers, in their order.
  package static func all(in path: String) throws(TapeError) -> [(number: Int64, label: String)] {
    let connection = try TakeFile.open(path)
    do throws(SQLiteError) {
      return try PeerLabels(connection).entries.map { (number: $0.peer, label: $0.label) }
    } catch {
      throw TapeError(path: path, error)
    }
  }
}
