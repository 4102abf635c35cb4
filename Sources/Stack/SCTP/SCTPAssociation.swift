package import Wire

/// One SCTP association over DTLS with its data channels (RFC 9260, 8831, 8832).
///
/// Both sides send an INIT; whichever handshake ends first makes the association. Channels may be
/// made before the start and get their streams then. Packets from the network never fail the
/// association unless they break the protocol; others are counted in `statistics.dropped`.
///
/// The rules have their owners; this machine holds them and routes between them: `Handshake` (INIT,
/// COOKIE, SHUTDOWN, tags), `PacketReader` (whose packet it is) and `DataTransfer`, which joins
/// `Sender` (what goes when, and losses), `Receiver` (gaps, SACKs, messages), `DataChannels` (the
/// lives of channels, and resets), `Liveness` (heartbeats), `PacketWriter` (bundles of chunks) and
/// `TimerTable` (deadlines). Each says where it departs from an RFC on purpose.
package struct SCTPAssociation: Machine {
  private let entropy: EntropyStream
  private(set) var handshake = Handshake()
  private(set) var reader = PacketReader()
  private(set) var transfer: DataTransfer

  /// Creates an association that draws its tags, its numbers and its key from a stream, and whose
  /// channels are counted from a number on.
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

  /// Begins the handshake, and handles packets that came before.
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

  /// Sends everything that may be sent now, and continues with a shutdown that waited for it; the
  /// end of each step.
  private mutating func flush(at now: Instant, into outbox: inout Outbox<Output>) {
    transfer.flush(handshake, at: now, into: &outbox)
    if handshake.phase.isEstablished, transfer.sender.isDrained {
      let received = transfer.receiver.numbers.acknowledged
      perform(handshake.continueShutdown(received), at: now, into: &outbox)
    }
    transfer.emit(handshake, into: &outbox)
  }

  // MARK: - What the parts ask of each other

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

  /// Tells the peer why and ends the association, if there is a failure.
  private mutating func fail(_ failure: SCTPFailure?, into outbox: inout Outbox<Output>) {
    guard let failure else { return }
    let words = Array(failure.reason.utf8.prefix(128))
    sendAbort(failure.cause, failure.cause.hasText ? words : failure.details, into: &outbox)
    end(failure.reason, into: &outbox)
  }

  /// Sends an ABORT once there is a peer to tell.
  private mutating func sendAbort(
    _ cause: ErrorCause, _ details: [UInt8], into outbox: inout Outbox<Output>
  ) {
    guard handshake.canAbort else { return }
    transfer.emit(handshake, into: &outbox)
    transfer.append(.abort(cause, details), handshake, into: &outbox)
    transfer.emit(handshake, into: &outbox)
  }

  /// Ends the association and all channels.
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
    // What waited for data is not answered once the association is over.
    guard transfer.receiver.hasData, handshake.phase != .ended else { return }
    transfer.settle(handshake, at: now, into: &outbox)
    let received = transfer.receiver.numbers.acknowledged
    perform(handshake.prolongShutdown(received), at: now, into: &outbox)
  }

  /// Gives a chunk to the part that it is for; false ends the packet.
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
