import DequeModule
import ICE
import RTP
import Wire

/// Holds packets that look like RTP of an unannounced call, until one source's packets are
/// consecutive, as in RTP (RFC 3550 appendix A.1).
///
/// Each SSRC on a path is judged separately, because streams may alternate and both ends send.
/// Packets wait for the verdict, within limits per path and in total, and are then released to the
/// call or dropped.
struct Probation {
  /// The number of consecutive packets that a source needs.
  private static let sequenceMinimum = 3
  /// The maximum sequence number step between two packets of a source.
  private static let stepMaximum: UInt16 = 16
  private static let candidatesMaximum = 512
  /// The maximum number of sources per path; the source that has been silent longest is dropped.
  private static let sourcesMaximum = 64
  /// The number of packets without a verdict after which a path is not a call: four per source, one
  /// more than a source needs.
  private static let attemptsMaximum = 4 * sourcesMaximum
  /// Limits on waiting packets: number and bytes per path, and bytes in total.
  private static let packetsMaximum = attemptsMaximum
  private static let pathBytesMaximum = 512 << 10
  private static let bytesMaximum = 16 << 20
  /// The maximum length of a waiting packet, in bytes; networks would fragment longer ones.
  private static let lengthMaximum = 9216

  /// A packet waiting for the verdict.
  struct Packet {
    var tuple: FiveTuple
    var bytes: [UInt8]
    var isTruncated: Bool
    var at: Instant
    var ecn: ECNMark?
  }

  private struct Source {
    var isFromLow: Bool
    var ssrc: UInt32
    var sequence: UInt16
    var run = 1
    /// The path's packet count when the source's last packet arrived.
    var attempt: Int
  }

  private struct Candidate {
    /// Distinguishes the trial from earlier ones on the same path.
    var number: UInt64
    var packets: [Packet] = []
    var bytes = 0
    var attempts = 0
    var sources: [Source] = []

    /// Returns whether a packet may wait with the others on its path.
    func mayHold(_ packet: Packet) -> Bool {
      packets.count < Probation.packetsMaximum && packet.bytes.count <= Probation.lengthMaximum
        && bytes + packet.bytes.count <= Probation.pathBytesMaximum
    }

    /// Records a packet; returns whether its source has continued often enough.
    mutating func follows(_ packet: Packet, _ isFromLow: Bool) -> Bool {
      guard let header = try? RTPHeader(parsing: packet.bytes.span.bytes, isProtected: true) else {
        return false
      }
      let known = sources.firstIndex { $0.ssrc == header.ssrc && $0.isFromLow == isFromLow }
      guard let known else {
        if sources.count >= Probation.sourcesMaximum,
          let silent = sources.indices.min(by: { sources[$0].attempt < sources[$1].attempt })
        {
          sources.remove(at: silent)
        }
        sources.append(
          Source(
            isFromLow: isFromLow, ssrc: header.ssrc, sequence: header.sequence, attempt: attempts))
        return false
      }
      let step = header.sequence &- sources[known].sequence
      let isNext = (1...Probation.stepMaximum).contains(step)
      sources[known].run = isNext ? sources[known].run + 1 : 1
      sources[known].sequence = header.sequence
      sources[known].attempt = attempts
      return sources[known].run >= Probation.sequenceMinimum
    }
  }

  enum Verdict {
    case call([Packet])
    case notYet
    /// The packet is not RTP or RTCP, or its path is not proved to be a call after the maximum
    /// number of packets.
    case ignored
  }

  private var trials: [PathKey: Candidate] = [:]
  /// Paths in order of their first packets; may include paths that are already decided.
  private var order = Deque<(key: PathKey, number: UInt64)>()
  private var begun: UInt64 = 0
  /// The bytes waiting on all paths.
  private var bytes = 0

