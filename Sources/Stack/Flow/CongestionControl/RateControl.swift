import DequeModule
import RTP
import Wire

/// Controls the sending rate: the path estimate, the budget for retransmissions, and the target
/// announced to encoders.
struct RateControl {
  /// The minimum time between announcements of the target.
  private static let targetSpacing = Interval.milliseconds(150)

  var congestion = AdaptiveBitrate()
  var resends = ResendBudget()
  private var transportSequence: Int64 = 0
  private var announced: (bitrate: UInt64, at: Instant)?

  /// The total rate that may be sent, in bits per second.
  var target: UInt64 { congestion.target }

  var nextSequence: UInt16 { UInt16(truncatingIfNeeded: transportSequence) }

  /// Records a packet with the next transport-wide sequence number.
  mutating func sendNumbered(_ bytes: Int, at now: Instant) {
    congestion.packetSent(transportSequence, bytes: bytes, at: now)
    transportSequence += 1
  }

  mutating func mayResend(at now: Instant) -> Bool {
    resends.mayResend(at: now, targetBitrate: congestion.target)
  }

  /// Returns the target for encoders if it must be announced now; otherwise nil.
  ///
  /// The first target is announced at once. Later targets are announced after a minimum time, if
  /// the target has changed by more than a twentieth or has reached a bound.
  mutating func announce(at now: Instant) -> UInt64? {
    let target = encoderTarget(at: now)
    if let announced {
      let change = max(target, announced.bitrate) - min(target, announced.bitrate)
      let isBound = congestion.isBound && target == congestion.target && change > 0
      guard change * 20 > announced.bitrate || isBound,
        now - announced.at >= Self.targetSpacing
      else { return nil }
    }
    announced = (target, now)
    return target
  }

  /// Returns the target minus the rate of recent retransmissions, in bits per second, but at least
  /// half of the target and at least the minimum.
  ///
  /// Inlined, because a call would copy the controller's state.
  @inline(__always)
  private func encoderTarget(at now: Instant) -> UInt64 {
    let total = Double(congestion.target)
    let rest = max(total - resends.rate(at: now), total / 2)
    return UInt64(max(rest, min(total, congestion.bounds.minimum)))
  }
}

/// Limits retransmissions to three quarters of first-time traffic, so that repairing losses does
/// not make congestion worse.
struct ResendBudget {
  /// The rate of retransmissions that is allowed even without first-time traffic, in bits per
  /// second.
  private static let baseRate = 20_000.0
  private static let smallestLimit = 128_000.0

  private var credit = ResendBudget.smallestLimit
  private var creditedAt = Instant.zero
  /// Bits spent on retransmissions, decaying over one second.
  private var spent = 0.0
  private var spentAt = Instant.zero

  /// Credits the budget with a packet sent for the first time.
  mutating func earn(bytes: Int) { credit += Double(bytes) * 6 }

  /// Returns whether a retransmission may be sent.
  ///
  /// Unused budget accumulates up to half a second's worth of the target bit rate, or 128 kbit if
  /// that is more.
  mutating func mayResend(at now: Instant, targetBitrate: UInt64) -> Bool {
    credit += ResendBudget.baseRate * (now - creditedAt).seconds
    credit = min(credit, max(Double(targetBitrate) / 2, ResendBudget.smallestLimit))
    creditedAt = now
    return credit > 0
  }

  /// Deducts a retransmission from the budget.
  mutating func spend(bytes: Int, at now: Instant) {
    credit -= Double(bytes) * 8
    spent = rate(at: now) + Double(bytes) * 8
    spentAt = now
  }

  /// Returns the rate of recent retransmissions, in bits per second.
  func rate(at now: Instant) -> Double { spent * max(0, 1 - (now - spentAt).seconds) }
}

// MARK: - Pacer

