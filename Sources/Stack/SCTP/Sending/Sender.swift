import DequeModule
import Wire

/// The next step in filling a packet.
enum SendStep {
  /// Write a chunk; the first unacknowledged chunk restarts the timer.
  case chunk(SentChunk, number: UInt32, restartsTimer: Bool, QueueChange)
  /// There is nothing to write: a message was abandoned, or a channel's turn ended.
  case changed(QueueChange)
}

enum AcknowledgementOutcome {
  /// The SACK is truncated, or older than the last one.
  case useless
  case failed(SCTPFailure)
  case applied(AcknowledgementEffects)
}

struct AcknowledgementEffects {
  /// The changes of the retransmission timer (RFC 9260 section 6.3.2).
  var timer: [SCTPAction] = []
  var isCutOff = false
  var changes: [QueueChange] = []
}

/// Sends data: decides what may be sent (RFC 9260 section 6.1), detects losses from SACKs and
/// timeouts (sections 6.3.3 and 7.2.4), and abandons messages (RFC 3758).
///
/// It departs from RFC 9260 on purpose:
/// - Only the window limits bursts (section 6.1, rule D): otherwise a message of several packets
///   would wait for round trips it does not need.
/// - A closed receive window is probed immediately while nothing is in flight (rule A waits for a
///   timeout): a peer whose window is smaller than a message opens it once the message is complete.
/// - A retransmitted chunk counts as lost again when chunks sent after it are acknowledged
///   (section 7.2.4 waits for a timeout).
struct Sender {
  struct Counters: Hashable {
    var chunksSent: UInt64 = 0
    var chunksRetransmitted: UInt64 = 0
    var timeouts: UInt64 = 0
    var fastRecoveries: UInt64 = 0
  }

  private(set) var sent = SentChunks(firstNumber: 0)
  private(set) var window = CongestionWindow(packetSize: 1160)
  var roundTrip = RoundTrip()
  var queues = SendQueues()
  private(set) var counters = Counters()
  /// The peer's last advertised receive window.
  private(set) var peerWindow = 0
  /// Bytes of chunks that fit into a packet.
  private var capacity = 1160 - PacketBuilder.header
  private var interleaves = false
  /// Whether the peer can skip abandoned messages.
  private var canForward = false
  private var lastSent: Instant?
  /// Whether one packet of lost chunks may be sent regardless of the congestion window
  /// (section 7.2.4).
  private var isFastRetransmitDue = false
  /// Space left in the packet of lost chunks that the congestion window does not limit.
  private var freeRoom = 0
  private var isForwardDue = false
  /// The number and time of the last FORWARD-TSN.
  private var forwardSent: (number: UInt32, at: Instant)?

  /// The failure after the peer acknowledged data that was never sent (RFC 9260 section 12.2.3).
  private static let impossible = SCTPFailure(
    cause: .protocolViolation, reason: "the peer acknowledged what was not sent")

  /// The length of the fixed part of a DATA or I-DATA chunk, including its header.
  private var dataHeader: Int { interleaves ? 20 : 16 }

  /// Sets the packet size and the first chunk's number.
  mutating func start(packetSize: Int, firstNumber: UInt32) {
    window = CongestionWindow(packetSize: packetSize)
    capacity = packetSize - PacketBuilder.header
    sent = SentChunks(firstNumber: firstNumber)
  }

  /// Applies the peer's parameters.
  mutating func establish(_ peer: Initiation, interleaves: Bool) {
    peerWindow = Int(peer.window)
    canForward = peer.features.contains(.forward)
    self.interleaves = interleaves
  }

  /// Drops pending data.
  mutating func end() {
    sent = SentChunks(firstNumber: 0)
    queues.removeTurns()
    isForwardDue = false
    isFastRetransmitDue = false
  }

  // MARK: Channels

  /// Appends a message to a channel's queue, with the channel's limits if the peer can skip
  /// abandoned messages (RFC 3758 section 3.3).
  mutating func enqueue(
    _ message: consuming OutgoingMessage, limitedBy options: DataChannelInit, on place: Int,
    at now: Instant
  ) {
    if canForward {
      message.limits.expiry = options.maxPacketLifeTime.map { now + .milliseconds(Int64($0)) }
      message.limits.retransmissions = options.maxRetransmits.map { Int($0) }
    }
    queues.enqueue(message, on: place)
  }

