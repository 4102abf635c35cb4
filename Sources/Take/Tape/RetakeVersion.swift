/// The Retake version that is stored in takes.
public let retakeVersion = "0.1.0"

/// The stack's revision, to be raised whenever the stack produces other outputs from the same
/// inputs.
///
/// It covers all machines but the observer, which has its own. A take stores the revision that
/// recorded it. A test checks that the captures replay exactly under an unchanged revision: a
/// commit that changes outputs raises this number and says why in its message.
public let stackRevision: Int64 = 1

/// The observer's revision, to be raised whenever the observer produces other outputs from the same
/// inputs and the endpoint does not.
///
/// An observer's genesis stores it; without it, the revision is 1. Changes to shared code, such as
/// decoders, raise both revisions.
package let observerRevision: Int64 = 2

/// A kind of machine that another revision recorded.
package struct OtherRevision: Hashable, Sendable {
  /// Whether the machine is the observer rather than the stack.
  package var isObserver: Bool
  package var recorded: Int64
  package var present: Int64

  package init(isObserver: Bool, recorded: Int64, present: Int64) {
    self.isObserver = isObserver
    self.recorded = recorded
    self.present = present
  }

  /// A phrase such as "revision 1 of the observer, and this is 2".
  package var text: String {
    "revision \(recorded) of the \(isObserver ? "observer" : "stack"), and this is \(present)"
  }
}
