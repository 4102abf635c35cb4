package import Wire

/// One SCTP association over DTLS with its data channels (RFC 9260, 8831, 8832).
///
/// Both peers send an INIT; whichever handshake ends first establishes the association. Channels
/// may be created before the start; they get their streams at the start. An unusable packet ends
/// the association only if it violates the protocol; otherwise it is counted in
/// `statistics.dropped`.
///
/// Each protocol rule belongs to one part. This machine holds the parts and passes chunks and
/// events between them: `Handshake` (INIT, COOKIE, SHUTDOWN, tags), `PacketReader` (which
/// association a packet belongs to) and `DataTransfer`, which connects `Sender` (what is sent when,
/// and losses), `Receiver` (gaps, SACKs, messages), `DataChannels` (opening and closing channels,
/// resets), `Liveness` (heartbeats), `PacketWriter` (bundling chunks) and `TimerTable` (deadlines).
/// Each part documents where it departs from an RFC on purpose.
package struct SCTPAssociation: Machine {
  private let entropy: EntropyStream
  private(set) var handshake = Handshake()
  private(set) var reader = PacketReader()
  private(set) var transfer: DataTransfer

  /// Creates an association that draws its tags, numbers and key from a stream; `firstChannel` is
  /// the number of its first channel.
  package init(
    entropy: EntropyStream, firstChannel: DataChannelNumber = DataChannelNumber(0)
  ) {
    self.entropy = entropy
    transfer = DataTransfer(firstChannel: firstChannel)
  }

  package var deadline: Instant? { transfer.timers.next }

  package mutating func step(
    _ input: Input, at now: Instant, into outbox: inout Outbox<Output>
  ) {
    switch input {
    case .start(let parameters):
      if handshake.phase == .idle {
        start(parameters, AssociationIdentity(entropy), at: now, into: &outbox)
      } else {
        reader.drop()
      }
    case .packet(let bytes): receive(bytes, at: now, into: &outbox)
    case .open(let options):
      transfer.open(options, refusal(ofOpening: options), handshake, into: &outbox)
    case .send(let channel, let binary, let bytes):
      if let place = transfer.channels.table.place(of: channel), handshake.phase.isEstablished,
        refusal(ofSending: bytes.count, on: channel) == nil
      {
        transfer.send(bytes, binary: binary, on: place, at: now)
      } else {
        reader.drop()
      }
    case .close(let channel):
      if let place = transfer.channels.table.place(of: channel) {
        transfer.close(place, into: &outbox)
      } else {
        reader.drop()
      }
    case .setBufferedAmountLowThreshold(let channel, let threshold):
      let place = transfer.channels.table.place(of: channel)
      if let place { transfer.sender.queues.setLowThreshold(threshold, of: place) }
    case .remoteMaximumMessageSize(let size): transfer.setRemoteMaximumMessageSize(size)
    case .deadline:
      for timer in SCTPTimer.allCases where transfer.timers.isDue(timer, at: now) {
        expire(timer, at: now, into: &outbox)
      }
    case .shutdown: perform(handshake.shutdown(), at: now, into: &outbox)
    case .abort:
      sendAbort(.userInitiated, Array("closed".utf8), into: &outbox)
      end(nil, into: &outbox)
    }
    flush(at: now, into: &outbox)
    assert(transfer.isConsistent, "sums are not those of their parts")
  }

  /// Starts the handshake and handles packets that arrived earlier.
  mutating func start(
    _ parameters: SCTPParameters, _ identity: AssociationIdentity, at now: Instant,
    into outbox: inout Outbox<Output>
  ) {
    transfer.start(parameters, firstNumber: identity.firstNumber)
    handshake.start(parameters, identity)
    outbox.append(.state(.connecting))
    transfer.assignStreams(handshake, into: &outbox)
    perform(handshake.offer(), at: now, into: &outbox)
    for bytes in reader.removeEarly() { receive(bytes, at: now, into: &outbox) }
  }

  /// Sends everything that may be sent and continues a waiting shutdown; called at the end of each
  /// step.
  private mutating func flush(at now: Instant, into outbox: inout Outbox<Output>) {
    transfer.flush(handshake, at: now, into: &outbox)
    if handshake.phase.isEstablished, transfer.sender.isDrained {
      let received = transfer.receiver.numbers.acknowledged
      perform(handshake.continueShutdown(received), at: now, into: &outbox)
    }
    transfer.emit(handshake, into: &outbox)
  }

  // MARK: - Actions

  private mutating func perform(
    _ actions: [SCTPAction], at now: Instant, into outbox: inout Outbox<Output>
  ) {
    for action in actions {
      switch action {
      case .append(let chunk): transfer.append(chunk, handshake, into: &outbox)
      case .packet(let chunks, let tag):
        transfer.emit(chunks, tag: tag, handshake, into: &outbox)
      case .emit: transfer.emit(handshake, into: &outbox)
      case .arm(let timer): transfer.arm(timer, at: now)
      case .cancel(let timer): transfer.timers.cancel(timer)
      case .backOff: transfer.sender.roundTrip.backOff()
      case .drop: reader.drop()
      case .establish: transfer.establish(handshake, at: now, into: &outbox)
      case .fail(let failure): fail(failure, into: &outbox)
      case .end(let reason): end(reason, into: &outbox)
      }
    }
  }

  private mutating func expire(
    _ timer: SCTPTimer, at now: Instant, into outbox: inout Outbox<Output>
  ) {
    switch timer {
    case .initiation: perform(handshake.retry(), at: now, into: &outbox)
    case .acknowledgement: transfer.receiver.endDelay()
    case .retransmission: fail(transfer.timeOut(handshake, at: now, into: &outbox), into: &outbox)
    case .reset: fail(transfer.askAgain(handshake, at: now, into: &outbox), into: &outbox)
    case .heartbeat: perform(transfer.beat(handshake, entropy, at: now), at: now, into: &outbox)
    case .shutdown:
      let received = transfer.receiver.numbers.acknowledged
      perform(handshake.retryShutdown(received), at: now, into: &outbox)
    }
  }

  /// If there is a failure, reports it to the peer and ends the association.
  private mutating func fail(_ failure: SCTPFailure?, into outbox: inout Outbox<Output>) {
    guard let failure else { return }
    let words = Array(failure.reason.utf8.prefix(128))
    sendAbort(failure.cause, failure.cause.hasText ? words : failure.details, into: &outbox)
    end(failure.reason, into: &outbox)
  }

  /// Sends an ABORT if the peer's tag is known.
  private mutating func sendAbort(
    _ cause: ErrorCause, _ details: [UInt8], into outbox: inout Outbox<Output>
  ) {
    guard handshake.canAbort else { return }
    transfer.emit(handshake, into: &outbox)
    transfer.append(.abort(cause, details), handshake, into: &outbox)
    transfer.emit(handshake, into: &outbox)
  }

  /// Ends the association and all channels; with a reason, also reports a failure.
  private mutating func end(_ reason: String?, into outbox: inout Outbox<Output>) {
    guard handshake.end() else { return }
    if let reason { outbox.append(.failure(reason)) }
    outbox.append(.state(.closed))
    transfer.end(into: &outbox)
    reader.end()
  }

  // MARK: - Packets from the peer

  private mutating func receive(
    _ bytes: [UInt8], at now: Instant, into outbox: inout Outbox<Output>
  ) {
    switch reader.admit(bytes, parameters, handshake) {
    case .nothing: return
    case .answer(let chunk, let tag):
      return perform([.packet([chunk], tag: tag)], at: now, into: &outbox)
    case .chunks: break
    }
    transfer.receiver.beginPacket()
    do throws(ReadError) {
      var chunks = try ChunkReader(bytes.span.bytes)
      while handshake.phase != .ended, let body = try chunks.next() {
        guard receive(chunks.type, chunks.flags, body, at: now, into: &outbox) else { break }
      }
    } catch {
      reader.drop()
    }
    // Deferred requests are not answered once the association has ended.
    guard transfer.receiver.hasData, handshake.phase != .ended else { return }
    transfer.settle(handshake, at: now, into: &outbox)
    let received = transfer.receiver.numbers.acknowledged
    perform(handshake.prolongShutdown(received), at: now, into: &outbox)
  }

  /// Passes a chunk to the part that handles it; returns false to stop reading the packet.
  private mutating func receive(
    _ type: ChunkType, _ flags: UInt8, _ body: RawSpan, at now: Instant,
    into outbox: inout Outbox<Output>
  ) -> Bool {
    var actions: [SCTPAction] = []
    switch type {
    case .data, .interleavedData:
      let failure = transfer.receiveData(
        body, flags, interleaved: type == .interleavedData, handshake, into: &outbox)
      fail(failure, into: &outbox)
    case .forward, .interleavedForward:
      let failure = transfer.receiveForward(
        body, interleaved: type == .interleavedForward, handshake, into: &outbox)
      fail(failure, into: &outbox)
    case .selectiveAcknowledgement:
      actions = transfer.receiveAcknowledgement(body, handshake, at: now, into: &outbox)
    case .initiation: actions = handshake.receiveInitiation(body, entropy, at: now)
    case .initiationAcknowledgement: actions = handshake.receiveInitiationAcknowledgement(body)
    case .cookieEcho: actions = handshake.receiveCookie(body, at: now)
    case .cookieAcknowledgement: actions = handshake.receiveCookieAcknowledgement()
    case .reconfiguration:
      transfer.receiveReconfiguration(body, handshake, at: now, into: &outbox)
    case .heartbeat:
      actions = [Liveness.answer(to: body, capacity: transfer.packets.capacity, handshake.phase)]
    case .heartbeatAcknowledgement: transfer.receiveHeartbeatAcknowledgement(body, at: now)
    case .abort: actions = [Handshake.receiveAbort(body)]
    case .error: handshake.receiveError(body)
    case .shutdown: receiveShutdown(body, at: now, into: &outbox)
    case .shutdownAcknowledgement: actions = handshake.receiveShutdownAcknowledgement()
    case .shutdownComplete: actions = [handshake.receiveShutdownComplete()]
    case .padding: break
    default:
      actions = handshake.answerUnknown(type, flags, body, capacity: transfer.packets.capacity)
      perform(actions, at: now, into: &outbox)
      return type.isSkippedWhenUnknown
    }
    perform(actions, at: now, into: &outbox)
    return type != .initiation && type != .initiationAcknowledgement
  }

  private mutating func receiveShutdown(
    _ body: RawSpan, at now: Instant, into outbox: inout Outbox<Output>
  ) {
    var body = ByteReader(body)
    guard let cumulative = try? body.uint32() else { return reader.drop() }
    let actions = transfer.receiveShutdown(cumulative, handshake, at: now, into: &outbox)
    perform(actions, at: now, into: &outbox)
    perform(handshake.receiveShutdown(), at: now, into: &outbox)
  }
}

