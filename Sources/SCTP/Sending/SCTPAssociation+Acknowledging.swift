import DequeModule
import Wire

/// What the peer acknowledges, and what is lost (RFC 9260 sections 6.2.1, 6.3 and 7.2).
extension SCTPAssociation {
  /// What one SACK changed.
  private struct Progress {
    var bytes = 0
    /// The highest number that was acknowledged for the first time, in a gap report.
    var newest: UInt32?
    /// The highest number in any gap report.
    var highest: UInt32?
    var advanced = false
  }

  mutating func receiveAcknowledgement(
    _ body: RawSpan, at now: Instant, into outbox: inout Outbox<Output>
  ) {
    guard isEstablished || phase == .shutdownSent else { return drop() }
    var reader = ByteReader(body)
    guard let cumulative = try? reader.uint32(), let space = try? reader.uint32(),
      let gaps = try? reader.uint16(), (try? reader.uint16()) != nil
    else { return drop() }
    let passed = sent.place(of: cumulative) + 1
    // Older than the last one.
    guard passed >= 0 else { return drop() }
    guard passed <= sent.count else { return refuseAcknowledgement(into: &outbox) }
    silentTimeouts = 0
    heartbeat = nil
    let flight = sent.flight
    peerWindow = Int(space)
    var progress = Progress()
    acknowledgeFirst(passed, at: now, &progress)
    guard acknowledge(gaps: Int(gaps), &reader, at: now, &progress) else {
      return refuseAcknowledgement(into: &outbox)
    }
    if progress.bytes > 0 { roundTrip.settle() }
    // During a recovery that comes forward, all that is reported missing counts (section 7.2.4).
    let isRecovering = window.recoveryPoint != nil && progress.advanced
    window.advance(to: cumulative)
    window.acknowledge(progress.bytes, flight: flight)
    if let seen = isRecovering ? progress.highest : progress.newest {
      strike(by: seen, at: now, into: &outbox)
    }
    if sent.isEmpty {
      window.drain()
      retransmissionTimer = nil
    } else if progress.advanced {
      retransmissionTimer = now + roundTrip.timeout
    }
    sent.extendAbandonedPrefix()
    if sent.abandonedPrefix > 0 {
      // The same is told once in a round trip, news at once: nothing else may be on its way whose
      // acknowledgement would give another occasion.
      let pause = roundTrip.smoothed ?? roundTrip.timeout
      let end = sent.number(at: sent.abandonedPrefix - 1)
      if forwardSent.map({ $0.number != end || now - $0.at >= pause }) ?? true {
        isForwardDue = true
      }
    }
  }

  private mutating func acknowledgeFirst(
    _ number: Int, at now: Instant, _ progress: inout Progress
  ) {
    guard number > 0 else { return }
    for index in 0..<number {
      switch sent.chunks[index].fate {
      case .outstanding, .lost:
        progress.bytes += sent.chunks[index].size
        measure(index, at: now)
      case .acknowledged, .abandoned: break
      }
    }
    progress.advanced = true
    if let timed, sent.place(of: timed.number) < number { self.timed = nil }
    sent.removeFirst(number)
  }

  /// Ends an association whose peer has what was never sent (RFC 9260 section 12.2.3).
  private mutating func refuseAcknowledgement(into outbox: inout Outbox<Output>) {
    fail(.protocolViolation, "the peer acknowledged what was not sent", into: &outbox)
  }

  /// Takes in gap reports; false when they are about what was never sent.
  private mutating func acknowledge(
    gaps: Int, _ reader: inout ByteReader, at now: Instant, _ progress: inout Progress
  ) -> Bool {
    var next = 0
    for _ in 0..<gaps {
      guard let start = try? reader.uint16(), let end = try? reader.uint16() else {
        drop()
        return true
      }
      // The first place after the cumulative number has the offset 1. Blocks ascend.
      let first = Int(start) - 1
      let last = Int(end) - 1
      guard first >= next, first <= last else { return true }
      guard last < sent.count else { return false }
      progress.highest = sent.number(at: last)
      for index in first...last {
        let fate = sent.chunks[index].fate
        guard fate == .outstanding || fate == .lost else { continue }
        progress.bytes += sent.chunks[index].size
        measure(index, at: now)
        sent.set(.acknowledged, at: index)
        progress.newest = sent.number(at: index)
      }
      next = last + 1
    }
    return true
  }

  /// Takes the round trip of the timed chunk, which was sent once only (Karn's rule).
  private mutating func measure(_ index: Int, at now: Instant) {
    guard let timed, timed.number == sent.number(at: index) else { return }
    if sent.chunks[index].transmissions == 1 { roundTrip.measure(now - timed.at) }
    self.timed = nil
  }

  private mutating func strike(
    by newest: UInt32, at now: Instant, into outbox: inout Outbox<Output>
  ) {
    let end = min(sent.place(of: newest), sent.count)
    guard end > 0 else { return }
    var isLost = false
    for index in 0..<end where sent.strike(at: index, by: newest) {
      isLost = true
      lose(index, at: now, into: &outbox)
    }
    guard isLost else { return }
    if window.lose(lastInFlight: sent.nextNumber &- 1) {
      counters.fastRecoveries += 1
      isFastRetransmitDue = true
    }
  }

  /// Takes a chunk as lost; its message is given up when its limits are reached.
  private mutating func lose(
    _ index: Int, at now: Instant, into outbox: inout Outbox<Output>
  ) {
    if isOver(sent.chunks[index], at: now) {
      abandon(index, into: &outbox)
    } else {
      sent.set(.lost, at: index)
    }
  }

