import ICE
import Wire

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
