package import Wire

/// One SCTP association over DTLS with its data channels (RFC 9260, 8831, 8832).
///
/// Both sides send an INIT; whichever handshake ends first makes the association. Channels may be
/// made before the start and get their streams then. Packets from the network never fail the
/// association unless they break the protocol; others are counted in `statistics.dropped`.
///
/// The rules have their owners; this machine holds them and routes between them: `Handshake` (INIT,
/// COOKIE, SHUTDOWN, tags), `Sender` (what goes when, and losses), `Receiver` (gaps, SACKs and
/// messages), `DataChannels` (the lives of channels, and resets), `Liveness` (heartbeats),
/// `PacketWriter` (bundles of chunks) and `TimerTable` (deadlines). Each says where it departs from
/// an RFC on purpose.
package struct SCTPAssociation: Machine {
  private let entropy: EntropyStream
  private(set) var parameters = SCTPParameters(isClient: true)
  private(set) var handshake = Handshake()
  private(set) var packets = PacketWriter()
  private(set) var sender = Sender()
  private(set) var receiver = Receiver()
  private(set) var channels: DataChannels
  private(set) var liveness = Liveness()
  private(set) var timers = TimerTable()
  /// Packets that came before the start.
  private(set) var early: [[UInt8]] = []
  private(set) var packetsReceived: UInt64 = 0
  private(set) var dropped: UInt64 = 0

  /// Creates an association that draws its tags, its numbers and its key from a stream, and whose
  /// channels are counted from a number on.
  package init(
    entropy: EntropyStream, firstChannel: DataChannelNumber = DataChannelNumber(0)
  ) {
    self.entropy = entropy
    channels = DataChannels(next: firstChannel)
  }

  package var deadline: Instant? { timers.next }

  package mutating func step(
    _ input: Input, at now: Instant, into outbox: inout Outbox<Output>
  ) {
    switch input {
    case .start(let parameters):
      if handshake.phase == .idle {
        start(parameters, AssociationIdentity(entropy), at: now, into: &outbox)
      } else {
        drop()
      }
    case .packet(let bytes): receive(bytes, at: now, into: &outbox)
    case .open(let options): open(options, at: now, into: &outbox)
    case .send(let channel, let binary, let bytes):
      send(bytes, binary: binary, on: channel, at: now)
    case .close(let channel):
      if let place = channels.table.place(of: channel) {
        channels.close(place, &sender, into: &outbox)
      } else {
        drop()
      }
    case .setBufferedAmountLowThreshold(let channel, let threshold):
      let place = channels.table.place(of: channel)
      if let place { sender.setLowThreshold(threshold, of: place) }
    case .remoteMaximumMessageSize(let size): parameters.remoteMaximumMessageSize = size
    case .deadline:
      for timer in SCTPTimer.allCases where timers.isDue(timer, at: now) {
        expire(timer, at: now, into: &outbox)
      }
    case .shutdown: perform(handshake.shutdown(), at: now, into: &outbox)
    case .abort:
      sendAbort(.userInitiated, Array("closed".utf8), into: &outbox)
      end(nil, into: &outbox)
    }
    flush(at: now, into: &outbox)
    assert(sender.isConsistent && receiver.isConsistent, "sums are not those of their parts")
  }

  /// Begins the handshake, and handles packets that came before.
  mutating func start(
    _ parameters: SCTPParameters, _ identity: AssociationIdentity, at now: Instant,
    into outbox: inout Outbox<Output>
  ) {
    self.parameters = parameters
    packets.start(parameters)
    sender.start(packetSize: parameters.maximumPacketSize, firstNumber: identity.firstNumber)
    channels.start(firstNumber: identity.firstNumber)
    handshake.start(parameters, identity)
    outbox.append(.state(.connecting))
    assignStreams(into: &outbox)
    perform(handshake.offer(), at: now, into: &outbox)
    let kept = early
    early = []
    for bytes in kept { receive(bytes, at: now, into: &outbox) }
  }

  private mutating func drop() { dropped += 1 }

  // MARK: - What the parts ask of each other

  private mutating func perform(
    _ actions: [SCTPAction], at now: Instant, into outbox: inout Outbox<Output>
  ) {
    for action in actions {
      switch action {
      case .append(let chunk): append(chunk, into: &outbox)
      case .packet(let chunks, let tag):
        emit(into: &outbox)
        packets.emit(chunks, tag: tag, into: &outbox)
      case .emit: emit(into: &outbox)
      case .arm(let timer): timers.arm(timer, at: now + sender.roundTrip.timeout)
      case .cancel(let timer): timers.cancel(timer)
      case .backOff: sender.backOff()
      case .drop: drop()
      case .establish: establish(at: now, into: &outbox)
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
    case .acknowledgement: receiver.endDelay()
    case .retransmission: timeOut(at: now, into: &outbox)
    case .reset: askAgain(at: now, into: &outbox)
    case .heartbeat:
      timers.arm(.heartbeat, at: now + SCTPLimits.heartbeatInterval)
      guard handshake.phase.isEstablished, sender.sent.isEmpty else { return }
      perform([liveness.beat(entropy, at: now)], at: now, into: &outbox)
    case .shutdown:
      let received = receiver.numbers.acknowledged
      perform(handshake.retryShutdown(received), at: now, into: &outbox)
    }
  }

  private mutating func establish(at now: Instant, into outbox: inout Outbox<Output>) {
    let peer = handshake.peer
    timers.cancel(.initiation)
    sender.establish(peer, interleaves: handshake.interleaves)
    receiver.establish(parameters, peer, interleaves: handshake.interleaves)
    channels.establish(firstNumber: peer.firstNumber)
    timers.arm(.heartbeat, at: now + SCTPLimits.heartbeatInterval)
    outbox.append(.state(.connected))
    channels.openWaiting(below: handshake.streamCount, &sender, into: &outbox)
  }

  /// Tells the peer why and ends the association.
  private mutating func fail(_ failure: SCTPFailure, into outbox: inout Outbox<Output>) {
    let words = Array(failure.reason.utf8.prefix(128))
    sendAbort(failure.cause, failure.cause.takesWords ? words : failure.details, into: &outbox)
    end(failure.reason, into: &outbox)
  }

  /// Sends an ABORT once there is a peer to tell.
  private mutating func sendAbort(
    _ cause: ErrorCause, _ details: [UInt8], into outbox: inout Outbox<Output>
  ) {
    guard handshake.peer.tag != 0, handshake.phase != .ended else { return }
    emit(into: &outbox)
    append(.abort(cause, details), into: &outbox)
    emit(into: &outbox)
  }

  /// Ends the association and all channels.
  private mutating func end(_ reason: String?, into outbox: inout Outbox<Output>) {
    guard handshake.phase != .ended else { return }
    handshake.end()
    if let reason { outbox.append(.failure(reason)) }
    outbox.append(.state(.closed))
    channels.end(&sender, into: &outbox)
    timers.cancelAll()
    sender.end()
    receiver.end()
    early = []
  }

  // MARK: - Packets to the peer

  /// Sends everything that may be sent now; the end of each step.
  private mutating func flush(at now: Instant, into outbox: inout Outbox<Output>) {
    if handshake.phase.acknowledges, receiver.acknowledgement == .due {
      sendAcknowledgement(into: &outbox)
    }
    if handshake.phase.isEstablished {
      askForResets(at: now, into: &outbox)
      sender.beginFilling(packets.space, at: now)
      while let step = sender.next(packets.space, at: now) {
        write(step, at: now, into: &outbox)
      }
      if let chunk = sender.takeForward(at: now) {
        append(chunk, into: &outbox)
        timers.armIfIdle(.retransmission, at: now + sender.roundTrip.timeout)
      }
      // Messages that were given up before they were sent may have been the last of a channel.
      askForResets(at: now, into: &outbox)
      if sender.isDrained {
        let received = receiver.numbers.acknowledged
        perform(handshake.continueShutdown(received), at: now, into: &outbox)
      }
    }
    emit(into: &outbox)
  }

  private mutating func write(_ step: SendStep, at now: Instant, into outbox: inout Outbox<Output>)
  {
    switch step {
    case .chunk(let chunk, let number, let restartsTimer, let change):
      // An acknowledgement that waits goes along when it costs no packet of its own.
      if packets.space.isEmpty, receiver.mayGoAlong(with: chunk.size, capacity: packets.capacity) {
        sendAcknowledgement(into: &outbox)
      }
      packets.append(
        chunk, number: number, interleaved: handshake.interleaves, to: handshake.destination,
        into: &outbox)
      if restartsTimer { timers.cancel(.retransmission) }
      timers.armIfIdle(.retransmission, at: now + sender.roundTrip.timeout)
      channels.take(change, into: &outbox)
    case .changed(let change): channels.take(change, into: &outbox)
    }
  }

  private mutating func sendAcknowledgement(into outbox: inout Outbox<Output>) {
    append(receiver.takeAcknowledgement(capacity: packets.capacity), into: &outbox)
    timers.cancel(.acknowledgement)
  }

  private mutating func append(_ chunk: ControlChunk, into outbox: inout Outbox<Output>) {
    packets.append(chunk, to: handshake.destination, into: &outbox)
  }

  private mutating func emit(into outbox: inout Outbox<Output>) {
    packets.emit(to: handshake.destination, into: &outbox)
  }

  /// The retransmission timer passed.
  private mutating func timeOut(at now: Instant, into outbox: inout Outbox<Output>) {
    timers.cancel(.retransmission)
    guard handshake.phase.isEstablished, !sender.sent.isEmpty else { return }
    sender.countTimeout()
    if let failure = liveness.countTimeout("the peer acknowledges nothing") {
      return fail(failure, into: &outbox)
    }
    for change in sender.timeOut(at: now) { channels.take(change, into: &outbox) }
    timers.arm(.retransmission, at: now + sender.roundTrip.timeout)
  }

  // MARK: - Packets from the peer

  private mutating func receive(
    _ bytes: [UInt8], at now: Instant, into outbox: inout Outbox<Output>
  ) {
    if handshake.phase == .idle {
      if early.count < SCTPLimits.earlyPackets { early.append(bytes) } else { drop() }
      return
    }
    guard let header = PacketHeader(bytes, parameters) else { return drop() }
    let phase = handshake.phase
    guard phase != .ended,
      header.belongs(localTag: handshake.localTag, remoteTag: handshake.peer.tag)
    else {
      drop()
      if let answer = header.answerOutOfTheBlue(phase, bytes) {
        perform([.packet([answer], tag: header.tag)], at: now, into: &outbox)
      }
      return
    }
    packetsReceived += 1
    receiver.beginPacket()
    do throws(ReadError) {
      var reader = ByteReader(bytes.span.bytes)
      try reader.skip(PacketBuilder.header)
      var isFirst = true
      while reader.remaining >= 4, handshake.phase != .ended {
        let type = ChunkType(rawValue: try reader.uint8())
        let flags = try reader.uint8()
        let length = Int(try reader.uint16())
        guard length >= 4 else { throw .malformed }
        let body = try reader.span(length - 4)
        try reader.skip(min(-length & 3, reader.remaining))
        guard type.mayStand(isFirst: isFirst, isAlone: isFirst && reader.remaining < 4) else {
          drop()
          break
        }
        isFirst = false
        guard receive(type, flags, body, at: now, into: &outbox) else { break }
      }
    } catch {
      drop()
    }
    if receiver.hasData { settleReceived(at: now, into: &outbox) }
  }

  /// Gives a chunk to the part that it is for; false ends the packet.
  private mutating func receive(
    _ type: ChunkType, _ flags: UInt8, _ body: RawSpan, at now: Instant,
    into outbox: inout Outbox<Output>
  ) -> Bool {
    let phase = handshake.phase
    var actions: [SCTPAction] = []
    switch type {
    case .data, .interleavedData:
      let isInterleaved = type == .interleavedData
      let outcome =
        phase.receivesData
        ? receiver.receive(body, DataFlags(rawValue: flags), interleaved: isInterleaved) : .useless
      take(outcome, into: &outbox)
    case .forward, .interleavedForward:
      let isInterleaved = type == .interleavedForward
      let outcome =
        phase.receivesData ? receiver.receiveForward(body, interleaved: isInterleaved) : .useless
      take(outcome, into: &outbox)
    case .selectiveAcknowledgement:
      let outcome = phase.acknowledges ? sender.acknowledge(body, at: now) : .useless
      take(outcome, at: now, into: &outbox)
    case .initiation: actions = handshake.receiveInitiation(body, entropy, at: now)
    case .initiationAcknowledgement: actions = handshake.receiveInitiationAcknowledgement(body)
    case .cookieEcho: actions = handshake.receiveCookie(body, at: now)
    case .cookieAcknowledgement: actions = handshake.receiveCookieAcknowledgement()
    case .reconfiguration: receiveReconfiguration(body, at: now, into: &outbox)
    case .heartbeat:
      actions = [Liveness.answer(to: body, capacity: packets.capacity, phase)]
    case .heartbeatAcknowledgement:
      let sample = liveness.receiveAcknowledgement(body, at: now)
      if let sample { sender.measure(sample) } else { drop() }
    case .abort: actions = [Handshake.receiveAbort(body)]
    case .error: handshake.receiveError(body)
    case .shutdown: receiveShutdown(body, at: now, into: &outbox)
    case .shutdownAcknowledgement: actions = handshake.receiveShutdownAcknowledgement()
    case .shutdownComplete: actions = [handshake.receiveShutdownComplete()]
    case .padding: break
    default:
      drop()
      if type.isReportedWhenUnknown, phase.isEstablished {
        let report = ControlChunk.unrecognized(type, flags, body, capacity: packets.capacity)
        append(report, into: &outbox)
      }
      return type.isSkippedWhenUnknown
    }
    perform(actions, at: now, into: &outbox)
    return type != .initiation && type != .initiationAcknowledgement
  }

  private mutating func receiveShutdown(
    _ body: RawSpan, at now: Instant, into outbox: inout Outbox<Output>
  ) {
    var reader = ByteReader(body)
    guard let cumulative = try? reader.uint32() else { return drop() }
    if handshake.phase.isEstablished {
      take(sender.acknowledge(shutdown: cumulative, at: now), at: now, into: &outbox)
    }
    perform(handshake.receiveShutdown(), at: now, into: &outbox)
  }

  private mutating func take(
    _ outcome: AcknowledgementOutcome, at now: Instant, into outbox: inout Outbox<Output>
  ) {
    switch outcome {
    case .useless: drop()
    case .failed(let failure): fail(failure, into: &outbox)
    case .taken(let effects):
      liveness.acknowledge()
      if effects.isCutOff { drop() }
      for change in effects.changes { channels.take(change, into: &outbox) }
      perform(effects.timer, at: now, into: &outbox)
    }
  }

  private mutating func take(_ outcome: ReceiverOutcome, into outbox: inout Outbox<Output>) {
    switch outcome {
    case .nothing: break
    case .useless: drop()
    case .unknownStream(let report):
      drop()
      append(report, into: &outbox)
    case .failed(let failure): fail(failure, into: &outbox)
    case .messages(let messages):
      for message in messages { deliver(message, into: &outbox) }
    }
  }

  /// Hands out a whole message from a stream, or does what it asks.
  private mutating func deliver(_ message: ReceivedMessage, into outbox: inout Outbox<Output>) {
    // What came with a message that ended the association comes too late.
    guard handshake.phase != .ended else { return drop() }
    switch channels.deliver(
      message, parameters, below: handshake.streamCount, &sender, into: &outbox)
    {
    case .taken: break
    case .useless: drop()
    case .failed(let failure): fail(failure, into: &outbox)
    }
  }

  /// Decides after a packet with data when it is acknowledged.
  private mutating func settleReceived(at now: Instant, into outbox: inout Outbox<Output>) {
    guard handshake.phase != .ended else { return }
    if let due = channels.takeDeferred(receiver.numbers) { take(due, at: now, into: &outbox) }
    if handshake.phase == .shutdownSent {
      let received = receiver.numbers.acknowledged
      perform(handshake.prolongShutdown(received), at: now, into: &outbox)
    } else if receiver.settle() {
      timers.arm(.acknowledgement, at: now + SCTPLimits.acknowledgementDelay)
    }
  }

  // MARK: - Channels

  private mutating func open(
    _ options: DataChannelInit, at now: Instant, into outbox: inout Outbox<Output>
  ) {
    let refusal = refusal(ofOpening: options)
    guard channels.open(options, refusal, &sender, into: &outbox), handshake.phase != .idle else {
      return
    }
    assignStreams(into: &outbox)
    if handshake.phase.isEstablished {
      channels.openWaiting(below: handshake.streamCount, &sender, into: &outbox)
    }
  }

  /// Gives channels their streams once the role is known.
  private mutating func assignStreams(into outbox: inout Outbox<Output>) {
    channels.assignStreams(
      isEven: parameters.isClient, below: handshake.streamCount, &sender, into: &outbox)
  }

  private mutating func send(
    _ bytes: [UInt8], binary: Bool, on channel: DataChannelNumber, at now: Instant
  ) {
    guard let place = channels.table.place(of: channel), handshake.phase.isEstablished,
      refusal(ofSending: bytes.count, on: channel) == nil
    else { return drop() }
    channels.send(bytes, binary: binary, on: place, &sender, at: now)
  }

  /// Asks the peer to reset the streams of channels whose data it has.
  private mutating func askForResets(at now: Instant, into outbox: inout Outbox<Output>) {
    guard channels.resets.mayAsk, handshake.phase == .established else { return }
    let canReset = handshake.peer.features.contains(.reconfiguration)
    let most = canReset ? (packets.capacity - 24) / 2 : nil
    if channels.ask(most: most, &sender, into: &outbox) { sendRequest(at: now, into: &outbox) }
  }

  private mutating func sendRequest(at now: Instant, into outbox: inout Outbox<Output>) {
    guard let request = channels.resets.request else { return }
    // The peer resets its stream too, but not before it knows that all it sent there has arrived.
    if receiver.acknowledgement == .delayed { sendAcknowledgement(into: &outbox) }
    append(request, into: &outbox)
    timers.arm(.reset, at: now + sender.roundTrip.timeout)
  }

  /// Sends the request again that was not answered.
  private mutating func askAgain(at now: Instant, into outbox: inout Outbox<Output>) {
    timers.cancel(.reset)
    guard channels.resets.isPending, handshake.phase == .established else { return }
    if let failure = liveness.countTimeout("the peer answers no request") {
      return fail(failure, into: &outbox)
    }
    sender.backOff()
    sendRequest(at: now, into: &outbox)
  }

  private mutating func receiveReconfiguration(
    _ body: RawSpan, at now: Instant, into outbox: inout Outbox<Output>
  ) {
    guard handshake.phase.isEstablished else { return drop() }
    var reader = ByteReader(body)
    var number: UInt16 = 0
    while handshake.phase != .ended, let value = reader.parameter(&number) {
      let type = ParameterType(rawValue: number)
      take(channels.receive(type, value, receiver.numbers), at: now, into: &outbox)
    }
  }

  private mutating func take(
    _ outcome: ResetOutcome, at now: Instant, into outbox: inout Outbox<Output>
  ) {
    switch outcome {
    case .nothing: break
    case .useless: drop()
    case .addStreams(let more, let request):
      let isDone = receiver.addStreams(more)
      append(channels.answer(request, isDone: isDone), into: &outbox)
    case .respond(let chunk): append(chunk, into: &outbox)
    case .perform(let streams, let chunk):
      append(chunk, into: &outbox)
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
}
