package import RTP
package import Wire

/// Why a track's video is worse than its source (W3C qualityLimitationReason), and for how long
/// each reason held.
///
/// Each second is judged once it is over. Frames dropped because the clock was late mean that the
/// processor is too slow. A mean quantiser at which libwebrtc would reduce the resolution (95 of
/// VP8's 127, 205 of VP9's 255), or encoded frames that were dropped, mean that the bit rate is too
/// low; optionally also a target far below what the video needs.
package struct QualityLimitation: Hashable, Sendable {
  /// The reasons of W3C RTCQualityLimitationReason, in the order of its durations record.
  package enum Reason: String, CaseIterable, Sendable {
    case none, cpu, bandwidth, other
  }

  /// The current reason.
  package private(set) var reason = Reason.none
  /// The reason without regard to the target: the encoder's result may still be good.
  package private(set) var shown = Reason.none

  private var since: Instant?
  private var durations = [Interval](repeating: .zero, count: Reason.allCases.count)
  private var windowBegan: Instant?
  private var videoFrames = 0
  private var lateFrames = 0
  private var thinnedFrames = 0
  private var quantiserSum = 0
  private var narrowFrames = 0

  private static let window = Interval.seconds(1)
  /// If one in this many frames is dropped, the processor is the limit.
  private static let lateShare = 10

  package init() {}

  /// Records an encoded frame, and how many before it were dropped because the clock was late.
  /// - Parameter isNarrow: whether the target is far below what such video needs.
  package mutating func record(
    quantiser: UInt8, of codec: CodecName = .vp8, late: Int, isNarrow: Bool = false,
    at now: Instant
  ) {
    if isNarrow { narrowFrames += 1 }
    lateFrames += max(0, late)
    quantiserSum += Int(quantiser)
    judge(codec, at: now)
  }

  /// Records a frame that arrived encoded, and whether it was dropped to spare the path.
  package mutating func record(isThinned: Bool, at now: Instant) {
    if isThinned { thinnedFrames += 1 }
    judge(nil, at: now)
  }

  private mutating func judge(_ codec: CodecName?, at now: Instant) {
    if since == nil { since = now }
    let began = windowBegan ?? now
    windowBegan = began
    videoFrames += 1
    guard now - began >= QualityLimitation.window else { return }
    if lateFrames * QualityLimitation.lateShare >= videoFrames + lateFrames {
      shown = .cpu
    } else if thinnedFrames > 0 || isPoor(codec) {
      shown = .bandwidth
    } else {
      shown = .none
    }
    let isNarrow = narrowFrames * 2 >= videoFrames
    change(to: shown == .none && isNarrow ? .bandwidth : shown, at: now)
    windowBegan = now
    (videoFrames, lateFrames, thinnedFrames, quantiserSum) = (0, 0, 0, 0)
    narrowFrames = 0
  }

  /// Records that encoding stops because the path does not carry it.
  package mutating func hold(at now: Instant) {
    shown = .bandwidth
    change(to: .bandwidth, at: now)
    windowBegan = nil
    (videoFrames, lateFrames, thinnedFrames, quantiserSum) = (0, 0, 0, 0)
    narrowFrames = 0
  }

  /// Whether the last second's frames show that the bit rate is too low.
  private func isPoor(_ codec: CodecName?) -> Bool {
    guard let poor = codec?.codec?.poorQuantiser else { return false }
    return quantiserSum >= videoFrames * poor
  }

  /// How long each reason held until an instant; empty before the first frame.
  package func durations(at now: Instant) -> [(reason: Reason, length: Interval)] {
    guard let since else { return [] }
    return zip(Reason.allCases, durations).map { reason, length in
      (reason, reason == self.reason ? length + max(.zero, now - since) : length)
    }
  }

  private mutating func change(to next: Reason, at now: Instant) {
    guard next != reason, let began = since else { return }
    if let place = Reason.allCases.firstIndex(of: reason) {
      durations[place] = durations[place] + (now - began)
    }
    reason = next
    since = now
  }
}
