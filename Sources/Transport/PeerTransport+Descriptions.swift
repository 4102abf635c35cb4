import ICE
package import JSEP
import Secure
import Wire

// What descriptions state of the transport, and what they bring of the peer's.
extension PeerTransport {
  private static let remoteCandidatesMaximum = 200

  /// This side as new descriptions state it: the next generation's, once one is wanted.
  package var localParameters: LocalTransport {
    guard let next = nextCredentials else { return presentParameters }
    return LocalTransport(
      number: number, usernameFragment: next.usernameFragment, password: next.password,
      fingerprints: dtls?.fingerprints ?? [])
  }

  /// This side as it is now, with what was gathered.
  package var presentParameters: LocalTransport {
    LocalTransport(
      number: number, usernameFragment: agent.localCredentials.usernameFragment,
      password: agent.localCredentials.password, fingerprints: dtls?.fingerprints ?? [],
      candidates: candidates, gatheringIsComplete: gatheringIsComplete,
      defaultAddress: defaultAddress)
  }

  // MARK: This side

  mutating func take(_ role: ICERole) {
    hasRole = true
    drive(.role(role))
  }

  /// Draws new credentials for an offer when a restart is wanted.
  mutating func prepareGeneration() {
    guard restartIsWanted, nextCredentials == nil else { return }
    nextCredentials = ICECredentials(from: entropy)
  }

  /// Begins the next generation when an offer states its credentials.
  mutating func begin(offered text: String) {
    guard let next = nextCredentials, text.contains("a=ice-ufrag:\(next.usernameFragment)") else {
      return
    }
    beginGeneration(with: next)
  }

  /// Gives the agent fresh credentials and forgets the old generation's candidates.
  private mutating func beginGeneration(with credentials: ICECredentials) {
    nextCredentials = nil
    // The credentials that a restart was to replace are gone, whoever asked for it.
    restartIsWanted = false
    pathIsOld = true
    remoteUsernameFragment = nil
    knownRemoteCandidates = []
    candidates = []
    gatheringIsComplete = false
    defaultAddress = nil
    wantsGathering = true
    drive(.restart(credentials))
  }

  // MARK: The peer's side

  /// Hands the peer's parameters to the agent; changed credentials are an ICE restart.
  mutating func take(_ parameters: RemoteTransport?, answersOwnOffer: Bool) {
    remote = parameters
    guard let remote = parameters else { return }
    if remoteUsernameFragment != remote.usernameFragment {
      if remoteUsernameFragment != nil, !answersOwnOffer {
        beginGeneration(with: ICECredentials(from: entropy))
      }
      remoteUsernameFragment = remote.usernameFragment
      let credentials = ICECredentials(
        usernameFragment: remote.usernameFragment, password: remote.password)
      drive(.remoteCredentials(credentials, lite: remote.isLite))
    }
    for line in remote.candidates where !knownRemoteCandidates.contains(line) {
      knownRemoteCandidates.append(line)
      do throws(ICECandidateError) {
        drive(.remoteCandidate(try ICECandidate(attribute: line)))
      } catch {
        emit(.refused(layer: "ice", error.description))
      }
    }
    if remote.endOfCandidates { drive(.remoteEndOfCandidates) }
    startDTLSIfReady()
  }

  mutating func learn(_ candidate: ICECandidate, _ text: String) {
    guard knownRemoteCandidates.count < PeerTransport.remoteCandidatesMaximum else { return }
    knownRemoteCandidates.append(text)
    drive(.remoteCandidate(candidate))
  }
}
