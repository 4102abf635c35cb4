/// A refused call, with the exception that W3C prescribes.
package struct JSEPError: Error, Hashable, Sendable {
  /// The exception names that W3C prescribes.
  package enum Kind: String, Sendable {
    case invalidState = "InvalidStateError"
    case invalidAccess = "InvalidAccessError"
    case syntax = "RTCError"
    case invalidModification = "InvalidModificationError"
    case operation = "OperationError"
    case type = "TypeError"
    /// The identifier of a stream or track is already in use; not a W3C name.
    case duplicateID = "DuplicateIDError"
  }
  package var kind: Kind
  package var reason: String
  package init(_ kind: Kind, _ reason: String) {
    self.kind = kind
    self.reason = reason
  }
}
