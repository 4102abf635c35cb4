package import RTP
package import Wire

/// The aspect that is reduced first when a track's video has to be limited (W3C
/// RTCDegradationPreference).
public enum DegradationPreference: String, CaseIterable, Hashable, Sendable, Codable {
  /// Reduces the resolution.
  case maintainFramerate = "maintain-framerate"
  /// Reduces the frame rate.
  case maintainResolution = "maintain-resolution"
  /// Reduces resolution and frame rate in turn.
  case balanced
}

/// The kind of content in a video track (W3C MediaStreamTrack.contentHint, for video).
public enum ContentHint: String, CaseIterable, Hashable, Sendable, Codable {
  /// No hint: the content is unknown.
  case none = ""
  /// Moving video, where smooth motion matters.
  case motion
  /// Video where details matter, such as slides with pictures.
  case detail
  /// Text that people read, such as a shared document.
  case text

  /// The aspect that is reduced first for this content (W3C mst-content-hint section 4.1); nil if
  /// there is no hint.
  package var degradation: DegradationPreference? {
    switch self {
    case .none: nil
    case .motion: .maintainFramerate
    case .detail, .text: .maintainResolution
    }
  }

  /// Whether encoders should treat the video as screen content.
  package var isScreen: Bool { self == .detail || self == .text }
}

/// Reduces frame rate or resolution when the path or the processor is too slow, and restores them
/// afterwards.
///
/// Without a preference, which is the default for senders, nothing changes.
package struct VideoAdaptation: Hashable, Sendable {
  /// The frame rate and the scaling that the adaptation currently permits.
  package struct Limits: Hashable, Sendable {
    /// The maximum frame rate; nil for no limit.
    package var framesPerSecond: Double?
    /// The factor, at least 1, by which both sides are divided.
    package var scaleDownBy = 1.0

    package init() {}
  }

  /// The aspect to reduce first; nil reduces nothing.
  package var preference: DegradationPreference? {
    didSet { if preference != oldValue { reset() } }
  }
  package private(set) var limits = Limits()

  /// The reductions so far; the last one is undone first.
  private var steps: [Step] = []
  private var judgedAt: Instant?
  private var calmSeconds = 0

  private enum Step: Hashable, Sendable {
    /// The frame rate was reduced; the value is the former limit.
    case rate(Double?)
    case size(Double)
  }

  /// The number of seconds without a limitation after which the last reduction is undone.
  private static let calmMinimum = 5
  /// The lowest frame rate, as in libwebrtc.
  private static let rateMinimum = 2.0
  /// Each step roughly halves the number of pixels.
  private static let scales = [1, 4.0 / 3, 2, 8.0 / 3, 4]

  package init(preference: DegradationPreference? = nil) { self.preference = preference }

  /// Adapts the limits, but at most once per second; calls in between change nothing.
  /// - Parameters:
  ///   - reason: why the video is worse than its source.
  ///   - framesPerSecond: the source's frame rate.
  /// - Returns: whether the limits changed.
  package mutating func judge(
    _ reason: QualityLimitation.Reason, framesPerSecond: Int, at now: Instant
  ) -> Bool {
    guard let preference else { return false }
    guard let judgedAt else {
      judgedAt = now
      return false
    }
    guard now - judgedAt >= .seconds(1) else { return false }
    self.judgedAt = now
    let before = limits
    switch reason {
    case .bandwidth, .cpu:
      calmSeconds = 0
      reduce(preference, framesPerSecond)
    case .none, .other:
      calmSeconds += 1
      if calmSeconds >= VideoAdaptation.calmMinimum {
        calmSeconds = 0
        restore()
      }
    }
    return limits != before
  }

  private mutating func reduce(_ preference: DegradationPreference, _ framesPerSecond: Int) {
    switch preference {
    case .maintainFramerate: makeSmaller()
    case .maintainResolution: makeFewer(framesPerSecond)
    case .balanced:
      if case .rate = steps.last { makeSmaller() } else { makeFewer(framesPerSecond) }
    }
  }

  private mutating func makeFewer(_ framesPerSecond: Int) {
    let present = min(limits.framesPerSecond ?? .infinity, Double(max(1, framesPerSecond)))
    let next = max(VideoAdaptation.rateMinimum, present * 2 / 3)
    guard next < present else { return }
    steps.append(.rate(limits.framesPerSecond))
    limits.framesPerSecond = next
  }

  private mutating func makeSmaller() {
    guard let next = VideoAdaptation.scales.first(where: { $0 > limits.scaleDownBy }) else {
      return
    }
    steps.append(.size(limits.scaleDownBy))
    limits.scaleDownBy = next
  }

  private mutating func restore() {
    switch steps.popLast() {
    case .rate(let before): limits.framesPerSecond = before
    case .size(let before): limits.scaleDownBy = before
    case nil: break
    }
  }

  private mutating func reset() {
    limits = Limits()
    steps = []
    judgedAt = nil
    calmSeconds = 0
  }
}

// MARK: - QualityLimitation

/// The reasons that a track's video is worse than its source (W3C qualityLimitationReason), and the
/// time for which each one applied.
///
/// Each second is judged when it is over. Frames dropped because the clock was late mean that the
/// processor is too slow. The bit rate is too low if the mean quantiser reaches the value at which
/// libwebrtc would reduce the resolution (95 of VP8's 127, 205 of VP9's 255, 37 of H.264's 51), or
/// if frames that arrived encoded were dropped; optionally also if the target is far below what the
/// video needs.
package struct QualityLimitation: Hashable, Sendable {
  /// The reasons in W3C RTCQualityLimitationReason, in the order of the durations record.
  package enum Reason: String, CaseIterable, Sendable {
    case none, cpu, bandwidth, other
  }

  package private(set) var reason = Reason.none
  /// The reason that the frames themselves show; the target bit rate is ignored, because the video
  /// may be good despite a low target.
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
  /// If one in this many frames is dropped, the processor is too slow.
  private static let lateShare = 10

  package init() {}

  /// Records an encoded frame, and how many frames before it were dropped because the clock was
  /// late.
  /// - Parameter isNarrow: whether the target is far below what the video needs.
  package mutating func record(
    quantiser: UInt8, of codec: CodecName = .vp8, late: Int, isNarrow: Bool = false,
    at now: Instant
  ) {
    if isNarrow { narrowFrames += 1 }
    lateFrames += max(0, late)
    quantiserSum += Int(quantiser)
    judge(codec, at: now)
  }

  /// Records a frame that arrived encoded, and whether it was dropped because the path is too slow.
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

  /// Records that encoding stopped because the path cannot carry the video.
  package mutating func hold(at now: Instant) {
    shown = .bandwidth
    change(to: .bandwidth, at: now)
    windowBegan = nil
    (videoFrames, lateFrames, thinnedFrames, quantiserSum) = (0, 0, 0, 0)
    narrowFrames = 0
  }

  /// Returns whether the last second's frames show that the bit rate is too low.
  private func isPoor(_ codec: CodecName?) -> Bool {
    guard let poor = codec?.codec?.poorQuantiser else { return false }
    return quantiserSum >= videoFrames * poor
  }

  /// Returns how long each reason applied, up to an instant; empty before the first frame.
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
