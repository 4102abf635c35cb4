package import RTP
package import Wire

/// A stream of somebody else's call, received as an endpoint would receive it.
///
/// It stands without a sender: what an endpoint would ask for again, or report, is dropped, and the
/// requests that were seen on the wire are counted instead. Who calls finds the packets of the
/// stream and of its retransmissions, because an observer tells streams apart by other means than
/// descriptions.
package struct StreamReception {
  private var stream: ReceiveStream
  private var outputs = Outbox<MediaFlow.Output>()
  /// Requests of the real receiver: for packets, and for key frames by PLI and FIR.
  private var requests = (nack: UInt64(0), pli: UInt64(0), fir: UInt64(0))

  /// An endpoint that knows no round trip yet waits so long for what it asked for.
  private static let spacing = Interval.milliseconds(100)

  /// Begins with the first packet of a stream.
  package init(mid: String, kind: MediaKind, ssrc: UInt32, at now: Instant) {
    stream = ReceiveStream(mid: mid, kind: kind, ssrc: ssrc, rtxSSRC: nil, at: now)
  }

  /// The source of its retransmissions, when one was seen.
  package var rtxSSRC: UInt32? {
    get { stream.rtxSSRC }
    set { stream.learn(rtxSSRC: newValue) }
  }

  /// What was counted so far; requests as they were on the wire.
  package var counters: InboundStreamCounters {
    var counters = stream.snapshot
    (counters.nackCount, counters.pliCount, counters.firCount) =
      (requests.nack, requests.pli, requests.fir)
    return counters
  }

  /// When what is missing is given up, unless it comes before.
  package var deadline: Instant? { stream.hasEnded ? nil : stream.videoFrames.missing.due }

  /// Takes a packet in the clear; gives the frames that are complete now.
  ///
  /// - Parameter isRetransmission: whether it is of the stream's own retransmission source.
  package mutating func receive(
    _ bytes: [UInt8], _ header: RTPHeader, _ extensions: HeaderExtensionMap,
    codec: FlowSection.Codec, isRetransmission: Bool, arrival: Instant, at now: Instant
  ) -> [ReceivedFrame] {
    if stream.hasEnded { stream.resume() }
    let packet = ReceiveStream.Packet(
      header: header,
      extensions: HeaderExtensions(
        parsing: bytes.span.bytes, header: header, map: extensions),
      bytes: bytes, arrival: arrival, codec: codec)
    if isRetransmission {
      stream.receiveRetransmission(packet, at: now, into: &outputs)
    } else {
      stream.receive(packet, at: now, into: &outputs)
    }
    return frames(at: now)
  }

  /// Counts a packet whose payload cannot be read: it is protected, or of an unknown type.
  package mutating func receiveSealed(
    _ header: RTPHeader, clockRate: UInt32, arrival: Instant
  ) {
    if stream.hasEnded { stream.resume() }
    stream.receiveSealed(header, clockRate: clockRate, arrival: arrival)
  }

  /// Gives up what is due; gives the frames that waited for nothing else.
  package mutating func reachDeadline(at now: Instant) -> [ReceivedFrame] { frames(at: now) }

  private mutating func frames(at now: Instant) -> [ReceivedFrame] {
    if let codec = stream.codec {
      _ = stream.demand(codec, at: now, spacing: StreamReception.spacing, into: &outputs)
    }
    var frames: [ReceivedFrame] = []
    while let output = outputs.next() {
      if case .received(let frame) = output { frames.append(frame) }
    }
    return frames
  }

  // MARK: RTCP

  /// Takes the source's own report.
  package mutating func receive(_ report: SenderReport, at arrival: Instant) {
    stream.receive(report, at: arrival)
  }

  /// Takes the source's goodbye.
  package mutating func end() { stream.end() }

  /// Counts a request for lost packets of the real receiver.
  package mutating func countNACK() { requests.nack += 1 }

  /// Counts a request for a key frame of the real receiver.
  package mutating func countKeyframeRequest(isFIR: Bool) {
    if isFIR { requests.fir += 1 } else { requests.pli += 1 }
  }

  /// Takes a round trip that the receiver's reports and the sender's answers show.
  package mutating func receive(roundTrip: Interval) { stream.receive(roundTrip: roundTrip) }
}
