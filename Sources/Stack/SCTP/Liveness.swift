import Wire

/// Whether the peer still answers: timeouts in a row and heartbeats (RFC 9260 sections 8.1 to 8.3).
struct Liveness {
  /// Timeouts in a row without any sign of the peer.
  private(set) var silentTimeouts = 0
  /// The unanswered heartbeat.
  private var heartbeat: (nonce: UInt64, at: Instant)?

  /// Records that the peer acknowledged something, which also answers a heartbeat.
  mutating func acknowledge() {
    silentTimeouts = 0
    heartbeat = nil
  }

  /// Records that the peer answered a request.
  mutating func answer() { silentTimeouts = 0 }

  /// Counts a timeout; returns the failure after too many in a row.
  mutating func countTimeout(_ reason: String) -> SCTPFailure? {
    countTimeout() ? nil : SCTPFailure(cause: .userInitiated, reason: reason)
  }

  private mutating func countTimeout() -> Bool {
    silentTimeouts += 1
    return silentTimeouts <= SCTPLimits.associationRetries
  }

  /// Sends a heartbeat to an idle peer, or ends the association after too many unanswered ones.
  mutating func beat(_ entropy: EntropyStream, at now: Instant) -> SCTPAction {
    if heartbeat != nil, !countTimeout() { return .end("the peer is silent") }
    let nonce = entropy.integer(UInt64.self)
    heartbeat = (nonce, now)
    var value = ByteWriter()
    value.uint64(nonce)
    var body = ByteWriter()
    body.parameter(ParameterType.heartbeatInformation.rawValue, value.bytes)
    return .append(ControlChunk(type: .heartbeat, body: body.bytes))
  }

  /// Answers the peer's heartbeat with its own contents, if they fit into a packet.
  static func answer(
    to body: RawSpan, capacity: Int, _ phase: AssociationPhase
  ) -> SCTPAction {
    guard body.byteCount <= capacity - 4, phase != .cookieWait else { return .drop }
    return .append(ControlChunk(type: .heartbeatAcknowledgement, body: [UInt8](body)))
  }

  /// Handles the response to a heartbeat; returns its round trip, or nil if it matches none.
  mutating func receiveAcknowledgement(_ body: RawSpan, at now: Instant) -> Interval? {
    var reader = ByteReader(body)
    var type: UInt16 = 0
    guard let value = reader.parameter(&type) else { return nil }
    var inner = ByteReader(value)
    guard let beat = heartbeat, (try? inner.uint64()) == beat.nonce else { return nil }
    acknowledge()
    return now - beat.at
  }
}

// MARK: - TimerTable

/// The timers of an association, in the order in which simultaneous ones are served.
enum SCTPTimer: Int, CaseIterable {
  /// Retransmission of INIT or COOKIE ECHO (T1, RFC 9260 sections 5.1 and 4).
  case initiation
  /// A delayed SACK is sent (RFC 9260 section 6.2).
  case acknowledgement
  /// Data is deemed lost (T3-rtx, RFC 9260 section 6.3).
  case retransmission
  /// Retransmission of a request to reset streams (RFC 6525 section 5.1.1).
  case reset
  /// An idle peer is sent a heartbeat (RFC 9260 section 8.3).
  case heartbeat
  /// Retransmission of SHUTDOWN or SHUTDOWN ACK (T2, RFC 9260 section 9.2).
  case shutdown
}

/// All deadlines of an association.
struct TimerTable {
  private var deadlines: [6 of Instant?] = .init(repeating: nil)

  /// The earliest deadline; nil without any.
  var next: Instant? {
    var next: Instant?
    for index in deadlines.indices { next = earliest(next, deadlines[index]) }
    return next
  }

  /// When a timer expires; nil when it does not run.
  subscript(timer: SCTPTimer) -> Instant? { deadlines[timer.rawValue] }

  /// Whether a timer has expired and was not started again or canceled.
  func isDue(_ timer: SCTPTimer, at now: Instant) -> Bool {
    deadlines[timer.rawValue].map { $0 <= now } ?? false
  }

  /// Sets a timer to an instant, replacing its former one.
  mutating func arm(_ timer: SCTPTimer, at instant: Instant) {
    deadlines[timer.rawValue] = instant
  }

  /// Sets a timer to an instant unless it runs already.
  mutating func armIfIdle(_ timer: SCTPTimer, at instant: Instant) {
    if deadlines[timer.rawValue] == nil { deadlines[timer.rawValue] = instant }
  }

  /// Stops a timer.
  mutating func cancel(_ timer: SCTPTimer) { deadlines[timer.rawValue] = nil }

  /// Stops all timers.
  mutating func cancelAll() { self = TimerTable() }
}