  /// Returns whether all of a channel's data is acknowledged, in which case its stream may be
  /// reset.
  func isAcknowledged(_ place: Int) -> Bool {
    queues.lastNumber(of: place).map { sent.place(of: $0) < 0 } ?? true
  }

  /// Whether everything passed to `send` is acknowledged.
  var isDrained: Bool { sent.isEmpty && queues.current == nil }

  // MARK: Sending

  mutating func beginFilling(_ space: PacketSpace, at now: Instant) {
    freeRoom = isFastRetransmitDue ? space.room : 0
    isFastRetransmitDue = false
    if let lastSent, sent.isEmpty, queues.current != nil {
      window.idle(for: now - lastSent, timeout: roundTrip.timeout)
    }
  }

  /// Returns what goes into the packet next; nil if nothing can be sent now.
  mutating func next(_ space: PacketSpace, at now: Instant) -> SendStep? {
    sent.lostCount > 0 ? nextLost(space, at: now) : nextNew(space, at: now)
  }

  private mutating func nextLost(_ space: PacketSpace, at now: Instant) -> SendStep? {
    while let index = sent.firstLost() {
      if isOver(sent.chunks[index], at: now) {
        // The message expired while the window was closed.
        if let change = abandon(index) { return .changed(change) }
        continue
      }
      let chunk = sent.chunks[index]
      let isFree = chunk.size <= freeRoom
      guard isFree || mayFly(chunk.size, space), fitsPeer(chunk.size) else { return nil }
      if isFree { freeRoom -= chunk.size }
      sent.resend(at: index)
      counters.chunksRetransmitted += 1
      // The acknowledgement of the timed chunk may have to wait for this retransmission, so the
      // measurement is discarded (RFC 9260 section 6.3.1, rule C5).
      if let timed = roundTrip.timedNumber, sent.place(of: timed) >= index { roundTrip.cancel() }
      lastSent = now
      return .chunk(
        chunk, number: sent.number(at: index), restartsTimer: index == 0,
        QueueChange(place: chunk.channel))
    }
    return nextNew(space, at: now)
  }

  /// Returns whether the congestion window allows a chunk (RFC 9260 section 6.1, rule B).
  private func mayFly(_ size: Int, _ space: PacketSpace) -> Bool {
    // A packet begun within the window is filled, even if it then exceeds the window.
    if space.hasData, size <= space.room { return true }
    // After a timeout, only one packet may be in flight, even if its chunks are small.
    return sent.flight < window.bytes && !(window.isProbing && sent.flight > 0)
  }

  /// Returns whether the peer has room for a chunk; a single chunk may always be in flight (RFC
  /// 9260 section 6.1, rule A).
  private func fitsPeer(_ size: Int) -> Bool {
    sent.flight == 0 || sent.flight + size <= peerWindow
  }

  /// Returns how many bytes of a message go into the next chunk.
  ///
  /// A message that needs several packets starts in the space left in the current packet.
  private func partSize(of message: OutgoingMessage, rest: Int, _ space: PacketSpace) -> Int {
    let most = capacity - dataHeader
    guard rest > most || message.bytes.count > most, !space.isEmpty else {
      return min(rest, most)
    }
    let room = (space.room - dataHeader) & ~3
    return min(rest, room >= 128 ? room : most)
  }

