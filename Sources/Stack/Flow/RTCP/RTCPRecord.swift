package import RTP
import Wire

/// One RTCP block as stored in the take.
package struct RTCPRecord: Hashable, Sendable {
  /// Whether the block was received rather than sent.
  package var isInbound: Bool
  /// `sr`, `rr`, `sdes`, `bye`, `nack`, `pli`, `fir`, `remb`, `transport-cc`, `xr`, or, for any
  /// other packet, its type and format numbers as `pt-fmt`.
  package var type: String
  /// The media SSRC that the block concerns; the sender's SSRC if there is none.
  package var ssrc: UInt32
  /// The fields as compact JSON with keys in a fixed order.
  package var fields: String

  package init(isInbound: Bool, type: String, ssrc: UInt32, fields: String) {
    self.isInbound = isInbound
    self.type = type
    self.ssrc = ssrc
    self.fields = fields
  }

  package init(_ packet: RTCPPacket, isInbound: Bool) {
    self.isInbound = isInbound
    var json = JSONWriter(capacity: RTCPRecord.usualLength)
    json.beginObject()
    switch packet {
    case .senderReport(let report):
      (type, ssrc) = ("sr", report.ssrc)
      report.write(to: &json)
    case .receiverReport(let report):
      (type, ssrc) = ("rr", report.ssrc)
      json.member("blocks", report.blocks)
    case .sourceDescription(let description):
      (type, ssrc) = ("sdes", description.chunks.first?.ssrc ?? 0)
      description.write(to: &json)
    case .goodbye(let goodbye):
      (type, ssrc) = ("bye", goodbye.ssrcs.first ?? 0)
      json.member("ssrcs", goodbye.ssrcs)
      json.member("reason", .text(goodbye.reason, escapesByNumber: true))
    case .genericNACK(let nack):
      (type, ssrc) = ("nack", nack.mediaSSRC)
      json.member("sequences", nack.sequences.map { UInt32($0) })
    case .pictureLoss(let loss): (type, ssrc) = ("pli", loss.mediaSSRC)
    case .fullIntraRequest(let request):
      (type, ssrc) = ("fir", request.entries.first?.ssrc ?? request.senderSSRC)
      request.write(to: &json)
    case .maximumBitrate(let limit):
      (type, ssrc) = ("remb", limit.ssrcs.first ?? limit.senderSSRC)
      // SQLite's integers end at 2^63 - 1.
      json.member("bitrate", min(limit.bitrate, UInt64(Int64.max)))
      json.member("ssrcs", limit.ssrcs)
    case .transportFeedback(let feedback):
      (type, ssrc) = ("transport-cc", feedback.mediaSSRC)
      feedback.write(to: &json)
    case .extendedReport(let report):
      (type, ssrc) = ("xr", report.ssrc)
      report.write(to: &json)
    case .other(let number, let format, let sender, let length):
      (type, ssrc) = ("\(number.rawValue)-\(format)", sender)
      json.member("length", Int64(length))
    }
    json.endObject()
    fields = json.text
  }

  /// Capacity in bytes that suffices for most packets' fields.
  private static let usualLength = 240
}

extension SenderReport {
  fileprivate func write(to json: inout JSONWriter) {
    json.member("unix_us", WallClock.unixNanoseconds(ntp: ntpTime) / 1000)
    json.member("rtp_time", rtpTime)
    json.member("packets", packetCount)
    json.member("octets", octetCount)
    json.member("blocks", blocks)
  }
}

extension ReportBlock {
  fileprivate func write(to json: inout JSONWriter) {
    json.beginObject()
    json.member("ssrc", ssrc)
    json.member("fraction_lost", UInt32(fractionLost))
    json.member("lost", Int64(cumulativeLost))
    json.member("highest", highestSequence)
    json.member("jitter", jitter)
    json.member("lsr", lastSenderReport)
    json.member("dlsr", delaySinceLastSenderReport)
    json.endObject()
  }
}

extension SourceDescription {
  fileprivate func write(to json: inout JSONWriter) {
    json.name("chunks")
    json.beginList()
    for chunk in chunks {
      json.beginObject()
      json.member("ssrc", chunk.ssrc)
      json.member("cname", .text(chunk.cname, escapesByNumber: true))
      json.endObject()
    }
    json.endList()
  }
}

extension FullIntraRequest {
  fileprivate func write(to json: inout JSONWriter) {
    json.name("entries")
    json.beginList()
    for entry in entries {
      json.beginObject()
      json.member("ssrc", entry.ssrc)
      json.member("number", UInt32(entry.number))
      json.endObject()
    }
    json.endList()
  }
}

extension TransportFeedback {
  fileprivate func write(to json: inout JSONWriter) {
    json.member("base", UInt32(base))
    json.member("count", Int64(count))
    json.member("received", Int64(arrivals.count))
    json.member("reference", Int64(reference))
    json.member("feedback", UInt32(number))
  }
}

extension ExtendedReport {
  fileprivate func write(to json: inout JSONWriter) {
    if let time = receiverReferenceTime {
      json.member("reference_unix_us", WallClock.unixNanoseconds(ntp: time) / 1000)
    }
    guard !delays.isEmpty else { return }
    json.name("delays")
    json.beginList()
    for delay in delays {
      json.beginObject()
      json.member("ssrc", delay.ssrc)
      json.member("lrr", delay.lastReport)
      json.member("dlrr", delay.delaySinceLastReport)
      json.endObject()
    }
    json.endList()
  }
}

extension JSONWriter {
  fileprivate mutating func member(_ name: StaticString, _ numbers: [UInt32]) {
    self.name(name)
    beginList()
    for number in numbers { unsigned(UInt64(number)) }
    endList()
  }

  fileprivate mutating func member(_ name: StaticString, _ blocks: [ReportBlock]) {
    self.name(name)
    beginList()
    for block in blocks { block.write(to: &self) }
    endList()
  }
}