  mutating func examine(_ packet: Packet) -> Verdict {
    // Traffic of DNS, mDNS and NTP is never a call.
    let ports = [packet.tuple.source.port, packet.tuple.destination.port]
    guard !ports.contains(53), !ports.contains(5353), !ports.contains(123) else { return .ignored }
    let kind = DatagramClass(packet.bytes.span.bytes)
    guard kind == .rtp || kind == .rtcp else { return .ignored }
    let (key, isFromLow) = PathKey.of(packet.tuple)
    // The trial is removed while it changes, so that its packets are not copied.
    var candidate = trials.removeValue(forKey: key) ?? begin(key)
    bytes -= candidate.bytes
    candidate.attempts += 1
    let isCall = kind == .rtp && candidate.follows(packet, isFromLow)
    // The packet that proves the call need not wait, so no limit applies to it.
    if isCall || candidate.mayHold(packet) {
      candidate.packets.append(packet)
      candidate.bytes += packet.bytes.count
    }
    if isCall { return .call(candidate.packets) }
    guard candidate.attempts < Self.attemptsMaximum else { return .ignored }
    bytes += candidate.bytes
    trials[key] = candidate
    while bytes > Self.bytesMaximum, dropOldest() {}
    return .notYet
  }

  /// Returns the packets waiting on a path that something else proved to be a call.
  mutating func release(_ tuple: FiveTuple) -> [Packet] {
    guard !trials.isEmpty, let candidate = trials.removeValue(forKey: PathKey.of(tuple).key) else {
      return []
    }
    bytes -= candidate.bytes
    return candidate.packets
  }

  /// Starts a path's trial; drops the oldest trials if there are too many.
  private mutating func begin(_ key: PathKey) -> Candidate {
    while trials.count >= Self.candidatesMaximum, dropOldest() {}
    begun += 1
    order.append((key, begun))
    if order.count > 4 * Self.candidatesMaximum {
      order.removeAll { $0.number != begun && trials[$0.key]?.number != $0.number }
    }
    return Candidate(number: begun)
  }

  /// Ends the oldest trial; returns false if there is none.
  private mutating func dropOldest() -> Bool {
    guard let oldest = order.popFirst() else { return false }
    if let trial = trials[oldest.key], trial.number == oldest.number {
      bytes -= trial.bytes
      trials[oldest.key] = nil
    }
    return true
  }
}

// MARK: - PathTrials

/// Holds packets on unannounced paths until they are identified.
///
/// It keeps a few datagrams on each of a few paths, and drops the oldest path if there are too
/// many.
struct PathTrials<State> {
  enum Verdict {
    /// The path belongs to a call, with these datagrams.
    case call([CallGate.Admitted])
    case notYet
    case none
  }

  private struct Trial {
    var number: UInt64
    var state: State
    var packets: [CallGate.Admitted] = []
  }

  private static var trialsMaximum: Int { 256 }
  private static var packetsMaximum: Int { 16 }
  /// The maximum length of a waiting packet, in bytes; networks would fragment longer ones.
  private static var lengthMaximum: Int { 9216 }

  private var trials: [PathKey: Trial] = [:]
  /// Paths in order of their first packets; may include paths that are already decided.
  private var order = Deque<(key: PathKey, number: UInt64)>()
  private var begun: UInt64 = 0

  /// Examines a datagram, and returns all of its path's datagrams once they prove to belong to a
  /// call.
  ///
  /// - Parameter judge: returns whether the path belongs to a call; nil if undecided.
  mutating func judge(
    _ packet: CallGate.Admitted, _ initial: @autoclosure () -> State,
    by judge: (inout State) -> Bool?
  ) -> Verdict {
    let key = PathKey.of(packet.tuple).key
    var trial = trials.removeValue(forKey: key) ?? begin(key, initial())
    let isCall = judge(&trial.state)
    if isCall == false { return .none }
    if isCall == true || packet.bytes.count <= Self.lengthMaximum { trial.packets.append(packet) }
    if isCall == true { return .call(trial.packets) }
    guard trial.packets.count < Self.packetsMaximum else { return .none }
    trials[key] = trial
    return .notYet
  }

