import DequeModule
import RTP
import Wire

/// One packet's share of a frame that waits, or that was sent and may be asked for again.
///
/// The bytes are those of the frame, shared and not copied; the packet is built when it is sent.
struct PayloadPart {
  var frame: [UInt8]
  var range: Range<Int>
  /// What the payload format writes before the bytes.
  var prefix: PayloadPrefix
  /// The numbers of the codec that made the frame: another one may have been agreed on since.
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

/// Spreads the packets of video frames over time, so that a large frame does not fill the queues on
/// the path: a leaky bucket that is emptied at a multiple of the target bit rate.
struct Pacer {
  /// A packet that waits.
  enum Item {
    case part(ssrc: UInt32, PayloadPart)
    /// A sequence number of a stream to be sent again.
    case resend(ssrc: UInt32, sequence: UInt16)
  }

  /// Wakes lie at least this far apart, and a pause earns a burst of at most this length.
  static let burst = Interval.milliseconds(5)
  /// A late wake makes up for at most so much.
  static let arrears = Interval.milliseconds(40)
  /// What waits is sent within this time, even when the encoder overshoots its target.
  static let longestQueueMilliseconds: UInt64 = 500
  /// How many retransmissions may wait.
  static let resendLimit = 1024

  private var parts = Deque<(ssrc: UInt32, part: PayloadPart)>()
  private var resends = Deque<(ssrc: UInt32, sequence: UInt16)>()
  private(set) var queuedBytes: UInt64 = 0
  /// When the bucket is empty again.
  private var emptyAt = Instant.zero
  private var lastBurst = Instant.zero

  /// How many packets of frames, and how many retransmissions, wait.
  var partCount: Int { parts.count }
  var resendCount: Int { resends.count }

  /// Whether nothing waits.
  var isEmpty: Bool { parts.isEmpty && resends.isEmpty }

  /// When the next packet may leave; nil when none waits.
  var due: Instant? { isEmpty ? nil : max(emptyAt, lastBurst + Pacer.burst) }

  /// Queues a packet of a frame.
  mutating func append(_ part: PayloadPart, ssrc: UInt32, at now: Instant) {
    if isEmpty { emptyAt = max(emptyAt, now - Pacer.burst) }
    queuedBytes += UInt64(part.range.count)
    parts.append((ssrc, part))
  }

  /// Queues a retransmission, which goes before frames; false when too many wait.
  mutating func resend(_ sequence: UInt16, ssrc: UInt32, at now: Instant) -> Bool {
    guard resends.count < Pacer.resendLimit else { return false }
    if isEmpty { emptyAt = max(emptyAt, now - Pacer.burst) }
    resends.append((ssrc, sequence))
    return true
  }

  /// The next packet, when it may leave now.
  mutating func next(at now: Instant) -> Item? {
    guard emptyAt <= now else { return nil }
    if let resend = resends.popFirst() {
      return .resend(ssrc: resend.ssrc, sequence: resend.sequence)
    }
    guard let (ssrc, part) = parts.popFirst() else { return nil }
    queuedBytes -= UInt64(part.range.count)
    return .part(ssrc: ssrc, part)
  }

  /// Records a packet that left.
  mutating func sent(bytes: Int, at now: Instant, targetBitrate: UInt64) {
    let drain = queuedBytes * 8000 / Pacer.longestQueueMilliseconds
    let rate = max(targetBitrate / 2 * 5, drain, 100_000)
    let nanoseconds = UInt64(max(0, bytes)) * 8_000_000_000 / rate
    emptyAt = max(emptyAt, now - Pacer.arrears) + Interval(nanoseconds: Int64(nanoseconds))
    lastBurst = now
  }

  /// Forgets what waits.
  mutating func removeAll() {
    parts.removeAll()
    resends.removeAll()
    queuedBytes = 0
  }

  /// Whether the sum is that of what waits; asserted after each step in debug builds.
  var isConsistent: Bool {
    queuedBytes == parts.reduce(0) { $0 + UInt64($1.part.range.count) }
      && resends.count <= Pacer.resendLimit
  }
}
