import ICE
import Wire

/// What gathering needs and gives: the addresses to gather on, whether it is wanted before they are
/// known, and the candidates of the present generation as descriptions list them.
struct LocalGathering {
  /// The candidates of the present generation, as text for descriptions.
  private(set) var candidates: [String] = []
  private(set) var isComplete = false
  /// The default destination (RFC 9429 section 5.2.1).
  private(set) var defaultAddress: SocketAddress?
  private var interfaces: [IPAddress]?
  private var isWanted = false

  /// Handles the addresses of the host; returns what the agent is to do with them.
  mutating func learn(_ addresses: [IPAddress], _ state: ICEGatheringState) -> ICEAgent.Input? {
    interfaces = addresses
    if isWanted { return begin(state) }
    return state == .new ? nil : .interfaces(addresses)
  }

  /// Begins gathering, or waits with it for the addresses; nil when it has begun already.
  mutating func begin(_ state: ICEGatheringState) -> ICEAgent.Input? {
    guard let interfaces else {
      isWanted = true
      return nil
    }
    guard !isComplete, state == .new || isWanted else { return nil }
    isWanted = false
    return .gather(interfaces)
  }

  /// Keeps a candidate for descriptions; nil when there are no more.
  mutating func keep(_ candidate: ICECandidate?) {
    guard let candidate else {
      isComplete = true
      return
    }
    candidates.append(candidate.description)
    // The protocol of media sections is UDP.
    if defaultAddress == nil, !candidate.isTCP { defaultAddress = candidate.address }
  }

  /// Forgets the candidates of a generation that is over; those of the next are wanted.
  mutating func restart() {
    candidates = []
    isComplete = false
    defaultAddress = nil
    isWanted = true
  }
}
