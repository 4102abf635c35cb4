/// An RTP packet's fields (RFC 3550 section 5.1), with its header extensions (RFC 8285).
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
    // Extensions have headers of one or two bytes (sections 4.2 and 4.3).
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

/// The fields of an RTCP compound's packets: reports (RFC 3550 section 6.4) and feedback (RFC 4585
/// section 6).
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

// MARK: - STUNFields

/// A STUN message's fields (RFC 8489 section 5), with ICE and TURN attributes.
enum STUNFields {
  private static let methods = [
    1: "Binding", 3: "Allocate", 4: "Refresh", 6: "Send", 7: "Data", 8: "CreatePermission",
    9: "ChannelBind",
  ]
  private static let classes = ["request", "indication", "success response", "error response"]
  private static let attributes = [
    0x0001: "MAPPED-ADDRESS", 0x0006: "USERNAME", 0x0008: "MESSAGE-INTEGRITY",
    0x0009: "ERROR-CODE", 0x000a: "UNKNOWN-ATTRIBUTES", 0x000c: "CHANNEL-NUMBER",
    0x000d: "LIFETIME", 0x0012: "XOR-PEER-ADDRESS", 0x0013: "DATA", 0x0014: "REALM",
    0x0015: "NONCE", 0x0016: "XOR-RELAYED-ADDRESS", 0x0019: "REQUESTED-TRANSPORT",
    0x001c: "MESSAGE-INTEGRITY-SHA256", 0x0020: "XOR-MAPPED-ADDRESS", 0x0024: "PRIORITY",
    0x0025: "USE-CANDIDATE", 0x8022: "SOFTWARE", 0x8023: "ALTERNATE-SERVER",
    0x8028: "FINGERPRINT", 0x8029: "ICE-CONTROLLED", 0x802a: "ICE-CONTROLLING",
    0xc057: "NETWORK-COST",
  ]

  static func layer(_ reader: inout FieldReader) -> PacketFields.Layer {
    let begin = reader.at
    return reader.layer("STUN") { (reader) throws(FieldReader.End) in
      try reader.field("type", 2, words: type)
      try reader.field("length", 2)
      try reader.field("magic cookie", 4, words: FieldReader.hexadecimal32)
      reader.block("transaction", 12)
      let transaction = Array(reader.bytes[begin...].dropFirst(8).prefix(12))
      while reader.left >= 4, reader.hasRoom {
        let from = reader.at
        let type = try reader.number(2)
        let length = try reader.number(2)
        let value = value(reader.part(length), of: type, transaction: transaction)
        // Attributes are padded to a multiple of four bytes.
        _ = reader.part((4 - length % 4) % 4)
        reader.add(attributes[type] ?? "attribute 0x\(String(type, radix: 16))", value, from: from)
      }
    }
  }

  /// Names the method and the class in a message type, in which the bits of both are interleaved.
  private static func type(_ type: Int) -> String {
    let method = (type & 0x0f) | ((type >> 1) & 0x70) | ((type >> 2) & 0xf80)
    let kind = ((type >> 4) & 1) | ((type >> 7) & 2)
    return "\(methods[method] ?? "method \(method)") \(classes[kind])"
  }

  private static func value(_ part: [UInt8], of type: Int, transaction: [UInt8]) -> String {
    switch type {
    case 0x0006, 0x0014, 0x0015, 0x8022: String(decoding: part, as: UTF8.self)
    case 0x0001, 0x8023: address(part, key: []) ?? FieldReader.text(part)
    case 0x0012, 0x0016, 0x0020:
      address(part, key: [0x21, 0x12, 0xa4, 0x42] + transaction) ?? FieldReader.text(part)
    case 0x000d, 0x0024:
      part.count >= 4
        ? String(part.prefix(4).reduce(0) { $0 << 8 | Int($1) }) : FieldReader.text(part)
    case 0x0009:
      part.count >= 4
        ? "\(Int(part[2]) * 100 + Int(part[3])) \(String(decoding: part[4...], as: UTF8.self))"
        : FieldReader.text(part)
    default: FieldReader.text(part)
    }
  }

  /// Returns an address (section 14.1), which may be XORed with the cookie and transaction id
  /// (section 14.2); nil if it is malformed.
  private static func address(_ part: [UInt8], key: [UInt8]) -> String? {
    guard part.count >= 8 else { return nil }
    func clear(_ bytes: ArraySlice<UInt8>) -> [UInt8] {
      bytes.enumerated().map { $1 ^ (key.indices.contains($0) ? key[$0] : 0) }
    }
    let port = clear(part[2..<4]).reduce(0) { $0 << 8 | Int($1) }
    let address = clear(part[4...].prefix(16))
    if part[1] == 1 {
      return "\(address.prefix(4).map(String.init).joined(separator: ".")) port \(port)"
    }
    let groups = stride(from: 0, to: address.count - 1, by: 2).map { place in
      String(Int(address[place]) << 8 | Int(address[place + 1]), radix: 16)
    }
    return "\(groups.joined(separator: ":")) port \(port)"
  }
}