// MARK: - Interface

extension SCTPAssociation {
  package enum Input {
    /// Start the handshake; packets received earlier, up to a small limit, are handled now.
    case start(SCTPParameters)
    /// A packet from the DTLS association.
    case packet([UInt8])
    /// Create a channel, numbered `nextChannel`; call `refusal(ofOpening:)` first.
    case open(DataChannelInit)
    /// Send a text (UTF-8) or binary message; call `refusal(ofSending:on:)` first.
    case send(DataChannelNumber, binary: Bool, [UInt8])
    /// Close a channel after its pending messages; the peer then closes its direction.
    case close(DataChannelNumber)
    case setBufferedAmountLowThreshold(DataChannelNumber, UInt64)
    /// The peer's `a=max-message-size` in a later offer/answer exchange; queued messages are still
    /// sent.
    case remoteMaximumMessageSize(UInt64)
    case deadline
    /// End the association once everything sent has been acknowledged.
    case shutdown
    /// End the association immediately.
    case abort
  }

  package enum Output {
    /// A packet for the DTLS association.
    case packet([UInt8])
    case state(SCTPState)
    /// The reason that the association failed, as text; emitted before the state.
    case failure(String)
    /// The peer created this channel; `channelOpened` follows in the same step.
    case channelAnnounced(DataChannelNumber)
    case channelOpened(DataChannelNumber)
    /// The peer or the application started closing the channel.
    case channelClosing(DataChannelNumber)
    case channelClosed(DataChannelNumber, DataChannelCounters)
    /// The reason that a channel could not be used, as text; `channelClosed` follows.
    case channelFailure(DataChannelNumber, String)
    case message(DataChannelNumber, binary: Bool, [UInt8])
    /// The buffered amount fell to the threshold or below.
    case bufferedAmountLow(DataChannelNumber)
  }
}

