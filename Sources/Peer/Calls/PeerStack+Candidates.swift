import ICE
import JSEP
import SDP
import Transport
import Wire

// The candidates that the peer signals.
extension PeerStack {
  func addRemote(_ candidate: CandidateInit?) throws(PeerError) {
    guard !negotiation.remoteTransports.isEmpty else {
      throw PeerError(name: "InvalidStateError", message: "there is no remote description")
    }
    guard let candidate, !candidate.candidate.isEmpty else {
      let number = candidate?.sdpMid.flatMap { negotiation.transportNumber(ofMID: $0) }
      for bundle in bundles.all where number == nil || bundle.number == number {
        drive(bundle, .remoteEndOfCandidates)
      }
      return
    }
    if let mid = candidate.sdpMid, negotiation.remoteMLineIndex(ofMID: mid) == nil {
      throw PeerError(name: "OperationError", message: "no m-section has the mid \(mid)")
    }
    let parsed: ICECandidate
    do throws(ICECandidateError) {
      parsed = try ICECandidate(attribute: candidate.candidate)
    } catch {
      throw PeerError(name: "OperationError", message: error.description)
    }
    // Sections after a bundle's first one gather of their own until they are bundled.
    guard let bundle = bundle(of: candidate) else { return }
    let known = bundle.transport.remoteUsernameFragment
    if let fragment = candidate.usernameFragment, fragment != known { return }
    drive(bundle, .remoteCandidate(candidate.candidate, parsed))
  }

  /// The bundle that a candidate is for; nil when its section goes along with another one.
  private func bundle(of candidate: CandidateInit) -> Bundle? {
    let mid = candidate.sdpMid ?? candidate.sdpMLineIndex.flatMap(negotiation.mid(atMLine:))
    guard let mid, candidate.sdpMid != nil || bundles.all.count > 1 else { return bundles.first }
    return negotiation.transportNumber(ofMID: mid).flatMap { bundles[$0] }
  }
}
