import ICE
import JSEP
import SDP
import Wire

// Reports of candidates and pairs in addition to their rows.
extension PeerStack {
  /// Follows the selected pair of a transport, and reports changes.
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

  /// How long ago media or data was received over a pair.
  private func lastReceived(over pair: ICEPairReport, of bundle: Bundle) -> Int64? {
    guard let remote = pair.remote.address,
      let last = bundle.transport.traffic.traffic(of: pair.id, pair.base, remote)?.received.last
    else { return nil }
    return (now - last).nanoseconds / 1_000_000
  }

  /// Reports local candidates that became invalid, unless they were never signaled.
  func reportRemoved(_ candidates: [ICECandidate], of bundle: Bundle) {
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

  /// Records an ICE state that ends or revives the connection.
  func recordEnd(_ state: ICEConnectionState) {
    if state == .failed { end(.iceFailed) }
    if state == .connected { life.revoke(.iceFailed) }
  }

  /// Reports why the connection is over, once per reason, unless the application is closing it.
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