  private mutating func nextNew(_ space: PacketSpace, at now: Instant) -> SendStep? {
    guard sent.flight < window.bytes || space.hasData, sent.lostCount == 0,
      sent.count < SCTPLimits.chunksInFlight, let place = queues.current
    else { return nil }
    guard let message = queues.first(of: place) else {
      let isDrained = queues.endTurn(place)
      return .changed(QueueChange(place: place, isDrained: isDrained))
    }
    if let expiry = message.limits.expiry, now >= expiry, canForward {
      if queues.sentOfFirst(of: place) > 0 { return abandonBegun(place).map { .changed($0) } }
      queues.countAbandoned(place)
      return .changed(
        queues.finishFirst(
          place, numbered: false, unsent: message.buffered, interleaves: interleaves))
    }
    let rest = message.bytes.count - queues.sentOfFirst(of: place)
    let count = partSize(of: message, rest: rest, space)
    let size = (count + dataHeader + 3) & ~3
    guard mayFly(size, space), fitsPeer(size) else { return nil }
    let number = sent.nextNumber
    let chunk = queues.removePart(
      of: message, place, count: count, header: dataHeader, number: number)
    sent.append(chunk)
    counters.chunksSent += 1
    roundTrip.begin(number, at: now)
    lastSent = now
    let buffered = min(UInt64(count), message.buffered)
    let change =
      count == rest
      ? queues.finishFirst(place, numbered: true, unsent: buffered, interleaves: interleaves)
      : queues.finishPart(place, count: count, buffered: buffered, interleaves: interleaves)
    return .chunk(chunk, number: number, restartsTimer: false, change)
  }

  /// Returns a chunk with the numbers that the peer should skip, if one is due (RFC 3758 section
  /// 3.5); otherwise nil.
  mutating func makeForward(at now: Instant) -> ControlChunk? {
    guard isForwardDue else { return nil }
    isForwardDue = false
    guard let (body, end) = sent.forward(room: capacity, interleaves: interleaves) else {
      return nil
    }
    forwardSent = (end, now)
    return ControlChunk(type: interleaves ? .interleavedForward : .forward, body: body)
  }

  // MARK: Acknowledgements

  /// Handles a SACK's body (RFC 9260 section 6.2.1).
  mutating func acknowledge(_ body: RawSpan, at now: Instant) -> AcknowledgementOutcome {
    var reader = ByteReader(body)
    guard let cumulative = try? reader.uint32(), let space = try? reader.uint32(),
      let gaps = try? reader.uint16(), (try? reader.uint16()) != nil
    else { return .useless }
    let passed = sent.place(of: cumulative) + 1
    // A SACK with a lower number than the last one is out of date.
    guard passed >= 0 else { return .useless }
    guard passed <= sent.count else { return .failed(Self.impossible) }
    let flight = sent.flight
    peerWindow = Int(space)
    var progress = SentChunks.Progress()
    sent.acknowledgeFirst(passed, at: now, &roundTrip, &progress)
    guard sent.acknowledge(gaps: Int(gaps), &reader, at: now, &roundTrip, &progress) else {
      return .failed(Self.impossible)
    }
    if progress.bytes > 0 { roundTrip.settle() }
    // Chunks below the highest newly acknowledged number get a missing report; during a recovery in
    // which the cumulative number advances, so do all others below the highest number in a gap
    // report (section 7.2.4).
    let isRecovering = window.recoveryPoint != nil && progress.advanced
    window.advance(to: cumulative)
    window.acknowledge(progress.bytes, flight: flight)
    var effects = AcknowledgementEffects(isCutOff: progress.isCutOff)
    if let seen = isRecovering ? progress.highest : progress.newest {
      strike(by: seen, at: now, &effects.changes)
    }
    if sent.isEmpty {
      window.drain()
      effects.timer = [.cancel(.retransmission)]
    } else if progress.advanced {
      effects.timer = [.arm(.retransmission)]
    }
    sent.extendAbandonedPrefix()
    wantForward(at: now)
    return .applied(effects)
  }

  /// Treats the cumulative number in a SHUTDOWN as an acknowledgement without gaps (section 9.2).
  mutating func acknowledge(shutdown cumulative: UInt32, at now: Instant) -> AcknowledgementOutcome
  {
    var body = ByteWriter()
    body.uint32(cumulative)
    body.uint32(UInt32(clamping: peerWindow))
    body.uint32(0)
    let bytes = body.bytes
    return acknowledge(bytes.span.bytes, at: now)
  }

  /// Schedules FORWARD-TSN: immediately for a new number, and once per round trip for an unchanged
  /// number.
  ///
  /// It must not wait for an acknowledgement, because there may be no other packet to acknowledge.
  private mutating func wantForward(at now: Instant) {
    guard sent.abandonedPrefix > 0 else { return }
    let pause = roundTrip.smoothed ?? roundTrip.timeout
    let end = sent.number(at: sent.abandonedPrefix - 1)
    if forwardSent.map({ $0.number != end || now - $0.at >= pause }) ?? true {
      isForwardDue = true
    }
  }

