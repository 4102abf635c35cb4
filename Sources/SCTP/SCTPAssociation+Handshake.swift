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

  /// Sends a packet of one chunk whose checksum is always there (RFC 9653 section 5.2).
  private mutating func sendChecked(
    _ type: ChunkType, _ body: [UInt8], tag: UInt32, into outbox: inout Outbox<Output>
  ) {
    emit(into: &outbox)
    builder.begin(from: parameters.localPort, to: parameters.remotePort, tag: tag)
    builder.chunk(type, body)
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
    sendChecked(.cookieEcho, cookie, tag: peer.tag, into: &outbox)
    initiationTimer = now + roundTrip.timeout
  }

  /// Answers an INIT without remembering it (RFC 9260 sections 5.1 and 5.2).
  mutating func receiveInitiation(
    _ body: RawSpan, at now: Instant, into outbox: inout Outbox<Output>
  ) {
    guard phase != .idle, phase != .ended, phase != .shutdownAcknowledgementSent else {
      return drop()
    }
    var ignored: [UInt8] = []
    var unrecognized: [[UInt8]] = []
    guard let offer = try? Initiation(body, cookie: &ignored, unrecognized: &unrecognized) else {
      return drop()
    }
    // While both sides still shake hands, the tag stays; later it would be another association.
    let isCollision = phase == .cookieWait || phase == .cookieEchoed
    let tag = isCollision ? localTag : newTag()
    let sealed = StateCookie(
      made: now, localTag: tag, localTieTag: isCollision ? 0 : localTag,
      remoteTieTag: isCollision ? 0 : peer.tag, peer: offer
    ).sealed(cookieKey)
    let answer = ownInitiation(tag: tag).body(cookie: sealed, unrecognized: unrecognized)
    sendChecked(.initiationAcknowledgement, answer, tag: offer.tag, into: &outbox)
  }

  mutating func receiveInitiationAcknowledgement(
    _ body: RawSpan, at now: Instant, into outbox: inout Outbox<Output>
  ) {
    guard phase == .cookieWait else { return drop() }
    var cookie: [UInt8] = []
    var ignored: [[UInt8]] = []
    guard let answer = try? Initiation(body, cookie: &cookie, unrecognized: &ignored),
      !cookie.isEmpty, cookie.count <= parameters.maximumPacketSize - 16
    else { return drop() }
    peer = answer
    self.cookie = cookie
    phase = .cookieEchoed
    initiationTries = 0
    sendCookie(at: now, into: &outbox)
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
