import Wire

/// The orderly end of the association (RFC 9260 section 9.2).
extension SCTPAssociation {
  mutating func shutdown(at now: Instant, into outbox: inout Outbox<Output>) {
    switch phase {
    case .established: phase = .shutdownPending
    case .idle, .cookieWait, .cookieEchoed: end(into: &outbox)
    default: break
    }
  }

  /// Whether everything that was given to `send` is acknowledged.
  private var isDrained: Bool { sent.isEmpty && schedule.first == nil && unfinished == nil }

  /// Goes on once everything is acknowledged.
  mutating func continueShutdown(at now: Instant, into outbox: inout Outbox<Output>) {
    guard isDrained else { return }
    if phase == .shutdownPending {
      phase = .shutdownSent
      sendShutdown(at: now, into: &outbox)
    } else if phase == .shutdownReceived {
      phase = .shutdownAcknowledgementSent
      sendShutdown(at: now, into: &outbox)
    }
  }

  /// Sends SHUTDOWN or its acknowledgement, whichever the phase wants.
  mutating func sendShutdown(at now: Instant, into outbox: inout Outbox<Output>) {
    if phase == .shutdownSent {
      var body = ByteWriter()
      body.uint32(received.acknowledged)
      append(.shutdown, body.bytes, into: &outbox)
    } else {
      append(.shutdownAcknowledgement, into: &outbox)
    }
    shutdownTimer = now + roundTrip.timeout
  }

  mutating func retryShutdown(at now: Instant, into outbox: inout Outbox<Output>) {
    shutdownTries += 1
    guard shutdownTries <= SCTPLimits.associationRetries else {
      return fail(.userInitiated, "the peer does not answer the shutdown", into: &outbox)
    }
    roundTrip.backOff()
    sendShutdown(at: now, into: &outbox)
  }

  mutating func receiveShutdown(
    _ body: RawSpan, at now: Instant, into outbox: inout Outbox<Output>
  ) {
    var reader = ByteReader(body)
    guard let cumulative = try? reader.uint32() else { return drop() }
    switch phase {
    case .established, .shutdownPending, .shutdownReceived:
      acknowledge(shutdown: cumulative, at: now, into: &outbox)
      phase = .shutdownReceived
    case .shutdownSent:
      // Both sides end the association at once.
      phase = .shutdownAcknowledgementSent
      sendShutdown(at: now, into: &outbox)
    case .shutdownAcknowledgementSent: sendShutdown(at: now, into: &outbox)
    default: drop()
    }
  }

  /// Takes the cumulative number of a SHUTDOWN as an acknowledgement without gaps.
  private mutating func acknowledge(
    shutdown cumulative: UInt32, at now: Instant, into outbox: inout Outbox<Output>
  ) {
    var body = ByteWriter()
    body.uint32(cumulative)
    body.uint32(UInt32(clamping: peerWindow))
    body.uint32(0)
    receiveAcknowledgement(body.bytes.span.bytes, at: now, into: &outbox)
  }

  mutating func receiveShutdownAcknowledgement(into outbox: inout Outbox<Output>) {
    switch phase {
    case .shutdownSent, .shutdownAcknowledgementSent:
      append(.shutdownComplete, into: &outbox)
      emit(into: &outbox)
      end(into: &outbox)
    default: drop()
    }
  }
}
