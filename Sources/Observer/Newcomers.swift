import DequeModule
import Wire

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
