import DequeModule
import ICE
package import Wire

/// Keeps what belongs to no call away from an observer whose inputs are stored: what lets nothing
/// of a call through is counted, and never kept.
///
/// Packets that may become a call wait here, few of each path; when they show to be one, they go on
/// with the times at which they came.
package struct CallGate {
  /// A datagram that goes on.
  package struct Admitted: Sendable {
    package var tuple: FiveTuple
    package var bytes: [UInt8]
    package var isTruncated: Bool
    /// When it came, which was earlier than now when it waited.
    package var at: Instant
    /// What its IP header said of congestion; nil where that is not known.
    package var ecn: ECNMark?
  }

  /// What becomes of a datagram.
  package enum Verdict: Sendable {
    /// It belongs to a call or may lead to one.
    case admitted
    /// It was one of these, which showed together to be of a call.
    case admittedWith([Admitted])
    /// It waits for what follows it.
    case waiting
    /// It is of no call.
    case refused
  }

  /// What a part of a TCP connection brings.
  package struct StreamVerdict: Sendable {
    /// The bytes that go on, with those that waited; nil for none.
    package var bytes: [UInt8]?
    /// Descriptions that stand in signaling in the clear, which itself is not kept.
    package var descriptions: [String] = []
    /// What keeps the rest of the connection from being read, and more in words.
    package var obstacle: (kind: CoverageReport.Kind, detail: String)?
    /// Whether nothing was in it for a call.
    package var isRefused: Bool { bytes == nil && descriptions.isEmpty }
  }

  private static let refusedMaximum = 1 << 16

  private var probation = Probation()
  /// Paths that may be those of a relay, or of a DTLS association that is a call's.
  private var channels = PathTrials<ContentEvidence>()
  private var hellos = PathTrials<ClientHelloReader>()
  private var newcomers: Newcomers
  private var connections = TCPConnections()
  /// Paths that were found to be of no call; they may still become one.
  private var refused: Set<PathKey> = []

  /// - Parameter pathsMaximum: how many paths the observer tells apart; an eighth of them may be
  ///   known without an answer.
  package init(pathsMaximum: Int = ObserverSettings.usualPathsMaximum) {
    newcomers = Newcomers(unansweredMaximum: max(1, pathsMaximum / 8))
  }

  /// Looks at a datagram.
  ///
  /// - Parameters:
  ///   - isKnown: whether the observer knows the path as that of a call.
  ///   - isRelay: whether the observer knows it as that of a client to its TURN server.
  ///   - isFull: whether the observer tells no further paths apart.
  package mutating func take(
    _ tuple: FiveTuple, _ bytes: [UInt8], isTruncated: Bool, at: Instant, ecn: ECNMark? = nil,
    isKnown: Bool, isRelay: Bool, isFull: Bool = false
  ) -> Verdict {
    let kind = DatagramClass(bytes.span.bytes)
    if isKnown || isRelay {
      let isChannelData = isRelay && ChannelData.readAny(bytes.span.bytes) != nil
      guard kind != .other || isChannelData else { return .refused }
      let isMedia = kind == .rtp || kind == .rtcp
      if !isMedia || newcomers.watchesMedia { newcomers.see(tuple) }
      return .admitted
    }
    guard !isFull else { return .refused }
    let packet = Admitted(tuple: tuple, bytes: bytes, isTruncated: isTruncated, at: at, ecn: ecn)
    if kind != .other {
      let waited = newcomers.answered(by: tuple)
      if !waited.isEmpty { return .admittedWith(waited + [packet]) }
    }
    switch kind {
    case .other: return .refused
    // QUIC begins with such bytes too.
    case .channelData: return tryChannel(packet)
    case .stun:
      let isMessage = bytes.count >= 20 && bytes.span.bytes.uint32(at: 4) == STUNMessage.magicCookie
      return isMessage ? admit(packet) : .refused
    case .dtls:
      guard Observer.beginsAssociation(bytes), !isTruncated else { return .refused }
      return admit(hellos.consider(packet), packet)
    case .rtp, .rtcp: return tryOut(packet)
    }
  }

  /// Lets a path in with its first datagram, unless too many are known that nobody answered.
  private mutating func admit(_ packet: Admitted) -> Verdict {
    guard newcomers.admit(packet.tuple, at: packet.at) else {
      newcomers.wait(packet)
      return .waiting
    }
    let waited = probation.release(packet.tuple).map(Admitted.init)
    return waited.isEmpty ? .admitted : .admittedWith(waited + [packet])
  }

  /// Lets a path of a relay in whose allocation was not seen.
  private mutating func tryChannel(_ packet: Admitted) -> Verdict {
    let bytes = packet.bytes.span.bytes
    return RelayTable.mayBeRelayed(bytes, packet.tuple, isTruncated: packet.isTruncated)
      ? admit(packet) : admit(channels.consider(packet), packet)
  }

  /// Lets a path in that showed what it is, with all that waited for that.
  private mutating func admit<State>(
    _ verdict: PathTrials<State>.Verdict, _ packet: Admitted
  ) -> Verdict {
    switch verdict {
    case .none: return .refused
    case .notYet: return .waiting
    case .call(let packets):
      if newcomers.admit(packet.tuple, at: packet.at) { return .admittedWith(packets) }
      for packet in packets { newcomers.wait(packet) }
      return .waiting
    }
  }

  private mutating func tryOut(_ packet: Admitted) -> Verdict {
    let key = PathKey.of(packet.tuple).key
    guard !refused.contains(key) else { return .refused }
    let packet = Probation.Packet(
      tuple: packet.tuple, bytes: packet.bytes, isTruncated: packet.isTruncated, at: packet.at,
      ecn: packet.ecn)
    switch probation.take(packet) {
    case .notYet: return .waiting
    case .ignored:
      if refused.count >= Self.refusedMaximum { refused = [] }
      refused.insert(key)
      return .refused
    case .call(let packets):
      let admitted = packets.map(Admitted.init)
      if newcomers.admit(packet.tuple, at: packet.at) { return .admittedWith(admitted) }
      for packet in admitted { newcomers.wait(packet) }
      return .waiting
    }
  }

  /// Looks at what one side of a TCP connection sent next.
  package mutating func take(_ tuple: FiveTuple, _ bytes: [UInt8], lost: Int, isEnd: Bool)
    -> StreamVerdict
  {
    let before = lost > 0 ? [] : connections.undecidedBytes(tuple)
    let wasFramed = connections.isFramed(tuple)
    let outcome = connections.take(tuple, bytes, lost: lost, isEnd: isEnd)
    var verdict = StreamVerdict()
    var isFramed = wasFramed || connections.isFramed(tuple)
    for message in outcome.messages {
      switch message {
      case .datagram: isFramed = true
      case .text(let text): verdict.descriptions += DescriptionSearch.descriptions(in: text)
      }
    }
    if isFramed {
      // The observer finds out itself what is wrong with these.
      verdict.bytes = wasFramed ? bytes : before + bytes
    } else {
      verdict.obstacle = outcome.obstacle.map { ($0, outcome.detail) }
    }
    return verdict
  }
}

