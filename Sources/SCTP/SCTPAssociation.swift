package import Wire

/// One SCTP association over DTLS with its data channels (RFC 9260, 8831, 8832).
///
/// Both sides send an INIT; whichever handshake ends first makes the association. Channels may be
/// made before the start and get their streams then. Packets from the network never fail the
/// association unless they break the protocol; others are counted in `statistics.dropped`.
///
/// It departs from RFC 9260 on purpose in these points:
/// - Timeouts are shorter (section 16), as those of browsers are: liveness is the business of ICE.
/// - Bursts are limited by the window alone (section 6.1, rule D): a message of some packets would
///   wait for round trips that it does not need.
/// - A closed receive window is probed at once while nothing is in flight (rule A waits for a
///   timeout): a peer whose window is smaller than a message opens it when the message is whole.
/// - A chunk that was sent again is taken as lost again when chunks sent after it come
///   (section 7.2.4 waits for a timeout).
/// - A peer that begins anew ends the association (section 5.2.4.1): channels do not outlive it.
package struct SCTPAssociation: Machine {
  package enum Input {
    /// Begins the association; packets that came before, up to a small limit, are handled now.
    case start(SCTPParameters)
    /// A packet from the DTLS association.
    case packet([UInt8])
    /// Makes a channel, which gets the number `nextChannel`; ask `refusal(ofOpening:)` before.
    case open(DataChannelInit)
    /// Sends a text (UTF-8) or a binary message; ask `refusal(ofSending:on:)` before.
    case send(DataChannelNumber, binary: Bool, [UInt8])
    /// Closes a channel after what was sent on it; the peer closes its side then.
    case close(DataChannelNumber)
    case setBufferedAmountLowThreshold(DataChannelNumber, UInt64)
    /// The peer's `a=max-message-size` of a later exchange; what is queued is still sent.
    case remoteMaximumMessageSize(UInt64)
    case deadline
    /// Ends the association when everything that was sent is acknowledged.
    case shutdown
    /// Ends the association now.
    case abort
  }

  package enum Output {
    /// A packet for the DTLS association.
    case packet([UInt8])
    case state(SCTPState)
    /// Why the association failed, in words; comes before the state.
    case failure(String)
    /// The peer made this channel; `channelOpened` follows in the same step.
    case channelAnnounced(DataChannelNumber)
    case channelOpened(DataChannelNumber)
    /// The peer or this side began to close the channel.
    case channelClosing(DataChannelNumber)
    /// The channel is gone; this is what it carried.
    case channelClosed(DataChannelNumber, DataChannelCounters)
    /// A channel could not be used, in words; `channelClosed` follows.
    case channelFailure(DataChannelNumber, String)
    case message(DataChannelNumber, binary: Bool, [UInt8])
    /// The buffered amount fell to the threshold or below.
    case bufferedAmountLow(DataChannelNumber)
  }

  /// Where the handshake and the shutdown are (RFC 9260 section 4).
  enum Phase {
    case idle, cookieWait, cookieEchoed, established, shutdownPending, shutdownSent
    case shutdownReceived, shutdownAcknowledgementSent, ended
  }

  /// The state of the transport.
  package internal(set) var state = SCTPState.connecting
  var counters = SCTPStatistics()

  let entropy: EntropyStream
  var parameters = SCTPParameters(isClient: true)
  var phase = Phase.idle
  var early: [[UInt8]] = []
  var channels: ChannelTable

  // The handshake.
  var cookieKey = CookieKey(first: 0, second: 0)
  var localTag: UInt32 = 0
  var localFirst: UInt32 = 0
  var peer = Initiation()
  var cookie: [UInt8] = []
  /// Parameters of the peer's answer that are to be reported.
  var unreported: [[UInt8]] = []
  var initiationTries = 0
  var initiationTimer: Instant?

  // Sending.
  var builder = PacketBuilder(limit: 1160)
  var sent = SentChunks(firstNumber: 0)
  var window = CongestionWindow(packetSize: 1160)
  var roundTrip = RoundTrip()
  var schedule = SendSchedule()
  /// The channel whose message was begun and must be finished before another's.
  var unfinished: Int?
  var nextMessage: UInt64 = 0
  var peerWindow = 0
  var retransmissionTimer: Instant?
  /// Timeouts in a row without any sign of the peer.
  var silentTimeouts = 0
  var timed: (number: UInt32, at: Instant)?
  var lastSent: Instant?
  /// Whether one packet of lost chunks may go in spite of the congestion window.
  var isFastRetransmitDue = false
  var isForwardDue = false
  /// How far the peer was last told to pass over abandoned chunks, and when.
  var forwardSent: (number: UInt32, at: Instant)?

  // Receiving.
  var received = ReceivedNumbers(first: 0)
  var incoming = IncomingStreams()
  var acknowledgement = Acknowledgement.none
  var acknowledgementTimer: Instant?
  /// What the peer was last told of the receive window.
  var toldWindow = Int.max
  var duplicates: [UInt32] = []
  var hasData = false

  // Resetting streams.
  var reset = StreamResets()
  var resetTimer: Instant?

  // Liveness and the end.
  var heartbeatTimer: Instant?
  var heartbeat: (nonce: UInt64, at: Instant)?
  var shutdownTimer: Instant?
  var shutdownTries = 0

  /// Whether received data waits to be acknowledged.
  enum Acknowledgement {
    case none, delayed, due
  }

  /// Creates an association that draws its tags, its numbers and its key from a stream, and whose
  /// channels are counted from a number on.
  package init(
    entropy: EntropyStream, firstChannel: DataChannelNumber = DataChannelNumber(0)
  ) {
    self.entropy = entropy
    channels = ChannelTable(next: firstChannel)
  }

  package var deadline: Instant? {
    var next = earliest(retransmissionTimer, acknowledgementTimer)
    next = earliest(next, earliest(initiationTimer, resetTimer))
    return earliest(next, earliest(heartbeatTimer, shutdownTimer))
  }

  package mutating func step(
    _ input: Input, at now: Instant, into outbox: inout Outbox<Output>
  ) {
    switch input {
    case .start(let parameters): start(parameters, at: now, into: &outbox)
    case .packet(let bytes): receive(bytes, at: now, into: &outbox)
    case .open(let options): open(options, at: now, into: &outbox)
    case .send(let channel, let binary, let bytes):
      send(bytes, binary: binary, on: channel, at: now, into: &outbox)
    case .close(let channel): close(channel, into: &outbox)
    case .setBufferedAmountLowThreshold(let channel, let threshold):
      if let place = channels.place(of: channel) { channels[place].lowThreshold = threshold }
    case .remoteMaximumMessageSize(let size): parameters.remoteMaximumMessageSize = size
    case .deadline: passDeadline(at: now, into: &outbox)
    case .shutdown: shutdown(at: now, into: &outbox)
    case .abort: abort(at: now, into: &outbox)
    }
    flush(at: now, into: &outbox)
  }

  /// What the association did so far, and the state of its path.
  package var statistics: SCTPStatistics {
    var result = counters
    result.smoothedRoundTripTime = roundTrip.smoothed
    result.retransmissionTimeout = roundTrip.timeout
    result.congestionWindow = window.bytes
    result.receiverWindow = peerWindow
    result.maximumPacketSize = parameters.maximumPacketSize
    result.unacknowledgedChunks = sent.count
    result.bytesInFlight = sent.flight
    return result
  }
}

