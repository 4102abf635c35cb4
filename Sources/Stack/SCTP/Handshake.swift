import Wire

/// The state of an association and the parameters of both peers: the four-way handshake with tags
/// and cookies (RFC 9260 section 5) and the graceful shutdown (section 9.2).
///
/// It departs from section 5.2.4.1 on purpose: a peer that restarts ends the association, because
/// data channels do not survive a restart.
struct Handshake {
  private(set) var phase = AssociationPhase.idle
  /// The peer's INIT or INIT ACK.
  private(set) var peer = Initiation()
  private var identity = AssociationIdentity(
    cookieKey: CookieKey(first: 0, second: 0), tag: 0, firstNumber: 0)
  private var parameters = SCTPParameters(isClient: true)
  private var cookie: [UInt8] = []
  /// Parameters in the peer's INIT ACK that are still to be reported as unrecognized.
  private var unreported: [[UInt8]] = []
  private var tries = 0
  private var shutdownTries = 0

  /// The verification tag of incoming packets.
  var localTag: UInt32 { identity.tag }

  /// Whether messages may be interleaved; both peers must have announced support (RFC 8260 section
  /// 2.2.1).
  var interleaves: Bool {
    parameters.offersInterleaving && peer.features.contains(.interleaving)
  }

  /// The tag of outgoing packets, and whether they need a checksum.
  ///
  /// The checksum is omitted only if both peers announced support for a checksum of zero (RFC 9653
  /// section 5.2).
  var destination: PacketDestination {
    let omitsChecksum = parameters.offersZeroChecksum && peer.features.contains(.zeroChecksum)
    return PacketDestination(tag: peer.tag, needsChecksum: !omitsChecksum)
  }

  /// The number of outgoing streams; the largest possible number until the handshake is complete.
  var streamCount: Int {
    phase.isEstablished
      ? Int(min(SCTPLimits.streams, peer.incomingStreams)) : Int(SCTPLimits.streams)
  }

  var canAbort: Bool { peer.tag != 0 && phase != .ended }

  /// Ends the association; returns false if it has already ended.
  mutating func end() -> Bool {
    guard phase != .ended else { return false }
    phase = .ended
    return true
  }

  // MARK: INIT

  /// Starts the handshake; the caller then performs the actions of `offer`.
  mutating func start(_ parameters: SCTPParameters, _ identity: AssociationIdentity) {
    self.parameters = parameters
    self.identity = identity
    phase = .cookieWait
  }

  /// Returns the actions that send INIT.
  func offer() -> [SCTPAction] {
    let chunk = ControlChunk(type: .initiation, body: localInitiation(tag: localTag).body())
    return [.packet([chunk], tag: 0), .arm(.initiation)]
  }

  private func localInitiation(tag: UInt32) -> Initiation {
    var own = Initiation()
    own.tag = tag
    own.window = UInt32(clamping: parameters.receiveWindow)
    own.outgoingStreams = SCTPLimits.streams
    own.incomingStreams = SCTPLimits.streams
    own.firstNumber = identity.firstNumber
    own.features = [.forward, .reconfiguration]
    if parameters.offersInterleaving { own.features.insert(.interleaving) }
    if parameters.offersZeroChecksum { own.features.insert(.zeroChecksum) }
    return own
  }

  /// Repeats INIT or COOKIE ECHO (section 4, rules 2 and 3).
  mutating func retry() -> [SCTPAction] {
    tries += 1
    guard tries <= SCTPLimits.initiationRetries else { return [.end("the peer does not answer")] }
    return switch phase {
    case .cookieWait: [.backOff] + offer()
    case .cookieEchoed: [.backOff] + echo()
    case .idle, .established, .shutdownPending, .shutdownSent, .shutdownReceived,
      .shutdownAcknowledgementSent, .ended:
      [.backOff, .cancel(.initiation)]
    }
  }

