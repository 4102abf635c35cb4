import Tape

/// What the peers of a take are called.
struct PeerLabels: Sendable {
  /// In the order of the take.
  private(set) var entries: [(peer: Int64, label: String)] = []

  init() {}

  /// Reads the labels.
  init(_ connection: borrowing SQLiteConnection) throws(SQLiteError) {
    var rows = try connection.prepare("SELECT peer, label FROM peer ORDER BY row")
    while try rows.step() { entries.append(rows.values(Int64.self, String.self)) }
  }

  /// The label of a peer; nil when the take has no such peer.
  subscript(peer: Int64) -> String? { entries.first { $0.peer == peer }?.label }
}
