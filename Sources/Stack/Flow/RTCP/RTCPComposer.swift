import RTP
import Wire

/// Puts RTCP together as it is sent: reports with names (RFC 3550 section 6.1), and feedback behind
/// an empty report unless it may go alone (RFC 4585 section 3.1, RFC 5506).
struct RTCPComposer {
  /// A compound reports on at most so many sources, and so many say goodbye in it.
  static let sourcesMaximum = 31

  /// Names this end in source descriptions (RFC 7022).
  private let cname: String
  /// Whether demands for key frames come with a report on their source.
  let reportsWithDemands: Bool

  init(cname: String, reportsWithDemands: Bool = false) {
    self.cname = cname
    self.reportsWithDemands = reportsWithDemands
  }

  /// Sender reports, or a receiver report where nothing is sent; names; an extended report.
  /// - Parameters:
  ///   - blocks: what is reported on the peer's sources; the first report takes them.
  ///   - reference: the time that the peer answers with its delay; nil if nothing is received.
  func reports(
    _ senders: [SenderReport], _ blocks: [ReportBlock], localSSRC: UInt32,
    receives: Bool, reference: UInt64, _ answers: [ExtendedReport.DelayBlock]
  ) -> [RTCPPacket] {
    let blocks = Array(blocks.prefix(Self.sourcesMaximum))
    var packets: [RTCPPacket] = []
    for (index, var report) in senders.enumerated() {
      if index == 0 { report.blocks = blocks }
      packets.append(.senderReport(report))
    }
    if senders.isEmpty {
      packets.append(.receiverReport(ReceiverReport(ssrc: localSSRC, blocks: blocks)))
    }
    packets.append(names(senders.isEmpty ? [localSSRC] : senders.map(\.ssrc)))
    // The peer's report blocks are about what is sent; who receives asks for its round trip
    // (RFC 3611 section 4.4).
    let asks = senders.isEmpty || receives
    if asks || !answers.isEmpty {
      packets.append(
        .extendedReport(
          ExtendedReport(
            ssrc: localSSRC, receiverReferenceTime: asks ? reference : nil, delays: answers)))
    }
    return packets
  }

  /// One feedback message with what has to go before it.
  ///
  /// - Parameter block: what the report before it says of the source that it is about.
  func feedback(
    _ packet: RTCPPacket, localSSRC: UInt32, isAlone: Bool, block: ReportBlock? = nil
  ) -> [RTCPPacket] {
    if isAlone { return [packet] }
    let report = ReceiverReport(ssrc: localSSRC, blocks: block.map { [$0] } ?? [])
    return [.receiverReport(report), names([localSSRC]), packet]
  }

  private func names(_ ssrcs: [UInt32]) -> RTCPPacket {
    .sourceDescription(
      SourceDescription(chunks: ssrcs.map { .init(ssrc: $0, cname: cname) }))
  }

  /// The bytes of a compound packet, with room reserved for its protection.
  static func bytes(_ packets: [RTCPPacket]) -> [UInt8] {
    var writer = ByteWriter(capacity: 512 + MediaFlow.reservedOverhead)
    for packet in packets { packet.write(into: &writer) }
    var bytes = writer.bytes
    writer = ByteWriter()
    bytes.reserveCapacity(bytes.count + MediaFlow.reservedOverhead)
    return bytes
  }
}