  /// Answers an INIT without storing anything (sections 5.1 and 5.2).
  func receiveInitiation(
    _ body: RawSpan, _ entropy: EntropyStream, at now: Instant
  ) -> [SCTPAction] {
    // Once data has ended in both directions, an INIT only causes another SHUTDOWN ACK (section
    // 9.2).
    if phase == .shutdownAcknowledgementSent { return shutdownAcknowledgement }
    var ignored: [UInt8] = []
    var unrecognized: [[UInt8]] = []
    guard let offer = try? Initiation(body, cookie: &ignored, unrecognized: &unrecognized),
      offer.tag != 0
    else { return [.drop] }
    guard offer.isAcceptable else { return refusal(of: offer) }
    // During the handshake, the tag stays the same. Afterwards, an INIT means another association,
    // which needs a new tag.
    let tag = phase.isHandshake ? localTag : AssociationIdentity.newTag(entropy)
    // Once the peer's tag is known, the tie tags identify this association.
    let isKnown = phase != .cookieWait
    let sealed = StateCookie(
      made: now, localTag: tag, localTieTag: isKnown ? localTag : 0,
      remoteTieTag: isKnown ? peer.tag : 0, peer: offer
    ).sealed(identity.cookieKey)
    let answer = localInitiation(tag: tag).body(cookie: sealed, unrecognized: unrecognized)
    return [
      .packet([ControlChunk(type: .initiationAcknowledgement, body: answer)], tag: offer.tag)
    ]
  }

  /// Refuses an INIT or INIT ACK with invalid values; the state does not change.
  private func refusal(of offer: Initiation) -> [SCTPAction] {
    [.drop, .packet([.abort(.invalidParameter)], tag: offer.tag)]
  }

  /// Handles the response to the local INIT (section 5.1, rule C).
  mutating func receiveInitiationAcknowledgement(_ body: RawSpan) -> [SCTPAction] {
    guard phase == .cookieWait else { return [.drop] }
    var cookie: [UInt8] = []
    var unrecognized: [[UInt8]] = []
    guard let answer = try? Initiation(body, cookie: &cookie, unrecognized: &unrecognized) else {
      return [.drop]
    }
    guard answer.tag != 0 else {
      return [
        .packet([ControlChunk(type: .abort, flags: 1)], tag: localTag),
        .end("the peer's answer has no tag"),
      ]
    }
    guard answer.isAcceptable || answer.window < 1500 else {
      peer = answer
      return [.fail(Self.noStreams)]
    }
    // Keep waiting after an invalid answer, because a valid one may follow.
    guard answer.isAcceptable else { return refusal(of: answer) }
    guard !cookie.isEmpty else {
      peer = answer
      return [.fail(Self.noCookie)]
    }
    guard cookie.count <= parameters.maximumPacketSize - 16 else { return [.drop] }
    peer = answer
    self.cookie = cookie
    unreported = unrecognized
    phase = .cookieEchoed
    tries = 0
    return echo()
  }

  // MARK: COOKIE

  /// Sends COOKIE ECHO together with a report on unknown parameters of the INIT ACK
  /// (section 3.2.2).
  private func echo() -> [SCTPAction] {
    var chunks = [ControlChunk(type: .cookieEcho, body: cookie)]
    if !unreported.isEmpty {
      let report = ControlChunk.error(.unrecognizedParameters, Array(unreported.joined()))
      if cookie.count + report.body.count + 24 <= parameters.maximumPacketSize {
        chunks.append(report)
      }
    }
    return [.packet(chunks, tag: peer.tag), .arm(.initiation)]
  }

  /// Establishes or confirms the association from a cookie (section 5.2.4).
  mutating func receiveCookie(_ body: RawSpan, at now: Instant) -> [SCTPAction] {
    guard let opened = try? StateCookie(body, identity.cookieKey) else { return [.drop] }
    if opened.localTag != localTag { return receiveForeignCookie(opened) }
    let isSame = opened.peer.tag == peer.tag
    if now - opened.made > SCTPLimits.cookieLife, !(isSame && phase.isEstablished) {
      return [.packet([.error(.staleCookie, [0, 0, 0, 0])], tag: opened.peer.tag)]
    }
    let confirmation = SCTPAction.append(ControlChunk(type: .cookieAcknowledgement))
    switch phase {
    case .cookieWait, .cookieEchoed:
      peer = opened.peer
      return [establish(), confirmation]
    case .idle, .established, .shutdownPending, .shutdownSent, .shutdownReceived,
      .shutdownAcknowledgementSent, .ended:
      return isSame ? [confirmation] : [.drop]
    }
  }

