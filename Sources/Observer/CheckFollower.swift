import ICE
import Wire

/// W3C RTCIceTransportState, as an end must have it.
enum SeenICEState: String {
  case new, checking, connected, disconnected, failed, closed
}

/// Follows the checks of both ends of a transport (RFC 8445 section 7): which succeed, who
/// nominates, how long answers take, and when they stay away.
struct CheckFollower {
  /// A check without an answer.
  private struct Request {
    var transaction: STUNTransactionID
    var path: Int
    var from: Int
    var at: Instant
    var nominates: Bool
  }

  /// How long an end hears nothing before it is taken as disconnected; what stacks wait differs.
  static let silence = Interval.seconds(5)
  /// How long consent lasts without an answer (RFC 7675 section 5.1).
  static let consent = Interval.seconds(30)
  private static let requestsMaximum = 256

  private var requests: [Request] = []
  /// The user name fragments of both ends.
  private(set) var fragments: [String?] = [nil, nil]
  private(set) var states: [SeenICEState] = [.new, .new]
  private(set) var isControlling: [Bool?] = [nil, nil]
  /// When each end last heard of the other, and when one of its checks was last answered.
  private var heard: [Instant?] = [nil, nil]
  private var answered: [Instant?] = [nil, nil]

  /// What a message changed.
  struct Outcome {
    var states: [(end: Int, from: SeenICEState, to: SeenICEState)] = []
    var roles: [(end: Int, isControlling: Bool)] = []
    /// The pair of the check that was answered, with the end that made it, its round trip, and
    /// whether it nominated.
    var answer: (path: Int, end: Int, roundTrip: Interval, nominates: Bool)?
  }

  /// Takes the fragments of a new generation; false when they are known.
  mutating func begin(_ fragments: [String?]) -> Bool {
    guard fragments != self.fragments else { return false }
    self.fragments = fragments
    requests = []
    return true
  }

  /// Takes a check of an end.
  mutating func request(_ message: STUNMessage, on path: Int, from end: Int, at now: Instant)
    -> Outcome
  {
    var outcome = Outcome()
    if requests.count >= Self.requestsMaximum { requests.removeFirst() }
    requests.append(
      Request(
        transaction: message.transactionID, path: path, from: end, at: now,
        nominates: message.usesCandidate))
    let role = message.iceControlling != nil ? true : message.iceControlled != nil ? false : nil
    if let role, isControlling[end] != role {
      isControlling[end] = role
      outcome.roles.append((end, role))
    }
    if states[end] == .new || states[end] == .failed { move(end, to: .checking, &outcome) }
    return outcome
  }

  /// Takes an answer that goes to an end; nil when nothing was asked.
  mutating func answer(_ message: STUNMessage, to end: Int, at now: Instant) -> Outcome? {
    guard
      let index = requests.lastIndex(where: {
        $0.transaction == message.transactionID && $0.from == end
      })
    else { return nil }
    let request = requests.remove(at: index)
    var outcome = Outcome()
    guard message.messageClass == .success else { return outcome }
    answered[end] = now
    outcome.answer = (request.path, end, now - request.at, request.nominates)
    let wasConnected = states[end] == .connected || states[end] == .disconnected
    if request.nominates {
      move(end, to: .connected, &outcome)
      // Whoever answers a nominating check has the pair as well (RFC 8445 section 7.3.1.5).
      move(1 - end, to: .connected, &outcome)
      if answered[1 - end] == nil { answered[1 - end] = now }
    } else if wasConnected {
      move(end, to: .connected, &outcome)
    }
    return outcome
  }

  /// Takes note that an end sent something, so that the other one hears of it.
  @inline(__always)
  mutating func hear(from end: Int, at now: Instant) { heard[1 - end] = now }

  /// Whether an end comes back when it hears something.
  func isWaiting(_ end: Int) -> Bool { states[end] == .disconnected }

  /// Brings an end back that hears something again.
  mutating func resume(_ end: Int) -> Outcome {
    var outcome = Outcome()
    if states[end] == .disconnected { move(end, to: .connected, &outcome) }
    return outcome
  }

  /// Whether an end made checks and none is known to have chosen a pair.
  var isChecking: Bool { states[0] == .checking || states[1] == .checking }

  /// Connects both ends, where media shows that they have a pair although nobody nominated it.
  ///
  /// Consent checks do not nominate (RFC 7675), so nothing else tells where a capture begins later
  /// than the call.
  mutating func connectByMedia(at now: Instant) -> Outcome {
    var outcome = Outcome()
    for end in 0..<2 where states[end] == .checking || states[end] == .new {
      move(end, to: .connected, &outcome)
      answered[end] = answered[end] ?? now
    }
    return outcome
  }

  /// Ends both sides for good.
  mutating func close(_ end: Int) -> Outcome {
    var outcome = Outcome()
    if states[end] != .new { move(end, to: .closed, &outcome) }
    return outcome
  }

  /// When silence or missing answers change a state next.
  var deadline: Instant? {
    var next: Instant?
    for end in 0..<2 { next = earliest(next, due(end)) }
    return next
  }

  private func due(_ end: Int) -> Instant? {
    switch states[end] {
    case .connected:
      earliest(
        heard[end].map { $0 + Self.silence }, answered[end].map { $0 + Self.consent })
    case .disconnected: answered[end].map { $0 + Self.consent }
    default: nil
    }
  }

