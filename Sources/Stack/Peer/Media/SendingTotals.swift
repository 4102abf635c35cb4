import Flow
import Media
import RTP
import Wire

/// Counters of W3C media-source and outbound-rtp above the packet level.
struct SendingTotals {
  private(set) var framesEncoded: UInt64 = 0
  private(set) var keyFramesEncoded: UInt64 = 0
  private(set) var quantiserSum: UInt64 = 0
  private(set) var encodedBytes: UInt64 = 0
  private(set) var width = 0
  private(set) var height = 0
  /// The bytes that the target allowed for the encoded frames.
  private(set) var targetBytes = 0.0
  private(set) var resolutionChanges: UInt64 = 0
  private(set) var rate = FrameRate(ticksPerSecond: 1_000_000_000)
  private(set) var limitation = QualityLimitation()
  /// Whether a target far below what the video needs counts as limited.
  private let followsTarget: Bool
  /// The highest target so far, and the rate that the largest frames need, in bits per second.
  private var highest = (target: UInt64(0), wanted: UInt64(0))
  /// How many late frames had been dropped when the last one was encoded.
  private var framesLate: UInt64 = 0
  private var lastMediaTime: UInt32?

  /// The assumed duration of a first frame, in units of 1/90000 s.
  private static let usualTicks: UInt32 = 3000

  init(followsTarget: Bool = false) { self.followsTarget = followsTarget }

  /// Records that encoding pauses because the path does not carry this layer.
  mutating func hold(at now: Instant) {
    if followsTarget { limitation.hold(at: now) }
  }

  /// Records a frame that arrived encoded, and whether it was dropped to spare the path.
  mutating func add(isThinned: Bool, at now: Instant) {
    limitation.record(isThinned: isThinned, at: now)
  }

  /// Counts an encoded frame.
  /// - Parameters:
  ///   - bitrate: the target, in bits per second.
  ///   - limit: the limit of the application and the peer.
  mutating func add(
    _ frame: EncodedFrame, quantiser: UInt8, bitrate: UInt64, limit: UInt64?, late: UInt64,
    at now: Instant
  ) {
    framesEncoded += 1
    if frame.isKey { keyFramesEncoded += 1 }
    quantiserSum += UInt64(quantiser)
    encodedBytes += UInt64(frame.bytes.count)
    guard frame.kind == .video else { return }
    if width != 0, width != Int(frame.width) || height != Int(frame.height) {
      resolutionChanges += 1
    }
    width = Int(frame.width)
    height = Int(frame.height)
    let ticks = lastMediaTime.map { frame.mediaTime &- $0 } ?? SendingTotals.usualTicks
    lastMediaTime = frame.mediaTime
    targetBytes += Double(bitrate) / 8 * Double(min(ticks, 90_000)) / 90_000
    rate.record(now.nanoseconds)
    limitation.record(
      quantiser: quantiser, of: frame.codec,
      late: Int(clamping: late >= framesLate ? late - framesLate : late),
      isNarrow: isNarrow(bitrate, limit), at: now)
    framesLate = late
  }

  /// Whether the path has reduced the target to a quarter of its maximum, and to half of what the
  /// largest frames so far can use; a configured limit does not count.
  private mutating func isNarrow(_ target: UInt64, _ limit: UInt64?) -> Bool {
    guard followsTarget else { return false }
    let wanted = LayerAllocation.target(width: width, height: height, dividedBy: 1)
    highest = (max(highest.target, target), max(highest.wanted, wanted))
    if let limit, target >= limit { return false }
    return target <= highest.target / 4 && target <= highest.wanted / 2
  }
}
