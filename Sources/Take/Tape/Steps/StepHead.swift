package import Wire

/// A step without its rows: what the `tape` table keeps of it.
package struct StepHead: Hashable, Sendable {
  /// The number of the step, counted from 1 over all actors.
  package var number: Int
  package var kind: StepKind
  /// The number of the actor, counted from 1.
  package var actor: UInt32
  package var at: Instant
  /// The machine's deadline after the step.
  package var deadline: Instant?
  /// The random bytes drawn by the actor since its genesis, after the step.
  package var entropyDrawn: UInt64
  /// How many rows the step has in the other tables.
  package var rowCount: Int
  /// The first four bytes of the chained digest after the step.
  package var check: UInt32 = 0

  package init(
    number: Int, kind: StepKind, actor: UInt32, at: Instant, deadline: Instant?,
    entropyDrawn: UInt64, rowCount: Int
  ) {
    self.number = number
    self.kind = kind
    self.actor = actor
    self.at = at
    self.deadline = deadline
    self.entropyDrawn = entropyDrawn
    self.rowCount = rowCount
  }
}
