package import Wire

// What stats and encoders read of the flow.
extension MediaFlow {
  /// What was counted of every stream that is or was sent.
  package var outbound: [OutboundStreamCounters] { senders.all.map(\.snapshot) }

  /// What was counted of every stream that is or was received.
  package var inbound: [InboundStreamCounters] { receivers.all.map(\.snapshot) }

  /// What the path carries as far as known, in bits per second; nil before the peer reported.
  package var availableOutgoingBitrate: UInt64? {
    rate.congestion.isEstimated ? rate.target : nil
  }

  /// What the path carries, in bits per second, where it proved to be full recently: video frames
  /// that come encoded have to keep below it; nil if that is not known to be too little.
  package func pathLimit(at now: Instant) -> UInt64? { rate.congestion.pathLimit(at: now) }

  /// What the path to here carries as this side told the peer by REMB, in bits per second; nil
  /// before it did, and always when the peer estimates for itself.
  package var availableIncomingBitrate: UInt64? {
    agreement.reportsBitrate ? arrivals.reportedBitrate : nil
  }
}
