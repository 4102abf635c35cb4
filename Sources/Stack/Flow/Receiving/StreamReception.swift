package import RTP
package import Wire

/// A stream in an observed call, received as its real receiver receives it.
///
/// It sends nothing: the requests and reports that an endpoint would send are dropped, and the
/// captured requests are counted instead. A frame is awaited as long as the real receiver may be
/// waiting for it: until the frame is complete, until the receiver requests a key frame, or until
/// the sender continues with a key frame. The caller decides which packets belong to the stream and
/// its RTX, because an observer does not identify streams by session descriptions.
package struct StreamReception {
  /// A packet as received, and its content without RED.
  package struct Packet {
    /// The header as received, for counting payload and padding.
    package var wire: RTPHeader
    package var header: RTPHeader
    package var bytes: [UInt8]
    package var codec: FlowSection.Codec
    /// Whether the packet was wrapped in RED, in which case FEC may protect it.
    package var isInRED: Bool
    /// The FEC payload, if the packet carries FEC instead of media.
    package var correction: [UInt8]?

    package init(
      wire: RTPHeader, header: RTPHeader, bytes: [UInt8], codec: FlowSection.Codec,
      isInRED: Bool = false, correction: [UInt8]? = nil
    ) {
      self.wire = wire
      self.header = header
      self.bytes = bytes
      self.codec = codec
      self.isInRED = isInRED
      self.correction = correction
    }
  }

  private var stream: ReceiveStream
  private var outputs = Outbox<MediaFlow.Output>()
  /// NACK, PLI and FIR sent by the real receiver.
  private var requests = (nack: UInt64(0), pli: UInt64(0), fir: UInt64(0))
  /// Bytes that RED headers and FEC add to the stream.
  private var redBytes = (all: UInt64(0), retransmitted: UInt64(0), padding: UInt64(0))
  private var corrections = (packets: UInt64(0), bytes: UInt64(0))
  /// Packets from the FlexFEC source that protects this stream: libwebrtc counts them both in the
  /// stream's totals and separately.
  private var flexFEC = (packets: UInt64(0), bytes: UInt64(0), headers: UInt64(0))
  private var fecSSRC: UInt32?
  /// Whether there is a FlexFEC source, in which case the stream's packets are kept for recovery.
  private var isProtected = false
  /// The codecs that recovered packets may have; if empty, they have the codec of the packet that
  /// completes the recovery.
  package var codecs: [FlowSection.Codec] = []
  /// Whether recovery ignores header extensions that are filled in when a packet is sent, and the
  /// first frames wait for a retransmitted key frame; false in older takes.
  private let repairsFully: Bool
  /// Packets on the RTX SSRC that contain only padding; receivers count them as retransmissions.
  private var probes: UInt64 = 0
  /// Everything on the RTX SSRC: packets, payload bytes, header and padding bytes.
  private var repeated = (packets: UInt64(0), bytes: UInt64(0), headers: UInt64(0))
  private var recovery = PacketRecovery()
  private var jitter = ReceiverJitter()
  /// Detects sequence number restarts close to the current number; nil in older takes, which count
  /// such packets as duplicates.
  private var nearRestarts: NearRestarts?
  /// The previous packet's sequence number and the step to it, if a restart is suspected there.
  private var doubtful: (sequence: UInt16, step: Int)?
  private var lastSequence: UInt16 = 0
  private var clockRate: UInt32 = 0

  /// Creates the reception of a stream whose first packet has arrived.
  package init(
    mid: String, kind: MediaKind, ssrc: UInt32, repairsFully: Bool = true,
    followsRestarts: Bool = true, at now: Instant
  ) {
    self.repairsFully = repairsFully
    nearRestarts = followsRestarts ? NearRestarts() : nil
    stream = ReceiveStream(
      mid: mid, kind: kind, ssrc: ssrc, rtxSSRC: nil, isWatched: true,
      awaitsBeginning: repairsFully, at: now)
  }

  /// The SSRC of the stream's retransmissions, if known.
  package var rtxSSRC: UInt32? {
    get { stream.rtxSSRC }
    set { stream.learn(rtxSSRC: newValue) }
  }

  /// The counters so far, including requests captured on the wire.
  package var counters: InboundStreamCounters {
    var counters = stream.snapshot
    (counters.nackCount, counters.pliCount, counters.firCount) =
      (requests.nack, requests.pli, requests.fir)
    counters.bytesReceived += redBytes.all
    counters.headerBytesReceived += redBytes.padding
    counters.retransmittedPacketsReceived += probes
    counters.retransmittedBytesReceived += redBytes.retransmitted
    counters.packetsReceived += flexFEC.packets
    counters.bytesReceived += flexFEC.bytes
    counters.headerBytesReceived += flexFEC.headers
    counters.fecPacketsReceived = corrections.packets + flexFEC.packets
    counters.fecBytesReceived = corrections.bytes + flexFEC.bytes
    counters.fecSSRC = fecSSRC
    if clockRate > 0 { counters.jitter = Double(jitter.value) / Double(clockRate) }
    return counters
  }

  /// The counters without retransmissions and FlexFEC, as Firefox counts them.
  package var mediaCounters: InboundStreamCounters {
    var counters = counters
    counters.packetsReceived -= repeated.packets + flexFEC.packets
    counters.bytesReceived -= repeated.bytes + flexFEC.bytes
    counters.headerBytesReceived -= repeated.headers + flexFEC.headers
    return counters
  }

  private mutating func countRepeated(_ header: RTPHeader) {
    repeated.packets += 1
    repeated.bytes += UInt64(header.payload.count)
    repeated.headers += UInt64(header.headerLength + header.paddingLength)
  }

  /// Handles a decrypted packet; returns the frames now complete.
  /// - Parameter isRetransmission: whether the packet arrived on the stream's RTX SSRC.
  package mutating func receive(
    _ packet: Packet, _ extensions: HeaderExtensionMap, isRetransmission: Bool, arrival: Instant,
    at now: Instant
  ) -> [ReceivedFrame] {
    if stream.hasEnded { stream.resume() }
    countRED(packet, isRetransmission)
    if !isRetransmission {
      findRestart(packet.wire)
      clockRate = packet.codec.clockRate
      jitter.receive(packet.wire, clockRate: clockRate, arrival: arrival)
    }
    let received = ReceiveStream.Packet(packet, extensions, arrival)
    if isRetransmission {
      countRepeated(packet.wire)
      if RTX.unwrap(packet.bytes.span.bytes, header: packet.header) == nil { probes += 1 }
      stream.receiveRetransmission(received, at: now, into: &outputs)
    } else {
      stream.receive(received, at: now, into: &outputs)
    }
    for bytes in recovered(packet, extensions, isRetransmission) {
      receiveRecovered(bytes, packet.codec, extensions, arrival: arrival, at: now)
    }
    return removeFrames()
  }

  /// Keeps the stream's packets from now on, because a FlexFEC source protects them.
  ///
  /// - Parameter source: the SSRC of that source, if known.
  package mutating func protect(by source: UInt32?) {
    isProtected = true
    fecSSRC = source ?? fecSSRC
  }

  /// Handles a FlexFEC packet that protects this stream; returns the frames it completes.
  ///
  /// - Parameter correction: the parsed FEC payload; if it cannot be parsed, this is nil and the
  ///   packet is only counted.
  package mutating func receiveCorrection(
    _ header: RTPHeader, _ correction: ErrorCorrection?, _ extensions: HeaderExtensionMap,
    arrival: Instant, at now: Instant
  ) -> [ReceivedFrame] {
    protect(by: header.ssrc)
    flexFEC.packets += 1
    flexFEC.bytes += UInt64(header.payload.count)
    flexFEC.headers += UInt64(header.headerLength + header.paddingLength)
    guard let correction, correction.ssrc ?? stream.ssrc == stream.ssrc else { return [] }
    for bytes in recovery.receive(correction, ssrc: stream.ssrc) {
      receiveRecovered(bytes, nil, extensions, arrival: arrival, at: now)
    }
    return removeFrames()
  }

  /// Counts a packet that cannot be decrypted or has an unknown payload type.
  package mutating func receiveSealed(
    _ header: RTPHeader, clockRate: UInt32, arrival: Instant
  ) {
    if stream.hasEnded { stream.resume() }
    self.clockRate = clockRate
    findRestart(header)
    jitter.receive(header, clockRate: clockRate, arrival: arrival)
    stream.receiveSealed(header, clockRate: clockRate, arrival: arrival)
  }

  /// Restarts the sequence numbers at the previous packet if this packet confirms a restart there.
  private mutating func findRestart(_ header: RTPHeader) {
    guard let mayBegin = nearRestarts?.mayBegin(header.sequence, header.timestamp) else { return }
    let step = Int(Int16(bitPattern: header.sequence &- lastSequence))
    lastSequence = header.sequence
    if let former = doubtful, NearRestarts.isBorneOut(step: former.step, next: step) {
      stream.beginAnew(with: former.sequence)
      jitter.beginAnew()
    }
    doubtful = mayBegin ? (header.sequence, step) : nil
  }

  /// Counts an RTX packet that is unusable or arrived before the stream's first packet.
  package mutating func countRetransmissionSource(_ header: RTPHeader, arrival: Instant) {
    countRepeated(header)
    probes += 1
    stream.countRetransmissionSource(header, arrival: arrival)
  }

  private mutating func removeFrames() -> [ReceivedFrame] {
    var frames: [ReceivedFrame] = []
    while let output = outputs.next() {
      if case .received(let frame) = output { frames.append(frame) }
    }
    return frames
  }

  // MARK: RED and FEC

  private mutating func countRED(_ packet: Packet, _ isRetransmission: Bool) {
    let bytes = UInt64(max(0, packet.wire.payload.count - packet.header.payload.count))
    redBytes.all += bytes
    if isRetransmission { redBytes.retransmitted += bytes }
    redBytes.padding += UInt64(max(0, packet.wire.paddingLength - packet.header.paddingLength))
    guard let correction = packet.correction else { return }
    corrections.packets += 1
    corrections.bytes += UInt64(correction.count)
  }

  /// Returns the packets that can be recovered with this one.
  ///
  /// As in libwebrtc, FlexFEC ignores retransmissions.
  private mutating func recovered(
    _ packet: Packet, _ extensions: HeaderExtensionMap, _ isRetransmission: Bool
  ) -> [[UInt8]] {
    guard packet.isInRED else {
      guard isProtected, !isRetransmission else { return [] }
      var bytes = packet.bytes
      extensions.clearLateValues(in: &bytes, packet.header)
      return recovery.receive(bytes, sequence: packet.header.sequence, ssrc: stream.ssrc)
    }
    guard stream.kind == .video else { return [] }
    if let correction = packet.correction {
      guard let read = ErrorCorrection(.ulpfec, correction.span.bytes) else { return [] }
      return recovery.receive(read, ssrc: stream.ssrc)
    }
    guard var bytes = packet.protected else { return [] }
    var sequence = packet.header.sequence
    if repairsFully { extensions.clearLateValues(in: &bytes, packet.header) }
    if isRetransmission {
      guard let original = RTX.unwrap(packet.bytes.span.bytes, header: packet.header) else {
        return []
      }
      sequence = original.sequence
      bytes.removeSubrange(packet.header.headerLength..<original.payload.lowerBound)
    }
    return recovery.receive(bytes, sequence: sequence, ssrc: stream.ssrc)
  }

  private mutating func receiveRecovered(
    _ bytes: [UInt8], _ codec: FlowSection.Codec?, _ extensions: HeaderExtensionMap,
    arrival: Instant, at now: Instant
  ) {
    guard let header = try? RTPHeader(parsing: bytes.span.bytes) else { return }
    let known = codecs.isEmpty ? codec : codecs.first { $0.payloadType == header.payloadType }
    guard let codec = known, codec.payloadType == header.payloadType else { return }
    let recovered = Packet(wire: header, header: header, bytes: bytes, codec: codec)
    stream.receiveRecovered(
      ReceiveStream.Packet(recovered, extensions, arrival), at: now, into: &outputs)
  }

  // MARK: RTCP

  package mutating func receive(_ report: SenderReport, at arrival: Instant) {
    stream.receive(report, at: arrival)
  }

  /// Ends the stream after a BYE; another packet resumes it.
  package mutating func end() { stream.end() }

  /// Counts a NACK from the real receiver.
  package mutating func countNACK() { requests.nack += 1 }

  /// Counts a PLI or FIR from the real receiver, which then no longer waits for missing packets;
  /// returns the frames that were waiting.
  package mutating func countKeyframeRequest(isFIR: Bool, at now: Instant) -> [ReceivedFrame] {
    if isFIR { requests.fir += 1 } else { requests.pli += 1 }
    stream.abandonMissing(at: now, into: &outputs)
    return removeFrames()
  }

  /// Replaces the computed jitter with the jitter in a report block from the real receiver.
  package mutating func receive(_ block: ReportBlock) { jitter.correct(block.jitter) }

  /// Records a round trip derived from the receiver's reports and the sender's answers.
  package mutating func receive(roundTrip: Interval) { stream.receive(roundTrip: roundTrip) }
}