// MARK: - DTLSFields

/// The fields of DTLS records (RFC 6347 section 4.1, RFC 9147 section 4) and the start of
/// unencrypted handshake messages.
enum DTLSFields {
  private static let types = [
    20: "change cipher spec", 21: "alert", 22: "handshake", 23: "application data",
    25: "tls12_cid", 26: "acknowledgement",
  ]
  private static let versions = [0xfeff: "DTLS 1.0", 0xfefd: "DTLS 1.2", 0xfefc: "DTLS 1.3"]
  private static let messages = [
    0: "HelloRequest", 1: "ClientHello", 2: "ServerHello", 3: "HelloVerifyRequest",
    4: "NewSessionTicket", 8: "EncryptedExtensions", 11: "Certificate", 12: "ServerKeyExchange",
    13: "CertificateRequest", 14: "ServerHelloDone", 15: "CertificateVerify",
    16: "ClientKeyExchange", 20: "Finished",
  ]
  private static let recordMaximum = 64

  static func layers(_ reader: inout FieldReader) -> [PacketFields.Layer] {
    var layers: [PacketFields.Layer] = []
    while reader.left > 0, layers.count < recordMaximum {
      layers.append(reader.layer("DTLS record", record))
      if reader.isCutShort { break }
    }
    return layers
  }

  private static func record(_ reader: inout FieldReader) throws(FieldReader.End) {
    // Encrypted DTLS 1.3 records have a unified header.
    if reader.next.map({ $0 & 0xe0 == 0x20 }) ?? false {
      try reader.field("unified header", 1, words: FieldReader.hexadecimal32)
      return reader.block("encrypted", reader.left)
    }
    let type = try reader.field("content type", 1, words: FieldReader.named(types))
    try reader.field("version", 2, words: FieldReader.named(versions))
    let epoch = try reader.field("epoch", 2)
    let begin = reader.at
    let high = try reader.number(2)
    let low = try reader.number(4)
    reader.add("sequence number", String(high << 32 | low), from: begin)
    let length = try reader.field("length", 2)
    let end = min(reader.at + length, reader.bytes.count)
    if epoch == 0, type == 22 { try handshake(&reader, until: end) }
    if epoch == 0, type == 21, end - reader.at == 2 {
      try reader.field("level", 1)
      try reader.field("description", 1)
    }
    if reader.at < end { reader.block(epoch == 0 ? "body" : "encrypted", end - reader.at) }
  }

  private static func handshake(_ reader: inout FieldReader, until end: Int)
    throws(FieldReader.End)
  {
    let type = try reader.field("handshake", 1, words: FieldReader.named(messages))
    try reader.field("message length", 3)
    try reader.field("message number", 2)
    try reader.field("fragment offset", 3)
    try reader.field("fragment length", 3)
    if type == 1 || type == 2 {
      try reader.field("version", 2, words: FieldReader.named(versions))
      reader.block("random", 32)
    }
    reader.block("body", end - reader.at)
  }
}

/// An SCTP packet's fields (RFC 9260 section 3).
enum SCTPFields {
  private static let chunks = [
    0: "DATA", 1: "INIT", 2: "INIT ACK", 3: "SACK", 4: "HEARTBEAT", 5: "HEARTBEAT ACK",
    6: "ABORT", 7: "SHUTDOWN", 8: "SHUTDOWN ACK", 9: "ERROR", 10: "COOKIE ECHO",
    11: "COOKIE ACK", 14: "SHUTDOWN COMPLETE", 64: "I-DATA", 130: "RE-CONFIG",
    192: "FORWARD TSN",
  ]

  static func layer(_ reader: inout FieldReader) -> PacketFields.Layer {
    reader.layer("SCTP") { (reader) throws(FieldReader.End) in
      try reader.field("source port", 2)
      try reader.field("destination port", 2)
      try reader.field("verification tag", 4, words: FieldReader.hexadecimal32)
      try reader.field("checksum", 4, words: FieldReader.hexadecimal32)
      while reader.left >= 4, reader.hasRoom { try chunk(&reader) }
    }
  }

  private static func chunk(_ reader: inout FieldReader) throws(FieldReader.End) {
    let begin = reader.at
    let type = try reader.number(1)
    let flags = try reader.number(1)
    let length = try reader.number(2)
    let end = min(begin + max(length, 4), reader.bytes.count)
    reader.add(
      "chunk", "\(FieldReader.named(chunks)(type)), flags \(flags), \(length) bytes", from: begin)
    if type == 0, end - reader.at >= 12 {
      try reader.field("TSN", 4)
      try reader.field("stream", 2)
      try reader.field("number in stream", 2)
      try reader.field("payload protocol", 4)
    } else if type == 3, end - reader.at >= 12 {
      try reader.field("cumulative TSN", 4)
      try reader.field("window", 4)
      try reader.field("gaps", 2)
      try reader.field("duplicates", 2)
    }
    if reader.at < end { reader.block("body", end - reader.at) }
    // Chunks are padded to a multiple of four bytes.
    _ = reader.part((4 - length % 4) % 4)
  }
}
