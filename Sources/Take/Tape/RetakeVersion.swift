/// The version of Retake that is stored in takes.
public let retakeVersion = "0.1.0"

/// The revision of the stack, to be raised whenever the stack produces other outputs from the same
/// inputs.
///
/// It covers all machines but the observer, which has its own. A take stores the revision that made
/// it. A test checks that the captures replay exactly under an unchanged revision: a commit that
/// changes outputs raises this number and says why in its message.
public let stackRevision: Int64 = 1

/// The revision of the observer, to be raised whenever the observer produces other outputs from the
/// same inputs and the endpoint does not.
///
/// The genesis of an observer stores it; one without it is of revision 1. Changes of shared code,
/// such as decoders, raise both revisions.
package let observerRevision: Int64 = 2

/// A kind of machine that another revision than the current one recorded.
package struct OtherRevision: Hashable, Sendable {
  /// Whether the observer is meant rather than the stack.
  package var isObserver: Bool
  package var recorded: Int64
  package var present: Int64

  package init(isObserver: Bool, recorded: Int64, present: Int64) {
    self.isObserver = isObserver
    self.recorded = recorded
    self.present = present
  }

  /// A phrase like "revision 1 of the observer, and this is 2".
  package var text: String {
    "revision \(recorded) of the \(isObserver ? "observer" : "stack"), and this is \(present)"
  }
}
