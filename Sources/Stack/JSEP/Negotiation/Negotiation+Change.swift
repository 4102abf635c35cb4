extension Negotiation {
  /// A change caused by a description, in the order in which applications must be notified.
  package enum Change: Hashable, Sendable {
    case signalingState(from: SignalingState, to: SignalingState)
    /// A transceiver was created for a remote m-section.
    case transceiverAdded(id: UInt32)
    /// The peer began to send on a transceiver (the W3C track event).
    case trackAdded(transceiver: UInt32, streamIDs: [String])
    /// The peer stopped sending on it.
    case trackRemoved(transceiver: UInt32)
    /// A transceiver was stopped and removed.
    case transceiverStopped(id: UInt32)
    /// `sections` is new: an offer/answer exchange completed.
    case sectionsAgreed
    /// The peer's side of a transport was added, changed or removed.
    case remoteTransport(Int)
    /// A local description was set; gathering may start.
    case localDescriptionSet
  }
}
