import Wire

/// Tracks whether the peer still answers: consecutive timeouts and heartbeats (RFC 9260
/// sections 8.1 to 8.3).
struct Liveness {
  /// Consecutive timeouts without any sign of the peer.
  private(set) var silentTimeouts = 0
  private var heartbeat: (nonce: UInt64, at: Instant)?

  /// Records an acknowledgement of any kind, which also counts as the answer to a heartbeat.
  mutating func acknowledge() {
    silentTimeouts = 0
    heartbeat = nil
  }

  /// Records that the peer answered a request.
  mutating func answer() { silentTimeouts = 0 }

  /// Counts a timeout; returns a failure after too many in a row, otherwise nil.
  mutating func countTimeout(_ reason: String) -> SCTPFailure? {
    countTimeout() ? nil : SCTPFailure(cause: .userInitiated, reason: reason)
  }

  private mutating func countTimeout() -> Bool {
    silentTimeouts += 1
    return silentTimeouts <= SCTPLimits.associationRetries
  }

  /// Sends a heartbeat to an idle peer, or ends the association after too many went unanswered.
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

  /// Answers the peer's heartbeat by returning its contents, if they fit into a packet.
  static func answer(
    to body: RawSpan, capacity: Int, _ phase: AssociationPhase
  ) -> SCTPAction {
    guard body.byteCount <= capacity - 4, phase != .cookieWait else { return .drop }
    return .append(ControlChunk(type: .heartbeatAcknowledgement, body: [UInt8](body)))
  }

  /// Handles the response to a heartbeat; returns the round trip, or nil if the response does not
  /// match the last heartbeat.
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

/// An association's timers; timers that expire together are served in this order.
enum SCTPTimer: Int, CaseIterable {
  /// Retransmission of INIT or COOKIE ECHO (T1, RFC 9260 sections 5.1 and 4).
  case initiation
  /// Sending a delayed SACK (RFC 9260 section 6.2).
  case acknowledgement
  /// Retransmission of lost data (T3-rtx, RFC 9260 section 6.3).
  case retransmission
  /// Retransmission of a request to reset streams (RFC 6525 section 5.1.1).
  case reset
  /// Sending a heartbeat to an idle peer (RFC 9260 section 8.3).
  case heartbeat
  /// Retransmission of SHUTDOWN or SHUTDOWN ACK (T2, RFC 9260 section 9.2).
  case shutdown
}

/// An association's timers and when they expire.
struct TimerTable {
  private var deadlines: [6 of Instant?] = .init(repeating: nil)

  /// The earliest deadline, if any.
  var next: Instant? {
    var next: Instant?
    for index in deadlines.indices { next = earliest(next, deadlines[index]) }
    return next
  }

  /// When a timer expires; nil if it is not running.
  subscript(timer: SCTPTimer) -> Instant? { deadlines[timer.rawValue] }

  /// Returns whether a running timer has expired.
  func isDue(_ timer: SCTPTimer, at now: Instant) -> Bool {
    deadlines[timer.rawValue].map { $0 <= now } ?? false
  }

  /// Starts or restarts a timer.
  mutating func arm(_ timer: SCTPTimer, at instant: Instant) {
    deadlines[timer.rawValue] = instant
  }

  /// Starts a timer unless it is running.
  mutating func armIfIdle(_ timer: SCTPTimer, at instant: Instant) {
    if deadlines[timer.rawValue] == nil { deadlines[timer.rawValue] = instant }
  }

  mutating func cancel(_ timer: SCTPTimer) { deadlines[timer.rawValue] = nil }

  mutating func cancelAll() { self = TimerTable() }
}