extension StreamReception.Packet {
  /// The packet as FEC protected it, with its inner payload type; nil if it had padding, because
  /// FEC protected the padding too.
  fileprivate var protected: [UInt8]? {
    guard wire.paddingLength == 0, bytes.count >= RTPHeader.fixedLength else { return nil }
    var bytes = bytes
    bytes[1] = bytes[1] & 0x80 | codec.payloadType & 0x7f
    return bytes
  }
}

extension ReceiveStream.Packet {
  fileprivate init(
    _ packet: StreamReception.Packet, _ extensions: HeaderExtensionMap, _ arrival: Instant
  ) {
    self.init(
      header: packet.header,
      extensions: HeaderExtensions(
        parsing: packet.bytes.span.bytes, header: packet.header, map: extensions),
      bytes: packet.bytes, arrival: arrival, codec: packet.codec)
  }
}

/// A stream's jitter as its real receiver computes it.
///
/// libwebrtc and aiortc update it once per timestamp, since the packets of a frame are sent
/// together; RFC 3550 section 6.4.1 uses every packet. Values in the receiver's reports correct it.
struct ReceiverJitter {
  /// The longest jump in seconds that counts as jitter; a longer one is a new timestamp base.
  private static let longestJump: Int64 = 5

  private var sixteenths: Int64 = 0
  private var last: (sequence: UInt16, timestamp: UInt32, arrival: Instant)?

