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
    switch packet {
    case .senderReport(let report):
      (type, ssrc, fields) = ("sr", report.ssrc, report.fields)
    case .receiverReport(let report):
      (type, ssrc) = ("rr", report.ssrc)
      fields = "{\"blocks\":\(list(report.blocks.map(\.fields)))}"
    case .sourceDescription(let description):
      (type, ssrc) = ("sdes", description.chunks.first?.ssrc ?? 0)
      fields = description.fields
    case .goodbye(let goodbye):
      (type, ssrc) = ("bye", goodbye.ssrcs.first ?? 0)
      let ssrcs = list(goodbye.ssrcs.map { "\($0)" })
      fields = "{\"ssrcs\":\(ssrcs),\"reason\":\(quoted(goodbye.reason))}"
    case .genericNACK(let nack):
      (type, ssrc) = ("nack", nack.mediaSSRC)
      fields = "{\"sequences\":\(list(nack.sequences.map { "\($0)" }))}"
    case .pictureLoss(let loss): (type, ssrc, fields) = ("pli", loss.mediaSSRC, "{}")
    case .fullIntraRequest(let request):
      (type, ssrc) = ("fir", request.entries.first?.ssrc ?? request.senderSSRC)
      let entries = request.entries.map { "{\"ssrc\":\($0.ssrc),\"number\":\($0.number)}" }
      fields = "{\"entries\":\(list(entries))}"
    case .maximumBitrate(let limit):
      (type, ssrc) = ("remb", limit.ssrcs.first ?? limit.senderSSRC)
      // SQLite's integers end at 2^63.
      let bitrate = min(limit.bitrate, UInt64(Int64.max))
      fields = "{\"bitrate\":\(bitrate),\"ssrcs\":\(list(limit.ssrcs.map { "\($0)" }))}"
    case .transportFeedback(let feedback):
      (type, ssrc) = ("transport-cc", feedback.mediaSSRC)
      fields =
        "{\"base\":\(feedback.base),\"count\":\(feedback.count),"
        + "\"received\":\(feedback.arrivals.count),\"reference\":\(feedback.reference),"
        + "\"feedback\":\(feedback.number)}"
    case .extendedReport(let report): (type, ssrc, fields) = ("xr", report.ssrc, report.fields)
    case .other(let number, let format, let sender, let length):
      (type, ssrc) = ("\(number.rawValue)-\(format)", sender)
      fields = "{\"length\":\(length)}"
    }
  }
}

extension SenderReport {
  fileprivate var fields: String {
    let microseconds = WallClock.unixNanoseconds(ntp: ntpTime) / 1000
    return "{\"unix_us\":\(microseconds),\"rtp_time\":\(rtpTime),\"packets\":\(packetCount),"
      + "\"octets\":\(octetCount),\"blocks\":\(list(blocks.map(\.fields)))}"
  }
}

extension ReportBlock {
  fileprivate var fields: String {
    "{\"ssrc\":\(ssrc),\"fraction_lost\":\(fractionLost),\"lost\":\(cumulativeLost),"
      + "\"highest\":\(highestSequence),\"jitter\":\(jitter),\"lsr\":\(lastSenderReport),"
      + "\"dlsr\":\(delaySinceLastSenderReport)}"
  }
}

extension SourceDescription {
  fileprivate var fields: String {
    let named = chunks.map { "{\"ssrc\":\($0.ssrc),\"cname\":\(quoted($0.cname))}" }
    return "{\"chunks\":\(list(named))}"
  }
}

extension ExtendedReport {
  fileprivate var fields: String {
    var parts: [String] = []
    if let receiverReferenceTime {
      let microseconds = WallClock.unixNanoseconds(ntp: receiverReferenceTime) / 1000
      parts.append("\"reference_unix_us\":\(microseconds)")
    }
    if !delays.isEmpty {
      let blocks = delays.map {
        "{\"ssrc\":\($0.ssrc),\"lrr\":\($0.lastReport),\"dlrr\":\($0.delaySinceLastReport)}"
      }
      parts.append("\"delays\":\(list(blocks))")
    }
    return "{\(parts.joined(separator: ","))}"
  }
}

private func list(_ elements: [String]) -> String { "[\(elements.joined(separator: ","))]" }

/// A JSON string (RFC 8259 section 7).
private func quoted(_ text: String) -> String {
  let digits = Array("0123456789abcdef".utf8)
  var bytes: [UInt8] = [UInt8(ascii: "\"")]
  for byte in text.utf8 {
    switch byte {
    case UInt8(ascii: "\""), UInt8(ascii: "\\"): bytes += [UInt8(ascii: "\\"), byte]
    case 0..<0x20:
      bytes += Array("\\u00".utf8) + [digits[Int(byte >> 4)], digits[Int(byte & 15)]]
    default: bytes.append(byte)
    }
  }
  bytes.append(UInt8(ascii: "\""))
  return String(decoding: bytes, as: UTF8.self)
}
