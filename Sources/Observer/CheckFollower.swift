import ICE
import Wire

/// The W3C RTCIceTransportState of an endpoint, inferred from its packets.
enum SeenICEState: String {
  case new, checking, connected, disconnected, failed, closed
}

/// Follows the connectivity checks of both ends of a transport (RFC 8445 section 7): successes,
/// nominations, round trips and timeouts.
struct CheckFollower {
  /// A check that has no response yet.
  private struct Request {
    var transaction: STUNTransactionID
    var path: Int
    var from: Int
    var at: Instant
    var nominates: Bool
  }

  /// The silence after which an end counts as disconnected; stacks use different values.
  static let silence = Interval.seconds(5)
  /// The lifetime of consent without a response (RFC 7675 section 5.1).
  static let consent = Interval.seconds(30)
  private static let requestsMaximum = 256

  private var requests: [Request] = []
  /// The ICE username fragments of both ends.
  private(set) var fragments: [String?] = [nil, nil]
  private(set) var states: [SeenICEState] = [.new, .new]
  private(set) var isControlling: [Bool?] = [nil, nil]
  /// For each end, when it last received anything from the other end, and when one of its checks
  /// last succeeded.
  private var lastReceived: [Instant?] = [nil, nil]
  private var answered: [Instant?] = [nil, nil]

  /// The state changes that a message or a deadline caused.
  struct Outcome {
    var states: [(end: Int, from: SeenICEState, to: SeenICEState)] = []
    var roles: [(end: Int, isControlling: Bool)] = []
    /// The successful check's pair, the end that sent it, its round trip, and whether it nominated;
    /// nil if no check succeeded.
    var answer: (path: Int, end: Int, roundTrip: Interval, nominates: Bool)?
  }

  /// Sets the fragments of a new generation; returns false if they are unchanged.
  mutating func begin(_ fragments: [String?]) -> Bool {
    guard fragments != self.fragments else { return false }
    self.fragments = fragments
    requests = []
    return true
  }

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

  /// Handles a response to an end's check; returns nil if there was no such check.
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
      // The endpoint that answered the nominating check has selected the pair as well (RFC 8445
      // section 7.3.1.5).
      move(1 - end, to: .connected, &outcome)
      if answered[1 - end] == nil { answered[1 - end] = now }
    } else if wasConnected {
      move(end, to: .connected, &outcome)
    }
    return outcome
  }

  /// Records that an end sent a packet, which shows the other end that the path works.
  @inline(__always)
  mutating func recordTraffic(from end: Int, at now: Instant) { lastReceived[1 - end] = now }

  /// Returns whether an endpoint is disconnected, in which case the next packet it receives
  /// reconnects it.
  func isWaiting(_ end: Int) -> Bool { states[end] == .disconnected }

  /// Reconnects an end that was disconnected and receives packets again.
  mutating func resume(_ end: Int) -> Outcome {
    var outcome = Outcome()
    if states[end] == .disconnected { move(end, to: .connected, &outcome) }
    return outcome
  }

  var isChecking: Bool { states[0] == .checking || states[1] == .checking }

  /// Connects both ends, because media proves that a pair works although no nomination was seen.
  ///
  /// Consent checks do not nominate (RFC 7675), so if the capture begins in the middle of the call,
  /// there is no other proof.
  mutating func connectByMedia(at now: Instant) -> Outcome {
    var outcome = Outcome()
    for end in 0..<2 where states[end] == .checking || states[end] == .new {
      move(end, to: .connected, &outcome)
      answered[end] = answered[end] ?? now
    }
    return outcome
  }

  /// Closes an end, unless it is still new.
  mutating func close(_ end: Int) -> Outcome {
    var outcome = Outcome()
    if states[end] != .new { move(end, to: .closed, &outcome) }
    return outcome
  }

  /// The next time at which silence or a missing response changes a state.
  var deadline: Instant? {
    var next: Instant?
    for end in 0..<2 { next = earliest(next, due(end)) }
    return next
  }

  private func due(_ end: Int) -> Instant? {
    switch states[end] {
    case .connected:
      earliest(
        lastReceived[end].map { $0 + Self.silence }, answered[end].map { $0 + Self.consent })
    case .disconnected: answered[end].map { $0 + Self.consent }
    default: nil
    }
  }

  /// Applies state changes due to silence and missing responses.
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

/// Determines which candidate pair of a component is in use.
///
/// The pair that carries media is in use. Without media, the nominated pair with the highest
/// priority is in use, because a client with aggressive nomination nominates every pair that
/// responds (RFC 5245 section 8.1.1.2), and again with each consent check.
struct PairChoice {
  /// How long media on a pair counts as current, and how long a pair's nomination does.
  private static let mediaMemory = Interval.seconds(2)
  private static let nominationMemory = Interval.seconds(5)
  /// The number of consecutive packets on another pair that switch an end's choice; a single packet
  /// may just be late.
  private static let runMinimum = 3
  private static let nominatedMaximum = 64

  private(set) var selected: Int?
  /// Each end's media path, the number of consecutive packets on it (at most `runMinimum`), and the
  /// time of the last one.
  private var media: [(path: Int, run: Int, last: Instant)?] = [nil, nil]
  /// The nominated paths with the time of their last nomination.
  private var nominated: [(path: Int, last: Instant)] = []

  /// Records a successful nomination; returns whether it changes the selected path.
  ///
  /// - Parameter priority: returns a path's priority (RFC 8445 section 6.1.2.3).
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

  /// Records an end's media on a path; returns whether it changes the selected path.
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
    // While the ends send media on different paths, they have not agreed yet.
    if let other = media[1 - end], other.path != path, now - other.last < Self.mediaMemory {
      return false
    }
    return select(path)
  }

  private mutating func select(_ path: Int) -> Bool {
    defer { selected = path }
    return selected != path
  }

  /// Resets the choice, because the transport continues elsewhere; returns the path that was
  /// selected, or nil if none was.
  mutating func clear() -> Int? {
    defer { self = PairChoice() }
    return selected
  }
}

/// The ends' server-reflexive addresses, from observed STUN responses.
struct MappedAddresses {
  private static let requestsMaximum = 256
  private static let mappingsMaximum = 4096

  /// The mapped addresses by local address.
  private var mappings: [SocketAddress: SocketAddress] = [:]
  private var mapped: Set<SocketAddress> = []
  /// Binding requests to servers, as opposed to checks.
  private var requests: [(transaction: STUNTransactionID, source: SocketAddress)] = []

  /// Returns whether a server mapped this address to a different one.
  func isMapped(_ address: SocketAddress) -> Bool { mappings[address] != nil }

  func isReflexive(_ address: SocketAddress) -> Bool { mapped.contains(address) }

  mutating func ask(_ message: STUNMessage, from source: SocketAddress) {
    if requests.count >= MappedAddresses.requestsMaximum { requests.removeFirst() }
    requests.append((message.transactionID, source))
  }

  /// Handles a response; returns false if it is not from a server.
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
