import Wire

/// The four-way handshake (RFC 9260 section 5).
extension SCTPAssociation {
  mutating func start(
    _ parameters: SCTPParameters, at now: Instant, into outbox: inout Outbox<Output>
  ) {
    guard phase == .idle else { return drop() }
    self.parameters = parameters
    builder = PacketBuilder(limit: parameters.maximumPacketSize)
    window = CongestionWindow(packetSize: parameters.maximumPacketSize)
    cookieKey = CookieKey(entropy)
    localTag = newTag()
    localFirst = entropy.integer(UInt32.self)
    sent = SentChunks(firstNumber: localFirst)
    reset.nextRequest = localFirst
    phase = .cookieWait
    outbox.append(.state(.connecting))
    assignStreams(into: &outbox)
    sendInitiation(at: now, into: &outbox)
    var kept: [[UInt8]] = []
    swap(&kept, &early)
    for bytes in kept { receive(bytes, at: now, into: &outbox) }
  }

  private func newTag() -> UInt32 { max(1, entropy.integer(UInt32.self)) }

  private func ownInitiation(tag: UInt32) -> Initiation {
    var own = Initiation()
    own.tag = tag
    own.window = UInt32(clamping: parameters.receiveWindow)
    own.outgoingStreams = SCTPLimits.streams
    own.incomingStreams = SCTPLimits.streams
    own.firstNumber = localFirst
    own.features = [.forward, .reconfiguration]
    if parameters.offersInterleaving { own.features.insert(.interleaving) }
    if parameters.offersZeroChecksum { own.features.insert(.zeroChecksum) }
    return own
  }

  /// Sends a packet of its own whose checksum is always there (RFC 9653 section 5.2).
  mutating func sendChecked(
    _ type: ChunkType, flags: UInt8 = 0, _ body: [UInt8] = [], tag: UInt32, error: [UInt8] = [],
    into outbox: inout Outbox<Output>
  ) {
    emit(into: &outbox)
    builder.begin(from: parameters.localPort, to: parameters.remotePort, tag: tag)
    builder.chunk(type, flags: flags, body)
    if !error.isEmpty { builder.chunk(.error, error) }
    counters.packetsSent += 1
    outbox.append(.packet(builder.finish(checksum: true)))
  }

  private mutating func sendInitiation(at now: Instant, into outbox: inout Outbox<Output>) {
    let body = ownInitiation(tag: localTag).body()
    sendChecked(.initiation, body, tag: 0, into: &outbox)
    initiationTimer = now + roundTrip.timeout
  }

  mutating func retryInitiation(at now: Instant, into outbox: inout Outbox<Output>) {
    initiationTries += 1
    guard initiationTries <= SCTPLimits.initiationRetries else {
      return end("the peer does not answer", into: &outbox)
    }
    roundTrip.backOff()
    switch phase {
    case .cookieWait: sendInitiation(at: now, into: &outbox)
    case .cookieEchoed: sendCookie(at: now, into: &outbox)
    default: initiationTimer = nil
    }
  }

  private mutating func sendCookie(at now: Instant, into outbox: inout Outbox<Output>) {
    // What the answer had that is not known here is reported along (section 3.2.2).
    var report = ByteWriter()
    if !unreported.isEmpty {
      var cause = ByteWriter()
      cause.parameter(
        ErrorCause.unrecognizedParameters.rawValue, Array(unreported.joined()))
      report.append(cause.bytes)
    }
    let fits = cookie.count + report.count + 24 <= parameters.maximumPacketSize
    sendChecked(
      .cookieEcho, cookie, tag: peer.tag, error: fits ? report.bytes : [], into: &outbox)
    initiationTimer = now + roundTrip.timeout
  }

  /// Answers an INIT without remembering it (RFC 9260 sections 5.1 and 5.2).
  mutating func receiveInitiation(
    _ body: RawSpan, at now: Instant, into outbox: inout Outbox<Output>
  ) {
    guard phase != .idle, phase != .ended else { return drop() }
    if phase == .shutdownAcknowledgementSent {
      // The peer has lost the end of the association (section 9.2).
      return sendShutdown(at: now, into: &outbox)
    }
    var ignored: [UInt8] = []
    var unrecognized: [[UInt8]] = []
    guard let offer = try? Initiation(body, cookie: &ignored, unrecognized: &unrecognized),
      offer.tag != 0
    else { return drop() }
    guard offer.isAcceptable else { return refuse(offer, into: &outbox) }
    // While both sides still shake hands, the tag stays; later it would be another association.
    let isCollision = phase == .cookieWait || phase == .cookieEchoed
    let tag = isCollision ? localTag : newTag()
    // Once the peer's tag is known, the tie tags say which association this is about.
    let isKnown = phase != .cookieWait
    let sealed = StateCookie(
      made: now, localTag: tag, localTieTag: isKnown ? localTag : 0,
      remoteTieTag: isKnown ? peer.tag : 0, peer: offer
    ).sealed(cookieKey)
    let answer = ownInitiation(tag: tag).body(cookie: sealed, unrecognized: unrecognized)
    sendChecked(.initiationAcknowledgement, answer, tag: offer.tag, into: &outbox)
  }

