import RTP
import Wire

/// The delay of audio playout: what arrivals require, what was requested, and what other tracks of
/// the stream need; decides when to insert or remove a block.
struct AudioDelay {
  /// Added to the spread of the transits.
  private static let margin = Interval.milliseconds(10)
  /// Blocks of at most this level, in -dBov, can be repeated or removed without being noticed.
  private static let quietLevel: UInt8 = 45

  /// The requested minimum.
  private let minimum: Interval
  /// The minimum for audio to stay in sync with the stream's video.
  private(set) var aligned = Interval.zero
  private var timing = ArrivalSpread(clockRate: AudioBlock.sampleRate)
  /// Ticks since the delay was last changed.
  private var ticksSinceAdjustment = 0
  /// Whether the last block was quiet, so that a change would not be noticed.
  private(set) var isQuiet = true

  /// The minimum is limited to 5 s.
  init(minimum: Interval) { self.minimum = min(minimum, .seconds(5)) }

  // Accessed with every block: computed in place, because a call would copy the whole measurement.

  /// The delay that recent arrivals require.
  @inline(__always)
  var network: Interval {
    min(max(timing.spread + AudioDelay.margin, AudioPlayout.leastDelay), AudioPlayout.mostDelay)
  }

  /// The delay of this track without regard to others of its stream.
  @inline(__always)
  var independent: Interval { max(minimum, network) }

  /// The delay that is aimed at.
  @inline(__always)
  var target: Interval { max(independent, aligned) }

  /// When the sample of a media time should be played with the target delay.
  @inline(__always)
  func dueTime(of time: Int64) -> Instant { timing.fastestArrival(of: time) + target }

  /// When a sample would be played without regard to other tracks; nil before the first packet.
  /// - Parameter ticks: ticks of 48 kHz per tick of the RTP clock.
  func independentPlayout(ofRTPTime time: UInt32, lasting ticks: Int64) -> Instant? {
    timing.fastestArrival(ofRTPTime: time, lasting: ticks).map { $0 + independent }
  }

  mutating func align(to delay: Interval) { aligned = delay }

  mutating func observe(_ frame: ReceivedFrame) -> ArrivalSpread.Observation {
    timing.observe(
      time: frame.extendedTime, sequence: frame.firstSequence, arrival: frame.firstArrival)
  }

  /// Resets the measurement for another stream.
  mutating func reset() { timing.reset() }

  // MARK: Changes of the delay

  mutating func tick() { ticksSinceAdjustment += 1 }

  mutating func recordAdjustment() { ticksSinceAdjustment = 0 }

  /// Records the level of a block that is played.
  mutating func record(level: UInt8) { isQuiet = level >= AudioDelay.quietLevel }

  /// Whether a concealed block is as good as silent.
  func isSilent(level: UInt8) -> Bool { isQuiet || level >= AudioDelay.quietLevel }

  /// Whether the delay is so much too short that a block should be inserted; earlier during quiet.
  func shouldInsert(_ excess: Interval, block: Interval) -> Bool {
    ticksSinceAdjustment >= 5 && excess <= (isQuiet ? .milliseconds(-5) : block / -2)
  }

  /// Whether the delay is too long by more than a block.
  func shouldRemove(_ excess: Interval, block: Interval) -> Bool {
    guard ticksSinceAdjustment >= 5, excess >= block + .milliseconds(10) else { return false }
    return isQuiet || ticksSinceAdjustment >= (excess >= block * 3 ? 10 : 100)
  }
}
