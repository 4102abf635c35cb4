package import RTP
package import Wire

/// All RTP and RTCP of one transport in the clear: streams, feedback, retransmission, pacing.
///
/// Encoded frames go in and packets come out in one direction, packets go in and frames come out
/// in the other. Encryption stands below, codecs stand above.
package struct MediaFlow: Machine {
  package enum Input {
    /// Begins with, or changes to, these sections; counters of streams that stay are kept.
    case configure([FlowSection])
    /// What all video begins with and may spend at most, in bits per second.
    case bitrateLimits(start: UInt64, maximum: UInt64)
    /// The transport can (or can no longer) carry packets.
    case writable(Bool)
    /// A decrypted RTP packet and the kernel's receive time.
    case rtp([UInt8], arrival: Instant)
    /// A decrypted RTCP compound packet and the kernel's receive time.
    case rtcp([UInt8], arrival: Instant)
    /// A frame to send in a section.
    case frame(mid: String, EncodedFrame)
    /// The decoder of a section needs a key frame (PLI or FIR follows, rate-limited).
    case requestKeyframe(mid: String)
    case deadline
    /// Says BYE for every stream and stops.
    case close
  }

  package enum Output {
    /// Packets to protect and send now, with room reserved for the protection's overhead.
    case rtp([UInt8])
    case rtcp([UInt8])
    /// An audio packet's payload in arrival order, or a picture in decoding order.
    case received(ReceivedFrame)
    /// The peer wants a key frame of this section (PLI or FIR).
    case keyframeRequested(mid: String)
    /// What all video encoders together may spend, in bits per second.
    case targetBitrate(UInt64)
    /// The share of sent packets the peer reported as lost, 0 to 255 (for in-band FEC).
    case lossReported(mid: String, UInt8)
    /// An RTCP block in the clear, either direction, for the take.
    case rtcpBlock(RTCPRecord)
    /// The first packet of a media SSRC arrived and was mapped to a section.
    case streamBegan(mid: String, ssrc: UInt32)
    /// BYE, or the SSRC was replaced.
    case streamEnded(mid: String, ssrc: UInt32)
  }

  /// How many bytes of spare capacity an outgoing packet has for SRTP.
  package static let reservedOverhead = 32

  let entropy: EntropyStream
  let wallClock: WallClock
  let cname: String
  var sections: [SectionState] = []
  var senders: [SendStream] = []
  var receivers: [ReceiveStream] = []
  var routes: [Route] = []
  /// The header extensions of all sections, which share one space of identifiers (RFC 9143).
  var extensions = HeaderExtensionMap()
  var reportsArrivals = false
  var reportsBitrate = false
  var usesReducedSize = false
  var isWritable = false
  var isClosed = false
  /// When something is due next; kept, because every step of the peer asks for it.
  package private(set) var deadline: Instant?
  var pacer = Pacer()
  var resendBudget = ResendBudget()
  var transportSequence: Int64 = 0
  var congestion = AdaptiveBitrate()
  var announcedTarget: (bitrate: UInt64, at: Instant)?
  var arrivals = ArrivalLog()
  /// The SSRC of the newest packet that arrived with a transport-wide sequence number.
  var reportedSSRC: UInt32 = 0
  var incoming = IncomingBitrate()
  var reportDue: Instant?
  /// How many reports were sent.
  var reportCount = 0
  /// The newest round trip that was measured; nil before the first.
  var roundTrip: Interval?
  var referenceTimes: [ReferenceTime] = []
  /// Packets that were refused, by reason.
  package internal(set) var refused = RefusedPackets()

  /// Creates a flow without sections that waits for its transport.
  ///
  /// - Parameters:
  /// - entropy: gives the first sequence numbers, the timestamp offsets, and the report intervals.
  ///   - wallClock: gives the NTP times of reports.
  ///   - cname: names this end in source descriptions (RFC 7022).
  package init(entropy: EntropyStream, wallClock: WallClock, cname: String) {
    self.entropy = entropy
    self.wallClock = wallClock
    self.cname = cname
  }

  package mutating func step(_ input: Input, at now: Instant, into outbox: inout Outbox<Output>) {
    guard !isClosed else { return }
    defer { deadline = nextDeadline }
    switch input {
    case .configure(let sections): configure(sections, at: now, into: &outbox)
    case .bitrateLimits(let start, let maximum):
      congestion.setLimits(start: start, maximum: maximum)
    case .writable(let isWritable): setWritable(isWritable, into: &outbox)
    case .rtp(let bytes, let arrival): receiveRTP(bytes, arrival: arrival, at: now, into: &outbox)
    case .rtcp(let bytes, let arrival):
      receiveRTCP(bytes, arrival: arrival, at: now, into: &outbox)
    case .frame(let mid, let frame): send(frame, mid: mid, at: now, into: &outbox)
    case .requestKeyframe(let mid): requestKeyframe(mid: mid)
    case .deadline: break
    case .close:
      close(at: now, into: &outbox)
      return
    }
    work(at: now, into: &outbox)
  }

  private var nextDeadline: Instant? {
    guard isWritable, !isClosed else { return nil }
    var deadline = earliest(pacer.due, arrivals.deadline)
    deadline = earliest(deadline, reportDue.map { $0 + MediaFlow.reportSlack })
    // By index, because a receiver that is taken out of its array is a copy of many parts.
    for index in receivers.indices where !receivers[index].hasEnded {
      deadline = earliest(deadline, receivers[index].pictures.missing.due)
    }
    return deadline
  }

  /// What was counted of every stream that is or was sent.
  package var outbound: [OutboundStreamCounters] { senders.map(\.snapshot) }

  /// What was counted of every stream that is or was received.
  package var inbound: [InboundStreamCounters] { receivers.map(\.snapshot) }

  /// What the path carries as far as known, in bits per second; nil before the peer reported.
  package var availableOutgoingBitrate: UInt64? {
    congestion.isEstimated ? congestion.target : nil
  }

  /// What the path carries, in bits per second, where it proved to be full of late: pictures that
  /// come encoded have to keep below it; nil where that is not known to be too little.
  package func pathLimit(at now: Instant) -> UInt64? { congestion.pathLimit(at: now) }

  /// What the path to here carries as this side told the peer by REMB, in bits per second; nil
  /// before it did, and always when the peer estimates for itself.
  package var availableIncomingBitrate: UInt64? { reportsBitrate ? incoming.latest : nil }

  /// Does what is due, whatever the input was: a step that happens anyway saves a wake.
  private mutating func work(at now: Instant, into outbox: inout Outbox<Output>) {
    announceTarget(at: now, into: &outbox)
    guard isWritable else { return }
    sendPaced(at: now, into: &outbox)
    requestMissing(at: now, into: &outbox)
    requestKeyframes(at: now, into: &outbox)
    if let due = arrivals.due, due <= now { reportArrivals(at: now, into: &outbox) }
    if let due = reportDue, due <= now { report(at: now, into: &outbox) }
  }
}
