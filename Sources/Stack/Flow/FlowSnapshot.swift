package import Wire

/// The state of a transport's streams and feedback as plain data, for debugging.
package struct FlowSnapshot: Sendable {
  /// A stream that is sent.
  package struct Sending: Sendable {
    package var counters: OutboundStreamCounters
    /// Whether frames were dropped that later ones may depend on.
    package var lostFrames: Bool
    package var keyframeRequestedAt: Instant?
  }

  /// A stream that is received, and what it is waiting for.
  package struct Receiving: Sendable {
    package var counters: InboundStreamCounters
    /// Extended sequence numbers of missing packets that may still arrive, at most 50.
    package var missing: [Int64]
    package var missingCount: Int
    /// When missing packets are next requested, or given up.
    package var missingDue: Instant?
    /// Everything up to this extended sequence number was delivered or given up.
    package var deliveredThrough: Int64?
    /// Complete frames that wait for earlier ones.
    package var blockedFrames: Int
    /// Bytes of packets held for incomplete frames.
    package var heldBytes: Int
    /// Whether nothing can be delivered before a key frame.
    package var needsKeyframe: Bool
  }

  /// The estimated bit rate and its inputs, in bits per second.
  package struct Congestion: Sendable {
    package var target: UInt64
    package var isEstimated: Bool
    package var estimate: Double
    package var maximum: Double
    /// The peer's limit (REMB).
    package var remoteMaximum: Double?
    package var arrivalRate: Double?
    /// The share of packets recently lost, 0 to 1.
    package var lossFraction: Double
    /// The trend of the queues: steady, growing, shrinking.
    package var delayTrend: String
    package var cutAt: Instant?
    /// The rate at which the path was last full.
    package var fullAt: Double?
  }

  package var isWritable: Bool
  package var sending: [Sending]
  package var receiving: [Receiving]
  package var congestion: Congestion
  package var pacerQueue: Int
  package var pacerQueueBytes: UInt64
  package var pacerResends: Int
  package var pacerDue: Instant?
  package var roundTrip: Interval?
  package var reportDue: Instant?
  package var arrivalReportDue: Instant?
  package var refused: RefusedPackets
  package var deadline: Instant?
}

extension MediaFlow {
  package var snapshot: FlowSnapshot {
    FlowSnapshot(
      isWritable: isWritable,
      sending: senders.all.map {
        FlowSnapshot.Sending(
          counters: $0.snapshot, lostFrames: $0.lostFrames,
          keyframeRequestedAt: $0.demands.passedOnAt)
      },
      receiving: receivers.all.map(\.described), congestion: rate.congestion.described,
      pacerQueue: pacer.partCount, pacerQueueBytes: pacer.queuedBytes,
      pacerResends: pacer.resendCount, pacerDue: pacer.due, roundTrip: roundTrips.newest,
      reportDue: reports.due, arrivalReportDue: arrivals.due, refused: refused, deadline: deadline)
  }
}

extension ReceiveStream {
  fileprivate var described: FlowSnapshot.Receiving {
    let assembler = videoFrames.assembler
    let missing = videoFrames.missing.sequences
    return FlowSnapshot.Receiving(
      counters: snapshot, missing: Array(missing.prefix(50)), missingCount: missing.count,
      missingDue: videoFrames.missing.due, deliveredThrough: assembler.floor,
      blockedFrames: assembler.readyCount, heldBytes: assembler.heldBytes,
      needsKeyframe: kind == .video && assembler.needsKey)
  }
}

extension AdaptiveBitrate {
  fileprivate var described: FlowSnapshot.Congestion {
    FlowSnapshot.Congestion(
      target: target, isEstimated: isEstimated, estimate: estimate, maximum: bounds.maximum,
      remoteMaximum: bounds.remoteMaximum, arrivalRate: arrivalRate, lossFraction: loss.value,
      delayTrend: trend.signal.name, cutAt: capacity.cutAt, fullAt: capacity.fullAt)
  }
}

extension DelayTrend.Signal {
  fileprivate var name: String {
    switch self {
    case .steady: "steady"
    case .growing: "growing"
    case .shrinking: "shrinking"
    }
  }
}
