import Wire

/// Transfers data over an association (RFC 9260 section 6): connects sender, receiver, channels,
/// liveness and timers, and writes the packets.
///
/// It makes no decisions itself, but passes chunks and events between its parts. If a part finds
/// that the association must end, it returns the failure; the association does the rest.
struct DataTransfer {
  typealias Output = SCTPAssociation.Output

  private(set) var parameters = SCTPParameters(isClient: true)
  private(set) var packets = PacketWriter()
  var sender = Sender()
  var receiver = Receiver()
  private(set) var channels: DataChannels
  private(set) var liveness = Liveness()
  var timers = TimerTable()
  /// The number of dropped chunks, parameters and messages.
  private(set) var dropped: UInt64 = 0

  init(firstChannel: DataChannelNumber) { channels = DataChannels(next: firstChannel) }

  private mutating func drop() { dropped += 1 }

  // MARK: Lifecycle

  /// Applies the negotiated parameters before the handshake.
  mutating func start(_ parameters: SCTPParameters, firstNumber: UInt32) {
    self.parameters = parameters
    packets.start(parameters)
    sender.start(packetSize: parameters.maximumPacketSize, firstNumber: firstNumber)
    channels.resets.start(firstNumber: firstNumber)
  }

  /// Starts data transfer after the handshake.
  mutating func establish(
    _ handshake: Handshake, at now: Instant, into outbox: inout Outbox<Output>
  ) {
    let peer = handshake.peer
    timers.cancel(.initiation)
    sender.establish(peer, interleaves: handshake.interleaves)
    receiver.establish(parameters, peer, interleaves: handshake.interleaves)
    channels.resets.establish(firstNumber: peer.firstNumber)
    timers.arm(.heartbeat, at: now + SCTPLimits.heartbeatInterval)
    outbox.append(.state(.connected))
    channels.openWaiting(below: handshake.streamCount, &sender, into: &outbox)
  }

  /// Ends all channels and drops pending data.
  mutating func end(into outbox: inout Outbox<Output>) {
    channels.end(&sender, into: &outbox)
    timers.cancelAll()
    sender.end()
    receiver.end()
  }

  // MARK: Requests from the association

  mutating func setRemoteMaximumMessageSize(_ size: UInt64) {
    parameters.remoteMaximumMessageSize = size
  }

  mutating func arm(_ timer: SCTPTimer, at now: Instant) {
    timers.arm(timer, at: now + sender.roundTrip.timeout)
  }

  mutating func append(
    _ chunk: ControlChunk, _ handshake: Handshake, into outbox: inout Outbox<Output>
  ) {
    packets.append(chunk, to: handshake.destination, into: &outbox)
  }

  /// Sends the packet being built.
  mutating func emit(_ handshake: Handshake, into outbox: inout Outbox<Output>) {
    packets.emit(to: handshake.destination, into: &outbox)
  }

  /// Sends chunks in a separate packet.
  mutating func emit(
    _ chunks: [ControlChunk], tag: UInt32, _ handshake: Handshake,
    into outbox: inout Outbox<Output>
  ) {
    emit(handshake, into: &outbox)
    packets.emit(chunks, tag: tag, into: &outbox)
  }

  // MARK: Sending

  /// Sends everything that may be sent now.
  mutating func flush(
    _ handshake: Handshake, at now: Instant, into outbox: inout Outbox<Output>
  ) {
    if handshake.phase.acknowledges, receiver.acknowledgement == .due {
      sendAcknowledgement(handshake, into: &outbox)
    }
    guard handshake.phase.isEstablished else { return }
    askForResets(handshake, at: now, into: &outbox)
    sender.beginFilling(packets.space, at: now)
    while let step = sender.next(packets.space, at: now) {
      write(step, handshake, at: now, into: &outbox)
    }
    if let chunk = sender.makeForward(at: now) {
      append(chunk, handshake, into: &outbox)
      timers.armIfIdle(.retransmission, at: now + sender.roundTrip.timeout)
    }
    // Abandoning unsent messages may have emptied a channel's queue.
    askForResets(handshake, at: now, into: &outbox)
  }

  private mutating func write(
    _ step: SendStep, _ handshake: Handshake, at now: Instant, into outbox: inout Outbox<Output>
  ) {
    switch step {
    case .chunk(let chunk, let number, let restartsTimer, let change):
      // Add a delayed acknowledgement if it fits into the same packet.
      if packets.space.isEmpty, receiver.mayGoAlong(with: chunk.size, capacity: packets.capacity) {
        sendAcknowledgement(handshake, into: &outbox)
      }
      packets.append(
        chunk, number: number, interleaved: handshake.interleaves, to: handshake.destination,
        into: &outbox)
      if restartsTimer { timers.cancel(.retransmission) }
      timers.armIfIdle(.retransmission, at: now + sender.roundTrip.timeout)
      channels.apply(change, into: &outbox)
    case .changed(let change): channels.apply(change, into: &outbox)
    }
  }

