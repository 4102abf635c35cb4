package import Wire

/// What an audio playout holds and plans, as plain data for people who look into a call.
package struct AudioPlayoutSnapshot: Sendable {
  /// Packets that wait, and the time from the first sample played next to the last one held.
  package var bufferedPackets: Int
  package var buffered: Interval
  package var targetDelay: Interval
  /// The part of it that other tracks of the stream ask for: at least so much, all in all.
  package var alignedDelay: Interval
  /// The media time of the next sample, in ticks of 48 kHz.
  package var playhead: Int64
  package var isSilent: Bool
  package var nextTick: Instant?
  /// How long nothing but made-up audio has been played.
  package var concealedRun: Interval
  package var counters: AudioPlayoutCounters
}

/// What a video playout holds and plans.
package struct VideoPlayoutSnapshot: Sendable {
  package var waitingFrames: Int
  package var waitingBytes: Int
  /// How much later than the fastest transit frames are shown, and where that is going.
  package var delay: Interval
  package var targetDelay: Interval
  /// The part of it that other tracks of the stream ask for: at least so much, all in all.
  package var alignedDelay: Interval
  /// When the oldest frame is shown.
  package var nextShow: Instant?
  package var counters: VideoPlayoutCounters
}

extension VideoPlayout {
  /// The playout as it stands.
  package var snapshot: VideoPlayoutSnapshot {
    VideoPlayoutSnapshot(
      waitingFrames: frames.count, waitingBytes: frames.bytes, delay: delay.current,
      targetDelay: delay.target, alignedDelay: delay.aligned, nextShow: deadline,
      counters: counters)
  }
}
