import RTP
package import Wire

/// An audio playout's counters, named as in W3C inbound-rtp statistics.
///
/// They are derived from packets, times, and the peak and energy of decoded blocks, so that a
/// replay without codecs has the same counters.
package struct AudioPlayoutCounters: Hashable, Sendable {
  /// Packets dropped because they were late, the buffer was full, or the stream jumped or changed;
  /// without duplicates.
  package var packetsDiscarded: UInt64 = 0
  /// Packets received twice.
  package var packetsDuplicated: UInt64 = 0
  /// Packets that are malformed or in a codec that is not decoded.
  package var packetsMalformed: UInt64 = 0
  /// Blocks that the decoder refused, played as silence.
  package var decodingFailures: UInt64 = 0

  /// All samples played, per channel.
  package var totalSamplesReceived: UInt64 = 0
  /// Samples that conceal lost or late samples.
  package var concealedSamples: UInt64 = 0
  /// Concealed samples that are comfort noise or silence.
  package var silentConcealedSamples: UInt64 = 0
  package var concealmentEvents: UInt64 = 0
  /// Samples recovered from in-band FEC, and the packets that contained it (W3C
  /// fecPacketsReceived).
  package var recoveredSamples: UInt64 = 0
  package var fecPacketsReceived: UInt64 = 0
  /// Samples inserted to lengthen the delay.
  package var insertedSamplesForDeceleration: UInt64 = 0
  /// Samples removed to shorten the delay.
  package var removedSamplesForAcceleration: UInt64 = 0

  /// Samples decoded from their own packets.
  package var jitterBufferEmittedCount: UInt64 = 0
  /// The total time from arrival to playout of the emitted samples, in microseconds.
  package var jitterBufferDelayMicroseconds: UInt64 = 0
  /// The total target delay of the emitted samples, and the total that the network alone required,
  /// both in microseconds.
  package var jitterBufferTargetDelayMicroseconds: UInt64 = 0
  package var jitterBufferMinimumDelayMicroseconds: UInt64 = 0

  private var loudness = LoudnessWindow()

  /// The sum of squared loudness times duration, in seconds.
  package var totalAudioEnergy: Double { loudness.totalEnergy }
  /// The root mean square of the last 100 ms, 0 to 1; nil before the first 100 ms.
  package var audioLevel: Double? { loudness.level }
  /// Chromium's audioLevel, which follows the loudest samples; nil before the first 100 ms.
  package var peakAudioLevel: Double? { loudness.peakLevel }

  /// The sums of jitter buffer delays in seconds, the unit of W3C.
  package var jitterBufferDelay: Double { Double(jitterBufferDelayMicroseconds) / 1e6 }
  package var jitterBufferTargetDelay: Double { Double(jitterBufferTargetDelayMicroseconds) / 1e6 }
  package var jitterBufferMinimumDelay: Double {
    Double(jitterBufferMinimumDelayMicroseconds) / 1e6
  }
  /// The duration of the audio played, in seconds.
  package var totalSamplesDuration: Double {
    Double(totalSamplesReceived) / Double(AudioBlock.sampleRate)
  }

  mutating func countPlayed(_ decoded: DecodedAudio) {
    let count = max(0, decoded.block.frameCount)
    totalSamplesReceived &+= UInt64(count)
    loudness.add(energy: decoded.energy, peak: decoded.peak, frameCount: count)
  }

  /// Counts a block decoded from its own packet.
  mutating func countEmitted(
    samples: Int, delay: Interval, target: Interval, minimum: Interval
  ) {
    let count = UInt64(max(0, samples))
    func sum(_ interval: Interval) -> UInt64 {
      count &* UInt64(max(0, interval.nanoseconds) / 1_000)
    }
    jitterBufferEmittedCount &+= count
    jitterBufferDelayMicroseconds &+= sum(delay)
    jitterBufferTargetDelayMicroseconds &+= sum(target)
    jitterBufferMinimumDelayMicroseconds &+= sum(minimum)
  }
}

// MARK: - VideoPlayoutCounters

/// A video playout's counters, named as in W3C inbound-rtp statistics.
package struct VideoPlayoutCounters: Hashable, Sendable {
  /// Frames received and decoded, key frames decoded, and frames dropped.
  package private(set) var framesReceived: UInt64 = 0
  package private(set) var framesDecoded: UInt64 = 0
  package private(set) var keyFramesDecoded: UInt64 = 0
  package private(set) var framesDropped: UInt64 = 0
  /// Frames made of several packets, and the time from their first to their last packet.
  package private(set) var framesAssembledFromMultiplePackets: UInt64 = 0
  package private(set) var totalAssemblyTime = Interval.zero
  /// The sum of the decoded frames' quantisers.
  package private(set) var qpSum: UInt64 = 0
  /// The size of the last decoded frame.
  package private(set) var frameWidth = 0
  package private(set) var frameHeight = 0

  /// Freezes, which are noticeable gaps between shown frames, and pauses, which are gaps over 5 s.
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
  /// The target delays that the network alone would have required.
  package private(set) var jitterBufferMinimumDelay = Interval.zero

  /// Whether a gap is included in the average it is compared with, as in libwebrtc.
  private let countsGapItself: Bool
  private var lastShown: Instant?
  /// Recent gaps between shown frames in nanoseconds, oldest first.
  private var gaps: [Int64] = []
  private var rate = FrameRate(ticksPerSecond: 1_000_000_000)

  init(countsGapItself: Bool = false) { self.countsGapItself = countsGapItself }

  /// Returns the number of frames shown in the second before an instant.
  package func framesPerSecond(at now: Instant) -> Int { rate.count(at: now.nanoseconds) }

  /// A longer gap is a pause by the sender, not a freeze.
  private static let leastPause = Interval.seconds(5)
  /// The maximum number of gaps averaged, and the number needed for an average.
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

  /// Counts a gap between shown frames: a pause if it is long, or a freeze if it is at least three
  /// times the average and exceeds the average by 150 ms.
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

/// An audio playout's state as plain data, for debugging.
package struct AudioPlayoutSnapshot: Sendable {
  /// The number of buffered packets, and the time from the next sample to the last packet's end.
  package var bufferedPackets: Int
  package var buffered: Interval
  package var targetDelay: Interval
  /// The minimum total delay for sync with the stream's other tracks.
  package var alignedDelay: Interval
  /// Media time of the next sample, in 48 kHz ticks.
  package var playhead: Int64
  package var isSilent: Bool
  package var nextTick: Instant?
  /// The time for which only concealment has been played.
  package var concealedRun: Interval
  package var counters: AudioPlayoutCounters
}

/// A video playout's state as plain data, for debugging.
package struct VideoPlayoutSnapshot: Sendable {
  package var waitingFrames: Int
  package var waitingBytes: Int
  /// The delay beyond the fastest transit, and its target.
  package var delay: Interval
  package var targetDelay: Interval
  /// The minimum total delay for sync with the stream's other tracks.
  package var alignedDelay: Interval
  /// When the oldest frame will be shown.
  package var nextShow: Instant?
  package var counters: VideoPlayoutCounters
}

extension VideoPlayout {
  package var snapshot: VideoPlayoutSnapshot {
    VideoPlayoutSnapshot(
      waitingFrames: frames.count, waitingBytes: frames.bytes, delay: delay.current,
      targetDelay: delay.target, alignedDelay: delay.aligned, nextShow: deadline,
      counters: counters)
  }
}