  private mutating func begin(_ key: PathKey, _ state: State) -> Trial {
    while trials.count >= Self.trialsMaximum, let oldest = order.popFirst() {
      if trials[oldest.key]?.number == oldest.number { trials[oldest.key] = nil }
    }
    begun += 1
    order.append((key, begun))
    if order.count > 4 * Self.trialsMaximum {
      order.removeAll { $0.number != begun && trials[$0.key]?.number != $0.number }
    }
    return Trial(number: begun, state: state)
  }
}

extension PathTrials<ClientHelloReader> {
  /// Examines a datagram that begins a DTLS association, which belongs to a call if the client
  /// offers SRTP.
  mutating func consider(_ packet: CallGate.Admitted) -> Verdict {
    judge(packet, ClientHelloReader()) { $0.offersSRTP(packet.bytes.span.bytes) }
  }
}

extension PathTrials<ContentEvidence> {
  /// Examines possible channel data on an unknown port: its contents must belong to a call.
  mutating func consider(_ packet: CallGate.Admitted) -> Verdict {
    let bytes = packet.bytes.span.bytes
    guard let (_, data) = ChannelData.readAny(bytes, isTruncated: packet.isTruncated) else {
      return .none
    }
    return judge(packet, ContentEvidence()) { evidence in
      guard evidence.add(bytes.extracting(data)) else { return false }
      return evidence.isEnough ? true : nil
    }
  }
}

// MARK: - ContentEvidence

/// Measures, from the bytes alone, how certain it is that contents belong to a call.
///
/// Each match adds roughly the number of bits that it compares: 48 for a STUN message, 20 for the
/// next packet of an RTP source. A misinterpreted frame may match by chance once, but hardly
/// several times.
struct ContentEvidence {
  private static let enough = 40
  private static let sourcesMaximum = 16

  private var bits = 0
  /// The RTP sources with their last sequence numbers.
  private var sources: [(ssrc: UInt32, sequence: UInt16)] = []

  /// Whether a coincidence is very unlikely.
  var isEnough: Bool { bits >= Self.enough }

  /// Judges contents; returns false if they belong to no protocol of calls (RFC 7983).
  mutating func add(_ bytes: RawSpan) -> Bool {
    switch DatagramClass(bytes) {
    case .stun: return addSTUN(bytes)
    case .dtls: return addDTLS(bytes)
    case .rtp: return addRTP(bytes)
    case .rtcp: return addRTCP(bytes)
    case .channelData, .other: return false
    }
  }

  private mutating func addSTUN(_ bytes: RawSpan) -> Bool {
    guard bytes.byteCount >= STUNMessage.headerLength,
      bytes.uint32(at: 4) == STUNMessage.magicCookie,
      Int(bytes.uint16(at: 2)) + STUNMessage.headerLength == bytes.byteCount
    else { return false }
    bits += 48
    return true
  }

  private mutating func addDTLS(_ bytes: RawSpan) -> Bool {
    // DTLS 1.3's short headers have too few fixed bits to count as evidence (RFC 9147 section 4).
    guard bytes.byte(at: 0) < 32 else { return bytes.byteCount >= 17 }
    guard bytes.byteCount >= 13, bytes.byte(at: 1) == 0xfe, bytes.byte(at: 2) >= 0xfc,
      13 + Int(bytes.uint16(at: 11)) <= bytes.byteCount
    else { return false }
    bits += 16
    return true
  }

  private mutating func addRTP(_ bytes: RawSpan) -> Bool {
    guard bytes.byteCount >= 12 else { return false }
    let (sequence, ssrc) = (bytes.uint16(at: 2), bytes.uint32(at: 8))
    guard let known = sources.firstIndex(where: { $0.ssrc == ssrc }) else {
      if sources.count >= Self.sourcesMaximum { sources.removeFirst() }
      sources.append((ssrc, sequence))
      return true
    }
    if (1...16).contains(sequence &- sources[known].sequence) { bits += 20 }
    sources[known].sequence = sequence
    return true
  }

  private mutating func addRTCP(_ bytes: RawSpan) -> Bool {
    guard bytes.byteCount >= 8, (200...207).contains(bytes.byte(at: 1)),
      4 * (Int(bytes.uint16(at: 2)) + 1) <= bytes.byteCount
    else { return false }
    bits += 12
    return true
  }
}
