import ICE
import JSEP
import Wire

/// The selected path, whether it belongs to an earlier ICE generation, and the handshake messages
/// that wait for a first path.
struct TransportPath {
  /// The maximum number of waiting DTLS datagrams.
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

  /// Records that ICE is looking for a new path; until ICE selects one, the current path stays in
  /// use.
  mutating func restart() { isOld = true }

  /// Stores a handshake message until there is a path, up to a limit.
  mutating func hold(_ bytes: [UInt8]) {
    if waiting.count < Self.waitingMaximum { waiting.append(bytes) }
  }

  /// Returns and removes the waiting messages.
  mutating func removeHeld() -> [[UInt8]] {
    defer { waiting = [] }
    return waiting
  }
}

/// Gathering outputs that are held back until a local description requires them (RFC 9429
/// section 3.5.4).
struct CandidatePool {
  private var isFilling = false
  private var kept: [ICEAgent.Output] = []

  /// Starts holding outputs back.
  mutating func fill() { isFilling = true }

  /// Stops holding outputs back.
  /// - Returns: the outputs that were held back, in order.
  mutating func empty() -> [ICEAgent.Output] {
    defer { (isFilling, kept) = (false, []) }
    return kept
  }

  /// Discards the previous generation's outputs.
  mutating func restart() { kept = [] }

  /// Holds back a gathering output; returns false for other outputs, and unless the pool is being
  /// filled.
  mutating func holdsBack(_ output: ICEAgent.Output) -> Bool {
    guard isFilling else { return false }
    switch output {
    case .localCandidate, .gatheringState, .gatheringFailed, .unsignaledCandidate:
      kept.append(output)
    case .candidatesRemoved(let gone):
      // Candidates that were held back were never reported, so their removal is not reported
      // either.
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

/// The state of gathering: the addresses, whether gathering was requested before they were known,
/// and the current generation's candidates.
struct LocalGathering {
  /// The current generation's candidates, as text for descriptions.
  private(set) var candidates: [String] = []
  private(set) var isComplete = false
  /// The default destination (RFC 9429 section 5.2.1); nil until a candidate is known.
  private(set) var defaultAddress: SocketAddress?
  private var interfaces: [IPAddress]?
  private var isWanted = false

  /// Records the host's addresses; returns the agent's input, or nil if gathering was not
  /// requested.
  mutating func learn(_ addresses: [IPAddress], _ state: ICEGatheringState) -> ICEAgent.Input? {
    interfaces = addresses
    if isWanted { return begin(state) }
    return state == .new ? nil : .interfaces(addresses)
  }

  /// Starts gathering, or defers it until the addresses are known; returns nil if it is deferred or
  /// has already started.
  mutating func begin(_ state: ICEGatheringState) -> ICEAgent.Input? {
    guard let interfaces else {
      isWanted = true
      return nil
    }
    guard !isComplete, state == .new || isWanted else { return nil }
    isWanted = false
    return .gather(interfaces)
  }

  /// Stores a candidate for descriptions, or nil after the last one.
  mutating func store(_ candidate: ICECandidate?) {
    guard let candidate else {
      isComplete = true
      return
    }
    candidates.append(candidate.description)
    // The m-line states UDP, so a TCP candidate's address is never the default.
    if defaultAddress == nil, !candidate.isTCP { defaultAddress = candidate.address }
  }

  /// Discards the previous generation's candidates and requests gathering for the next.
  mutating func restart() {
    candidates = []
    isComplete = false
    defaultAddress = nil
    isWanted = true
  }
}

// MARK: - LocalRestart

/// An ICE restart: whether it was requested, and the credentials for offers until an offer with
/// them is set (RFC 9429 section 5.2.1).
struct LocalRestart {
  /// The credentials to put into offers until an offer with them is set; nil at other times.
  private(set) var next: ICECredentials?
  /// Whether an ICE restart was requested but has not been offered.
  private var isWanted = false
  private let entropy: EntropyStream

  init(_ entropy: EntropyStream) { self.entropy = entropy }

  mutating func want(_ state: ICEGatheringState) {
    // Before the first offer there is nothing to restart (RFC 9429 section 5.2.3.1).
    if state != .new { isWanted = true }
  }

  /// Creates new credentials for an offer if a restart was requested.
  mutating func prepare() {
    guard isWanted, next == nil else { return }
    next = ICECredentials(from: entropy)
  }

  /// Returns the credentials of the generation that this offer starts, or nil if it starts none.
  mutating func begin(offered text: String) -> ICECredentials? {
    guard let next, text.contains("a=ice-ufrag:\(next.usernameFragment)") else { return nil }
    end()
    return next
  }

  /// Returns the credentials for answering the remote peer's restart.
  mutating func answer() -> ICECredentials {
    end()
    return ICECredentials(from: entropy)
  }

  /// Ends the request, because new credentials are now in use.
  private mutating func end() {
    next = nil
    isWanted = false
  }
}

// MARK: - PeerParameters

/// The remote peer's ICE generation, and its candidates from descriptions and trickling.
struct PeerParameters {
  /// How new parameters differ from the previous parameters.
  enum Change: Equatable {
    /// There are no parameters, or the credentials are unchanged.
    case sameGeneration
    /// The credentials are the first ones, or answer a local offer.
    case credentials
    /// The remote peer restarted ICE, so the local peer has to restart it too (RFC 8445 section 9).
    case restart
  }

  /// The maximum number of stored candidates; further signaled candidates are refused.
  private static let candidatesMaximum = 200

  private(set) var described: RemoteTransport?
  /// The remote peer's current ICE username fragment; nil until it is known.
  private(set) var usernameFragment: String?
  private var candidates: [String] = []

  /// Applies a description's parameters, which are nil if it was rolled back.
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

  /// Records a candidate in a description; returns false if it is already known.
  mutating func describe(_ line: String) -> Bool {
    guard !candidates.contains(line) else { return false }
    candidates.append(line)
    return true
  }

  /// Records a trickled candidate; returns false if there are too many.
  mutating func signal(_ line: String) -> Bool {
    guard candidates.count < Self.candidatesMaximum else { return false }
    candidates.append(line)
    return true
  }

  /// Forgets a withdrawn candidate, so that it can be added again.
  mutating func forget(_ line: String) { candidates.removeAll { $0 == line } }

  /// Forgets the previous generation.
  mutating func restart() {
    usernameFragment = nil
    candidates = []
  }
}
