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
