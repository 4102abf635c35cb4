/// Whose stats are wanted (the argument of W3C getStats, as a sender or a receiver).
public enum StatsSelector: Hashable, Sendable, Codable {
  /// What the sender of a transceiver sends, with everything that its stats refer to.
  case sender(transceiver: UInt32)
  /// What the receiver of a transceiver receives, with everything that its stats refer to.
  case receiver(transceiver: UInt32)
}

/// How long the codecs of a track have worked so far.
///
/// It is real time of a processor and no function of the inputs, so whoever asks for stats measures
/// it and hands it in: it is recorded with the call, and a replay reports what was measured.
package struct CodecTime: Hashable, Sendable, Codable {
  package var transceiver: UInt32
  /// Whether it is the decoder's time; else it is the encoder's.
  package var isInbound: Bool
  /// What was worked for video frames; for audio the same once for each sample of a decoded packet,
  /// as the standard sums up delays of audio.
  package var nanoseconds: Int64

  package init(transceiver: UInt32, isInbound: Bool, nanoseconds: Int64) {
    self.transceiver = transceiver
    self.isInbound = isInbound
    self.nanoseconds = nanoseconds
  }
}
