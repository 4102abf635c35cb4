/// The version of Retake, as takes carry it.
public let retakeVersion = "0.1.0"

/// The revision of the stack: it moves whenever the stack makes other outputs of the same inputs.
///
/// It is that of all machines but the observer, which has one of its own. A take names the one that
/// made it. The captures replay exactly under an unchanged revision, to
/// which a test sees: whoever changes an output raises this number, and says in the message why.
public let stackRevision: Int64 = 1

/// The revision of the observer of calls between others, which moves apart from that of the stack:
/// whenever an observer makes other outputs of the same inputs, and no endpoint does.
///
/// The genesis of an observer names the one that made it; one that says nothing is of revision 1.
/// What both have in common, like decoders, moves both.
package let observerRevision: Int64 = 2

/// A kind of machine in a take that was made by another revision than that of this build.
package struct OtherRevision: Hashable, Sendable {
  /// Whether it is the observer; else all others.
  package var isObserver: Bool
  package var recorded: Int64
  package var present: Int64

  package init(isObserver: Bool, recorded: Int64, present: Int64) {
    self.isObserver = isObserver
    self.recorded = recorded
    self.present = present
  }

  /// As in "revision 1 of the observer, and this is 2".
  package var text: String {
    "revision \(recorded) of the \(isObserver ? "observer" : "stack"), and this is \(present)"
  }
}
