/// Which part of a take is looked at: what concerns some of its peers, from a time to another.
package struct TakeSelection: Sendable, Hashable {
  /// The numbers of the peers; nil for all.
  package var peers: Set<Int64>?
  /// Both ends belong to it.
  package var fromNanoseconds = Int64.min
  package var toNanoseconds = Int64.max

  /// All of a take.
  package init() {}

  /// Whether something of a peer that lasted from a time to another touches the selection.
  package func holds(peer: Int64, from: Int64, to: Int64) -> Bool {
    peers?.contains(peer) ?? true && from <= toNanoseconds && to >= fromNanoseconds
  }

  /// Whether something of a peer at a time is selected.
  package func holds(peer: Int64, at: Int64) -> Bool { holds(peer: peer, from: at, to: at) }
}