extension CallGate.Admitted {
  fileprivate init(_ packet: Probation.Packet) {
    self.init(
      tuple: packet.tuple, bytes: packet.bytes, isTruncated: packet.isTruncated, at: packet.at,
      ecn: packet.ecn)
  }
}

// MARK: - Newcomers

/// Paths that a single datagram opens, as long as nothing shows that somebody is at the other end.
///
/// A check, a ClientHello, a request to a relay, or three packets that look like RTP make a path
/// known to the observer, and whoever can send to the captured network can send them from as many
/// ports as there are. So only so many paths are let in unanswered at a time; what comes beyond
/// waits here, few of it, and goes on when its path is answered. A capture with fewer such paths is
/// read as if this were not here.
struct Newcomers {
  /// How many paths may be known without an answer, and for how long each of them counts.
  private let unansweredMaximum: Int
  private static let patience = Interval.seconds(600)
  /// On how many paths datagrams wait, how many on each, how long they may be, and how many bytes
  /// wait on all paths: what was before an answer belongs to the call as what follows it.
  static let waitingMaximum = 2048
  private static let packetsMaximum = 64
  private static let lengthMaximum = 4096
  private static let bytesMaximum = 32 << 20
  /// From how many unanswered paths on it is looked for media that answers them: before, it is not
  /// worth the while.
  private static let watchedMinimum = 256

