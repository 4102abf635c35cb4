import Wire

/// Data from the peer, and telling it what came (RFC 9260 sections 6.2, 6.5 to 6.9).
extension SCTPAssociation {
  private var receivesData: Bool {
    switch phase {
    case .established, .shutdownPending, .shutdownSent: true
    default: false
    }
  }

  mutating func receiveData(
    _ body: RawSpan, _ flags: UInt8, interleaved: Bool, at now: Instant,
    into outbox: inout Outbox<Output>
  ) {
    guard receivesData else { return drop() }
    guard interleaved == interleaves else { return refuseKind(into: &outbox) }
    do throws(ReadError) {
      var reader = ByteReader(body)
      let number = try reader.uint32()
      let stream = try reader.uint16()
      let flags = DataFlags(rawValue: flags)
      let sequence = try reader.uint16()
      let identifier = interleaved ? try reader.uint32() : 0
      let word = try reader.uint32()
      guard !reader.isAtEnd else {
        var details = ByteWriter()
        details.uint32(number)
        return fail(
          .noUserData, "the peer sent data without data", details: details.bytes, into: &outbox)
      }
      // The first part of an interleaved message says what it is, the others their place instead.
      let part = interleaved && !flags.contains(.beginning) ? word : 0
      guard part < 1 << 24, !interleaved || (part == 0) == flags.contains(.beginning) else {
        return drop()
      }
      hasData = true
      if flags.contains(.immediate) { acknowledgement = .due }
      let extended = received.extend(number)
      guard admit(extended, number, size: reader.remaining, into: &outbox) else { return }
      guard stream < peer.outgoingStreams else { return reportStream(stream, into: &outbox) }
      let place = incoming.place(of: stream)
      var fragment = Fragment(
        key: extended, message: 0, flags: flags,
        payloadProtocol: PayloadProtocol(rawValue: word), bytes: [UInt8](reader.rest()))
      if interleaved {
        fragment.message = incoming.streams[place].extend(
          identifier: identifier, unordered: flags.contains(.unordered))
        fragment.key = fragment.message &<< 24 | Int64(part)
      } else {
        fragment.message = incoming.streams[place].extend(sequence: sequence)
      }
      let size = incoming.change(place) { $0.insert(fragment) }
      guard size <= parameters.localMaximumMessageSize else {
        return fail(.protocolViolation, "the peer sent too large a message", into: &outbox)
      }
      deliver(from: place, at: now, into: &outbox)
    } catch {
      drop()
    }
  }

  /// Ends an association whose peer sends data of the kind that was not agreed on (RFC 8260
  /// section 2.2.1).
  private mutating func refuseKind(into outbox: inout Outbox<Output>) {
    fail(.protocolViolation, "the peer sent data of another kind than agreed", into: &outbox)
  }

  /// Tells the peer that it has no such stream; the data counts as come (RFC 9260 section 6.5).
  private mutating func reportStream(_ stream: UInt16, into outbox: inout Outbox<Output>) {
    drop()
    var details = ByteWriter()
    details.uint16(stream)
    details.uint16(0)
    var cause = ByteWriter()
    cause.parameter(ErrorCause.invalidStream.rawValue, details.bytes)
    append(.error, cause.bytes, into: &outbox)
  }

  /// Whether a chunk is new and there is space for it.
  private mutating func admit(
    _ extended: Int64, _ number: UInt32, size: Int, into outbox: inout Outbox<Output>
  ) -> Bool {
    let isNext = extended == received.cumulative + 1
    let isFull =
      incoming.heldBytes + size > parameters.receiveWindow
      || incoming.heldFragments >= SCTPLimits.fragmentsHeld
    if isFull, extended > received.cumulative {
      acknowledgement = .due
      // What fills the gap may free everything behind it, so it has a reserve of the same size.
      guard isNext else {
        drop()
        return false
      }
      guard incoming.heldBytes + size <= 2 * parameters.receiveWindow,
        incoming.heldFragments < 2 * SCTPLimits.fragmentsHeld
      else {
        fail(.outOfResource, "the peer sent more than the window", into: &outbox)
        return false
      }
    }
    switch received.insert(extended) {
    case .new:
      counters.chunksReceived += 1
      // The first one of all is acknowledged at once, and those about a gap.
      if !isNext || !received.ranges.isEmpty || counters.chunksReceived == 1 {
        acknowledgement = .due
      }
      return true
    case .duplicate:
      counters.duplicates += 1
      acknowledgement = .due
      if duplicates.count < 16 { duplicates.append(number) }
    case .refused:
      acknowledgement = .due
      drop()
    }
    return false
  }

