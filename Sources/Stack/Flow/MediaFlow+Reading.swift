package import Wire

// Read by stats and encoders.
extension MediaFlow {
  /// Counters of every stream that is or was sent.
  package var outbound: [OutboundStreamCounters] { senders.all.map(\.snapshot) }

  /// Counters of every stream that is or was received.
  package var inbound: [InboundStreamCounters] { receivers.all.map(\.snapshot) }

  /// The estimated capacity in bits per second; nil before the peer's first report.
  package var availableOutgoingBitrate: UInt64? {
    rate.congestion.isEstimated ? rate.target : nil
  }

  /// The capacity in bits per second if the path was recently full; video that arrives encoded has
  /// to stay below it.
  ///
  /// Nil if the path is not known to be the limit.
  package func pathLimit(at now: Instant) -> UInt64? { rate.congestion.pathLimit(at: now) }

  /// The receive rate that was sent to the peer by REMB, in bits per second; nil before the first,
  /// and always if the peer estimates by itself.
  package var availableIncomingBitrate: UInt64? {
    agreement.reportsBitrate ? arrivals.reportedBitrate : nil
  }
}
