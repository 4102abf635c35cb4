package import Wire

/// What an association did, and the state of its path (W3C RTCSctpTransportStats and more).
package struct SCTPStatistics: Hashable, Sendable {
  package var packetsSent: UInt64 = 0
  package var packetsReceived: UInt64 = 0
  /// Packets and chunks that were of no use: malformed, of another association, out of place.
  package var dropped: UInt64 = 0
  /// DATA chunks sent for the first time.
  package var chunksSent: UInt64 = 0
  /// DATA chunks sent again.
  package var chunksRetransmitted: UInt64 = 0
  /// DATA chunks received, without duplicates.
  package var chunksReceived: UInt64 = 0
  /// Duplicate DATA chunks received.
  package var duplicates: UInt64 = 0
  /// How often the retransmission timer ran out.
  package var timeouts: UInt64 = 0
  /// How often losses were seen in acknowledgements.
  package var fastRecoveries: UInt64 = 0
  /// The smoothed round-trip time; nil before a measurement.
  package var smoothedRoundTripTime: Interval?
  /// The retransmission timeout.
  package var retransmissionTimeout = SCTPLimits.initialTimeout
  /// The congestion window in bytes.
  package var congestionWindow = 0
  /// The receive window that the peer last advertised, in bytes.
  package var receiverWindow = 0
  /// The largest packet in bytes.
  package var maximumPacketSize = 0
  /// Chunks that the peer has not acknowledged.
  package var unacknowledgedChunks = 0
  /// Bytes of chunks that are on their way, with chunk headers.
  package var bytesInFlight = 0
}
