import ICE
import JSEP
import Wire

/// The selected path, whether it belongs to an earlier ICE generation, and the handshake messages
/// waiting for a first one.
struct TransportPath {
  /// The most DTLS datagrams that wait.
  private static let waitingMaximum = 16

  private(set) var inUse: (local: SocketAddress, remote: SocketAddress)?
  /// Whether the path starts at a TURN server.
  private(set) var isRelayed = false
  /// Whether ICE was restarted and has not selected a path since.
  private(set) var isOld = false
  private var waiting: [[UInt8]] = []

  mutating func select(_ local: SocketAddress, _ remote: SocketAddress, isRelayed: Bool) {
    inUse = (local, remote)
    isOld = false
    self.isRelayed = isRelayed
  }

  /// Records that ICE looks for another path; the current one stays in use until then.
  mutating func restart() { isOld = true }

  /// Stores a handshake message for the path to come, up to a limit.
  mutating func hold(_ bytes: [UInt8]) {
    if waiting.count < Self.waitingMaximum { waiting.append(bytes) }
  }

  /// Returns and removes the waiting messages.
  mutating func removeHeld() -> [[UInt8]] {
    defer { waiting = [] }
    return waiting
  }
}

/// Outputs of gathering before a local description requires it (RFC 9429 section 3.5.4), held back
/// until then.
struct CandidatePool {
  private var isFilling = false
  private var kept: [ICEAgent.Output] = []

  /// Starts holding outputs back.
  mutating func fill() { isFilling = true }

  /// Stops holding outputs back.
  /// - Returns: those held, in order.
  mutating func empty() -> [ICEAgent.Output] {
    defer { (isFilling, kept) = (false, []) }
    return kept
  }

  /// Discards the outputs of a former generation.
  mutating func restart() { kept = [] }

  /// Holds back an output of gathering; false for others, and once the pool is released.
  mutating func holdsBack(_ output: ICEAgent.Output) -> Bool {
    guard isFilling else { return false }
    switch output {
    case .localCandidate, .gatheringState, .gatheringFailed, .unsignaledCandidate:
      kept.append(output)
    case .candidatesRemoved(let gone):
      // They were never reported.
      kept.removeAll { entry in
        guard case .localCandidate(let candidate?) = entry else { return false }
        return gone.contains(candidate)
      }
    default: return false
    }
    return true
  }
}

// MARK: - LocalGathering

/// The state of gathering: the addresses, whether it was requested before they are known, and the
/// candidates of the current generation.
struct LocalGathering {
  /// The candidates of the current generation, as text for descriptions.
  private(set) var candidates: [String] = []
  private(set) var isComplete = false
  /// The default destination (RFC 9429 section 5.2.1).
  private(set) var defaultAddress: SocketAddress?
  private var interfaces: [IPAddress]?
  private var isWanted = false

  /// Records the host's addresses; returns the agent's input.
  mutating func learn(_ addresses: [IPAddress], _ state: ICEGatheringState) -> ICEAgent.Input? {
    interfaces = addresses
    if isWanted { return begin(state) }
    return state == .new ? nil : .interfaces(addresses)
  }

  /// Starts gathering, or defers it until the addresses are known; nil if it has started.
  mutating func begin(_ state: ICEGatheringState) -> ICEAgent.Input? {
    guard let interfaces else {
      isWanted = true
      return nil
    }
    guard !isComplete, state == .new || isWanted else { return nil }
    isWanted = false
    return .gather(interfaces)
  }

  /// Stores a candidate for descriptions; nil means there are no more.
  mutating func store(_ candidate: ICECandidate?) {
    guard let candidate else {
      isComplete = true
      return
    }
    candidates.append(candidate.description)
    // The protocol of media sections is UDP.
    if defaultAddress == nil, !candidate.isTCP { defaultAddress = candidate.address }
  }

  /// Discards the candidates of a former generation and requests those of the next.
  mutating func restart() {
    candidates = []
    isComplete = false
    defaultAddress = nil
    isWanted = true
  }
}

// MARK: - LocalRestart

/// An ICE restart: whether it is requested, which credentials offers state for it, and whether such
/// an offer was set (RFC 9429 section 5.2.1).
struct LocalRestart {
  /// The credentials that offers state until one of them is set.
  private(set) var next: ICECredentials?
  /// Whether an ICE restart was requested and not offered yet.
  private var isWanted = false
  private let entropy: EntropyStream

  init(_ entropy: EntropyStream) { self.entropy = entropy }

  /// Requests a restart.
  mutating func want(_ state: ICEGatheringState) {
    // Before the first offer there is nothing to restart (RFC 9429 section 5.2.3.1).
    if state != .new { isWanted = true }
  }

  /// Draws new credentials for an offer if a restart is requested.
  mutating func prepare() {
    guard isWanted, next == nil else { return }
    next = ICECredentials(from: entropy)
  }

  /// The credentials of the generation that this offer starts; nil if it starts none.
  mutating func begin(offered text: String) -> ICECredentials? {
    guard let next, text.contains("a=ice-ufrag:\(next.usernameFragment)") else { return nil }
    end()
    return next
  }

  /// The credentials for answering a restart of the peer.
  mutating func answer() -> ICECredentials {
    end()
    return ICECredentials(from: entropy)
  }

  /// Records that the credentials to be replaced are gone.
  private mutating func end() {
    next = nil
    isWanted = false
  }
}

// MARK: - PeerParameters

/// The ICE generation and the known candidates in the peer's descriptions.
struct PeerParameters {
  /// How parameters compare with the previous ones.
  enum Change: Equatable {
    /// There are none, or the credentials are unchanged.
    case sameGeneration
    /// They are the first credentials, or those for the local generation.
    case credentials
    /// The peer restarted ICE, which this side has to answer (RFC 8445 section 9).
    case restart
  }

  /// The most candidates remembered; further signaled ones are refused.
  private static let candidatesMaximum = 200

  private(set) var described: RemoteTransport?
  /// The peer's current ICE username fragment.
  private(set) var usernameFragment: String?
  private var candidates: [String] = []

  /// Applies a description's parameters; nil if it was rolled back.
  mutating func apply(_ parameters: RemoteTransport?, answersLocalOffer: Bool) -> Change {
    described = parameters
    guard let new = parameters?.usernameFragment, new != usernameFragment else {
      return .sameGeneration
    }
    let isRestart = usernameFragment != nil && !answersLocalOffer
    if isRestart { restart() }
    usernameFragment = new
    return isRestart ? .restart : .credentials
  }

  /// Records a candidate in a description; false if it is known.
  mutating func describe(_ line: String) -> Bool {
    guard !candidates.contains(line) else { return false }
    candidates.append(line)
    return true
  }

  /// Records a trickled candidate; false if there are too many.
  mutating func signal(_ line: String) -> Bool {
    guard candidates.count < Self.candidatesMaximum else { return false }
    candidates.append(line)
    return true
  }

  /// Forgets a withdrawn candidate, so that it can be added again.
  mutating func forget(_ line: String) { candidates.removeAll { $0 == line } }

  /// Forgets a former generation.
  mutating func restart() {
    usernameFragment = nil
    candidates = []
  }
}
