import Wire

/// Closing channels by resetting their streams (RFC 6525, RFC 8831 section 6.7).
extension SCTPAssociation {
  /// Notes that a closing channel has sent all and wants its stream reset.
  mutating func wantReset(_ place: Int) {
    guard channels[place].outgoingReset == .none else { return }
    channels[place].outgoingReset = .wanted
    reset.wanted.append(place)
  }

  /// Asks the peer to reset the streams of channels whose data it has.
  mutating func sendReset(at now: Instant, into outbox: inout Outbox<Output>) {
    guard !reset.wanted.isEmpty || !reset.refused.isEmpty, reset.pending == nil,
      phase == .established
    else { return }
    let isSupported = peer.features.contains(.reconfiguration)
    let most = (parameters.maximumPacketSize - PacketBuilder.header - 24) / 2
    var waiting: [Int] = []
    var asked: [UInt16] = []
    for place in reset.wanted {
      let isAcknowledged =
        channels[place].lastNumber.map { sent.place(of: $0) < 0 } ?? true
      guard isAcknowledged, asked.count < most else {
        waiting.append(place)
        continue
      }
      if isSupported, let stream = channels[place].options.id {
        channels[place].outgoingReset = .asked
        asked.append(stream)
      } else {
        finish(place, into: &outbox)
      }
    }
    reset.wanted = waiting
    if isSupported { asked += reset.refused.prefix(most - asked.count) }
    reset.refused = []
    guard !asked.isEmpty else { return }
    reset.pending = StreamResets.Request(
      number: reset.nextRequest, lastNumber: sent.nextNumber &- 1, streams: asked)
    reset.nextRequest &+= 1
    writeRequest(at: now, into: &outbox)
  }

  private mutating func writeRequest(at now: Instant, into outbox: inout Outbox<Output>) {
    guard let request = reset.pending else { return }
    // The peer resets its stream too, but not before it knows that all it sent there has arrived.
    if acknowledgement == .delayed { sendAcknowledgement(into: &outbox) }
    var value = ByteWriter(capacity: 12 + 2 * request.streams.count)
    value.uint32(request.number)
    value.uint32(reset.expectedRequest &- 1)
    value.uint32(request.lastNumber)
    for stream in request.streams { value.uint16(stream) }
    var body = ByteWriter(capacity: value.count + 8)
    body.parameter(ParameterType.outgoingResetRequest.rawValue, value.bytes)
    append(.reconfiguration, body.bytes, into: &outbox)
    resetTimer = now + roundTrip.timeout
  }

  /// Sends the request again that was not answered.
  mutating func retryReset(at now: Instant, into outbox: inout Outbox<Output>) {
    resetTimer = nil
    guard reset.pending != nil, phase == .established else { return }
    silentTimeouts += 1
    guard silentTimeouts <= SCTPLimits.associationRetries else {
      return fail(.userInitiated, "the peer answers no request", into: &outbox)
    }
    roundTrip.backOff()
    writeRequest(at: now, into: &outbox)
  }

  mutating func receiveReconfiguration(
    _ body: RawSpan, at now: Instant, into outbox: inout Outbox<Output>
  ) {
    guard isEstablished else { return drop() }
    var reader = ByteReader(body)
    var number: UInt16 = 0
    while phase != .ended, let value = reader.parameter(&number) {
      switch ParameterType(rawValue: number) {
      case .outgoingResetRequest: receiveResetRequest(value, at: now, into: &outbox)
      case .reconfigurationResponse: receiveResetResponse(value, at: now, into: &outbox)
      case .incomingResetRequest, .associationResetRequest, .addOutgoingStreamsRequest,
        .addIncomingStreamsRequest:
        receiveOtherRequest(ParameterType(rawValue: number), value, into: &outbox)
      default: drop()
      }
    }
  }

  /// Lets the peer have more streams (RFC 6525 section 5.2.5); data channels need nothing else.
  private mutating func receiveOtherRequest(
    _ type: ParameterType, _ value: RawSpan, into outbox: inout Outbox<Output>
  ) {
    var reader = ByteReader(value)
    guard let sequence = try? reader.uint32() else { return drop() }
    guard isNext(sequence, into: &outbox) else { return }
    reset.lastResult = .denied
    if type == .addOutgoingStreamsRequest, let more = try? reader.uint16(),
      Int(peer.outgoingStreams) + Int(more) <= Int(SCTPLimits.streams)
    {
      peer.outgoingStreams += more
      reset.lastResult = .performed
    }
    respond(sequence, reset.lastResult, into: &outbox)
  }