  /// Counts how often chunks were reported missing; the third report marks a chunk as lost (section
  /// 7.2.4).
  private mutating func strike(
    by newest: UInt32, at now: Instant, _ changes: inout [QueueChange]
  ) {
    let end = min(sent.place(of: newest), sent.count)
    guard end > 0 else { return }
    var isLost = false
    for index in 0..<end where sent.strike(at: index, by: newest) {
      isLost = true
      if let change = lose(index, at: now) { changes.append(change) }
    }
    guard isLost else { return }
    if window.lose(lastInFlight: sent.nextNumber &- 1) {
      counters.fastRecoveries += 1
      isFastRetransmitDue = true
    }
  }

  /// Counts an expired retransmission timer.
  mutating func countTimeout() { counters.timeouts += 1 }

  /// Marks all chunks in flight as lost (RFC 9260 section 6.3.3).
  mutating func timeOut(at now: Instant) -> [QueueChange] {
    roundTrip.backOff()
    window.timeOut()
    roundTrip.cancel()
    var changes: [QueueChange] = []
    // If a gap report acknowledged the first chunk, but the cumulative number did not advance over
    // it, the peer has since dropped that chunk. So all chunks in gap reports count as lost too.
    let isTakenBack = sent.chunks.first?.fate == .acknowledged
    for index in 0..<sent.count {
      let fate = sent.chunks[index].fate
      guard fate == .outstanding || isTakenBack && fate == .acknowledged else { continue }
      if let change = lose(index, at: now) { changes.append(change) }
    }
    sent.extendAbandonedPrefix()
    if sent.abandonedPrefix > 0 { isForwardDue = true }
    return changes
  }

  // MARK: Abandoning

  /// Marks a chunk as lost, or abandons its message if the message's limits are reached; returns
  /// the change of its queue, or nil if the queue is unchanged.
  private mutating func lose(_ index: Int, at now: Instant) -> QueueChange? {
    if isOver(sent.chunks[index], at: now) { return abandon(index) }
    sent.lose(at: index)
    return nil
  }

  /// Returns whether a lost chunk is abandoned instead of retransmitted.
  private func isOver(_ chunk: SentChunk, at now: Instant) -> Bool {
    !chunk.limits.isReliable && canForward
      && chunk.limits.isOver(transmissions: chunk.transmissions, at: now)
  }

  /// Abandons a chunk's message: its other chunks and its unsent rest; returns the change of the
  /// queue, or nil if the queue is unchanged.
  private mutating func abandon(_ index: Int) -> QueueChange? {
    let message = sent.chunks[index].message
    let place = sent.chunks[index].channel
    if queues.hasBegun(message, on: place) { return abandonBegun(place) }
    queues.countAbandoned(place, stream: sent.chunks[index].stream)
    sent.abandon(message, around: index, interleaves: interleaves)
    isForwardDue = true
    return nil
  }

  /// Abandons the message that a channel is in the middle of sending; returns the change of the
  /// queue, or nil if there is no such message.
  ///
  /// A final chunk gets a number but is never sent, so that the peer can skip to it even after
  /// acknowledging all other chunks.
  private mutating func abandonBegun(_ place: Int) -> QueueChange? {
    guard let message = queues.first(of: place) else { return nil }
    queues.countAbandoned(place)
    sent.append(queues.makeEnd(of: message, place, number: sent.nextNumber))
    sent.abandon(message.number, around: sent.count - 1, interleaves: interleaves)
    isForwardDue = true
    let sentBytes = UInt64(queues.sentOfFirst(of: place))
    let unsent = message.buffered - min(message.buffered, sentBytes)
    return queues.finishFirst(place, numbered: true, unsent: unsent, interleaves: interleaves)
  }

  /// Whether the bytes in flight and the buffered amounts match the chunks and messages.
  var isConsistent: Bool { sent.isConsistent && queues.isConsistent }
}
