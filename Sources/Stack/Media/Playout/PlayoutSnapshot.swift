package import Wire

/// The state of an audio playout as plain data, for debugging.
package struct AudioPlayoutSnapshot: Sendable {
  /// Buffered packets, and the time from the next sample to the last buffered one.
  package var bufferedPackets: Int
  package var buffered: Interval
  package var targetDelay: Interval
  /// The minimum total delay for sync with other tracks of the stream.
  package var alignedDelay: Interval
  /// The media time of the next sample, in ticks of 48 kHz.
  package var playhead: Int64
  package var isSilent: Bool
  package var nextTick: Instant?
  /// How long only concealment has been played.
  package var concealedRun: Interval
  package var counters: AudioPlayoutCounters
}

/// The state of a video playout.
package struct VideoPlayoutSnapshot: Sendable {
  package var waitingFrames: Int
  package var waitingBytes: Int
  /// The delay beyond the fastest transit, and its target.
  package var delay: Interval
  package var targetDelay: Interval
  /// The minimum total delay for sync with other tracks of the stream.
  package var alignedDelay: Interval
  /// When the oldest frame is shown.
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
