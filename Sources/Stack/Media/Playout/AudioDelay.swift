import RTP
import Wire

/// How late audio is played, and when a block more or less brings that nearer to its target: what
/// the arrivals call for, what was asked for, and what other tracks of the stream need.
struct AudioDelay {
  /// Added to the spread of the transits.
  private static let margin = Interval.milliseconds(10)
  /// A block whose level is at or below this many -dBov may be repeated or left out unnoticed.
  private static let quietLevel: UInt8 = 45

  /// What the delay is at least, whatever the arrivals say.
  private let minimum: Interval
  /// What the delay is at least so that the video frames of the same stream keep up with the audio.
  private(set) var aligned = Interval.zero
  private var timing = ArrivalSpread(clockRate: AudioBlock.sampleRate)
  /// Ticks since the delay was changed.
  private var ticksSinceAdjustment = 0
  /// Whether the block played last was quiet, so that the ear bears a change of the delay.
  private(set) var isQuiet = true

  /// At most 5 s are granted.
  init(minimum: Interval) { self.minimum = min(minimum, .seconds(5)) }

  // What follows is asked for with every block: in place, because a call would copy the whole
  // measurement.

  /// The delay that the arrivals of the last seconds call for.
  @inline(__always)
  var network: Interval {
    min(max(timing.spread + AudioDelay.margin, AudioPlayout.leastDelay), AudioPlayout.mostDelay)
  }

  /// The delay of the track for itself, without regard to others of its stream.
  @inline(__always)
  var own: Interval { max(minimum, network) }

  /// The delay that is aimed at.
  @inline(__always)
  var target: Interval { max(own, aligned) }

  /// When the sample of a media time should be played, given the delay wanted now.
  @inline(__always)
  func dueTime(of time: Int64) -> Instant { timing.fastestArrival(of: time) + target }

  /// When a sample would be played if the track were for itself; nil before the first packet.
  ///
  /// - Parameter ticks: how many ticks of 48 kHz the RTP clock's last.
  func ownPlayout(ofRTPTime time: UInt32, lasting ticks: Int64) -> Instant? {
    timing.fastestArrival(ofRTPTime: time, lasting: ticks).map { $0 + own }
  }

  mutating func align(to delay: Interval) { aligned = delay }

  mutating func observe(_ frame: ReceivedFrame) -> ArrivalSpread.Observation {
    timing.observe(
      time: frame.extendedTime, sequence: frame.firstSequence, arrival: frame.firstArrival)
  }

  /// Another stream begins.
  mutating func reset() { timing.reset() }

  // MARK: Changes of the delay

  mutating func tick() { ticksSinceAdjustment += 1 }

  mutating func noteAdjustment() { ticksSinceAdjustment = 0 }

  /// Handles the level of a block that is played.
  mutating func note(level: UInt8) { isQuiet = level >= AudioDelay.quietLevel }

  /// Whether a block that was made up is as good as silent.
  func isSilent(level: UInt8) -> Bool { isQuiet || level >= AudioDelay.quietLevel }

  /// Whether the delay is so much too short that a block more brings it nearer to its target;
  /// quiet places are used earlier.
  func shouldInsert(_ excess: Interval, block: Interval) -> Bool {
    ticksSinceAdjustment >= 5 && excess <= (isQuiet ? .milliseconds(-5) : block / -2)
  }

  /// Whether the delay is too long by more than a block.
  func shouldRemove(_ excess: Interval, block: Interval) -> Bool {
    guard ticksSinceAdjustment >= 5, excess >= block + .milliseconds(10) else { return false }
    return isQuiet || ticksSinceAdjustment >= (excess >= block * 3 ? 10 : 100)
  }
}