  /// The jitter in RTP timestamp units.
  var value: UInt32 { UInt32(clamping: sixteenths >> 4) }

  mutating func receive(_ header: RTPHeader, clockRate: UInt32, arrival: Instant) {
    guard clockRate > 0 else { return }
    let former = last
    if let former, Int16(bitPattern: header.sequence &- former.sequence) <= 0 { return }
    last = (header.sequence, header.timestamp, arrival)
    guard let former, former.timestamp != header.timestamp else { return }
    let passed = (arrival - former.arrival).nanoseconds
    guard passed.magnitude < 1_000_000_000_000 else { return }
    let ticks = passed * Int64(clockRate) / 1_000_000_000
    let difference =
      ticks - Int64(Int32(bitPattern: header.timestamp &- former.timestamp))
    let size = Int64(clamping: difference.magnitude)
    guard size < ReceiverJitter.longestJump * Int64(clockRate) else { return }
    sixteenths += size - ((sixteenths + 8) >> 4)
  }

  /// Forgets the last packet after a restart, because the time since that packet is not jitter.
  mutating func beginAnew() { last = nil }

  /// Continues from the jitter the receiver reported, in timestamp units.
  mutating func correct(_ jitter: UInt32) { sixteenths = Int64(jitter) << 4 }
}

// MARK: - PacketRecovery

