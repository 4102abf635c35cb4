package import RTP
package import Wire

/// Estimates the capacity of a path from the peer's reports.
///
/// Implementations are interchangeable.
package protocol CongestionController: Sendable {
  /// The total rate that may be sent, in bits per second.
  var target: UInt64 { get }
  /// Whether the target is based on the peer's reports and not only on the start value.
  var isEstimated: Bool { get }

  /// Sets the start, maximum and minimum rate in bits per second; the default minimum is the least
  /// at which video is useful.
  mutating func setLimits(start: UInt64, maximum: UInt64, minimum: UInt64?)
  /// Assumes this capacity, in bits per second, until reports say otherwise.
  mutating func setEstimate(_ bitrate: UInt64)
  /// Records a packet sent with a transport-wide sequence number (extended to 64 bits).
  mutating func packetSent(_ transportSequence: Int64, bytes: Int, at now: Instant)
  /// Handles the peer's arrival times.
  mutating func receive(_ feedback: TransportFeedback, at now: Instant)
  /// Handles the peer's own estimate (REMB), in bits per second.
  mutating func receive(maximumBitrate: UInt64, at now: Instant)
  /// Handles the share of packets lost since the last report, in 1/256.
  mutating func receive(fractionLost: UInt8, at now: Instant)
}