  private struct Unanswered {
    var isFromLow: Bool
    var number: UInt64
  }

  private var unanswered: [PathKey: Unanswered] = [:]
  /// In the order in which they came; those that were answered may still stand here.
  private var order = Deque<(key: PathKey, number: UInt64, at: Instant)>()
  private var begun: UInt64 = 0

  /// What waits on a path for an answer.
  private struct Waiting {
    var isFromLow: Bool
    var number: UInt64
    var packets: [CallGate.Admitted]
    var bytes: Int
  }

  private var waitingPaths: [PathKey: Waiting] = [:]
  /// The paths on which something waits, in the order in which that began; those that were answered
  /// may still stand here.
  private var waitingOrder = Deque<(key: PathKey, number: UInt64)>()
  private var waitingBytes = 0

  init(unansweredMaximum: Int) { self.unansweredMaximum = unansweredMaximum }

  /// How many paths are known without an answer.
  var unansweredCount: Int { unanswered.count }

  /// Whether it matters now that media goes both ways on a path.
  var watchesMedia: Bool { unanswered.count >= Self.watchedMinimum }

  /// Records a datagram on a path that is known already or was admitted for another reason.
  mutating func see(_ tuple: FiveTuple) {
    guard !unanswered.isEmpty else { return }
    let (key, isFromLow) = PathKey.of(tuple)
    if let known = unanswered[key], known.isFromLow != isFromLow { unanswered[key] = nil }
  }

  /// Whether a path that nobody knows may be let in; takes note of it if so.
  mutating func admit(_ tuple: FiveTuple, at now: Instant) -> Bool {
    let (key, isFromLow) = PathKey.of(tuple)
    if let known = unanswered[key] {
      if known.isFromLow != isFromLow { unanswered[key] = nil }
      return true
    }
    expire(now)
    guard unanswered.count < unansweredMaximum else { return false }
    begun += 1
    unanswered[key] = Unanswered(isFromLow: isFromLow, number: begun)
    order.append((key, begun, now))
    if order.count > 4 * unansweredMaximum {
      order.removeAll { unanswered[$0.key]?.number != $0.number }
    }
    return true
  }

  /// Lets those that were there for long make room for others.
  private mutating func expire(_ now: Instant) {
    while let first = order.first {
      let isOld = now - first.at > Self.patience
      guard isOld || unanswered[first.key]?.number != first.number else { return }
      order.removeFirst()
      if unanswered[first.key]?.number == first.number { unanswered[first.key] = nil }
    }
  }

  // MARK: What waits

  /// Lets a datagram wait for an answer; the path that waits longest gives way.
  mutating func wait(_ packet: CallGate.Admitted) {
    guard packet.bytes.count <= Self.lengthMaximum else { return }
    let (key, isFromLow) = PathKey.of(packet.tuple)
    if let known = waitingPaths[key] {
      guard known.packets.count < Self.packetsMaximum else { return }
      waitingPaths[key]?.packets.append(packet)
      waitingPaths[key]?.bytes += packet.bytes.count
    } else {
      begun += 1
      waitingPaths[key] = Waiting(
        isFromLow: isFromLow, number: begun, packets: [packet], bytes: packet.bytes.count)
      waitingOrder.append((key, begun))
    }
    waitingBytes += packet.bytes.count
    while waitingOrder.count > Self.waitingMaximum || waitingBytes > Self.bytesMaximum,
      let oldest = waitingOrder.popFirst()
    {
      if waitingPaths[oldest.key]?.number == oldest.number { forget(oldest.key) }
    }
  }

  private mutating func forget(_ key: PathKey) {
    if let gone = waitingPaths.removeValue(forKey: key) { waitingBytes -= gone.bytes }
  }

  /// The datagrams that wait on the path of one that comes the other way: it answers them.
  mutating func answered(by tuple: FiveTuple) -> [CallGate.Admitted] {
    guard !waitingPaths.isEmpty else { return [] }
    let (key, isFromLow) = PathKey.of(tuple)
    guard let known = waitingPaths[key], known.isFromLow != isFromLow else { return [] }
    forget(key)
    return known.packets
  }
}