// MARK: - State

extension SCTPAssociation {
  var parameters: SCTPParameters { transfer.parameters }
  var packets: PacketWriter { transfer.packets }
  var sender: Sender { transfer.sender }
  var receiver: Receiver { transfer.receiver }
  var channels: DataChannels { transfer.channels }

  package var state: SCTPState { handshake.phase.state }

  /// Counters of the association, and the state of its path.
  package var statistics: SCTPStatistics {
    var result = SCTPStatistics()
    result.packetsSent = packets.sent
    result.packetsReceived = reader.received
    result.dropped = reader.dropped + transfer.dropped
    result.chunksSent = sender.counters.chunksSent
    result.chunksRetransmitted = sender.counters.chunksRetransmitted
    result.chunksReceived = receiver.counters.chunks
    result.duplicates = receiver.counters.duplicates
    result.timeouts = sender.counters.timeouts
    result.fastRecoveries = sender.counters.fastRecoveries
    result.smoothedRoundTripTime = sender.roundTrip.smoothed
    result.retransmissionTimeout = sender.roundTrip.timeout
    result.congestionWindow = sender.window.bytes
    result.receiverWindow = sender.peerWindow
    result.maximumPacketSize = parameters.maximumPacketSize
    result.unacknowledgedChunks = sender.sent.count
    result.bytesInFlight = sender.sent.flight
    return result
  }