  mutating func receiveInitiationAcknowledgement(
    _ body: RawSpan, at now: Instant, into outbox: inout Outbox<Output>
  ) {
    guard phase == .cookieWait else { return drop() }
    var cookie: [UInt8] = []
    var unrecognized: [[UInt8]] = []
    guard let answer = try? Initiation(body, cookie: &cookie, unrecognized: &unrecognized) else {
      return drop()
    }
    guard answer.tag != 0 else {
      reflect(.abort, tag: localTag, into: &outbox)
      return end("the peer's answer has no tag", into: &outbox)
    }
    guard answer.isAcceptable || answer.window < 1500 else {
      peer = answer
      return fail(.invalidParameter, "the peer's answer has no streams", into: &outbox)
    }
    // Another answer may be a better one.
    guard answer.isAcceptable else { return refuse(answer, into: &outbox) }
    guard !cookie.isEmpty else {
      peer = answer
      let missing: [UInt8] = [0, 0, 0, 1, 0, UInt8(ParameterType.stateCookie.rawValue)]
      return fail(
        .missingParameter, "the peer's answer has no cookie", details: missing, into: &outbox)
    }
    guard cookie.count <= parameters.maximumPacketSize - 16 else { return drop() }
    peer = answer
    self.cookie = cookie
    unreported = unrecognized
    phase = .cookieEchoed
    initiationTries = 0
    sendCookie(at: now, into: &outbox)
  }

  /// Tells the sender of values that no association can have, and changes nothing.
  private mutating func refuse(_ offer: Initiation, into outbox: inout Outbox<Output>) {
    drop()
    var cause = ByteWriter()
    cause.parameter(ErrorCause.invalidParameter.rawValue)
    sendChecked(.abort, cause.bytes, tag: offer.tag, into: &outbox)
  }

  /// Makes or confirms the association from a cookie (RFC 9260 section 5.2.4).
  mutating func receiveCookie(
    _ body: RawSpan, at now: Instant, into outbox: inout Outbox<Output>
  ) {
    guard phase != .idle, phase != .ended, let opened = try? StateCookie(body, cookieKey) else {
      return drop()
    }
    if opened.localTag != localTag {
      guard opened.localTieTag == localTag, opened.remoteTieTag == peer.tag else { return drop() }
      if phase == .shutdownAcknowledgementSent {
        var cause = ByteWriter()
        cause.parameter(ErrorCause.cookieWhileShuttingDown.rawValue)
        sendShutdown(at: now, into: &outbox)
        return append(.error, cause.bytes, into: &outbox)
      }
      // The peer lost its state. Channels do not outlive that, so the association ends.
      return fail(.userInitiated, "the peer began a new association", into: &outbox)
    }
    let isSame = opened.peer.tag == peer.tag
    if now - opened.made > SCTPLimits.cookieLife, !(isSame && isEstablished) {
      var cause = ByteWriter()
      cause.parameter(ErrorCause.staleCookie.rawValue, [0, 0, 0, 0])
      return sendChecked(.error, cause.bytes, tag: opened.peer.tag, into: &outbox)
    }
    switch phase {
    case .cookieWait, .cookieEchoed:
      peer = opened.peer
      establish(at: now, into: &outbox)
    default:
      guard isSame else { return drop() }
    }
    append(.cookieAcknowledgement, into: &outbox)
  }

  mutating func receiveCookieAcknowledgement(
    at now: Instant, into outbox: inout Outbox<Output>
  ) {
    guard phase == .cookieEchoed else { return drop() }
    establish(at: now, into: &outbox)
  }

  private mutating func establish(at now: Instant, into outbox: inout Outbox<Output>) {
    phase = .established
    initiationTimer = nil
    cookie = []
    peerWindow = Int(peer.window)
    received = ReceivedNumbers(first: peer.firstNumber)
    reset.expectedRequest = peer.firstNumber
    heartbeatTimer = now + SCTPLimits.heartbeatInterval
    state = .connected
    outbox.append(.state(.connected))
    openWaiting(at: now, into: &outbox)
  }
}
