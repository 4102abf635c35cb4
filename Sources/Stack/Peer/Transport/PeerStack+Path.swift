import ICE
import JSEP
import SDP
import Wire

// What is told of candidates and pairs beside their own rows.
extension PeerStack {
  /// Follows which pair carries a transport, and tells when it is another one.
  func follow(_ pair: ICEPairReport, of bundle: Bundle) {
    guard let reason = bundle.follow(pair) else { return }
    notify(
      .selectedPair,
      .selectedPair(
        SelectedPairChange(
          transport: bundle.number, local: pair.local.description,
          remote: pair.remote.description, reason: reason,
          lastReceivedMilliseconds: lastReceived(over: pair, of: bundle))))
  }

  /// How long ago media or data came over a pair.
  private func lastReceived(over pair: ICEPairReport, of bundle: Bundle) -> Int64? {
    guard let remote = pair.remote.address,
      let last = bundle.transport.traffic.traffic(of: pair.id, pair.base, remote)?.received.last
    else { return nil }
    return (now - last).nanoseconds / 1_000_000
  }

  /// Tells of local candidates that are gone; those that were never signaled are not missed.
  func tellRemoved(_ candidates: [ICECandidate], of bundle: Bundle) {
    let signaled = candidates.filter { $0.kind != .peerReflexive }
    guard !signaled.isEmpty else { return }
    notify(
      .removedCandidates,
      .candidatesRemoved(
        signaled.map { candidate in
          CandidateInit(
            candidate: candidate.description,
            sdpMid: negotiation.mid(ofTransport: bundle.number),
            sdpMLineIndex: negotiation.mLineIndex(ofTransport: bundle.number),
            usernameFragment: candidate.usernameFragment)
        }))
  }

  /// Records a state of ICE that ends the connection, or begins it again.
  func noteEnd(_ state: ICEConnectionState) {
    if state == .failed { end(.iceFailed) }
    if state == .connected { life.takeBack(.iceFailed) }
  }

  /// Tells why the connection is over, once for each reason; what follows from the application's
  /// own closing is none.
  func end(_ reason: ConnectionEnd) {
    guard life.end(reason) else { return }
    notify(.connectionEnd, .connectionEnded(reason))
  }
}

extension GatheringError {
  init(_ failure: ICEServerFailure) {
    self.init(
      url: failure.server?.url ?? "",
      errorCode: failure.code == 0 ? GatheringError.unreachable : failure.code,
      errorText: failure.reason, address: failure.base?.ip.description, port: failure.base?.port)
  }
}

extension ICECandidate {
  var usernameFragment: String? { extensions.first { $0.name == "ufrag" }?.value }
}
