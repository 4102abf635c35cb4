import RTP
import Wire

/// How much later than the fastest transit video frames are shown: what the arrivals call for, what
/// was asked for, what the audio of the stream needs, and the delay in force, which follows slowly.
struct VideoDelay {
  /// The RTP clock of video (RFC 7741 section 4.1).
  private static let clockRate = 90_000
  /// The delay in force changes by at most a tenth of the media time that passes.
  private static let slowness: Int64 = 10

  /// What the delay is at least, whatever the arrivals say.
  private let minimum: Interval
  /// What it is at least so that the audio of the same stream keeps up with the video frames.
  private(set) var aligned = Interval.zero
  private var timing = ArrivalSpread(clockRate: VideoDelay.clockRate)
  private var newestTime: Int64?
  /// The delay in force.
  private(set) var current: Interval

  /// At most 5 s are granted.
  init(minimum: Interval) {
    self.minimum = max(VideoPlayout.leastDelay, min(minimum, .seconds(5)))
    current = self.minimum
  }

  // What follows is asked for with every frame: in place, because a call would copy the whole
  // measurement.

  /// The delay that the arrivals of the last seconds call for.
  @inline(__always)
  var network: Interval {
    min(max(timing.spread, VideoPlayout.leastDelay), VideoPlayout.mostDelay)
  }

  /// The delay of the track for itself, without regard to others of its stream.
  @inline(__always)
  var own: Interval { max(minimum, network) }

  /// The delay that is aimed at.
  @inline(__always)
  var target: Interval { max(own, aligned) }

  /// The most that the delay comes to, whatever happens to the arrivals.
  @inline(__always)
  private var maximum: Interval { max(VideoPlayout.mostDelay, max(minimum, aligned)) }

  /// When a frame is to be shown; never long after its arrival, whatever its media time says.
  @inline(__always)
  func dueTime(of frame: ReceivedFrame) -> Instant {
    min(timing.fastestArrival(of: frame.extendedTime) + current, frame.lastArrival + maximum)
  }

  /// When a frame would be shown if the track were for itself; nil before the first frame.
  func ownPlayout(ofRTPTime time: UInt32) -> Instant? {
    timing.fastestArrival(ofRTPTime: time).map { $0 + own }
  }

  mutating func align(to delay: Interval) { aligned = delay }

  /// Another stream begins: the delay in force is the one aimed at from its first frame on.
  mutating func reset() {
    timing.reset()
    newestTime = nil
  }

  /// Whether nothing was measured yet.
  var isNew: Bool { newestTime == nil }

  /// Handles the times of a frame, and lets the delay follow its target.
  mutating func observe(_ frame: ReceivedFrame) -> ArrivalSpread.Observation {
    let before = timing
    let observation = timing.observe(
      time: frame.extendedTime, sequence: frame.firstSequence, arrival: frame.lastArrival)
    guard observation != .jumped, let last = newestTime else {
      newestTime = frame.extendedTime
      current = target
      return observation
    }
    newestTime = max(last, frame.extendedTime)
    follow(frame, after: last, previous: before)
    return observation
  }

  @inline(__always)
  private mutating func follow(
    _ frame: ReceivedFrame, after last: Int64, previous: ArrivalSpread
  ) {
    // The fastest transit moved: what is in force stays where it was in absolute time.
    current =
      current
      + (previous.fastestArrival(of: frame.extendedTime)
        - timing.fastestArrival(of: frame.extendedTime))
    let (step, overflow) = frame.extendedTime.subtractingReportingOverflow(last)
    let ticks = overflow ? 0 : min(max(0, step), Int64(VideoDelay.clockRate))
    let most = Interval(
      nanoseconds: ticks * 1_000_000_000 / Int64(VideoDelay.clockRate) / VideoDelay.slowness)
    let wanted = target
    current = min(max(wanted, current - most), current + most)
    // A late frame stops the video frame anyway: the frames after it may have its delay at once.
    let lateness = timing.lateness(of: frame.extendedTime, arrival: frame.lastArrival)
    current = max(current, min(lateness, wanted))
    current = min(max(current, minimum), maximum)
  }
}
