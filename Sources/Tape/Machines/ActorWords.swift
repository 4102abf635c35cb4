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

  /// Reads the rows of a genesis; other steps say nothing.
  package init(_ step: TapeChunk.Step, _ rows: RowList) {
    guard step.head.kind == .genesis else { return }
    for row in step.inputRows {
      func integer(_ column: String) -> Int64? {
        if case .integer(let value) = rows[row, column: column] { return value }
        return nil
      }
      func text(_ column: String) -> String {
        if case .text(let value) = rows[row, column: column] { return value }
        return ""
      }
      switch rows.table(row) {
      case .clock: clock = Interval(nanoseconds: integer("added_ns") ?? 0)
      case .peer:
        (label, role) = (text("label"), text("role"))
        peer = integer("peer").flatMap { UInt32(exactly: $0) }
      case .actor:
        label = text("label")
        kind = MachineKind(rawValue: UInt8(truncatingIfNeeded: integer("kind") ?? 0))
      default: break
      }
    }
  }
}
