import Export
import FoundationEssentials
import Peer
import Replay
import Tape
import Wire

/// Writes a take as a capture: what was on the wire with the secrets that open it, and beside it
/// what it was in the clear.
///
/// The packets in the clear stand on ports of their own (`ClearPorts`), so that a reader does not
/// take them for repetitions of those on the wire. A short exchange of SIP heads each stream, so
/// that it knows RTP and codecs without settings.
final class PcapngExport {
  private let head: CaptureHead
  private let file: PcapngFile
  private let replay: FollowedReplay
  /// How far each side of a TCP connection is.
  private var sequences: [[SocketAddress]: UInt32] = [:]
  private var ports = ClearPorts()
  private var sessions: Set<[SocketAddress]> = []
  private var failure: (any Error)?
  private var packets = 0

  /// - Parameter only: the number of the endpoint whose packets are wanted; nil for all.
  init(take: String, only: Int64?, to path: String, _ present: WholeFile.Present)
    throws
  {
    head = try reading { () throws(TapeError) in try CaptureHead(take) }
    replay = try reading { () throws(TapeError) in try FollowedReplay(take: take, only: only) }
    if let only, !replay.endpoints.contains(only) {
      throw CommandFailure(
        .usage, "\(take): --peer \(only): there is no such peer that Retake itself was")
    }
    file = try PcapngFile(path, present, comments: head.comments, secrets: head.secrets)
  }

  /// Replays the take to its end or to the first difference.
  func run() throws -> (report: ReplayReport, counts: [Int]) {
    let progress = Progress("exporting packets")
    defer { progress.clear() }
    let report = try reading { () throws(TapeError) in
      try replay.run(
        progress: { at, _ in progress.show("exporting packets: \(Int(at.seconds)) s") }, note)
    }
    if let failure { throw failure }
    // Without packets there is no file.
    if packets > 0 { try file.finish() }
    return (report, file.counts)
  }

  // MARK: Packets

  private func note(
    _ sight: FollowedReplay.Sight, _ source: SocketAddress, _ destination: SocketAddress,
    _ at: Instant
  ) {
    switch sight {
    case .datagram(let bytes, let isTruncated):
      wire(source, destination, bytes, isTruncated: isTruncated, at)
    case .clear(_, .sctp): break
    case .clear(let bytes, let kind):
      guard bytes.count >= 12 || kind == .rtcp else { break }
      let ssrc = kind == .rtp ? bytes.span.bytes.uint32(at: 8) : nil
      let ends = ports.ends(from: source, to: destination, ssrc: ssrc)
      clear(ends.source, ends.destination, bytes, at)
    case .segment(let bytes, let lost, let isEnd):
      connection(source, destination, bytes, lost: lost, isEnd: isEnd, at)
    }
  }

  private func wire(
    _ source: SocketAddress, _ destination: SocketAddress, _ bytes: [UInt8], isTruncated: Bool,
    _ at: Instant
  ) {
    // What was cut off was a byte or more.
    put(source, destination, bytes + (isTruncated ? [0] : []), cut: isTruncated ? 1 : 0, .wire, at)
  }

  /// What a side of a TCP connection sent, in segments whose numbers follow each other.
  private func connection(
    _ source: SocketAddress, _ destination: SocketAddress, _ bytes: [UInt8], lost: Int,
    isEnd: Bool, _ at: Instant
  ) {
    guard source.ip.isIPv4 == destination.ip.isIPv4 else { return }
    var sequence =
      (sequences[[source, destination]] ?? 1) &+ UInt32(truncatingIfNeeded: lost)
    var rest = bytes[...]
    repeat {
      let part = rest.prefix(IPPacket.segmentMaximum)
      rest = rest.dropFirst(part.count)
      append(
        IPPacket.segment(
          from: source, to: destination, payload: part, sequence: sequence,
          isEnd: isEnd && rest.isEmpty, identification: identification),
        cut: 0, .wire, at)
      sequence &+= UInt32(part.count)
    } while !rest.isEmpty
    sequences[[source, destination]] = sequence
  }

  private func clear(
    _ source: SocketAddress, _ destination: SocketAddress, _ bytes: [UInt8], _ at: Instant
  ) {
    if !sessions.contains([source, destination]) {
      sessions.formUnion([[source, destination], [destination, source]])
      let session = ClearSession(
        source: source, destination: destination, formats: head.formats,
        number: sessions.count / 2)
      for message in session.messages where !head.formats.isEmpty {
        put(message.from, message.to, Array(message.text.utf8), .clear, at)
      }
    }
    put(source, destination, bytes, .clear, at)
  }

  private func put(
    _ source: SocketAddress, _ destination: SocketAddress, _ bytes: [UInt8], cut: Int = 0,
    _ interface: PcapngFile.Interface, _ at: Instant
  ) {
    guard bytes.count <= IPPacket.payloadMaximum, source.ip.isIPv4 == destination.ip.isIPv4 else {
      return
    }
    append(
      IPPacket.datagram(
        from: source, to: destination, payload: bytes, identification: identification),
      cut: cut, interface, at)
  }

  private var identification: UInt16 { UInt16(truncatingIfNeeded: packets) }

  private func append(
    _ packet: [UInt8], cut: Int, _ interface: PcapngFile.Interface, _ at: Instant
  ) {
    guard failure == nil else { return }
    packets += 1
    do {
      try file.append(
        Array(packet.dropLast(cut)), length: packet.count, to: interface,
        unixNanoseconds: head.startUnixNanoseconds +| at.nanoseconds)
    } catch {
      failure = error
    }
  }
}
