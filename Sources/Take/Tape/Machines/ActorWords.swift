package import Wire

/// What the rows of an actor's first step say besides its input.
package struct ActorWords: Hashable, Sendable {
  package var label = ""
  package var role = ""
  /// What was added to the actor's own times.
  package var clock = Interval.zero
  /// The number of the peer that the actor is; nil when it is none.
  package var peer: UInt32?
  /// What kind of machine it is.
  package var kind = MachineKind.endpoint

  package init() {}

  /// How an actor is called: `peer 1`, or `actor 2`.
  package static func name(actor: UInt32, peer: UInt32?) -> String {
    peer.map { "peer \($0)" } ?? "actor \(actor)"
  }

  /// The words of an endpoint that was not named.
  static func endpoint(_ actor: UInt32) -> ActorWords {
    var words = ActorWords()
    words.peer = actor
    return words
  }

  /// Reads the rows of a genesis; other steps say nothing.
  package init(_ step: TapeChunk.Step, _ rows: RowList) {
    guard step.head.kind == .genesis else { return }
    for row in step.inputRows {
      if let row = ClockRow(rows, row) {
        clock = Interval(nanoseconds: row.added)
      } else if let row = PeerRow(rows, row) {
        (label, role, peer) = (row.label, row.role, row.peer.number)
      } else if let row = ActorRow(rows, row) {
        (label, kind) = (row.label, MachineKind(rawValue: row.kind))
      }
    }
  }
}
