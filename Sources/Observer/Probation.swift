import DequeModule
import RTP
import Wire

/// Packets that look like RTP where nothing announced a call: they are of one when they go on as
/// RTP does (RFC 3550 appendix A.1).
struct Probation {
  /// How many packets of a source have to follow each other.
  private static let sequenceMinimum = 3
  private static let candidatesMaximum = 512
  private static let packetsMaximum = 16
  private static let attemptsMaximum = 64
  /// Longer ones than any network carries whole do not wait.
  private static let lengthMaximum = 9216

  /// A packet that waits for the verdict.
  struct Packet {
    var tuple: FiveTuple
    var bytes: [UInt8]
    var isTruncated: Bool
    var at: Instant
  }

  private struct Candidate {
    /// Which of all trials it is.
    var number: UInt64
    var packets: [Packet] = []
    var attempts = 0
    var ssrc: UInt32 = 0
    var source: SocketAddress
    var sequence: UInt16 = 0
    var run = 0
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

  /// Looks at a packet of a path without a call.
  mutating func take(_ packet: Packet) -> Verdict {
    // Names and times are asked for and told at these ports.
    let ports = [packet.tuple.source.port, packet.tuple.destination.port]
    guard !ports.contains(53), !ports.contains(5353), !ports.contains(123) else { return .ignored }
    let kind = DatagramClass(packet.bytes.span.bytes)
    guard kind == .rtp || kind == .rtcp else { return .ignored }
    let key = PathKey.of(packet.tuple).key
    // Taken out while it changes, so that its packets are not copied.
    var candidate = trials.removeValue(forKey: key) ?? begin(key, packet.tuple.source)
    candidate.attempts += 1
    let isCall = kind == .rtp && follows(packet, in: &candidate)
    // The packet that shows the call is of it, whatever its length: it need not wait.
    if isCall
      || candidate.packets.count < Self.packetsMaximum && packet.bytes.count <= Self.lengthMaximum
    {
      candidate.packets.append(packet)
    }
    if isCall { return .call(candidate.packets) }
    guard candidate.attempts < Self.attemptsMaximum else { return .ignored }
    trials[key] = candidate
    return .notYet
  }

  /// Starts a trial for a path; drops the oldest trial when there are too many.
  private mutating func begin(_ key: PathKey, _ source: SocketAddress) -> Candidate {
    while trials.count >= Self.candidatesMaximum, let oldest = order.popFirst() {
      if trials[oldest.key]?.number == oldest.number { trials[oldest.key] = nil }
    }
    begun += 1
    order.append((key, begun))
    if order.count > 4 * Self.candidatesMaximum {
      order.removeAll { $0.number != begun && trials[$0.key]?.number != $0.number }
    }
    return Candidate(number: begun, source: source)
  }

  private func follows(_ packet: Packet, in candidate: inout Candidate) -> Bool {
    let bytes = packet.bytes.span.bytes
    guard let header = try? RTPHeader(parsing: bytes, isProtected: true) else {
      candidate.run = 0
      return false
    }
    let step = header.sequence &- candidate.sequence
    let isNext =
      candidate.run > 0 && header.ssrc == candidate.ssrc && packet.tuple.source == candidate.source
      && (1...16).contains(step)
    // The other direction does not disturb.
    if candidate.run > 0, packet.tuple.source != candidate.source { return false }
    candidate.run = isNext ? candidate.run + 1 : 1
    candidate.ssrc = header.ssrc
    candidate.source = packet.tuple.source
    candidate.sequence = header.sequence
    return candidate.run >= Self.sequenceMinimum
  }
}
