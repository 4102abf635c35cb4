package import SDP
package import Wire

// The contract; its behaviour is to be written.

/// The offer/answer machine: transceivers, descriptions and the signaling state (RFC 9429, 3264).
///
/// One bundled transport; sections that the peer leaves out of the bundle are rejected.
package struct Negotiation {
  package private(set) var signalingState: SignalingState = .stable
  package private(set) var transceivers: [Transceiver] = []
  /// What the last completed exchange agreed on, in the order of the m-sections; rejected ones left out.
  package private(set) var sections: [NegotiatedSection] = []
  package private(set) var remoteTransport: RemoteTransport?
  package private(set) var currentLocal: SessionDescription?
  package private(set) var pendingLocal: SessionDescription?
  package private(set) var currentRemote: SessionDescription?
  package private(set) var pendingRemote: SessionDescription?

  package init(entropy: EntropyStream, cname: String) {}

  /// Whether the transceivers want something that was not negotiated (W3C section 4.7.3).
  package var negotiationIsNeeded: Bool { false }

  package mutating func addTransceiver(
    kind: MediaKind, direction: TransceiverDirection, streamIDs: [String], byAddTrack: Bool
  ) throws(JSEPError) -> UInt32 { 0 }

  package mutating func setDirection(_ direction: TransceiverDirection, of transceiver: UInt32)
    throws(JSEPError)
  {}

  package mutating func setStreams(_ streamIDs: [String], of transceiver: UInt32) throws(JSEPError) {}

  package mutating func stop(transceiver: UInt32) throws(JSEPError) {}

  /// Makes an offer from the transceivers; the state does not change.
  package mutating func createOffer(_ transport: LocalTransport) throws(JSEPError) -> SessionDescription {
    throw JSEPError(.operation, "not written yet")
  }

  /// Makes an answer to the pending remote offer; the state does not change.
  package mutating func createAnswer(_ transport: LocalTransport) throws(JSEPError) -> SessionDescription {
    throw JSEPError(.operation, "not written yet")
  }

  /// Applies an own description, normally one that was created just before.
  package mutating func setLocal(_ description: SessionDescription) throws(JSEPError) -> [Change] { [] }

  /// Applies the peer's description; the text is refused with the line that is wrong.
  package mutating func setRemote(_ description: SessionDescription) throws(JSEPError) -> [Change] { [] }

  /// The pending or else current local description with the candidates gathered since (W3C localDescription).
  package func localDescription(_ transport: LocalTransport) -> SessionDescription? { nil }

  /// The m-line index of a mid in the peer's description, for addIceCandidate.
  package func remoteMLineIndex(ofMID mid: String) -> Int? { nil }

  package mutating func close() -> [Change] { [] }
}
