/// The fields of a STUN message (RFC 8489 section 5), with the attributes of ICE and TURN.
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
        // Attributes end at a multiple of four bytes.
        _ = reader.part((4 - length % 4) % 4)
        reader.add(attributes[type] ?? "attribute 0x\(String(type, radix: 16))", value, from: from)
      }
    }
  }

  /// The method and the class, whose bits are between those of the method.
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

  /// An address (section 14.1), which the cookie and the transaction may cover (section 14.2).
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
