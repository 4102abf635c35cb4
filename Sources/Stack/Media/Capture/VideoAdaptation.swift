package import Wire

/// What to reduce first when a track's video is limited (W3C RTCDegradationPreference).
public enum DegradationPreference: String, CaseIterable, Hashable, Sendable, Codable {
  /// Reduces the resolution.
  case maintainFramerate = "maintain-framerate"
  /// Reduces the frame rate.
  case maintainResolution = "maintain-resolution"
  /// Reduces both in turn.
  case balanced
}

/// The content of a video track (W3C MediaStreamTrack.contentHint, for video).
public enum ContentHint: String, CaseIterable, Hashable, Sendable, Codable {
  /// Unknown.
  case none = ""
  /// Moving video, where smooth motion matters.
  case motion
  /// Video where details matter, such as slides with pictures.
  case detail
  /// Text to be read, such as a screen.
  case text

  /// What to reduce first for such content (W3C mst-content-hint section 4.1); nil for no
  /// preference.
  package var degradation: DegradationPreference? {
    switch self {
    case .none: nil
    case .motion: .maintainFramerate
    case .detail, .text: .maintainResolution
    }
  }

  /// Whether encoders should treat the video as a screen.
  package var isScreen: Bool { self == .detail || self == .text }
}

/// Reduces frame rate or resolution when the path or the processor is the limit, and restores them
/// afterwards.
///
/// Without a preference nothing changes; that is the default for senders.
package struct VideoAdaptation: Hashable, Sendable {
  /// The limits for a track's video.
  package struct Limits: Hashable, Sendable {
    /// The maximum frame rate; nil for no limit.
    package var framesPerSecond: Double?
    /// The factor, at least 1, by which both sides are divided.
    package var scaleDownBy = 1.0

    package init() {}
  }

  /// What to reduce first; nil to reduce nothing.
  package var preference: DegradationPreference? {
    didSet { if preference != oldValue { reset() } }
  }
  package private(set) var limits = Limits()

  /// The reductions so far, to be undone from the last one.
  private var steps: [Step] = []
  private var judgedAt: Instant?
  private var calmSeconds = 0

  private enum Step: Hashable, Sendable {
    /// The previous rate limit.
    case rate(Double?)
    case size(Double)
  }

  /// How long a reduction must have sufficed before it is undone.
  private static let calmMinimum = 5
  /// The lowest frame rate (as in libwebrtc).
  private static let rateMinimum = 2.0
  /// Each step halves the number of pixels, approximately.
  private static let scales = [1, 4.0 / 3, 2, 8.0 / 3, 4]

  package init(preference: DegradationPreference? = nil) { self.preference = preference }

  /// Judges the video once a second.
  /// - Parameters:
  ///   - reason: why it is worse than its source.
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
