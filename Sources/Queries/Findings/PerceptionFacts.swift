import Tape

/// What rules about audio and video look at besides what all look at.
package struct PerceptionFacts: Sendable {
  init() {}

  /// Sees a packet of RTP in the pass over all; `stream` is its place in `CallFacts.streams`.
  mutating func add(_ sight: PacketSight, _ stream: Int) {}

  /// Reads what stands in other tables.
  mutating func read(_ connection: borrowing SQLiteConnection, _ facts: CallFacts)
    throws(SQLiteError)
  {}
}
