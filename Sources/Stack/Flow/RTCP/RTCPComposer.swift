import RTP
import Wire

/// Composes RTCP packets: reports with names (RFC 3550 section 6.1), and feedback after an empty
/// report unless reduced size was negotiated (RFC 4585 section 3.1, RFC 5506).
struct RTCPComposer {
  /// The most sources in a compound's reports, and in its BYE.
  static let sourcesMaximum = 31

  /// The canonical name (RFC 7022).
  private let cname: String
  /// Whether a PLI or FIR is preceded by a report on its source.
  let reportsWithDemands: Bool

  init(cname: String, reportsWithDemands: Bool = false) {
    self.cname = cname
    self.reportsWithDemands = reportsWithDemands
  }

  /// Composes sender reports, or a receiver report if nothing is sent, with names and an extended
  /// report.
  /// - Parameters:
  ///   - blocks: the report blocks, which go into the first report.
  ///   - reference: the NTP time for the peer to answer; nil if nothing is received.
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
    // Report blocks measure the round trip of senders only; a receiver asks for its own (RFC 3611
    // section 4.4).
    let asks = senders.isEmpty || receives
    if asks || !answers.isEmpty {
      packets.append(
        .extendedReport(
          ExtendedReport(
            ssrc: localSSRC, receiverReferenceTime: asks ? reference : nil, delays: answers)))
    }
    return packets
  }

  /// Composes a feedback message, preceded by a report if required.
  /// - Parameter block: the report block on the source that the feedback is about.
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

  /// The bytes of a compound packet, with spare capacity for SRTP.
  static func bytes(_ packets: [RTCPPacket]) -> [UInt8] {
    var writer = ByteWriter(capacity: 512 + MediaFlow.reservedOverhead)
    for packet in packets { packet.write(into: &writer) }
    var bytes = writer.bytes
    writer = ByteWriter()
    bytes.reserveCapacity(bytes.count + MediaFlow.reservedOverhead)
    return bytes
  }
}
