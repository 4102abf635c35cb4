import RTP
package import Wire

/// Counters of a video playout, named as in W3C inbound-rtp statistics.
package struct VideoPlayoutCounters: Hashable, Sendable {
  /// Frames received, decoded, key frames decoded, and dropped.
  package private(set) var framesReceived: UInt64 = 0
  package private(set) var framesDecoded: UInt64 = 0
  package private(set) var keyFramesDecoded: UInt64 = 0
  package private(set) var framesDropped: UInt64 = 0
  /// Frames of several packets, and the time from their first to their last packet in ms.
  package private(set) var framesAssembledFromMultiplePackets: UInt64 = 0
  package private(set) var totalAssemblyTime = Interval.zero
  /// The sum of the quantisers of the decoded frames.
  package private(set) var qpSum: UInt64 = 0
  /// The size of the last decoded frame.
  package private(set) var frameWidth = 0
  package private(set) var frameHeight = 0

  /// Noticeable gaps between shown frames, and pauses of more than 5 s.
  package private(set) var freezeCount: UInt64 = 0
  package private(set) var totalFreezesDuration = Interval.zero
  package private(set) var pauseCount: UInt64 = 0
  package private(set) var totalPausesDuration = Interval.zero
  /// The sum of the times between shown frames, and of their squares in s².
  package private(set) var totalInterFrameDelay = Interval.zero
  package private(set) var totalSquaredInterFrameDelay = 0.0

  /// Frames that left the jitter buffer, their time in it, and their target delays.
  package private(set) var jitterBufferEmittedCount: UInt64 = 0
  package private(set) var jitterBufferDelay = Interval.zero
  package private(set) var jitterBufferTargetDelay = Interval.zero
  /// What the target delays would have been for the network alone.
  package private(set) var jitterBufferMinimumDelay = Interval.zero

  /// Whether a gap counts towards the average that it is compared with, as in libwebrtc.
  private let countsGapItself: Bool
  private var lastShown: Instant?
  /// Recent gaps between shown frames in nanoseconds, oldest first.
  private var gaps: [Int64] = []
  private var rate = FrameRate(ticksPerSecond: 1_000_000_000)

  init(countsGapItself: Bool = false) { self.countsGapItself = countsGapItself }

  /// The number of frames shown in the second before an instant.
  package func framesPerSecond(at now: Instant) -> Int { rate.count(at: now.nanoseconds) }

  /// A longer gap is a pause of the sender, not a freeze.
  private static let leastPause = Interval.seconds(5)
  /// The number of gaps in the average, and the minimum.
  private static let gapsKept = 30
  private static let gapsNeeded = 5

  mutating func countReceived(_ frame: ReceivedFrame) {
    framesReceived &+= 1
    guard frame.lastSequence > frame.firstSequence else { return }
    framesAssembledFromMultiplePackets &+= 1
    totalAssemblyTime = totalAssemblyTime + max(.zero, frame.lastArrival - frame.firstArrival)
  }

  @inline(__always)
  mutating func countEmitted(_ frame: ReceivedFrame, _ delay: VideoDelay, at now: Instant) {
    jitterBufferEmittedCount &+= 1
    jitterBufferDelay = jitterBufferDelay + max(.zero, now - frame.firstArrival)
    jitterBufferTargetDelay = jitterBufferTargetDelay + delay.target
    jitterBufferMinimumDelay = jitterBufferMinimumDelay + delay.network
  }

  mutating func countDropped() { framesDropped &+= 1 }

  /// Counts a frame that is shown.
  mutating func countShown(_ decoded: DecodedVideo, isKey: Bool, at now: Instant) {
    framesDecoded &+= 1
    if isKey { keyFramesDecoded &+= 1 }
    qpSum &+= UInt64(decoded.quantiser)
    frameWidth = decoded.videoFrame.width
    frameHeight = decoded.videoFrame.height
    countShown(at: now)
  }

  /// Counts a frame that is shown, decoded or not.
  mutating func countShown(at now: Instant) {
    rate.record(now.nanoseconds)
    if let lastShown { countGap(now - lastShown) }
    lastShown = now
  }

  /// A freeze is a gap of at least three times the average and 150 ms more than it.
  private mutating func countGap(_ gap: Interval) {
    totalInterFrameDelay = totalInterFrameDelay + gap
    totalSquaredInterFrameDelay += gap.seconds * gap.seconds
    if gap > VideoPlayoutCounters.leastPause {
      pauseCount &+= 1
      totalPausesDuration = totalPausesDuration + gap
      return
    }
    if countsGapItself { append(gap) }
    defer { if !countsGapItself { append(gap) } }
    if gaps.count >= VideoPlayoutCounters.gapsNeeded {
      let average = Interval(nanoseconds: gaps.reduce(0, +) / Int64(gaps.count))
      if gap >= max(average * 3, average + .milliseconds(150)) {
        freezeCount &+= 1
        totalFreezesDuration = totalFreezesDuration + gap
      }
    }
  }

  private mutating func append(_ gap: Interval) {
    if gaps.count == VideoPlayoutCounters.gapsKept { gaps.removeFirst() }
    gaps.append(gap.nanoseconds)
  }
}
