/// A sender or receiver whose stats are requested (the argument of W3C getStats).
public enum StatsSelector: Hashable, Sendable, Codable {
  /// What a transceiver sends, with everything that its stats refer to.
  case sender(transceiver: UInt32)
  /// What a transceiver receives, with everything that its stats refer to.
  case receiver(transceiver: UInt32)
}

/// The processing time of a track's codecs.
///
/// It is real time and not a function of the inputs, so the caller of getStats measures it. It is
/// recorded with the call, and a replay reports the recorded value.
package struct CodecTime: Hashable, Sendable, Codable {
  package var transceiver: UInt32
  /// Whether it is the decoder's time rather than the encoder's.
  package var isInbound: Bool
  /// The total time for video; for audio weighted by the samples of each packet, as the standard
  /// sums up audio delays.
  package var nanoseconds: Int64

  package init(transceiver: UInt32, isInbound: Bool, nanoseconds: Int64) {
    self.transceiver = transceiver
    self.isInbound = isInbound
    self.nanoseconds = nanoseconds
  }
}