  /// Handles a cookie from another association.
  private func receiveForeignCookie(_ opened: StateCookie) -> [SCTPAction] {
    guard opened.localTieTag == localTag, opened.remoteTieTag == peer.tag else { return [.drop] }
    if phase == .shutdownAcknowledgementSent {
      return shutdownAcknowledgement + [.append(.error(.cookieWhileShuttingDown, []))]
    }
    // The peer lost its state. Data channels do not survive that, so the association ends.
    return [
      .fail(SCTPFailure(cause: .userInitiated, reason: "the peer began a new association"))
    ]
  }

  /// Establishes the association once the peer has accepted the local cookie.
  mutating func receiveCookieAcknowledgement() -> [SCTPAction] {
    phase == .cookieEchoed ? [establish()] : [.drop]
  }

  private mutating func establish() -> SCTPAction {
    phase = .established
    cookie = []
    return .establish
  }

  /// Handles an ERROR chunk; after a stale cookie, the timer requests another cookie (section
  /// 5.2.6).
  mutating func receiveError(_ body: RawSpan) {
    var reader = ByteReader(body)
    var cause: UInt16 = 0
    guard reader.parameter(&cause) != nil, cause == ErrorCause.staleCookie.rawValue,
      phase == .cookieEchoed
    else { return }
    phase = .cookieWait
  }

  /// Skips an unknown chunk, and reports it if its type requires that (section 3.2).
  func answerUnknown(
    _ type: ChunkType, _ flags: UInt8, _ body: RawSpan, capacity: Int
  ) -> [SCTPAction] {
    guard type.isReportedWhenUnknown, phase.isEstablished else { return [.drop] }
    return [.drop, .append(.unrecognized(type, flags, body, capacity: capacity))]
  }

  // MARK: SHUTDOWN

  /// Ends the association once everything sent has been acknowledged.
  mutating func shutdown() -> [SCTPAction] {
    switch phase {
    case .established: phase = .shutdownPending
    case .idle, .cookieWait, .cookieEchoed: return [.end(nil)]
    case .shutdownPending, .shutdownSent, .shutdownReceived, .shutdownAcknowledgementSent, .ended:
      break
    }
    return []
  }

  /// Continues the shutdown once everything is acknowledged.
  ///
  /// - Parameter received: the cumulative number of the peer's data.
  mutating func continueShutdown(_ received: UInt32) -> [SCTPAction] {
    switch phase {
    case .shutdownPending: phase = .shutdownSent
    case .shutdownReceived: phase = .shutdownAcknowledgementSent
    case .idle, .cookieWait, .cookieEchoed, .established, .shutdownSent,
      .shutdownAcknowledgementSent, .ended:
      return []
    }
    return shutdownChunk(received)
  }

  /// Returns SHUTDOWN or SHUTDOWN ACK, depending on the phase.
  private func shutdownChunk(_ received: UInt32) -> [SCTPAction] {
    guard phase == .shutdownSent else { return shutdownAcknowledgement }
    var body = ByteWriter()
    body.uint32(received)
    return [.append(ControlChunk(type: .shutdown, body: body.bytes)), .arm(.shutdown)]
  }

  /// Acknowledges the end of data in both directions, after which a delayed SACK is no longer
  /// needed (section 9.2).
  private var shutdownAcknowledgement: [SCTPAction] {
    [
      .append(ControlChunk(type: .shutdownAcknowledgement)), .arm(.shutdown),
      .cancel(.acknowledgement),
    ]
  }

  mutating func retryShutdown(_ received: UInt32) -> [SCTPAction] {
    shutdownTries += 1
    guard shutdownTries <= SCTPLimits.associationRetries else {
      return [
        .fail(
          SCTPFailure(cause: .userInitiated, reason: "the peer does not answer the shutdown"))
      ]
    }
    return [.backOff] + shutdownChunk(received)
  }

  /// Answers data that arrives after the local SHUTDOWN, and waits longer, so that the peer can
  /// send its queued data.
  mutating func prolongShutdown(_ received: UInt32) -> [SCTPAction] {
    guard phase == .shutdownSent else { return [] }
    shutdownTries = 0
    return shutdownChunk(received)
  }

