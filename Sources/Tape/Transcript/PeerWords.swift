package import Wire

/// What the rows of a peer's first step say besides its input.
package struct PeerWords: Hashable, Sendable {
  package var label = ""
  package var role = ""
  /// What was added to the peer's own times.
  package var clock = Interval.zero

  package init() {}

  /// Reads the rows of a genesis; other steps say nothing.
  package init(_ step: TapeChunk.Step, _ rows: RowList) {
    guard step.head.kind == .genesis else { return }
    for row in step.inputRows {
      switch (rows.table(row), Array(rows.row(row))) {
      case (.clock, let values):
        if case .integer(let added) = values[2] { clock = Interval(nanoseconds: added) }
      case (.peer, let values):
        if case .text(let text) = values[2] { label = text }
        if case .text(let text) = values[3] { role = text }
      default: break
      }
    }
  }
}