/// Recovers lost packets from forward error correction (RFC 5109).
struct PacketRecovery {
  /// The maximum number of media and FEC packets kept, as in libwebrtc.
  private static let mediaMaximum = 192
  private static let correctionsMaximum = 48

  private var media: [UInt16: [UInt8]] = [:]
  /// The media packets' sequence numbers, oldest first.
  private var order: [UInt16] = []
  private var corrections: [ErrorCorrection] = []

  /// Adds a media packet without its RED header, as FEC protected it; returns the lost packets that
  /// can be recovered with it.
  mutating func receive(_ packet: [UInt8], sequence: UInt16, ssrc: UInt32) -> [[UInt8]] {
    guard add(packet, sequence) else { return [] }
    return recover(ssrc)
  }

  /// Adds an FEC packet; returns the lost packets it recovers.
  mutating func receive(_ correction: ErrorCorrection, ssrc: UInt32) -> [[UInt8]] {
    if corrections.count == PacketRecovery.correctionsMaximum { corrections.removeFirst() }
    corrections.append(correction)
    return recover(ssrc)
  }

  private mutating func add(_ packet: [UInt8], _ sequence: UInt16) -> Bool {
    guard media[sequence] == nil else { return false }
    if order.count == PacketRecovery.mediaMaximum { media[order.removeFirst()] = nil }
    media[sequence] = packet
    order.append(sequence)
    return true
  }

  /// Recovers packets repeatedly, until no recovered packet makes another one recoverable.
  private mutating func recover(_ ssrc: UInt32) -> [[UInt8]] {
    var recovered: [[UInt8]] = []
    var hasNews = true
    while hasNews {
      hasNews = false
      var index = 0
      while index < corrections.count {
        switch attempt(corrections[index], ssrc) {
        case .incomplete: index += 1
        case .useless: corrections.remove(at: index)
        case .recovered(let sequence, let packet):
          corrections.remove(at: index)
          guard add(packet, sequence) else { continue }
          recovered.append(packet)
          hasNews = true
        }
      }
    }
    return recovered
  }

  private enum Attempt {
    /// More than one packet is missing.
    case incomplete
    /// No packet is missing, or the result is invalid.
    case useless
    case recovered(UInt16, [UInt8])
  }

  private func attempt(_ correction: ErrorCorrection, _ ssrc: UInt32) -> Attempt {
    var others: [[UInt8]] = []
    var missing: UInt16?
    for sequence in correction.sequences {
      if let bytes = media[sequence] {
        others.append(bytes)
      } else if missing != nil {
        return .incomplete
      } else {
        missing = sequence
      }
    }
    guard let missing, let packet = correction.packet(missing, ssrc: ssrc, from: others) else {
      return .useless
    }
    return .recovered(missing, packet)
  }
}
