import DequeModule
import RTP
import Wire

/// One packet's share of a frame that is queued, or was sent and may be requested again.
///
/// The frame's bytes are shared, not copied; the packet is built when it is sent.
struct PayloadPart {
  var frame: [UInt8]
  var range: Range<Int>
  /// The payload descriptor.
  var prefix: PayloadPrefix
  /// The codec's payload types when the frame was encoded; the codec may have been renegotiated
  /// since.
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

/// Spreads video packets over time, so that a large frame does not fill queues on the path: a leaky
/// bucket emptied at a multiple of the target bit rate.
struct Pacer {
  /// A packet that waits.
  enum Item {
    case part(ssrc: UInt32, PayloadPart)
    /// The sequence number of a stream's packet to retransmit.
    case resend(ssrc: UInt32, sequence: UInt16)
  }

  /// The minimum time between wake-ups, and the longest burst after a pause.
  static let burst = Interval.milliseconds(5)
  /// How much time a late wake-up may make up for.
  static let arrears = Interval.milliseconds(40)
  /// The queue is sent within this time, even if the encoder overshoots its target.
  static let longestQueueMilliseconds: UInt64 = 500
  /// The most queued retransmissions.
  static let resendLimit = 1024

  private var parts = Deque<(ssrc: UInt32, part: PayloadPart)>()
  private var resends = Deque<(ssrc: UInt32, sequence: UInt16)>()
  private(set) var queuedBytes: UInt64 = 0
  /// When the bucket is empty again.
  private var emptyAt = Instant.zero
  private var lastBurst = Instant.zero

  /// The number of queued packets and of queued retransmissions.
  var partCount: Int { parts.count }
  var resendCount: Int { resends.count }

  var isEmpty: Bool { parts.isEmpty && resends.isEmpty }

  /// When the next packet may leave; nil if none is queued.
  var due: Instant? { isEmpty ? nil : max(emptyAt, lastBurst + Pacer.burst) }

  mutating func append(_ part: PayloadPart, ssrc: UInt32, at now: Instant) {
    if isEmpty { emptyAt = max(emptyAt, now - Pacer.burst) }
    queuedBytes += UInt64(part.range.count)
    parts.append((ssrc, part))
  }

  /// Queues a retransmission ahead of frames; false if too many are queued.
  mutating func resend(_ sequence: UInt16, ssrc: UInt32, at now: Instant) -> Bool {
    guard resends.count < Pacer.resendLimit else { return false }
    if isEmpty { emptyAt = max(emptyAt, now - Pacer.burst) }
    resends.append((ssrc, sequence))
    return true
  }

  /// Returns the next packet if it may leave now.
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

  /// Whether the sum equals its parts; asserted after each step in debug builds.
  var isConsistent: Bool {
    queuedBytes == parts.reduce(0) { $0 + UInt64($1.part.range.count) }
      && resends.count <= Pacer.resendLimit
  }
}
