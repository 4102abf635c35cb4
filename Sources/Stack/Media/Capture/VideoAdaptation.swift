package import Wire

/// What is given up first where a track's video frames take too much (W3C
/// RTCDegradationPreference).
public enum DegradationPreference: String, CaseIterable, Hashable, Sendable, Codable {
  /// The size of the video frames.
  case maintainFramerate = "maintain-framerate"
  /// Video frames are left out.
  case maintainResolution = "maintain-resolution"
  /// Both in turn.
  case balanced
}

/// What the video frames of a track show (W3C MediaStreamTrack.contentHint, for video).
public enum ContentHint: String, CaseIterable, Hashable, Sendable, Codable {
  /// Not known.
  case none = ""
  /// Something that moves: its motion counts.
  case motion
  /// Something whose details count, like a slide with video frames.
  case detail
  /// Something to be read: a screen.
  case text

  /// What is given up first for such content (W3C mst-content-hint section 4.1); nil if nothing
  /// follows from it.
  package var degradation: DegradationPreference? {
    switch self {
    case .none: nil
    case .motion: .maintainFramerate
    case .detail, .text: .maintainResolution
    }
  }

  /// Whether an encoder treats the video frames as those of a screen.
  package var isScreen: Bool { self == .detail || self == .text }
}

/// Makes video frames fewer or smaller where the path or the processor is the limit, and more or
/// larger again when it no longer is.
///
/// Without a preference nothing is changed: that is how senders behave whose application never said
/// a word.
package struct VideoAdaptation: Hashable, Sendable {
  /// What a track's video frames are kept within.
  package struct Limits: Hashable, Sendable {
    /// The most video frames per second; nil for no limit.
    package var framesPerSecond: Double?
    /// The factor, at least 1, by which both sides are made smaller.
    package var scaleDownBy = 1.0

    package init() {}
  }

  /// What is given up first; nil for nothing at all.
  package var preference: DegradationPreference? {
    didSet { if preference != oldValue { reset() } }
  }
  /// What follows for the video frames.
  package private(set) var limits = Limits()

  /// The steps that were taken, the last one to be taken back first.
  private var steps: [Step] = []
  private var judgedAt: Instant?
  private var calmSeconds = 0

  private enum Step: Hashable, Sendable {
    /// The limit before.
    case rate(Double?)
    case size(Double)
  }

  /// How long the last step must have been enough before it is taken back.
  private static let calmMinimum = 5
  /// Fewer video frames than this are none (libwebrtc's least frame rate).
  private static let rateMinimum = 2.0
  /// Each makes the video frame about half as large as the one before.
  private static let scales = [1, 4.0 / 3, 2, 8.0 / 3, 4]

  package init(preference: DegradationPreference? = nil) { self.preference = preference }

  /// Takes the judgement on the video frames up to now, once a second.
  ///
  /// - Parameters:
  ///   - reason: why they are worse than their source.
  ///   - framesPerSecond: how many the source gives.
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
      giveUp(preference, framesPerSecond)
    case .none, .other:
      calmSeconds += 1
      if calmSeconds >= VideoAdaptation.calmMinimum {
        calmSeconds = 0
        takeBack()
      }
    }
    return limits != before
  }

  private mutating func giveUp(_ preference: DegradationPreference, _ framesPerSecond: Int) {
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

  private mutating func takeBack() {
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