  /// Whether a lost chunk is given up instead of sent again.
  func isOver(_ chunk: SentChunk, at now: Instant) -> Bool {
    !chunk.limits.isReliable && peer.features.contains(.forward)
      && chunk.limits.isOver(transmissions: chunk.transmissions, at: now)
  }

  /// The retransmission timer passed (RFC 9260 section 6.3.3).
  mutating func timeOut(at now: Instant, into outbox: inout Outbox<Output>) {
    retransmissionTimer = nil
    guard isEstablished, !sent.isEmpty else { return }
    counters.timeouts += 1
    silentTimeouts += 1
    guard silentTimeouts <= SCTPLimits.associationRetries else {
      return fail(.userInitiated, "the peer acknowledges nothing", into: &outbox)
    }
    roundTrip.backOff()
    window.timeOut()
    timed = nil
    // A gap report about the very next chunk was taken back: the peer dropped what it had.
    let isTakenBack = sent.chunks[0].fate == .acknowledged
    for index in 0..<sent.count {
      let fate = sent.chunks[index].fate
      if fate == .outstanding || isTakenBack && fate == .acknowledged {
        lose(index, at: now, into: &outbox)
      }
    }
    sent.extendAbandonedPrefix()
    if sent.abandonedPrefix > 0 { isForwardDue = true }
    retransmissionTimer = now + roundTrip.timeout
  }
}

// MARK: - Giving up

extension SCTPAssociation {
  /// Gives up the message of a chunk: its other chunks, and what of it was not sent (RFC 3758).
  mutating func abandon(_ index: Int, into outbox: inout Outbox<Output>) {
    let message = sent.chunks[index].message
    let place = sent.chunks[index].channel
    if channels[place].sentOfFirst > 0, channels[place].queue.first?.number == message {
      return abandonBegun(place, into: &outbox)
    }
    if channels[place].options.id == sent.chunks[index].stream {
      channels[place].counters.messagesAbandoned += 1
    }
    abandonChunks(of: message, around: index)
  }

  private mutating func abandonChunks(of message: UInt64, around index: Int) {
    // The chunks of a message stand side by side unless messages interleave.
    var first = index
    var last = index
    while first > 0, interleaves || sent.chunks[first - 1].message == message { first -= 1 }
    while last + 1 < sent.count, interleaves || sent.chunks[last + 1].message == message {
      last += 1
    }
    for place in first...last where sent.chunks[place].message == message {
      sent.set(.abandoned, at: place)
    }
    sent.extendAbandonedPrefix()
    isForwardDue = true
  }

  /// Gives up the message that a channel has begun to send.
  ///
  /// A last chunk that is never sent gets a number, so that there is one to pass over even when
  /// the peer has acknowledged all the others.
  mutating func abandonBegun(_ place: Int, into outbox: inout Outbox<Output>) {
    guard let message = channels[place].queue.first else { return }
    channels[place].counters.messagesAbandoned += 1
    let number = sent.nextNumber
    let flags: DataFlags = message.ordered ? .end : [.end, .unordered]
    sent.append(
      SentChunk(
        bytes: [], offset: 0, count: 0, size: 0, message: message.number, channel: place,
        stream: channels[place].options.id ?? 0, flags: flags,
        payloadProtocol: message.payloadProtocol,
        order: message.ordered ? channels[place].nextOrdered : channels[place].nextUnordered,
        part: channels[place].partsOfFirst, limits: message.limits, fate: .abandoned,
        strikeFloor: number &+ 1))
    channels[place].lastNumber = number
    abandonChunks(of: message.number, around: sent.count - 1)
    let sentBytes = UInt64(channels[place].sentOfFirst)
    let unsent = message.buffered - min(message.buffered, sentBytes)
    finishFirst(place, numbered: true, unsent: unsent, into: &outbox)
  }

  /// Tells the peer what to pass over (RFC 3758 section 3.2, RFC 8260 section 2.3.1).
  mutating func sendForward(at now: Instant, into outbox: inout Outbox<Output>) {
    isForwardDue = false
    guard sent.abandonedPrefix > 0 else { return }
    let entry = interleaves ? 8 : 4
    let most = (parameters.maximumPacketSize - PacketBuilder.header - 8) / entry
    var streams: [(stream: UInt16, unordered: Bool, order: UInt32)] = []
    var end = 0
    while end < sent.abandonedPrefix {
      let chunk = sent.chunks[end]
      let unordered = chunk.flags.contains(.unordered)
      if interleaves || !unordered {
        if let known = streams.lastIndex(where: {
          $0.stream == chunk.stream && $0.unordered == unordered
        }) {
          streams[known].order = chunk.order
        } else {
          guard streams.count < most else { break }
          streams.append((chunk.stream, unordered, chunk.order))
        }
      }
      end += 1
    }
    var writer = ByteWriter(capacity: 4 + entry * streams.count)
    writer.uint32(sent.number(at: end - 1))
    for stream in streams {
      writer.uint16(stream.stream)
      if interleaves {
        writer.uint16(stream.unordered ? 1 : 0)
        writer.uint32(stream.order)
      } else {
        writer.uint16(UInt16(truncatingIfNeeded: stream.order))
      }
    }
    append(interleaves ? .interleavedForward : .forward, writer.bytes, into: &outbox)
    forwardSent = (sent.number(at: end - 1), now)
    if retransmissionTimer == nil { retransmissionTimer = now + roundTrip.timeout }
  }
}
