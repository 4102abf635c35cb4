import Tape

/// The fields of a datagram, decoded as far as they are in the clear; any bytes are fine.
enum PacketFields {
  /// The fields in the order of the wire, at most 200 of them.
  static func of(_ bytes: [UInt8]) -> [(name: String, value: String)] {
    var reader = FieldReader(bytes: bytes)
    switch PacketText(bytes).layer {
    case "ice": reader.readSTUN()
    case "dtls": reader.readDTLS()
    case "rtp": reader.readRTP()
    case "rtcp": reader.readRTCP()
    default: reader.rest("bytes")
    }
    return Array(reader.fields.prefix(200))
  }
}

/// Cuts bytes into named fields from the front.
private struct FieldReader {
  let bytes: [UInt8]
  var position = 0
  var fields: [(name: String, value: String)] = []

  init(bytes: [UInt8]) { self.bytes = bytes }

  var isAtEnd: Bool { position >= bytes.count }

  /// A big-endian number at an offset from the position; nil when the bytes end before it.
  func number(_ offset: Int, _ width: Int) -> UInt64? {
    let start = position + offset
    guard start >= 0, start <= bytes.count - width else { return nil }
    return bytes[start..<start + width].reduce(0) { $0 << 8 | UInt64($1) }
  }

  mutating func integer(_ name: String, _ width: Int) {
    if let value = number(0, width) { fields.append((name, String(value))) }
    position += width
  }

  mutating func raw(_ name: String, _ count: Int) {
    let end = min(bytes.count, position + max(0, count))
    guard position < end else { return }
    fields.append((name, hexadecimal(bytes[position..<end], limit: 16)))
    position = end
  }

  mutating func rest(_ name: String) { raw(name, bytes.count - position) }

  mutating func readSTUN() {
    fields.append(("message", PacketText(bytes).title))
    position = 2
    integer("length", 2)
    raw("cookie", 4)
    raw("transaction", 12)
    while let length = number(2, 2), fields.count < 100 {
      let name = PacketText.field(of: bytes, at: position + 4)
      position += 4
      raw(name, Int(length))
      position += (4 - Int(length) % 4) % 4
    }
    rest("left over")
  }

  mutating func readDTLS() {
    var record = 1
    while let length = number(11, 2), fields.count < 100 {
      let prefix = "record \(record) "
      let isHandshake = bytes[position] == 22 && number(3, 2) == 0
      integer(prefix + "type", 1)
      raw(prefix + "version", 2)
      integer(prefix + "epoch", 2)
      integer(prefix + "sequence", 6)
      integer(prefix + "length", 2)
      let end = position + Int(length)
      if isHandshake {
        integer(prefix + "handshake type", 1)
        integer(prefix + "message length", 3)
        integer(prefix + "message sequence", 2)
        integer(prefix + "fragment offset", 3)
        integer(prefix + "fragment length", 3)
      }
      raw(prefix + "body", end - position)
      record += 1
    }
    rest("left over")
  }

  mutating func readRTP() {
    let first = bytes[0]
    fields.append(("version", String(first >> 6)))
    fields.append(("padding", String(first >> 5 & 1)))
    fields.append(("marker", String(bytes[1] >> 7)))
    fields.append(("payload type", String(bytes[1] & 0x7f)))
    position = 2
    integer("sequence number", 2)
    integer("timestamp", 4)
    integer("SSRC", 4)
    for _ in 0..<Int(first & 15) { integer("CSRC", 4) }
    if first & 0x10 != 0, let words = number(2, 2) {
      raw("extension profile", 2)
      position += 2
      raw("extensions", 4 * Int(words))
    }
    rest("SRTP payload and tag")
  }

  mutating func readRTCP() {
    fields.append(("packet", PacketText(bytes).title))
    fields.append(("count", String(bytes[0] & 31)))
    position = 2
    integer("length in words", 2)
    integer("sender SSRC", 4)
    rest("SRTCP body, index and tag")
  }
}
