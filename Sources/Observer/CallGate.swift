import DequeModule
import ICE
package import Wire

/// Keeps packets that belong to no call out of the takes, which store all inputs of an observer;
/// such packets are only counted.
///
/// Packets that may belong to a call wait here, a few per path; once they prove to belong to one,
/// they are admitted with their original times.
package struct CallGate {
  /// A datagram that belongs to a call, as captured.
  package struct Admitted: Sendable {
    package var tuple: FiveTuple
    package var bytes: [UInt8]
    package var isTruncated: Bool
    /// The capture time, which lies in the past if the datagram waited.
    package var at: Instant
    /// The ECN field of the IP header; nil if unknown.
    package var ecn: ECNMark?
  }

  /// The decision on a datagram.
  package enum Verdict: Sendable {
    /// The datagram belongs to a call or may lead to one.
    case admitted
    /// These datagrams belong to a call: earlier ones that waited, and the datagram itself.
    case admittedWith([Admitted])
    /// The decision needs further datagrams, so the datagram waits.
    case waiting
    /// The datagram belongs to no call.
    case refused
  }

  /// The decision on a segment of a TCP connection.
  package struct StreamVerdict: Sendable {
    /// The admitted bytes, including those that waited; nil if there are none.
    package var bytes: [UInt8]?
    /// Descriptions found in unencrypted signaling; the signaling itself is not stored.
    package var descriptions: [String] = []
    /// The reason that the rest of the connection cannot be read, with details; nil as long as it
    /// can be read.
    package var obstacle: (kind: CoverageReport.Kind, detail: String)?
    /// Whether the segment contains nothing that belongs to a call.
    package var isRefused: Bool { bytes == nil && descriptions.isEmpty }
  }

  private static let refusedMaximum = 1 << 16

  private var probation = Probation()
  /// Undecided paths, which may carry TURN channel data or a DTLS association.
  private var channels = PathTrials<ContentEvidence>()
  private var hellos = PathTrials<ClientHelloReader>()
  private var newcomers: Newcomers
  private var connections = TCPConnections()
  /// Paths that seem to belong to no call; later packets may change that.
  private var refused: Set<PathKey> = []

  /// Creates a gate that has seen no packets.
  ///
  /// - Parameter pathsMaximum: the observer's limit of paths; up to an eighth of them may be
  ///   unanswered.
  package init(pathsMaximum: Int = ObserverSettings.usualPathsMaximum) {
    newcomers = Newcomers(unansweredMaximum: max(1, pathsMaximum / 8))
  }

  /// Decides whether a datagram is admitted.
  ///
  /// - Parameters:
  ///   - isKnown: whether the observer knows the path as part of a call.
  ///   - isRelay: whether the observer knows it as a client's path to its TURN server.
  ///   - isFull: whether the observer has reached its limit of paths.
  package mutating func examine(
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
    // The first byte of QUIC packets may be in this range too.
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

  /// Admits a path with its first datagram, unless too many paths are unanswered.
  private mutating func admit(_ packet: Admitted) -> Verdict {
    guard newcomers.admit(packet.tuple, at: packet.at) else {
      newcomers.wait(packet)
      return .waiting
    }
    let waited = probation.release(packet.tuple).map(Admitted.init)
    return waited.isEmpty ? .admitted : .admittedWith(waited + [packet])
  }

  /// Admits a path if its datagram is channel data of a TURN allocation that is not in the capture.
  private mutating func tryChannel(_ packet: Admitted) -> Verdict {
    let bytes = packet.bytes.span.bytes
    return RelayTable.mayBeRelayed(bytes, packet.tuple, isTruncated: packet.isTruncated)
      ? admit(packet) : admit(channels.consider(packet), packet)
  }

  /// Admits a path if its datagrams prove that it belongs to a call, together with all datagrams
  /// that waited.
  ///
  /// If too many paths are unanswered, the datagrams wait again, now for an answer.
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
    switch probation.examine(packet) {
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

  /// Decides which bytes of one direction of a TCP connection are admitted.
  package mutating func examine(_ tuple: FiveTuple, _ bytes: [UInt8], lost: Int, isEnd: Bool)
    -> StreamVerdict
  {
    let before = lost > 0 ? [] : connections.undecidedBytes(tuple)
    let wasFramed = connections.isFramed(tuple)
    let outcome = connections.receive(tuple, bytes, lost: lost, isEnd: isEnd)
    var verdict = StreamVerdict()
    var isFramed = wasFramed || connections.isFramed(tuple)
    for message in outcome.messages {
      switch message {
      case .datagram: isFramed = true
      case .text(let text): verdict.descriptions += DescriptionSearch.descriptions(in: text)
      }
    }
    if isFramed {
      // The observer parses admitted bytes again, and reports problems itself.
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

/// Limits how many paths may be open without a response.
///
/// A check, a ClientHello, a request to a relay, or three packets that look like RTP open a path.
/// Anyone who can reach the captured network can send them from any number of ports. So only a
/// limited number of unanswered paths is admitted at a time; further paths wait here with a few
/// datagrams until they are answered. Captures below the limit are not affected.
struct Newcomers {
  /// The maximum number of unanswered paths, and the time after which an unanswered path no longer
  /// counts.
  private let unansweredMaximum: Int
  private static let patience = Interval.seconds(600)
  /// Limits on waiting paths: their number, datagrams per path, datagram length, and total bytes.
  ///
  /// Several datagrams per path are kept, because those before the answer belong to the call too.
  static let waitingMaximum = 2048
  private static let packetsMaximum = 64
  private static let lengthMaximum = 4096
  private static let bytesMaximum = 32 << 20
  /// The minimum number of unanswered paths at which media counts as a possible answer; with fewer,
  /// tracking media is not worth its cost.
  private static let watchedMinimum = 256

  private struct Unanswered {
    var isFromLow: Bool
    var number: UInt64
  }

  private var unanswered: [PathKey: Unanswered] = [:]
  /// The unanswered paths in order of arrival; may include some that have since been
  /// answered.
  private var order = Deque<(key: PathKey, number: UInt64, at: Instant)>()
  private var begun: UInt64 = 0

  /// Datagrams waiting on a path for an answer.
  private struct Waiting {
    var isFromLow: Bool
    var number: UInt64
    var packets: [CallGate.Admitted]
    var bytes: Int
  }

  private var waitingPaths: [PathKey: Waiting] = [:]
  /// Paths with waiting datagrams, in order of the first one; may include paths that have since
  /// been answered.
  private var waitingOrder = Deque<(key: PathKey, number: UInt64)>()
  private var waitingBytes = 0

  init(unansweredMaximum: Int) { self.unansweredMaximum = unansweredMaximum }

  var unansweredCount: Int { unanswered.count }

  /// Whether media is now tracked as a possible answer.
  var watchesMedia: Bool { unanswered.count >= Self.watchedMinimum }

  /// Counts a datagram on a known path, or one admitted for another reason, as a possible answer.
  mutating func see(_ tuple: FiveTuple) {
    guard !unanswered.isEmpty else { return }
    let (key, isFromLow) = PathKey.of(tuple)
    if let known = unanswered[key], known.isFromLow != isFromLow { unanswered[key] = nil }
  }

  /// Returns whether an unknown path may be admitted; if so, records it.
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

  /// Removes paths that have been unanswered for too long.
  private mutating func expire(_ now: Instant) {
    while let first = order.first {
      let isOld = now - first.at > Self.patience
      guard isOld || unanswered[first.key]?.number != first.number else { return }
      order.removeFirst()
      if unanswered[first.key]?.number == first.number { unanswered[first.key] = nil }
    }
  }

  // MARK: Waiting paths

  /// Holds a datagram until its path is answered; if there is no room, drops the path that has
  /// waited longest.
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

  /// Returns the datagrams waiting on a path that a datagram in the other direction answers.
  mutating func answered(by tuple: FiveTuple) -> [CallGate.Admitted] {
    guard !waitingPaths.isEmpty else { return [] }
    let (key, isFromLow) = PathKey.of(tuple)
    guard let known = waitingPaths[key], known.isFromLow != isFromLow else { return [] }
    forget(key)
    return known.packets
  }
}
