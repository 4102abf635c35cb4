import RTP
import Wire

/// The delay of video beyond the fastest transit: what arrivals require, what was requested, what
/// the stream's audio needs, and the current delay, which follows slowly.
struct VideoDelay {
  /// The RTP clock of video (RFC 7741 section 4.1).
  private static let clockRate = 90_000
  /// The current delay changes by at most a tenth of the elapsed media time.
  private static let slowness: Int64 = 10

  /// The requested minimum.
  private let minimum: Interval
  /// The minimum for video to stay in sync with the stream's audio.
  private(set) var aligned = Interval.zero
  private var timing = ArrivalSpread(clockRate: VideoDelay.clockRate)
  private var newestTime: Int64?
  /// How long frames wait for packets that are sent again, once frames needed that; nil for a
  /// receiver that does not wait for them.
  private var repairTime: Interval?
  private var repairs = (count: 0, last: Instant.zero)
  /// From how many repaired frames on all of them are delayed so, and for how long after the last.
  private static let repairsNeeded = 3
  private static let repairsForgotten = Interval.seconds(60)
  /// The delay in force.
  private(set) var current: Interval

  /// The minimum is limited to 5 s.
  init(minimum: Interval) {
    self.minimum = max(VideoPlayout.leastDelay, min(minimum, .seconds(5)))
    current = self.minimum
  }

  // Accessed with every frame: computed in place, because a call would copy the whole measurement.

  /// The delay that recent arrivals require.
  @inline(__always)
  var network: Interval {
    min(max(timing.spread + repairDelay, VideoPlayout.leastDelay), VideoPlayout.mostDelay)
  }

  @inline(__always)
  private var repairDelay: Interval {
    repairs.count >= VideoDelay.repairsNeeded ? repairTime ?? .zero : .zero
  }

  /// The delay of this track without regard to others of its stream.
  @inline(__always)
  var independent: Interval { max(minimum, network) }

  /// The delay that is aimed at.
  @inline(__always)
  var target: Interval { max(independent, aligned) }

  /// The upper limit of the delay, whatever the arrivals.
  @inline(__always)
  private var maximum: Interval { max(VideoPlayout.mostDelay, max(minimum, aligned)) }

  /// When a frame is shown; never long after its arrival, whatever its media time.
  @inline(__always)
  func dueTime(of frame: ReceivedFrame) -> Instant {
    min(timing.fastestArrival(of: frame.extendedTime) + current, frame.lastArrival + maximum)
  }

  /// When a frame would be shown without regard to other tracks; nil before the first frame.
  func independentPlayout(ofRTPTime time: UInt32) -> Instant? {
    timing.fastestArrival(ofRTPTime: time).map { $0 + independent }
  }

  mutating func align(to delay: Interval) { aligned = delay }

  /// Resets the delay for another stream: its first frame uses the target immediately.
  mutating func reset() {
    timing.reset()
    newestTime = nil
  }

  /// Has all frames wait for repairs that take so long, once some did.
  mutating func awaitRepairs(taking time: Interval?) { repairTime = time }

  /// Counts a frame of which packets were lost and repaired.
  mutating func countRepair(at now: Instant) {
    repairs = (min(repairs.count + 1, VideoDelay.repairsNeeded), now)
  }

  /// Whether nothing was measured yet.
  var isNew: Bool { newestTime == nil }

  /// Records a frame's times and moves the delay towards its target.
  mutating func observe(_ frame: ReceivedFrame) -> ArrivalSpread.Observation {
    if repairs.count > 0, frame.lastArrival - repairs.last > VideoDelay.repairsForgotten {
      repairs.count = 0
    }
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
    // The fastest transit changed: keep the current delay in absolute time.
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
    // A late frame freezes the picture anyway, so the following frames may have its delay at once.
    let lateness = timing.lateness(of: frame.extendedTime, arrival: frame.lastArrival)
    current = max(current, min(lateness, wanted))
    current = min(max(current, minimum), maximum)
  }
}