  /// Whether a request is the one that is expected, and from then on the next one is; others are
  /// answered here, one that came before as it was then (RFC 6525 section 5.2.1).
  private mutating func isNext(_ sequence: UInt32, into outbox: inout Outbox<Output>) -> Bool {
    guard sequence == reset.expectedRequest else {
      let isRepeated = sequence == reset.expectedRequest &- 1
      respond(sequence, isRepeated ? reset.lastResult : .badSequenceNumber, into: &outbox)
      return false
    }
    reset.expectedRequest &+= 1
    return true
  }

  private mutating func respond(
    _ sequence: UInt32, _ result: ResetResult, into outbox: inout Outbox<Output>
  ) {
    var value = ByteWriter(capacity: 8)
    value.uint32(sequence)
    value.uint32(result.rawValue)
    var body = ByteWriter(capacity: 12)
    body.parameter(ParameterType.reconfigurationResponse.rawValue, value.bytes)
    append(.reconfiguration, body.bytes, into: &outbox)
  }

  // MARK: - The peer's streams

  private mutating func receiveResetRequest(
    _ value: RawSpan, at now: Instant, into outbox: inout Outbox<Output>
  ) {
    var reader = ByteReader(value)
    guard let sequence = try? reader.uint32(), (try? reader.uint32()) != nil,
      let last = try? reader.uint32()
    else { return drop() }
    guard isNext(sequence, into: &outbox) else { return }
    var streams: [UInt16] = []
    while let stream = try? reader.uint16() { streams.append(stream) }
    let request = StreamResets.Deferred(
      number: sequence, lastNumber: received.extend(last), streams: streams)
    if received.cumulative >= request.lastNumber {
      reset.deferred = nil
      perform(request, into: &outbox)
    } else {
      // The answer that counts follows when the data is there, asked for again or not.
      reset.deferred = request
      reset.lastResult = .inProgress
      respond(sequence, .inProgress, into: &outbox)
    }
  }

  mutating func performDeferredReset(into outbox: inout Outbox<Output>) {
    guard let request = reset.deferred else { return }
    reset.deferred = nil
    perform(request, into: &outbox)
  }

  private mutating func perform(
    _ request: StreamResets.Deferred, into outbox: inout Outbox<Output>
  ) {
    reset.lastResult = .performed
    respond(request.number, .performed, into: &outbox)
    let isAll = request.streams.isEmpty
    let streams = isAll ? incoming.streams.map(\.identifier) : request.streams
    for stream in streams {
      if let place = incoming.knownPlace(of: stream) { incoming.change(place) { $0.reset() } }
    }
    let places =
      isAll ? channels.places : request.streams.compactMap { channels.place(ofStream: $0) }
    for place in places { closedByPeer(place, into: &outbox) }
  }

  private mutating func closedByPeer(_ place: Int, into outbox: inout Outbox<Output>) {
    guard channels[place].state != .closed, channels[place].options.id != nil else { return }
    channels[place].isIncomingReset = true
    if channels[place].outgoingReset == .done {
      finish(place, into: &outbox)
    } else {
      beginClosing(place, into: &outbox)
    }
  }

  // MARK: - The streams to the peer

  private mutating func receiveResetResponse(
    _ value: RawSpan, at now: Instant, into outbox: inout Outbox<Output>
  ) {
    var reader = ByteReader(value)
    guard let sequence = try? reader.uint32(), let word = try? reader.uint32() else {
      return drop()
    }
    guard var request = reset.pending, request.number == sequence else { return }
    silentTimeouts = 0
    if ResetResult(rawValue: word) == .inProgress {
      // Asked again later, with a new number, for peers that answer a number only once.
      request.number = reset.nextRequest
      reset.nextRequest &+= 1
      reset.pending = request
      resetTimer = now + roundTrip.timeout
      return
    }
    // A peer that refuses will not change its mind; its side of the channel is all that is left.
    reset.pending = nil
    resetTimer = nil
    for stream in request.streams {
      guard let place = channels.place(ofStream: stream), channels[place].outgoingReset == .asked
      else { continue }
      channels[place].outgoingReset = .done
      if channels[place].isIncomingReset { finish(place, into: &outbox) }
    }
  }
}
