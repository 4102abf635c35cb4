import DequeModule
import ICE
import RTP
import Wire

/// Packets that look like RTP where nothing announced a call: they are of one when a source goes on
/// as RTP does (RFC 3550 appendix A.1).
///
/// Each SSRC of a path has its own verdict, because streams may take turns and both ends send.
/// Packets wait for the verdict, within limits for each path and for all of them, and are then
/// either released to the call or dropped.
struct Probation {
  /// How many packets of a source have to follow each other.
  private static let sequenceMinimum = 3
  /// How far the sequence number may step from one packet of a source to its next.
  private static let stepMaximum: UInt16 = 16
  private static let candidatesMaximum = 512
  /// How many sources of a path are told apart; the one that was silent longest gives way.
  private static let sourcesMaximum = 64
  /// After how many packets without a verdict a path is of no call: four of each source, which is
  /// one more than a source needs.
  private static let attemptsMaximum = 4 * sourcesMaximum
  /// How many packets and bytes of one path wait, and how many bytes of all paths.
  private static let packetsMaximum = attemptsMaximum
  private static let pathBytesMaximum = 512 << 10
  private static let bytesMaximum = 16 << 20
  /// Longer ones than any network carries whole do not wait.
  private static let lengthMaximum = 9216

  /// A packet that waits for the verdict.
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
    /// When it sent last, counted in packets of the path.
    var attempt: Int
  }

  private struct Candidate {
    /// Which of all trials it is.
    var number: UInt64
    var packets: [Packet] = []
    var bytes = 0
    var attempts = 0
    var sources: [Source] = []

    /// Whether a packet may wait with the others of its path.
    func mayHold(_ packet: Packet) -> Bool {
      packets.count < Probation.packetsMaximum && packet.bytes.count <= Probation.lengthMaximum
        && bytes + packet.bytes.count <= Probation.pathBytesMaximum
    }

    /// Whether a packet is the next one of a source that went on often enough.
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
    /// It is a call, with these packets of it.
    case call([Packet])
    case notYet
    /// It is none, or there were too many others.
    case ignored
  }

  private var trials: [PathKey: Candidate] = [:]
  /// In the order in which they began; those that were decided may still stand here.
  private var order = Deque<(key: PathKey, number: UInt64)>()
  private var begun: UInt64 = 0
  /// How many bytes wait on all paths.
  private var bytes = 0

  /// Looks at a packet of a path without a call.
  mutating func take(_ packet: Packet) -> Verdict {
    // Names and times are asked for and told at these ports.
    let ports = [packet.tuple.source.port, packet.tuple.destination.port]
    guard !ports.contains(53), !ports.contains(5353), !ports.contains(123) else { return .ignored }
    let kind = DatagramClass(packet.bytes.span.bytes)
    guard kind == .rtp || kind == .rtcp else { return .ignored }
    let (key, isFromLow) = PathKey.of(packet.tuple)
    // Taken out while it changes, so that its packets are not copied.
    var candidate = trials.removeValue(forKey: key) ?? begin(key)
    bytes -= candidate.bytes
    candidate.attempts += 1
    let isCall = kind == .rtp && candidate.follows(packet, isFromLow)
    // The packet that shows the call is of it, whatever its length: it need not wait.
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

  /// Returns the packets that wait on a path, which turned out to be of a call by other means.
  mutating func release(_ tuple: FiveTuple) -> [Packet] {
    guard !trials.isEmpty, let candidate = trials.removeValue(forKey: PathKey.of(tuple).key) else {
      return []
    }
    bytes -= candidate.bytes
    return candidate.packets
  }

  /// Starts a trial for a path; drops the oldest trial when there are too many.
  private mutating func begin(_ key: PathKey) -> Candidate {
    while trials.count >= Self.candidatesMaximum, dropOldest() {}
    begun += 1
    order.append((key, begun))
    if order.count > 4 * Self.candidatesMaximum {
      order.removeAll { $0.number != begun && trials[$0.key]?.number != $0.number }
    }
    return Candidate(number: begun)
  }

  /// Ends the trial that began first; false when there is none.
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

/// What waits on paths that nothing announced until it shows what they are: few datagrams of few
/// paths, of which the oldest gives way.
struct PathTrials<State> {
  /// What became of a datagram.
  enum Verdict {
    /// The path is one of a call, with these datagrams.
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
  /// Longer ones than any network carries whole do not wait.
  private static var lengthMaximum: Int { 9216 }

  private var trials: [PathKey: Trial] = [:]
  /// In the order in which they began; those that are over may still stand here.
  private var order = Deque<(key: PathKey, number: UInt64)>()
  private var begun: UInt64 = 0

  /// Looks at a datagram.
  ///
  /// - Parameter judge: whether the path is of a call now; nil while that is open.
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
  /// Looks at a datagram that begins a DTLS association: it is one of a call when the client offers
  /// SRTP.
  mutating func consider(_ packet: CallGate.Admitted) -> Verdict {
    judge(packet, ClientHelloReader()) { $0.offersSRTP(packet.bytes.span.bytes) }
  }
}

extension PathTrials<ContentEvidence> {
  /// Looks at a datagram that may be channel data, where no port tells: it is when its contents are
  /// those of a call.
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

/// How sure it is that contents are what the ends of a call send, where nothing but their bytes
/// tells.
///
/// What agrees counts in bits: a magic cookie has 32 of them, a version two. Contents of a frame
/// that somebody only takes for one agree by chance now and then, and hardly several times.
struct ContentEvidence {
  private static let enough = 40
  /// The sources that are compared.
  private static let sourcesMaximum = 16

  private var bits = 0
  /// The sources of RTP, each with its last sequence number.
  private var sources: [(ssrc: UInt32, sequence: UInt16)] = []

  /// Whether it is hardly chance any more.
  var isEnough: Bool { bits >= Self.enough }

  /// Counts a content; false for one of no protocol that ends of a call speak (RFC 7983).
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
    // The short headers of 1.3 say too little to count (RFC 9147 section 4).
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