/// One packet's share of a frame, queued or kept for retransmission.
///
/// The frame's bytes are shared, not copied; the packet is built when it is sent.
struct PayloadPart {
  var frame: [UInt8]
  var range: Range<Int>
  /// The codec's payload descriptor, which precedes the frame's bytes in the packet.
  var prefix: PayloadPrefix
  /// The codec's payload types when the frame was split; they may have been renegotiated since.
  var payloadType: UInt8
  var rtxPayloadType: UInt8?
  var timestamp: UInt32
  var marker: Bool
  var audioLevel: UInt8?
  var isVoice = false
  var contributors: [Contributor] = []
  var queuedAt: Instant

  var payloadLength: Int { range.count + prefix.length }
}

/// Spreads video packets over time so that large frames do not fill queues on the path: a leaky
/// bucket drained at a multiple of the target bit rate.
struct Pacer {
  enum Item {
    case part(ssrc: UInt32, PayloadPart)
    /// A packet to retransmit, identified by its sequence number in the stream.
    case resend(ssrc: UInt32, sequence: UInt16)
  }

  /// The shortest time between wake-ups, and the longest burst after a pause.
  static let burst = Interval.milliseconds(5)
  /// The maximum delay that the pacer catches up on after a late wake-up.
  static let arrears = Interval.milliseconds(40)
  /// The longest time that emptying the queue may take, even if the encoder overshoots its target.
  static let longestQueueMilliseconds: UInt64 = 500
  /// The maximum number of queued retransmissions.
  static let resendLimit = 1024

  private var parts = Deque<(ssrc: UInt32, part: PayloadPart)>()
  private var resends = Deque<(ssrc: UInt32, sequence: UInt16)>()
  private(set) var queuedBytes: UInt64 = 0
  /// When the bucket is empty again.
  private var emptyAt = Instant.zero
  private var lastBurst = Instant.zero

  /// The number of queued packets, and the number of queued retransmissions.
  var partCount: Int { parts.count }
  var resendCount: Int { resends.count }

  var isEmpty: Bool { parts.isEmpty && resends.isEmpty }

  /// When the next packet may be sent; nil if none is queued.
  var due: Instant? { isEmpty ? nil : max(emptyAt, lastBurst + Pacer.burst) }

  mutating func append(_ part: PayloadPart, ssrc: UInt32, at now: Instant) {
    if isEmpty { emptyAt = max(emptyAt, now - Pacer.burst) }
    queuedBytes += UInt64(part.range.count)
    parts.append((ssrc, part))
  }

  /// Queues a retransmission ahead of frames; returns false if too many are queued.
  mutating func resend(_ sequence: UInt16, ssrc: UInt32, at now: Instant) -> Bool {
    guard resends.count < Pacer.resendLimit else { return false }
    if isEmpty { emptyAt = max(emptyAt, now - Pacer.burst) }
    resends.append((ssrc, sequence))
    return true
  }

  /// Returns the next packet if it may be sent now; otherwise nil.
  mutating func next(at now: Instant) -> Item? {
    guard emptyAt <= now else { return nil }
    if let resend = resends.popFirst() {
      return .resend(ssrc: resend.ssrc, sequence: resend.sequence)
    }
    guard let (ssrc, part) = parts.popFirst() else { return nil }
    queuedBytes -= UInt64(part.range.count)
    return .part(ssrc: ssrc, part)
  }

  mutating func sent(bytes: Int, at now: Instant, targetBitrate: UInt64) {
    let drain = queuedBytes * 8000 / Pacer.longestQueueMilliseconds
    let rate = max(targetBitrate / 2 * 5, drain, 100_000)
    let nanoseconds = UInt64(max(0, bytes)) * 8_000_000_000 / rate
    emptyAt = max(emptyAt, now - Pacer.arrears) + Interval(nanoseconds: Int64(nanoseconds))
    lastBurst = now
  }

  mutating func removeAll() {
    parts.removeAll()
    resends.removeAll()
    queuedBytes = 0
  }

  /// Whether the byte count matches the queue and the resend limit holds; asserted after each step
  /// in debug builds.
  var isConsistent: Bool {
    queuedBytes == parts.reduce(0) { $0 + UInt64($1.part.range.count) }
      && resends.count <= Pacer.resendLimit
  }
}
