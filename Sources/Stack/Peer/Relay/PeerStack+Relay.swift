import ICE
import JSEP
import SDP
import Wire

// One leg of a relay: a connection's transports, without media or negotiation above them.
//
// A leg is a peer whose genesis sets `relays`. Its sockets, ICE, DTLS, SRTP, states, rows and
// statistics work as in any peer. Packets that it decrypts are passed to the other leg, and packets
// from the other leg are protected and sent. It does not negotiate: the descriptions it signals
// come from the other leg's remote peer.
extension PeerStack {
  /// Returns the reply to a call that a leg answers differently from a full stack; nil for all
  /// other calls.
  func relayReply(to call: PeerCall) throws(PeerError) -> PeerReply? {
    guard relay != nil else { return nil }
    switch call {
    case .setLocalDescription(let description):
      guard let description else {
        throw PeerError(name: "TypeError", message: "a relay shows descriptions of the far end")
      }
      return try show(description)
    case .setRemoteDescription(let description): try receive(description)
    case .localDescription:
      return relay?.description(presentTransports).map { .description($0) } ?? .done
    case .addICECandidate(let candidate): try receive(candidate)
    case .createOffer(iceRestart: true):
      // The restart begins once an offer with the new credentials is signaled.
      for bundle in bundles.all {
        drive(bundle, PeerTransport.Input.restart)
        drive(bundle, PeerTransport.Input.offering)
      }
      return relay?.description(nextTransports).map { .description($0) } ?? .done
    case .close, .getStats, .setConfiguration: return nil
    default:
      throw PeerError(name: "NotSupportedError", message: "a leg of a relay has no such call")
    }
    return .done
  }

  /// Applies a description from the other leg's remote peer; replies with the text to signal on
  /// this leg.
  private func show(_ description: SessionDescription) throws(PeerError) -> PeerReply {
    var exchange = relay ?? RelayedExchange()
    let prefersClient = genesis.configuration.answersAsDTLSClient
    let settled = try mapped { () throws(JSEPError) in
      try exchange.show(description, prefersClient: prefersClient)
    }
    relay = exchange
    prepareBundles(exchange.numbers)
    if description.type == .offer, let next = exchange.description(nextTransports) {
      for bundle in bundles.all { drive(bundle, PeerTransport.Input.offered(next.sdp)) }
    }
    for bundle in bundles.all {
      if description.type == .offer, !bundle.transport.hasRole {
        drive(bundle, .role(.controlling))
      }
      drive(bundle, .gather)
    }
    for transport in settled {
      guard let bundle = bundles[transport.number] else { continue }
      drive(bundle, .remote(transport, answersLocalOffer: false))
    }
    settleExchange(exchange)
    return exchange.description(presentTransports).map { .description($0) } ?? .done
  }

  /// Applies a description from this leg's remote peer.
  private func receive(_ description: SessionDescription) throws(PeerError) {
    var exchange = relay ?? RelayedExchange()
    let isAnswer = exchange.signaling == .haveLocalOffer
    let transports = try mapped { () throws(JSEPError) in try exchange.receive(description) }
    relay = exchange
    prepareBundles(exchange.numbers)
    for bundle in bundles.all where description.type == .offer && !bundle.transport.hasRole {
      drive(bundle, .role(.controlled))
    }
    for transport in transports {
      guard let bundle = bundles[transport.number] else { continue }
      drive(bundle, .remote(transport, answersLocalOffer: isAnswer))
    }
    settleExchange(exchange)
  }

  /// Reports the state of the exchange, and closes transports that no section uses any more.
  private func settleExchange(_ exchange: RelayedExchange) {
    emit(states.move(to: exchange.signaling))
    guard exchange.signaling == .stable else { return }
    for bundle in bundles.removeAll(besides: exchange.numbers) {
      drive(bundle, PeerTransport.Input.close)
    }
    emit(states.move(to: bundles.iceGatheringState))
    emit(states.move(to: bundles.iceConnectionState))
  }

  /// Adds a candidate from this leg's remote peer; nil or empty text means that there are no more.
  private func receive(_ candidate: CandidateInit?) throws(PeerError) {
    let number = candidate.flatMap { relay?.transport(of: $0) }
    guard let candidate, !candidate.candidate.isEmpty else {
      for bundle in bundles.all where number == nil || bundle.number == number {
        drive(bundle, .remoteEndOfCandidates)
      }
      return
    }
    let parsed: ICECandidate
    do throws(ICECandidateError) {
      parsed = try ICECandidate(attribute: candidate.candidate)
    } catch {
      throw PeerError(name: "OperationError", message: error.description)
    }
    // Without a transport, the candidate's section is bundled with another or rejected.
    guard let bundle = number.flatMap({ bundles[$0] }) else { return }
    if let fragment = candidate.usernameFragment,
      fragment != bundle.transport.remoteUsernameFragment
    {
      return
    }
    drive(bundle, .remoteCandidate(candidate.candidate, parsed))
  }

  /// The parameters of this leg's transports, with new credentials if an ICE restart was requested.
  private var nextTransports: [LocalTransport] { bundles.all.map { $0.transport.localParameters } }

  // MARK: Packets

  /// Protects and sends a packet from the other leg; a full stack ignores it.
  func send(_ packet: RelayedPacket) {
    guard relay != nil else { return }
    let bundle = bundles[packet.transport] ?? bundles.first
    switch packet.kind {
    case .rtp: drive(bundle, PeerTransport.Input.rtp(packet.bytes))
    case .rtcp: drive(bundle, PeerTransport.Input.rtcp(packet.bytes))
    case .sctp: drive(bundle, PeerTransport.Input.data(packet.bytes))
    }
  }

  /// Passes a decrypted packet to the other leg; returns false if this peer is not a leg of a
  /// relay.
  func forward(_ kind: ClearPacket.Kind, _ bytes: [UInt8], of bundle: Bundle) -> Bool {
    guard relay != nil else { return false }
    emit(.relayed(RelayedPacket(kind: kind, transport: bundle.number, bytes: bytes)))
    return true
  }
}