  /// Lets silence and missing answers count.
  mutating func reachDeadline(at now: Instant) -> Outcome {
    var outcome = Outcome()
    for end in 0..<2 {
      guard let due = due(end), due <= now else { continue }
      let lost = answered[end].map { $0 + Self.consent <= now } ?? false
      move(end, to: lost ? .failed : .disconnected, &outcome)
    }
    return outcome
  }

  private mutating func move(_ end: Int, to state: SeenICEState, _ outcome: inout Outcome) {
    guard states[end] != state, states[end] != .closed else { return }
    outcome.states.append((end, states[end], state))
    states[end] = state
  }
}

// MARK: - PairChoice

/// Which pair of one component of a transport is in use.
///
/// Media shows it. As long as none goes, it is the nominated pair of the highest priority: a client
/// that nominates aggressively nominates all that answer (RFC 5245 section 8.1.1.2), again with
/// each check for consent.
struct PairChoice {
  /// How long media or a nomination of a pair counts for it.
  private static let mediaMemory = Interval.seconds(2)
  private static let nominationMemory = Interval.seconds(5)
  /// How many packets of an end have to follow each other on another pair: single ones are late.
  private static let runMinimum = 3
  /// How many nominated paths are remembered.
  private static let nominatedMaximum = 64

  private(set) var selected: Int?
  /// Where each end's media goes, since when it goes nowhere else.
  private var media: [(path: Int, run: Int, last: Instant)?] = [nil, nil]
  /// The paths that were nominated, and when last.
  private var nominated: [(path: Int, last: Instant)] = []

  /// A check that nominates a path was answered; whether the path is selected by that.
  ///
  /// - Parameter priority: that of a path (RFC 8445 section 6.1.2.3).
  mutating func nominate(_ path: Int, at now: Instant, priority: (Int) -> UInt64) -> Bool {
    let known = nominated.firstIndex { $0.path == path }
    if let known {
      nominated[known].last = now
    } else {
      if nominated.count >= Self.nominatedMaximum { nominated.removeFirst() }
      nominated.append((path, now))
    }
    guard let selected, selected != path else { return select(path) }
    if media.contains(where: { $0?.path == selected && now - ($0?.last ?? now) < Self.mediaMemory })
    {
      return false
    }
    let last = nominated.last { $0.path == selected }?.last
    guard let last, now - last < Self.nominationMemory else { return select(path) }
    let (new, old) = (priority(path), priority(selected))
    return new > old || new == old && known == nil ? select(path) : false
  }

  /// An end sends media over a path; whether the path is selected by that.
  @inline(__always)
  mutating func send(over path: Int, from end: Int, at now: Instant) -> Bool {
    if let before = media[end], before.path == path {
      media[end] = (path, min(before.run + 1, Self.runMinimum), now)
    } else {
      media[end] = (path, 1, now)
    }
    return selected == path ? false : follow(path, from: end, at: now)
  }

  private mutating func follow(_ path: Int, from end: Int, at now: Instant) -> Bool {
    guard selected != nil else { return select(path) }
    guard let run = media[end]?.run, run >= Self.runMinimum else { return false }
    // Ends whose media goes different ways have not agreed yet.
    if let other = media[1 - end], other.path != path, now - other.last < Self.mediaMemory {
      return false
    }
    return select(path)
  }

  private mutating func select(_ path: Int) -> Bool {
    defer { selected = path }
    return selected != path
  }

  /// Ends it, as its transport goes on elsewhere; gives the path that was selected.
  mutating func clear() -> Int? {
    defer { self = PairChoice() }
    return selected
  }
}

/// What STUN servers told ends of their addresses, as the wire shows it.
struct MappedAddresses {
  private static let requestsMaximum = 256
  private static let mappingsMaximum = 4096

  /// The mapped address, by the own one.
  private var mappings: [SocketAddress: SocketAddress] = [:]
  private var mapped: Set<SocketAddress> = []
  /// Binding requests that are no checks.
  private var requests: [(transaction: STUNTransactionID, source: SocketAddress)] = []

  /// Whether a server told this end of another address of it.
  func isMapped(_ address: SocketAddress) -> Bool { mappings[address] != nil }

  /// Whether a server told an end that it has this address.
  func isReflexive(_ address: SocketAddress) -> Bool { mapped.contains(address) }

  /// A request to a server.
  mutating func ask(_ message: STUNMessage, from source: SocketAddress) {
    if requests.count >= MappedAddresses.requestsMaximum { requests.removeFirst() }
    requests.append((message.transactionID, source))
  }

  /// Takes an answer; false for one that is not a server's.
  mutating func answer(_ message: STUNMessage) -> Bool {
    guard let index = requests.firstIndex(where: { $0.transaction == message.transactionID })
    else { return false }
    let request = requests.remove(at: index)
    if let mapped = message.mappedAddress, mapped != request.source,
      mappings.count < MappedAddresses.mappingsMaximum
    {
      mappings[request.source] = mapped
      if self.mapped.count < MappedAddresses.mappingsMaximum { self.mapped.insert(mapped) }
    }
    return true
  }
}
