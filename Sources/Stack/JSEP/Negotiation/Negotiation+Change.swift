extension Negotiation {
  /// What applying a description changed, in the order in which applications must hear of it.
  package enum Change: Hashable, Sendable {
    case signalingState(from: SignalingState, to: SignalingState)
    /// A transceiver was made for a remote m-section.
    case transceiverAdded(id: UInt32)
    /// The peer began to send on a transceiver (the W3C track event).
    case trackAdded(transceiver: UInt32, streamIDs: [String])
    /// The peer no longer sends on it.
    case trackRemoved(transceiver: UInt32)
    /// A transceiver was stopped and is gone from the session.
    case transceiverStopped(id: UInt32)
    /// `sections` is new: an offer/answer exchange completed.
    case sectionsAgreed
    /// The peer's side of the transport with this number is new, changed or gone.
    case remoteTransport(Int)
    /// A local description was set: gathering may begin.
    case localDescriptionSet
  }
}
