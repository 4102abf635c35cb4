/// The version of Retake that is stored in takes.
public let retakeVersion = "0.1.0"

/// The stack's revision, to be raised whenever the stack produces different outputs from the same
/// inputs.
///
/// It covers all machines except the observer, and is stored in takes. A test checks that the
/// repository's captures replay exactly while the revision is unchanged. A commit that changes
/// outputs raises it and says why in its message.
public let stackRevision: Int64 = 1

/// The observer's revision, to be raised when only the observer produces different outputs from the
/// same inputs.
///
/// It is stored in an observer's genesis; without it, the revision is 1. A change to code that both
/// the stack and the observer use, such as decoders, raises both revisions.
package let observerRevision: Int64 = 2

/// A revision in a take that differs from this version's.
package struct OtherRevision: Hashable, Sendable {
  /// Whether it is the observer's revision rather than the stack's.
  package var isObserver: Bool
  package var recorded: Int64
  package var present: Int64

  package init(isObserver: Bool, recorded: Int64, present: Int64) {
    self.isObserver = isObserver
    self.recorded = recorded
    self.present = present
  }

  /// The difference in words, as in `revision 1 of the observer, and this is 2`.
  package var text: String {
    "revision \(recorded) of the \(isObserver ? "observer" : "stack"), and this is \(present)"
  }
}
