package import RTP
package import Wire

/// Finds out how much a path carries from what the peer reports: a machine of its own, so that
/// another algorithm can take its place.
package protocol CongestionController: Sendable {
  /// What may be sent in all, in bits per second.
  var target: UInt64 { get }
  /// Whether the target rests on reports of the peer and not only on the start value.
  var isEstimated: Bool { get }

  /// Sets the bit rate to begin with, the highest one to try, and the least, in bits per second;
  /// nil: the least of which video is of use.
  mutating func setLimits(start: UInt64, maximum: UInt64, minimum: UInt64?)
  /// Takes the path to carry this, in bits per second, until reports say otherwise.
  mutating func setEstimate(_ bitrate: UInt64)
  /// Records a packet sent with a transport-wide sequence number, extended to 64 bits.
  mutating func packetSent(_ transportSequence: Int64, bytes: Int, at now: Instant)
  /// Handles the arrival times that the peer reports.
  mutating func receive(_ feedback: TransportFeedback, at now: Instant)
  /// Handles the peer's own estimate (REMB), in bits per second.
  mutating func receive(maximumBitrate: UInt64, at now: Instant)
  /// Handles the share of packets lost since the last report, in 1/256.
  mutating func receive(fractionLost: UInt8, at now: Instant)
}
