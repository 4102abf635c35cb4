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
  private static let lengthMaximum = 4096

  /// A packet that waits for the verdict.
  struct Packet {
    var tuple: FiveTuple
    var bytes: [UInt8]
    var isTruncated: Bool
    var at: Instant
  }

  private struct Candidate {
    var key: PathKey
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

  private var candidates: [Candidate] = []

  /// Looks at a packet of a path without a call.
  mutating func take(_ packet: Packet) -> Verdict {
    // Names and times are asked for and told at these ports.
    let ports = [packet.tuple.source.port, packet.tuple.destination.port]
    guard !ports.contains(53), !ports.contains(5353), !ports.contains(123) else { return .ignored }
    let kind = DatagramClass(packet.bytes.span.bytes)
    guard kind == .rtp || kind == .rtcp else { return .ignored }
    let key = PathKey.of(packet.tuple).key
    var index = candidates.firstIndex { $0.key == key }
    if index == nil {
      if candidates.count == Self.candidatesMaximum { candidates.removeFirst() }
      candidates.append(Candidate(key: key, source: packet.tuple.source))
      index = candidates.count - 1
    }
    guard let index else { return .notYet }
    candidates[index].attempts += 1
    if candidates[index].packets.count < Self.packetsMaximum,
      packet.bytes.count <= Self.lengthMaximum
    {
      candidates[index].packets.append(packet)
    }
    if kind == .rtp, follows(packet, in: &candidates[index]) {
      return .call(candidates.remove(at: index).packets)
    }
    guard candidates[index].attempts < Self.attemptsMaximum else {
      candidates.remove(at: index)
      return .ignored
    }
    return .notYet
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