// MARK: - The association as a whole

extension SCTPAssociation {
  /// Whether data may be sent and received.
  var isEstablished: Bool {
    switch phase {
    case .established, .shutdownPending, .shutdownReceived: true
    default: false
    }
  }

  /// Whether messages interleave: both sides said so.
  var interleaves: Bool {
    parameters.offersInterleaving && peer.features.contains(.interleaving)
  }

  /// Whether packets to the peer need no checksum.
  var omitsChecksum: Bool {
    parameters.offersZeroChecksum && peer.features.contains(.zeroChecksum)
  }

  mutating func drop() { counters.dropped += 1 }

  /// Ends the association and all channels.
  mutating func end(_ reason: String? = nil, into outbox: inout Outbox<Output>) {
    guard phase != .ended else { return }
    phase = .ended
    if let reason { outbox.append(.failure(reason)) }
    state = .closed
    outbox.append(.state(.closed))
    for place in channels.places { finish(place, into: &outbox) }
    initiationTimer = nil
    retransmissionTimer = nil
    acknowledgementTimer = nil
    acknowledgement = .none
    resetTimer = nil
    heartbeatTimer = nil
    shutdownTimer = nil
    sent = SentChunks(firstNumber: 0)
    schedule.removeAll()
    unfinished = nil
    incoming.removeAll()
    early = []
    isForwardDue = false
    isFastRetransmitDue = false
  }

  /// Tells the peer why and ends the association.
  ///
  /// - Parameter details: what the cause has to say beside words.
  mutating func fail(
    _ cause: ErrorCause, _ reason: String, details: [UInt8] = [],
    into outbox: inout Outbox<Output>
  ) {
    let words = Array(reason.utf8.prefix(128))
    sendAbort(cause, cause.takesWords ? words : details, into: &outbox)
    end(reason, into: &outbox)
  }

  /// Sends an ABORT once there is a peer to tell.
  private mutating func sendAbort(
    _ cause: ErrorCause, _ details: [UInt8], into outbox: inout Outbox<Output>
  ) {
    guard peer.tag != 0, phase != .ended else { return }
    emit(into: &outbox)
    var body = ByteWriter()
    body.parameter(cause.rawValue, details)
    append(.abort, body.bytes, into: &outbox)
    emit(into: &outbox)
  }

  mutating func abort(at now: Instant, into outbox: inout Outbox<Output>) {
    sendAbort(.userInitiated, Array("closed".utf8), into: &outbox)
    end(into: &outbox)
  }

  mutating func passDeadline(at now: Instant, into outbox: inout Outbox<Output>) {
    func isDue(_ timer: Instant?) -> Bool { timer.map { $0 <= now } ?? false }
    if isDue(initiationTimer) { retryInitiation(at: now, into: &outbox) }
    if isDue(acknowledgementTimer) { acknowledgement = .due }
    if isDue(retransmissionTimer) { timeOut(at: now, into: &outbox) }
    if isDue(resetTimer) { retryReset(at: now, into: &outbox) }
    if isDue(heartbeatTimer) { beat(at: now, into: &outbox) }
    if isDue(shutdownTimer) { retryShutdown(at: now, into: &outbox) }
  }
}
