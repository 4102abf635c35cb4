import Wire

/// Whether the peer still answers: timeouts in a row and heartbeats (RFC 9260 sections 8.1 to 8.3).
struct Liveness {
  /// Timeouts in a row without any sign of the peer.
  private(set) var silentTimeouts = 0
  /// The heartbeat that was not answered.
  private var heartbeat: (nonce: UInt64, at: Instant)?

  /// Records that the peer acknowledged something: a heartbeat needs no answer any more.
  mutating func acknowledge() {
    silentTimeouts = 0
    heartbeat = nil
  }

  /// Records that the peer answered a request.
  mutating func answer() { silentTimeouts = 0 }

  /// Counts a timeout; why the association ends when there were too many in a row.
  mutating func countTimeout(_ reason: String) -> SCTPFailure? {
    countTimeout() ? nil : SCTPFailure(cause: .userInitiated, reason: reason)
  }

  private mutating func countTimeout() -> Bool {
    silentTimeouts += 1
    return silentTimeouts <= SCTPLimits.associationRetries
  }

  /// Asks an idle peer for a sign of life, unless too many went by without one.
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

  /// Answers the peer's heartbeat with what it says, if that fits into a packet.
  static func answer(
    to body: RawSpan, capacity: Int, _ phase: AssociationPhase
  ) -> SCTPAction {
    guard body.byteCount <= capacity - 4, phase != .cookieWait else { return .drop }
    return .append(ControlChunk(type: .heartbeatAcknowledgement, body: [UInt8](body)))
  }

  /// Handles the response of a heartbeat; its round trip, or nil when it answers none.
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