  /// Handles the peer's SHUTDOWN; its cumulative number has already been handled.
  mutating func receiveShutdown() -> [SCTPAction] {
    switch phase {
    case .established, .shutdownPending, .shutdownReceived: phase = .shutdownReceived
    case .shutdownSent:
      // Both peers shut down at the same time.
      phase = .shutdownAcknowledgementSent
      return shutdownAcknowledgement
    case .shutdownAcknowledgementSent: return shutdownAcknowledgement
    case .idle, .cookieWait, .cookieEchoed, .ended: return [.drop]
    }
    return []
  }

  func receiveShutdownAcknowledgement() -> [SCTPAction] {
    switch phase {
    case .shutdownSent, .shutdownAcknowledgementSent:
      [.append(ControlChunk(type: .shutdownComplete)), .emit, .end(nil)]
    case .idle, .cookieWait, .cookieEchoed, .established, .shutdownPending, .shutdownReceived,
      .ended:
      [.drop]
    }
  }

  func receiveShutdownComplete() -> SCTPAction {
    phase == .shutdownAcknowledgementSent ? .end(nil) : .drop
  }

  /// Handles an ABORT; peers that close without a shutdown send "user initiated" or no cause.
  static func receiveAbort(_ body: RawSpan) -> SCTPAction {
    var reader = ByteReader(body)
    var cause: UInt16 = 0
    _ = reader.parameter(&cause)
    let isUsual = cause == 0 || cause == ErrorCause.userInitiated.rawValue
    return .end(isUsual ? nil : "the peer aborted the association (cause \(cause))")
  }

  // MARK: Failures

  private static let noStreams = SCTPFailure(
    cause: .invalidParameter, reason: "the peer's answer has no streams")

  private static let noCookie = SCTPFailure(
    cause: .missingParameter, reason: "the peer's answer has no cookie",
    details: [0, 0, 0, 1, 0, UInt8(ParameterType.stateCookie.rawValue)])
}

// MARK: - AssociationPhase

/// The states of handshake and shutdown (RFC 9260 section 4).
enum AssociationPhase: Hashable, CaseIterable {
  case idle, cookieWait, cookieEchoed, established, shutdownPending, shutdownSent
  case shutdownReceived, shutdownAcknowledgementSent, ended

  /// Whether data may be sent.
  var isEstablished: Bool {
    switch self {
    case .established, .shutdownPending, .shutdownReceived: true
    case .idle, .cookieWait, .cookieEchoed, .shutdownSent, .shutdownAcknowledgementSent, .ended:
      false
    }
  }

  /// Whether data from the peer is accepted (RFC 9260 section 9.2).
  var receivesData: Bool {
    switch self {
    case .established, .shutdownPending, .shutdownSent: true
    case .idle, .cookieWait, .cookieEchoed, .shutdownReceived, .shutdownAcknowledgementSent,
      .ended:
      false
    }
  }

  /// Whether data in either direction is still acknowledged.
  var acknowledges: Bool { isEstablished || self == .shutdownSent }

  /// Whether the handshake is still in progress.
  var isHandshake: Bool { self == .cookieWait || self == .cookieEchoed }

  var state: SCTPState {
    switch self {
    case .idle, .cookieWait, .cookieEchoed: .connecting
    case .established, .shutdownPending, .shutdownSent, .shutdownReceived,
      .shutdownAcknowledgementSent:
      .connected
    case .ended: .closed
    }
  }
}

/// Random values that an association draws when it starts.
struct AssociationIdentity {
  /// The key for digests of the association's cookies.
  var cookieKey: CookieKey
  /// The verification tag of packets sent to this endpoint (RFC 9260 section 5.3.1).
  var tag: UInt32
  /// The number of this endpoint's first data chunk.
  var firstNumber: UInt32

  /// Draws the values from a random stream; a replay depends on their order.
  init(_ entropy: EntropyStream) {
    cookieKey = CookieKey(entropy)
    tag = Self.newTag(entropy)
    firstNumber = entropy.integer(UInt32.self)
  }

  init(cookieKey: CookieKey, tag: UInt32, firstNumber: UInt32) {
    self.cookieKey = cookieKey
    self.tag = tag
    self.firstNumber = firstNumber
  }

  /// Draws a tag, which is never zero.
  static func newTag(_ entropy: EntropyStream) -> UInt32 { max(1, entropy.integer(UInt32.self)) }
}
