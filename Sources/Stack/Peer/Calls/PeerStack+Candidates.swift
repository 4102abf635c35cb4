import ICE
import JSEP
import SDP
import Wire

// Remote candidates (W3C addIceCandidate).
extension PeerStack {
  func addRemote(_ candidate: CandidateInit?) throws(PeerError) {
    let text = candidate?.candidate ?? ""
    guard text.isEmpty || candidate?.sdpMid != nil || candidate?.sdpMLineIndex != nil else {
      throw PeerError(name: "TypeError", message: "the candidate names no m-section")
    }
    guard negotiation.hasRemoteDescription else {
      throw PeerError(name: "InvalidStateError", message: "there is no remote description")
    }
    var index: Int?
    if let candidate { index = try mLineIndex(of: candidate) }
    let mid = index.flatMap(negotiation.mid(atMLine:))
    let number = mid.flatMap { negotiation.transportNumber(ofMID: $0) }
    if let index, negotiation.isOff(mLine: index) { return }
    if let fragment = candidate?.usernameFragment,
      !negotiation.remoteUsernameFragments(atMLine: index).contains(fragment)
    {
      throw PeerError(
        name: "OperationError",
        message: "no remote description has the username fragment \(fragment) there")
    }
    guard !text.isEmpty else {
      for bundle in bundles.all where index == nil || bundle.number == number {
        if bundle.isOfPresentGeneration(candidate) { drive(bundle, .remoteEndOfCandidates) }
      }
      return
    }
    let parsed: ICECandidate
    do throws(ICECandidateError) {
      parsed = try ICECandidate(attribute: text)
    } catch {
      throw PeerError(name: "OperationError", message: error.description)
    }
    // Sections after a bundle's first one have candidates of their own until they are bundled.
    guard let index, let bundle = number.flatMap({ bundles[$0] }),
      bundle.isOfPresentGeneration(candidate)
    else { return }
    if let fragment = bundle.transport.remoteUsernameFragment {
      negotiation.add(remoteCandidate: text, atMLine: index, of: fragment)
    }
    drive(bundle, .remoteCandidate(text, parsed))
  }

  /// Removes a withdrawn candidate; those of earlier generations are gone already.
  func removeRemote(_ candidate: CandidateInit) throws(PeerError) {
    guard let index = try mLineIndex(of: candidate) else {
      throw PeerError(name: "TypeError", message: "the candidate names no m-section")
    }
    let parsed: ICECandidate
    do throws(ICECandidateError) {
      parsed = try ICECandidate(attribute: candidate.candidate)
    } catch {
      throw PeerError(name: "OperationError", message: error.description)
    }
    negotiation.remove(remoteCandidate: candidate.candidate, atMLine: index)
    guard
      let number = negotiation.mid(atMLine: index).flatMap({
        negotiation.transportNumber(ofMID: $0)
      }), let bundle = bundles[number], bundle.isOfPresentGeneration(candidate)
    else { return }
    drive(bundle, .removedRemoteCandidate(candidate.candidate, parsed))
  }

  /// The m-line index that a candidate names, by MID if present; nil if it names none.
  private func mLineIndex(of candidate: CandidateInit) throws(PeerError) -> Int? {
    if let mid = candidate.sdpMid {
      guard let index = negotiation.remoteMLineIndex(ofMID: mid) else {
        throw PeerError(name: "OperationError", message: "no m-section has the mid \(mid)")
      }
      return index
    }
    guard let index = candidate.sdpMLineIndex else { return nil }
    let count = negotiation.remoteSectionCount
    guard (0..<count).contains(index) else {
      throw PeerError(
        name: "OperationError", message: "there is no m-section \(index), only \(count)")
    }
    return index
  }
}

extension Bundle {
  /// Whether a candidate belongs to the peer's current ICE generation.
  fileprivate func isOfPresentGeneration(_ candidate: CandidateInit?) -> Bool {
    candidate?.usernameFragment.map { $0 == transport.remoteUsernameFragment } ?? true
  }
}
