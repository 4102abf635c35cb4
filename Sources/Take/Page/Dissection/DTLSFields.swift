/// The fields of DTLS records (RFC 6347 section 4.1, RFC 9147 section 4), and the beginning of
/// handshake messages that are not encrypted; and of SCTP packets, which DTLS carries.
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
    // Records of DTLS 1.3 that are encrypted have a header of their own.
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

/// The fields of an SCTP packet (RFC 9260 section 3).
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
    // Chunks end at a multiple of four bytes.
    _ = reader.part((4 - length % 4) % 4)
  }
}
