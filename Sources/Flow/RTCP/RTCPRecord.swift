package import RTP
import Wire

/// One RTCP block as the take keeps it.
package struct RTCPRecord: Hashable, Sendable {
  /// Whether it was received; else it was sent.
  package var isInbound: Bool
  /// `sr`, `rr`, `sdes`, `bye`, `nack`, `pli`, `fir`, `remb`, `transport-cc`, `xr`, or `pt-fmt` in
  /// numbers.
  package var type: String
  /// The media SSRC it is about, or its sender's where it has none.
  package var ssrc: UInt32
  /// Its fields as a JSON object with keys in a fixed order, kept short.
  package var fields: String

  package init(isInbound: Bool, type: String, ssrc: UInt32, fields: String) {
    self.isInbound = isInbound
    self.type = type
    self.ssrc = ssrc
    self.fields = fields
  }

  /// Describes a packet.
  package init(_ packet: RTCPPacket, isInbound: Bool) {
    self.isInbound = isInbound
    let members: [(String, JSONText?)]
    switch packet {
    case .senderReport(let report):
      (type, ssrc, members) = ("sr", report.ssrc, report.members)
    case .receiverReport(let report):
      (type, ssrc) = ("rr", report.ssrc)
      members = [("blocks", .objects(report.blocks.map(\.members)))]
    case .sourceDescription(let description):
      (type, ssrc) = ("sdes", description.chunks.first?.ssrc ?? 0)
      members = description.members
    case .goodbye(let goodbye):
      (type, ssrc) = ("bye", goodbye.ssrcs.first ?? 0)
      members = [
        ("ssrcs", .integers(goodbye.ssrcs)),
        ("reason", .text(goodbye.reason, escapesByNumber: true)),
      ]
    case .genericNACK(let nack):
      (type, ssrc) = ("nack", nack.mediaSSRC)
      members = [("sequences", .integers(nack.sequences))]
    case .pictureLoss(let loss): (type, ssrc, members) = ("pli", loss.mediaSSRC, [])
    case .fullIntraRequest(let request):
      (type, ssrc) = ("fir", request.entries.first?.ssrc ?? request.senderSSRC)
      let entries: [[(String, JSONText?)]] = request.entries.map {
        [("ssrc", .integer($0.ssrc)), ("number", .integer($0.number))]
      }
      members = [("entries", .objects(entries))]
    case .maximumBitrate(let limit):
      (type, ssrc) = ("remb", limit.ssrcs.first ?? limit.senderSSRC)
      // SQLite's integers end at 2^63.
      let bitrate = min(limit.bitrate, UInt64(Int64.max))
      members = [("bitrate", .integer(bitrate)), ("ssrcs", .integers(limit.ssrcs))]
    case .transportFeedback(let feedback):
      (type, ssrc, members) = ("transport-cc", feedback.mediaSSRC, feedback.members)
    case .extendedReport(let report): (type, ssrc, members) = ("xr", report.ssrc, report.members)
    case .other(let number, let format, let sender, let length):
      (type, ssrc) = ("\(number.rawValue)-\(format)", sender)
      members = [("length", .integer(length))]
    }
    fields = JSONText.object(members).text
  }
}

extension SenderReport {
  fileprivate var members: [(String, JSONText?)] {
    let microseconds = WallClock.unixNanoseconds(ntp: ntpTime) / 1000
    return [
      ("unix_us", .integer(microseconds)), ("rtp_time", .integer(rtpTime)),
      ("packets", .integer(packetCount)), ("octets", .integer(octetCount)),
      ("blocks", .objects(blocks.map(\.members))),
    ]
  }
}

extension ReportBlock {
  fileprivate var members: [(String, JSONText?)] {
    [
      ("ssrc", .integer(ssrc)), ("fraction_lost", .integer(fractionLost)),
      ("lost", .integer(cumulativeLost)), ("highest", .integer(highestSequence)),
      ("jitter", .integer(jitter)), ("lsr", .integer(lastSenderReport)),
      ("dlsr", .integer(delaySinceLastSenderReport)),
    ]
  }
}

extension SourceDescription {
  fileprivate var members: [(String, JSONText?)] {
    let named: [[(String, JSONText?)]] = chunks.map {
      [("ssrc", .integer($0.ssrc)), ("cname", .text($0.cname, escapesByNumber: true))]
    }
    return [("chunks", .objects(named))]
  }
}

extension TransportFeedback {
  fileprivate var members: [(String, JSONText?)] {
    [
      ("base", .integer(base)), ("count", .integer(count)),
      ("received", .integer(arrivals.count)), ("reference", .integer(reference)),
      ("feedback", .integer(number)),
    ]
  }
}

extension ExtendedReport {
  fileprivate var members: [(String, JSONText?)] {
    let microseconds = receiverReferenceTime.map { WallClock.unixNanoseconds(ntp: $0) / 1000 }
    let blocks: [[(String, JSONText?)]] = delays.map {
      [
        ("ssrc", .integer($0.ssrc)), ("lrr", .integer($0.lastReport)),
        ("dlrr", .integer($0.delaySinceLastReport)),
      ]
    }
    return [
      ("reference_unix_us", microseconds.map { .integer($0) }),
      ("delays", blocks.isEmpty ? nil : .objects(blocks)),
    ]
  }
}

extension JSONText {
  fileprivate static func objects(_ elements: [[(String, JSONText?)]]) -> JSONText {
    .list(elements.map { .object($0) })
  }

  fileprivate static func integers(_ elements: some Sequence<some BinaryInteger>) -> JSONText {
    .list(elements.map { .integer($0) })
  }
}