  private mutating func sendAcknowledgement(
    _ handshake: Handshake, into outbox: inout Outbox<Output>
  ) {
    append(
      receiver.makeAcknowledgement(capacity: packets.capacity), handshake, into: &outbox)
    timers.cancel(.acknowledgement)
  }

  // MARK: Timers

  /// Treats all outstanding data as lost after a retransmission timeout.
  ///
  /// After too many timeouts, returns a failure.
  mutating func timeOut(
    _ handshake: Handshake, at now: Instant, into outbox: inout Outbox<Output>
  ) -> SCTPFailure? {
    timers.cancel(.retransmission)
    guard handshake.phase.isEstablished, !sender.sent.isEmpty else { return nil }
    sender.countTimeout()
    if let failure = liveness.countTimeout("the peer acknowledges nothing") { return failure }
    for change in sender.timeOut(at: now) { channels.apply(change, into: &outbox) }
    timers.arm(.retransmission, at: now + sender.roundTrip.timeout)
    return nil
  }

  /// Sends a heartbeat to an idle peer.
  mutating func beat(
    _ handshake: Handshake, _ entropy: EntropyStream, at now: Instant
  ) -> [SCTPAction] {
    timers.arm(.heartbeat, at: now + SCTPLimits.heartbeatInterval)
    guard handshake.phase.isEstablished, sender.sent.isEmpty else { return [] }
    return [liveness.beat(entropy, at: now)]
  }

  /// Repeats the unanswered request to reset streams; returns a failure after too many repetitions,
  /// otherwise nil.
  mutating func askAgain(
    _ handshake: Handshake, at now: Instant, into outbox: inout Outbox<Output>
  ) -> SCTPFailure? {
    timers.cancel(.reset)
    guard channels.resets.isPending, handshake.phase == .established else { return nil }
    if let failure = liveness.countTimeout("the peer answers no request") { return failure }
    sender.roundTrip.backOff()
    sendRequest(handshake, at: now, into: &outbox)
    return nil
  }

  // MARK: Receiving

  /// Handles a DATA or I-DATA chunk; returns a failure if the chunk must end the association,
  /// otherwise nil.
  mutating func receiveData(
    _ body: RawSpan, _ flags: UInt8, interleaved: Bool, _ handshake: Handshake,
    into outbox: inout Outbox<Output>
  ) -> SCTPFailure? {
    let outcome =
      handshake.phase.receivesData
      ? receiver.receive(body, DataFlags(rawValue: flags), interleaved: interleaved) : .useless
    return handle(outcome, handshake, into: &outbox)
  }

  /// Handles a FORWARD-TSN or I-FORWARD-TSN chunk; returns a failure if the chunk must end the
  /// association, otherwise nil.
  mutating func receiveForward(
    _ body: RawSpan, interleaved: Bool, _ handshake: Handshake,
    into outbox: inout Outbox<Output>
  ) -> SCTPFailure? {
    let outcome =
      handshake.phase.receivesData
      ? receiver.receiveForward(body, interleaved: interleaved) : .useless
    return handle(outcome, handshake, into: &outbox)
  }

  private mutating func handle(
    _ outcome: ReceiverOutcome, _ handshake: Handshake, into outbox: inout Outbox<Output>
  ) -> SCTPFailure? {
    switch outcome {
    case .nothing: return nil
    case .useless: drop()
    case .unknownStream(let report):
      drop()
      append(report, handshake, into: &outbox)
    case .failed(let failure): return failure
    case .messages(let messages):
      for (index, message) in messages.enumerated() {
        switch channels.deliver(
          message, parameters, below: handshake.streamCount, &sender, into: &outbox)
        {
        case .taken: break
        case .useless: drop()
        case .failed(let failure):
          // Messages after one that ends the association are dropped.
          dropped += UInt64(messages.count - index - 1)
          return failure
        }
      }
    }
    return nil
  }

  /// Handles a SACK; returns the resulting actions.
  mutating func receiveAcknowledgement(
    _ body: RawSpan, _ handshake: Handshake, at now: Instant, into outbox: inout Outbox<Output>
  ) -> [SCTPAction] {
    let outcome = handshake.phase.acknowledges ? sender.acknowledge(body, at: now) : .useless
    return handle(outcome, into: &outbox)
  }

  /// Treats the cumulative number in a SHUTDOWN as an acknowledgement (RFC 9260 section 9.2).
  mutating func receiveShutdown(
    _ cumulative: UInt32, _ handshake: Handshake, at now: Instant,
    into outbox: inout Outbox<Output>
  ) -> [SCTPAction] {
    guard handshake.phase.isEstablished else { return [] }
    return handle(sender.acknowledge(shutdown: cumulative, at: now), into: &outbox)
  }

  private mutating func handle(
    _ outcome: AcknowledgementOutcome, into outbox: inout Outbox<Output>
  ) -> [SCTPAction] {
    switch outcome {
    case .useless: return [.drop]
    case .failed(let failure): return [.fail(failure)]
    case .applied(let effects):
      liveness.acknowledge()
      if effects.isCutOff { drop() }
      for change in effects.changes { channels.apply(change, into: &outbox) }
      return effects.timer
    }
  }

