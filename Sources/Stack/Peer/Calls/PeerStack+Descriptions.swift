import ICE
import JSEP
import SDP
import Wire

// Descriptions: creating, setting and reading them, and what follows.
extension PeerStack {
  /// Throws if descriptions have no certificate to state.
  private func checkCertificate() throws(PeerError) {
    guard let failure = bundles.all.lazy.compactMap({ $0.transport.failure }).first else { return }
    throw PeerError(name: "InvalidAccessError", message: "no DTLS transport: \(failure)")
  }

  func offer() throws(PeerError) -> SessionDescription {
    prepareBundles(negotiation.offeredTransportNumbers)
    try checkCertificate()
    driveAll(.offering)
    return try mapped { () throws(JSEPError) in
      try negotiation.createOffer(localTransports)
    }
  }

  func answer() throws(PeerError) -> SessionDescription {
    try checkCertificate()
    return try mapped { () throws(JSEPError) in
      try negotiation.createAnswer(localTransports)
    }
  }

  func setLocal(_ given: SessionDescription?) throws(PeerError) {
    var description: SessionDescription
    if let given, given.type == .rollback || !given.sdp.isEmpty {
      description = given
    } else if let given {
      // W3C: an empty text means the created description; here it is created if necessary.
      description = given.type == .offer ? try offer() : try answer()
      description.type = given.type
    } else if negotiation.signalingState == .haveRemoteOffer
      || negotiation.signalingState == .haveLocalPranswer
    {
      description = try answer()
    } else {
      description = try offer()
    }
    let changes = try mapped { () throws(JSEPError) in try negotiation.setLocal(description) }
    if description.type == .offer {
      for bundle in bundles.all {
        if !bundle.transport.hasRole { drive(bundle, .role(.controlling)) }
        drive(bundle, .offered(description.sdp))
      }
    }
    apply(changes)
  }

  func setRemote(_ description: SessionDescription) throws(PeerError) {
    let wasOfferer = negotiation.signalingState == .haveLocalOffer
    let changes = try mapped { () throws(JSEPError) in try negotiation.setRemote(description) }
    prepareBundles(negotiation.transportNumbers)
    // The first local offer collided with the peer's and was rolled back, and with it the ICE role.
    for bundle in bundles.all where description.type == .offer {
      guard !bundle.transport.hasRole || negotiation.currentLocal == nil else { continue }
      drive(bundle, .role(.controlled))
    }
    apply(changes, isAnswerToOwnOffer: wasOfferer)
    // A local restart that was rolled back for a colliding offer has started nevertheless: the
    // agent continues with the peer's unchanged credentials.
    for bundle in bundles.all where description.type != .rollback {
      guard bundle.transport.remoteUsernameFragment == nil else { continue }
      drive(
        bundle,
        .remote(negotiation.remoteTransport(bundle.number), answersLocalOffer: wasOfferer))
    }
  }

  func apply(_ changes: [Negotiation.Change], isAnswerToOwnOffer: Bool = false) {
    tracks.senders.endTransactions()
    followLayers()
    for change in changes {
      switch change {
      case .signalingState(_, let to): emit(states.move(to: to))
      case .localDescriptionSet:
        for number in negotiation.transportNumbers {
          if let bundle = bundles[number] { drive(bundle, .gather) }
        }
      case .remoteTransport(let number):
        guard let bundle = bundles[number] else { break }
        drive(
          bundle,
          .remote(negotiation.remoteTransport(number), answersLocalOffer: isAnswerToOwnOffer))
      case .sectionsAgreed: applySections()
      case .trackAdded(let id, _):
        if let info = try? info(id) { emit(.track(info)) }
        beginReceiving(id)
      case .trackRemoved(let id):
        emit(.trackEnded(transceiver: id))
        recordMuted(true, of: id, .removed)
      case .transceiverAdded: break
      case .transceiverStopped(let id):
        emit(.trackEnded(transceiver: id))
        stopCapture(of: id)
        endReceiving(id, .stopped)
      }
    }
    reportStreams()
    closeUnusedBundles()
  }
}
