import Export
import FoundationEssentials
import Peer
import Replay
import Tape
import Wire

/// Writes a take as a capture: the packets on the wire with their secrets, and the same packets
/// decrypted.
///
/// Decrypted packets use separate ports (`ClearPorts`), so that readers do not mistake them for
/// retransmissions. A short SIP exchange precedes each stream, so that readers recognize RTP and
/// its codecs without configuration.
final class PcapngExport {
  private let head: CaptureHead
  private let file: PcapngFile
  private let replay: FollowedReplay
  private var connections = TCPSegments()
  private var ports = ClearPorts()
  private var sessions: Set<[SocketAddress]> = []
  private var failure: (any Error)?
  private var packets = 0

  /// - Parameter only: the peer to export; nil for all.
  init(take: String, only: Int64?, to path: String, _ present: WholeFile.Present)
    throws
  {
    head = try reading { () throws(TapeError) in try CaptureHead(take) }
    replay = try reading { () throws(TapeError) in try FollowedReplay(take: take, only: only) }
    if let only, !replay.endpoints.contains(only) {
      throw CommandFailure(
        .usage, "\(take): --peer \(only): no endpoint recorded by Retake has this number")
    }
    file = try PcapngFile(path, present, comments: head.comments, secrets: head.secrets)
  }

  /// Replays the take to its end or the first divergence.
  func run() throws -> (report: ReplayReport, counts: [Int]) {
    let progress = Progress("exporting packets")
    defer { progress.clear() }
    let report = try reading { () throws(TapeError) in
      try replay.run(
        progress: { at, _ in progress.show("exporting packets: \(Int(at.seconds)) s") }, record)
    }
    if let failure { throw failure }
    // Without packets, no file is written.
    if packets > 0 { try file.finish() }
    return (report, file.counts)
  }

  // MARK: Packets

  private func record(
    _ sight: FollowedReplay.Sight, _ source: SocketAddress, _ destination: SocketAddress,
    _ at: Instant
  ) {
    switch sight {
    case .datagram(let bytes, let isTruncated):
      wire(source, destination, bytes, isTruncated: isTruncated, at)
    case .clear(_, .sctp, _): break
    case .clear(let bytes, let kind, _):
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
    // A truncated packet is at least one byte longer than its captured bytes.
    put(source, destination, bytes + (isTruncated ? [0] : []), cut: isTruncated ? 1 : 0, .wire, at)
  }

  /// Writes bytes in one direction of a TCP connection as consecutive segments.
  private func connection(
    _ source: SocketAddress, _ destination: SocketAddress, _ bytes: [UInt8], lost: Int,
    isEnd: Bool, _ at: Instant
  ) {
    guard source.ip.isIPv4 == destination.ip.isIPv4 else { return }
    for part in connections.cut(bytes, from: source, to: destination, lost: lost, isEnd: isEnd) {
      append(part.packet(identification: identification), cut: 0, .wire, at)
    }
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

// MARK: - ClearSession

/// A SIP exchange that announces the codecs in decrypted packets: an INVITE and its response (RFC
/// 3261), whose descriptions (RFC 8866) contain the addresses and payload types.
struct ClearSession {
  /// A payload type with its encoding.
  struct Format: Hashable {
    var payloadType: UInt8
    var codec: String
    var clockRate: UInt32
    var isAudio: Bool
  }

  var source: SocketAddress
  var destination: SocketAddress
  var formats: [Format]
  /// Distinguishes the sessions in one file.
  var number: Int

  private static let port: UInt16 = 5060

  /// The two messages with their addresses.
  var messages: [(from: SocketAddress, to: SocketAddress, text: String)] {
    let (caller, callee) = (
      SocketAddress(source.ip, port: Self.port), SocketAddress(destination.ip, port: Self.port)
    )
    return [
      (
        caller, callee, message("INVITE sip:callee@retake.invalid SIP/2.0", description(of: source))
      ),
      (callee, caller, message("SIP/2.0 200 OK", description(of: destination))),
    ]
  }

  private func message(_ first: String, _ body: String) -> String {
    let lines = [
      first, "Via: SIP/2.0/UDP retake.invalid;branch=z9hG4bK-retake-\(number)",
      "From: <sip:caller@retake.invalid>;tag=caller-\(number)",
      "To: <sip:callee@retake.invalid>" + (first.hasPrefix("SIP") ? ";tag=callee-\(number)" : ""),
      "Call-ID: retake-\(number)@retake.invalid", "CSeq: 1 INVITE",
      "Contact: <sip:retake@retake.invalid>", "Content-Type: application/sdp",
      "Content-Length: \(body.utf8.count)", "", "",
    ]
    return lines.joined(separator: "\r\n") + body
  }

  /// Returns a description with all formats in one section, because a session has a single pair of
  /// ports.
  private func description(of end: SocketAddress) -> String {
    let family = end.ip.isIPv4 ? "IP4" : "IP6"
    let kind = formats.contains { $0.isAudio } ? "audio" : "video"
    let types = formats.map { String($0.payloadType) }.joined(separator: " ")
    var lines = [
      "v=0", "o=retake \(number) 1 IN \(family) \(end.ip)", "s=in the clear",
      "c=IN \(family) \(end.ip)", "t=0 0", "m=\(kind) \(end.port) RTP/AVP \(types)",
    ]
    for format in formats {
      lines.append("a=rtpmap:\(format.payloadType) \(format.codec)/\(format.clockRate)")
    }
    return lines.joined(separator: "\r\n") + "\r\n"
  }
}

// MARK: - ClearPorts

/// Assigns ports to decrypted packets: each stream has a pair of ports that differs from the ports
/// on the wire.
///
/// tshark unwraps the timestamps of all sources between two ports as if they were one, and then
/// computes no jitter. So only a path's first stream and RTCP use the path's own ports with the
/// highest bit inverted; the ports of each further stream are an even distance away.
struct ClearPorts {
  private struct Stream: Hashable {
    var source: SocketAddress
    var destination: SocketAddress
    /// The SSRC of an RTP stream; nil for RTCP.
    var ssrc: UInt32?
  }

  private var places: [Stream: Int] = [:]
  /// The number of RTP streams between each pair of addresses.
  private var counts: [Set<SocketAddress>: Int] = [:]

  /// The bits of a port that change when the distance is added.
  private static let mask: UInt16 = 0x7fff

  /// Returns the addresses under which a decrypted packet is exported: the same hosts, on the ports
  /// assigned to its stream.
  ///
  /// - Parameter ssrc: an RTP packet's source; nil for RTCP.
  mutating func ends(from source: SocketAddress, to destination: SocketAddress, ssrc: UInt32?)
    -> (source: SocketAddress, destination: SocketAddress)
  {
    let stream = Stream(source: source, destination: destination, ssrc: ssrc)
    let place = places[stream] ?? next(stream)
    places[stream] = place
    return (Self.shifted(source, by: place), Self.shifted(destination, by: place))
  }

  private mutating func next(_ stream: Stream) -> Int {
    guard stream.ssrc != nil else { return 0 }
    let path: Set = [stream.source, stream.destination]
    defer { counts[path, default: 0] += 1 }
    return counts[path, default: 0]
  }

  /// Inverts a port's highest bit and adds a distance to the other bits.
  private static func shifted(_ address: SocketAddress, by place: Int) -> SocketAddress {
    let distance = UInt16(truncatingIfNeeded: 2 * place)
    let port = (address.port ^ 0x8000) & ~mask | (address.port & mask &+ distance) & mask
    return SocketAddress(address.ip, port: port)
  }
}
