/// The fields of an RTP packet (RFC 3550 section 5.1), with its header extensions (RFC 8285).
enum RTPFields {
  static func layer(_ reader: inout FieldReader, isClear: Bool) -> PacketFields.Layer {
    reader.layer("RTP") { (reader) throws(FieldReader.End) in
      let first = try reader.field("version, padding, extension, sources", 1) {
        "\($0 >> 6), \(($0 >> 5) & 1), \(($0 >> 4) & 1), \($0 & 15)"
      }
      try reader.field("marker, payload type", 1) { "\($0 >> 7), \($0 & 127)" }
      try reader.field("sequence number", 2)
      try reader.field("timestamp", 4)
      try reader.field("SSRC", 4) { "\($0) (\(FieldReader.hexadecimal32($0)))" }
      for _ in 0..<(first & 15) { try reader.field("CSRC", 4) }
      if first & 0x10 != 0 { try extensions(&reader) }
      reader.block(isClear ? "payload" : "payload, encrypted in SRTP", reader.left)
    }
  }

  private static func extensions(_ reader: inout FieldReader) throws(FieldReader.End) {
    let profile = try reader.field("extension profile", 2, words: FieldReader.hexadecimal32)
    let words = try reader.field("extension length", 2) { "\(4 * $0) bytes" }
    let end = min(reader.at + 4 * words, reader.bytes.count)
    // One byte or two before each extension (sections 4.2 and 4.3).
    let isShort = profile == 0xbede
    guard isShort || profile >> 4 == 0x100 else {
      return reader.block("extension", end - reader.at)
    }
    while reader.at < end {
      let from = reader.at
      let head = try reader.number(1)
      if head == 0 { continue }
      if isShort, head >> 4 == 15 { break }
      let length = isShort ? head & 15 + 1 : try reader.number(1)
      let value = FieldReader.text(reader.part(min(length, end - reader.at)))
      reader.add("extension \(isShort ? head >> 4 : head)", value, from: from)
    }
    reader.at = end
  }
}

/// The fields of the packets in an RTCP compound: reports (RFC 3550 section 6.4) and feedback
/// (RFC 4585 section 6).
enum RTCPFields {
  private static let types = [
    200: "sender report", 201: "receiver report", 202: "source description", 203: "goodbye",
    204: "application", 205: "transport feedback", 206: "payload feedback",
    207: "extended report",
  ]
  private static let feedback = [
    205: [1: "NACK", 15: "transport-wide"], 206: [1: "PLI", 2: "SLI", 4: "FIR", 15: "REMB"],
  ]
  private static let packetMaximum = 64

  static func layers(_ reader: inout FieldReader, isClear: Bool) -> [PacketFields.Layer] {
    var layers: [PacketFields.Layer] = []
    while reader.left >= 4, layers.count < packetMaximum {
      let count = Int(reader.bytes[reader.at]) & 31
      let type = Int(reader.bytes[reader.at + 1])
      let kind = feedback[type]?[count].map { " \($0)" } ?? ""
      layers.append(
        reader.layer("RTCP" + kind) { (reader) throws(FieldReader.End) in
          try packet(&reader, isClear: isClear)
        })
      if !isClear || reader.isCutShort { break }
    }
    return layers
  }

  private static func packet(_ reader: inout FieldReader, isClear: Bool)
    throws(FieldReader.End)
  {
    let begin = reader.at
    let count =
      try reader.field("version, padding, count", 1) {
        "\($0 >> 6), \(($0 >> 5) & 1), \($0 & 31)"
      } & 31
    let type = try reader.field("packet type", 1, words: FieldReader.named(types))
    let words = try reader.field("length", 2) { "\(4 * ($0 + 1)) bytes" }
    try reader.field("SSRC of sender", 4)
    guard isClear else { return reader.block("encrypted in SRTCP", reader.left) }
    let end = min(begin + 4 * (words + 1), reader.bytes.count)
    switch type {
    case 200, 201: try reports(&reader, type: type, count: count, until: end)
    case 205, 206:
      guard end - reader.at >= 4 else { break }
      try reader.field("SSRC of media", 4)
      while type == 205, count == 1, end - reader.at >= 4, reader.hasRoom {
        try reader.field("missing", 2)
        try reader.field("and of the next 16", 2) { mask in
          let digits = String(mask, radix: 2)
          return String(repeating: "0", count: 16 - digits.count) + digits
        }
      }
    default: break
    }
    if reader.at < end { reader.block("body", end - reader.at) }
  }

  private static func reports(
    _ reader: inout FieldReader, type: Int, count: Int, until end: Int
  ) throws(FieldReader.End) {
    if type == 200 {
      reader.block("NTP time", 8)
      try reader.field("RTP time", 4)
      try reader.field("packets", 4)
      try reader.field("octets", 4)
    }
    for _ in 0..<count where end - reader.at >= 24 {
      try reader.field("report on SSRC", 4)
      try reader.field("fraction lost", 1) { "\($0) of 256" }
      try reader.field("lost in all", 3)
      try reader.field("highest sequence", 4)
      try reader.field("jitter", 4)
      try reader.field("last report", 4, words: FieldReader.hexadecimal32)
      try reader.field("delay since then", 4) { "\($0) of 65536 s" }
    }
  }
}