  private mutating func deliver(
    from place: Int, at now: Instant, into outbox: inout Outbox<Output>
  ) {
    guard !incoming.streams[place].messages.isEmpty else { return }
    for message in incoming.change(place, { $0.take() }) {
      receiveMessage(message, at: now, into: &outbox)
    }
  }

  /// Decides after a packet with data when it is acknowledged.
  mutating func settleReceived(at now: Instant, into outbox: inout Outbox<Output>) {
    if let stamp = reset.deferred, received.cumulative >= stamp.lastNumber {
      performDeferredReset(into: &outbox)
    }
    guard phase != .ended else { return }
    if phase == .shutdownSent {
      // The peer gets the time to send all that it has queued.
      shutdownTries = 0
      return sendShutdown(at: now, into: &outbox)
    }
    // A window that was told to be closed is told as soon as it is open (section 6.2).
    let least = 2 * parameters.maximumPacketSize
    if toldWindow < least, freeWindow >= least { acknowledgement = .due }
    switch acknowledgement {
    case .none:
      acknowledgement = .delayed
      acknowledgementTimer = now + SCTPLimits.acknowledgementDelay
    case .delayed: acknowledgement = .due
    case .due: break
    }
  }

  /// How many bytes may still come.
  var freeWindow: Int { max(0, parameters.receiveWindow - incoming.heldBytes) }

  /// The body of a SACK that fits into a packet (RFC 9260 section 3.3.4).
  func acknowledgementBody(room: Int) -> [UInt8] {
    let most = max(0, (room - 16) / 4)
    let repeated = duplicates.prefix(most)
    let gaps = received.ranges.prefix(most - repeated.count)
    var writer = ByteWriter(capacity: 12 + 4 * (repeated.count + gaps.count))
    writer.uint32(received.acknowledged)
    writer.uint32(UInt32(clamping: freeWindow))
    writer.uint16(UInt16(gaps.count))
    writer.uint16(UInt16(repeated.count))
    for gap in gaps {
      writer.uint16(UInt16(truncatingIfNeeded: gap.lowerBound - received.cumulative))
      writer.uint16(UInt16(truncatingIfNeeded: gap.upperBound - received.cumulative))
    }
    for number in repeated { writer.uint32(number) }
    return writer.bytes
  }

  /// Passes over what the peer gave up (RFC 3758 section 3.6, RFC 8260 section 2.3.1).
  mutating func receiveForward(
    _ body: RawSpan, interleaved: Bool, at now: Instant, into outbox: inout Outbox<Output>
  ) {
    guard receivesData else { return drop() }
    guard interleaved == interleaves else { return refuseKind(into: &outbox) }
    var reader = ByteReader(body)
    guard let number = try? reader.uint32() else { return drop() }
    hasData = true
    acknowledgement = .due
    let cumulative = received.extend(number)
    guard cumulative > received.cumulative else { return }
    received.forward(to: cumulative)
    while !reader.isAtEnd {
      guard let stream = try? reader.uint16(), let word = try? reader.uint16() else { break }
      var identifier: UInt32 = 0
      if interleaved {
        guard let value = try? reader.uint32() else { break }
        identifier = value
      }
      // One that was never used still has to expect a later message.
      let place = incoming.place(of: stream)
      let isUnordered = interleaved && word & 1 == 1
      incoming.change(place) { stream in
        if isUnordered {
          let message = stream.extend(identifier: identifier, unordered: true)
          stream.forwardUnordered(key: message &<< 24 | 0xff_ffff)
        } else {
          stream.forward(
            message: interleaved
              ? stream.extend(identifier: identifier, unordered: false)
              : stream.extend(sequence: word))
        }
      }
    }
    if !interleaved {
      for place in incoming.streams.indices {
        incoming.change(place) { $0.forwardUnordered(key: cumulative) }
      }
    }
    for place in incoming.streams.indices {
      deliver(from: place, at: now, into: &outbox)
    }
  }
}
