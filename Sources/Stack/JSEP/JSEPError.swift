/// A refused call, named as the exception that W3C prescribes for it.
package struct JSEPError: Error, Hashable, Sendable {
  /// The names of exceptions that W3C prescribes.
  package enum Kind: String, Sendable {
    case invalidState = "InvalidStateError"
    case invalidAccess = "InvalidAccessError"
    case syntax = "RTCError"
    case invalidModification = "InvalidModificationError"
    case operation = "OperationError"
    case type = "TypeError"
    /// An identifier of a stream or track that is in use already; not a name of W3C's.
    case duplicateID = "DuplicateIDError"
  }
  package var kind: Kind
  package var reason: String
  package init(_ kind: Kind, _ reason: String) {
    self.kind = kind
    self.reason = reason
  }
}
