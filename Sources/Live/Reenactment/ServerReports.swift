import Flow
import Peer
import RTP
import SDP
import Wire

/// Reports on the media of a server whose client gets recorded media instead.
///
/// If a client never reports, a server may assume that it has left (RFC 3550 section 6.3.5), or
/// send it less media. The reports are those of a client that receives every packet that reaches
/// the relay.
struct ServerReports {
  private var streams: [UInt32: ReceptionReports] = [:]
  private var clockRates: [UInt8: UInt32] = [:]
  /// The time of each transport's next report.
  private var due: [Int: Instant] = [:]

  private static let interval = Interval.seconds(1)
  /// The maximum number of streams, as many as fit into a report (RFC 3550 section 6.4.1); a server
  /// may send any number.
  private static let streamsMaximum = 31
  /// The sender SSRC of a client without media of its own, as in browsers.
  private static let sender: UInt32 = 1

  /// Records the clock rates in a description from the server.
  mutating func learn(_ description: SDPDocument) {
    for section in description.sections {
      for map in section.rtpMaps { clockRates[map.payloadType] = map.clockRate }
    }
  }

  /// Records a packet from the server; returns the report that is then due, if any.
  mutating func receive(_ packet: RelayedPacket, at now: Instant) -> RelayedPacket? {
    switch packet.kind {
    case .rtp:
      guard let header = try? RTPHeader(parsing: packet.bytes.span.bytes),
        streams[header.ssrc] != nil || streams.count < Self.streamsMaximum
      else { return nil }
      _ = streams[header.ssrc, default: ReceptionReports()].receive(
        header, clockRate: clockRates[header.payloadType] ?? 90_000, arrival: now)
      return report(over: packet.transport, at: now)
    case .rtcp:
      for case .senderReport(let report) in RTCPCompound(parsing: packet.bytes.span.bytes).packets {
        streams[report.ssrc]?.receive(report, at: now)
      }
      return nil
    case .sctp: return nil
    }
  }

  private mutating func report(over transport: Int, at now: Instant) -> RelayedPacket? {
    guard let time = due[transport] else {
      due[transport] = now + Self.interval
      return nil
    }
    guard now >= time else { return nil }
    due[transport] = now + Self.interval
    let blocks = streams.keys.sorted().flatMap { ssrc in
      streams[ssrc]?.makeBlocks(ssrc, rtxSSRC: nil, at: now) ?? []
    }
    guard !blocks.isEmpty else { return nil }
    var writer = ByteWriter()
    RTCPPacket.receiverReport(ReceiverReport(ssrc: Self.sender, blocks: blocks))
      .write(into: &writer)
    return RelayedPacket(kind: .rtcp, transport: transport, bytes: writer.bytes)
  }
}