  package var nextChannel: DataChannelNumber { channels.table.next }

  /// All channels that are not closed, oldest first.
  package var channelNumbers: [DataChannelNumber] {
    channels.table.places.map { channels.table[$0].number }
  }

  /// Returns a channel's state; `closed` if the channel is unknown.
  package func state(of channel: DataChannelNumber) -> DataChannelState {
    channels.table.place(of: channel).map { channels.table[$0].state } ?? .closed
  }

  /// Returns a channel's options, including its stream once it is assigned; nil if the channel is
  /// closed.
  package func options(of channel: DataChannelNumber) -> DataChannelInit? {
    channels.table.place(of: channel).map { channels.table[$0].options }
  }

  /// Returns the bytes passed to `send` but not yet sent; 0 if the channel is closed.
  package func bufferedAmount(of channel: DataChannelNumber) -> UInt64 {
    channels.table.place(of: channel).map { sender.queues.bufferedAmount(of: $0) } ?? 0
  }

  /// Returns a channel's threshold for its buffered amount; 0 if the channel is closed.
  package func bufferedAmountLowThreshold(of channel: DataChannelNumber) -> UInt64 {
    channels.table.place(of: channel).map { sender.queues.lowThreshold(of: $0) } ?? 0
  }

  /// Returns a channel's traffic so far; nil if the channel is closed.
  package func counters(of channel: DataChannelNumber) -> DataChannelCounters? {
    channels.table.place(of: channel).map { counters(at: $0) }
  }

  /// Returns the traffic so far of the channel at a place.
  func counters(at place: Int) -> DataChannelCounters {
    var counters = channels.table[place].counters
    counters.messagesAbandoned = sender.queues.abandoned(of: place)
    return counters
  }

  /// Returns the reason that a channel cannot be created; nil if it can.
  package func refusal(ofOpening options: DataChannelInit) -> DataChannelRefusal? {
    if handshake.phase == .ended { return .closed }
    if options.label.utf8.count > 65535 || options.protocol.utf8.count > 65535
      || options.maxPacketLifeTime != nil && options.maxRetransmits != nil
      || options.negotiated && options.id == nil || options.id == 65535
    {
      return .malformed
    }
    if let id = options.id {
      let isTaken = channels.table.places.contains { channels.table[$0].options.id == id }
      let isMissing = handshake.phase.isEstablished && Int(id) >= handshake.streamCount
      if isTaken || isMissing { return .noStream }
    } else if handshake.phase != .idle,
      channels.table.freeStream(isEven: parameters.isClient, below: handshake.streamCount) == nil
    {
      return .noStream
    }
    return nil
  }

  /// Returns the reason that a message of this size cannot be sent; nil if it can.
  package func refusal(
    ofSending count: Int, on channel: DataChannelNumber
  ) -> DataChannelRefusal? {
    // An association that is shutting down accepts no more data (RFC 9260 section 9.2).
    guard let place = channels.table.place(of: channel), channels.table[place].state == .open,
      handshake.phase == .established
    else { return .notOpen }
    let maximum = parameters.remoteMaximumMessageSize
    if maximum > 0, UInt64(count) > maximum { return .tooLarge(maximum: maximum) }
    let buffered = sender.queues.bufferedAmount(of: place)
    let (sum, overflow) = buffered.addingReportingOverflow(UInt64(count))
    if overflow || sum > SCTPLimits.channelBuffer, buffered > 0 { return .bufferFull }
    return nil
  }
}
