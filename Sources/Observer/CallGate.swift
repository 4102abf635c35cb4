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