  /// Handles the response to a heartbeat, and measures the round trip.
  mutating func receiveHeartbeatAcknowledgement(_ body: RawSpan, at now: Instant) {
    let sample = liveness.receiveAcknowledgement(body, at: now)
    if let sample { sender.roundTrip.measure(sample) } else { drop() }
  }

  /// Handles deferred resets after a packet with data, and decides when to acknowledge the packet.
  mutating func settle(
    _ handshake: Handshake, at now: Instant, into outbox: inout Outbox<Output>
  ) {
    if let due = channels.resets.removeDeferred(receiver.numbers) {
      handle(due, handshake, at: now, into: &outbox)
    }
    // After SHUTDOWN was sent, data is answered with SHUTDOWN instead (RFC 9260 section 9.2).
    if handshake.phase != .shutdownSent, receiver.settle() {
      timers.arm(.acknowledgement, at: now + SCTPLimits.acknowledgementDelay)
    }
  }

  // MARK: Channels

  /// Creates a channel, which opens immediately if the association is established.
  mutating func open(
    _ options: DataChannelInit, _ refusal: DataChannelRefusal?, _ handshake: Handshake,
    into outbox: inout Outbox<Output>
  ) {
    guard channels.open(options, refusal, &sender, into: &outbox), handshake.phase != .idle else {
      return
    }
    assignStreams(handshake, into: &outbox)
    if handshake.phase.isEstablished {
      channels.openWaiting(below: handshake.streamCount, &sender, into: &outbox)
    }
  }

  /// Assigns streams to channels once the role is known.
  mutating func assignStreams(_ handshake: Handshake, into outbox: inout Outbox<Output>) {
    channels.assignStreams(
      isEven: parameters.isClient, below: handshake.streamCount, &sender, into: &outbox)
  }

  /// Sends a message on the channel at a place in the channel table.
  mutating func send(_ bytes: [UInt8], binary: Bool, on place: Int, at now: Instant) {
    channels.send(bytes, binary: binary, on: place, &sender, at: now)
  }

  mutating func close(_ place: Int, into outbox: inout Outbox<Output>) {
    channels.close(place, &sender, into: &outbox)
  }

  // MARK: Resets

  /// Requests resets for closing channels whose data is acknowledged.
  private mutating func askForResets(
    _ handshake: Handshake, at now: Instant, into outbox: inout Outbox<Output>
  ) {
    guard channels.resets.mayAsk, handshake.phase == .established else { return }
    let canReset = handshake.peer.features.contains(.reconfiguration)
    let most = canReset ? (packets.capacity - 24) / 2 : nil
    if channels.ask(most: most, &sender, into: &outbox) {
      sendRequest(handshake, at: now, into: &outbox)
    }
  }

  private mutating func sendRequest(
    _ handshake: Handshake, at now: Instant, into outbox: inout Outbox<Output>
  ) {
    guard let request = channels.resets.request else { return }
    // The peer resets its own stream only once it knows that all its data has arrived.
    if receiver.acknowledgement == .delayed { sendAcknowledgement(handshake, into: &outbox) }
    append(request, handshake, into: &outbox)
    timers.arm(.reset, at: now + sender.roundTrip.timeout)
  }

  /// Handles a RE-CONFIG chunk (RFC 6525 section 5.2).
  mutating func receiveReconfiguration(
    _ body: RawSpan, _ handshake: Handshake, at now: Instant, into outbox: inout Outbox<Output>
  ) {
    guard handshake.phase.isEstablished else { return drop() }
    var reader = ByteReader(body)
    var number: UInt16 = 0
    while let value = reader.parameter(&number) {
      let type = ParameterType(rawValue: number)
      handle(
        channels.resets.receive(type, value, receiver.numbers), handshake, at: now, into: &outbox)
    }
  }

  private mutating func handle(
    _ outcome: ResetOutcome, _ handshake: Handshake, at now: Instant,
    into outbox: inout Outbox<Output>
  ) {
    switch outcome {
    case .nothing: break
    case .useless: drop()
    case .addStreams(let more, let request):
      let isDone = receiver.addStreams(more)
      append(channels.resets.answer(request, isDone: isDone), handshake, into: &outbox)
    case .respond(let chunk): append(chunk, handshake, into: &outbox)
    case .perform(let streams, let chunk):
      append(chunk, handshake, into: &outbox)
      receiver.reset(streams)
      channels.closeByPeer(streams, &sender, into: &outbox)
    case .askLater:
      liveness.answer()
      timers.arm(.reset, at: now + sender.roundTrip.timeout)
    case .done(let streams):
      liveness.answer()
      timers.cancel(.reset)
      channels.finishReset(of: streams, &sender, into: &outbox)
    }
  }

  /// Whether the totals of sender and receiver match the chunks and messages that they hold.
  var isConsistent: Bool { sender.isConsistent && receiver.isConsistent }
}
