import Wire

/// What an audio playout did, for the W3C inbound-rtp statistics of the same names.
///
/// Everything follows from packets, times and the peak and energy of decoded blocks, so that a
/// replay which skips the codecs counts the same.
package struct AudioPlayoutCounters: Hashable, Sendable {
  /// Packets that came too late or too early to be played; duplicates are not among them.
  package var packetsDiscarded: UInt64 = 0
  /// Packets that came twice.
  package var packetsDuplicated: UInt64 = 0
  /// Packets whose bytes are no Opus packet, or that have another codec.
  package var packetsMalformed: UInt64 = 0
  /// Blocks that the decoder refused and that were silence instead.
  package var decodingFailures: UInt64 = 0

  /// All samples that were played, per channel.
  package var totalSamplesReceived: UInt64 = 0
  /// Samples that conceal lost or late ones.
  package var concealedSamples: UInt64 = 0
  /// Those of them that are comfort noise or silence.
  package var silentConcealedSamples: UInt64 = 0
  /// How often concealment began.
  package var concealmentEvents: UInt64 = 0
  /// Samples recovered from in-band FEC, and the packets that gave them (W3C fecPacketsReceived).
  package var recoveredSamples: UInt64 = 0
  package var fecPacketsReceived: UInt64 = 0
  /// Samples inserted to lengthen the delay.
  package var insertedSamplesForDeceleration: UInt64 = 0
  /// Samples left out to shorten the delay.
  package var removedSamplesForAcceleration: UInt64 = 0

  /// Samples decoded from their own packets.
  package var jitterBufferEmittedCount: UInt64 = 0
  /// For each of those the microseconds between arrival and playout, summed up.
  package var jitterBufferDelayMicroseconds: UInt64 = 0
  /// For each of those the target delay in microseconds, summed up, and what it would have been had
  /// nothing but the network asked for delay.
  package var jitterBufferTargetDelayMicroseconds: UInt64 = 0
  package var jitterBufferMinimumDelayMicroseconds: UInt64 = 0

  private var loudness = LoudnessWindow()

  /// The sum of squared loudness times duration, in seconds.
  package var totalAudioEnergy: Double { loudness.totalEnergy }
  /// The root mean square of the last 100 ms, 0 to 1; nil before the first.
  package var audioLevel: Double? { loudness.level }
  /// The level as Chromium takes it, from the loudest samples; nil before the first 100 ms.
  package var peakAudioLevel: Double? { loudness.peakLevel }

  /// The delays above in seconds.
  package var jitterBufferDelay: Double { Double(jitterBufferDelayMicroseconds) / 1e6 }
  package var jitterBufferTargetDelay: Double { Double(jitterBufferTargetDelayMicroseconds) / 1e6 }
  package var jitterBufferMinimumDelay: Double {
    Double(jitterBufferMinimumDelayMicroseconds) / 1e6
  }
  /// How much audio was played, in seconds.
  package var totalSamplesDuration: Double {
    Double(totalSamplesReceived) / Double(AudioBlock.sampleRate)
  }

  /// Counts audio that goes out.
  mutating func countPlayed(_ decoded: DecodedAudio) {
    let count = max(0, decoded.block.frameCount)
    totalSamplesReceived &+= UInt64(count)
    loudness.add(energy: decoded.energy, peak: decoded.peak, frameCount: count)
  }

  /// Counts audio that comes out of its own packet.
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
