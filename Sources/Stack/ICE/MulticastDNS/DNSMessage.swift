package import Wire

/// A DNS record type (RFC 1035 section 3.2.2, RFC 3596, RFC 4034).
package struct DNSType: RawRepresentable, Hashable, Sendable {
  package var rawValue: UInt16
  package init(rawValue: UInt16) { self.rawValue = rawValue }

  /// An IPv4 address.
  package static let a = DNSType(rawValue: 1)
  /// An IPv6 address.
  package static let aaaa = DNSType(rawValue: 28)
  /// The types that exist for a name, implying that there are no others.
  package static let nsec = DNSType(rawValue: 47)
  /// All types; only in questions.
  package static let any = DNSType(rawValue: 255)
}

/// A DNS message, reduced to what multicast name resolution needs (RFC 1035 section 4, RFC 6762
/// section 18).
package struct DNSMessage: Hashable, Sendable {
  /// The name and record type that a query asks for (RFC 1035 section 4.1.2).
  package struct Question: Hashable, Sendable {
    package var name: String
    package var type: DNSType
    /// Whether the answer may be sent to the querier alone (RFC 6762 section 5.4).
    package var wantsUnicast = false

    package init(name: String, type: DNSType, wantsUnicast: Bool = false) {
      self.name = name
      self.type = type
      self.wantsUnicast = wantsUnicast
    }
  }

  /// A resource record: a name's address, or the record types it has (RFC 1035 section 4.1.3).
  package struct Record: Hashable, Sendable {
    /// The parsed RDATA: A and AAAA records, and NSEC records (RFC 6762 section 6.1).
    package enum Value: Hashable, Sendable {
      case address(IPAddress)
      /// The name has only these types.
      case types([DNSType])
      /// Any other type; ignored.
      case other(DNSType)
    }

    package var name: String
    package var value: Value
    /// The number of seconds that the record may be cached; 0 revokes it.
    package var lifetime: UInt32
    /// Whether the name has no other records of this type (RFC 6762 section 10.2).
    package var isUnique: Bool

    package init(name: String, value: Value, lifetime: UInt32, isUnique: Bool = true) {
      self.name = name
      self.value = value
      self.lifetime = lifetime
      self.isUnique = isUnique
    }
  }

  package var id: UInt16 = 0
  package var isResponse = false
  package var questions: [Question] = []
  package var answers: [Record] = []

  package init(
    id: UInt16 = 0, isResponse: Bool = false, questions: [Question] = [], answers: [Record] = []
  ) {
    self.id = id
    self.isResponse = isResponse
    self.questions = questions
    self.answers = answers
  }

  /// The Internet class; multicast DNS uses the highest bit of the class field for another purpose.
  private static let internet: UInt16 = 1
  private static let highBit: UInt16 = 0x8000

  // MARK: Writing

  /// The encoded message, without compression, which would save little.
  package var bytes: [UInt8] {
    var writer = ByteWriter(capacity: 128)
    writer.uint16(id)
    // A response is authoritative (RFC 6762 section 18.4).
    writer.uint16(isResponse ? 0x8400 : 0)
    writer.uint16(UInt16(truncatingIfNeeded: questions.count))
    writer.uint16(UInt16(truncatingIfNeeded: answers.count))
    writer.uint32(0)
    for question in questions {
      DNSMessage.write(question.name, to: &writer)
      writer.uint16(question.type.rawValue)
      writer.uint16(DNSMessage.internet | (question.wantsUnicast ? DNSMessage.highBit : 0))
    }
    for record in answers { DNSMessage.write(record, to: &writer) }
    return writer.bytes
  }

  private static func write(_ record: Record, to writer: inout ByteWriter) {
    var data = ByteWriter()
    let type: DNSType
    switch record.value {
    case .address(let ip):
      type = ip.isIPv4 ? .a : .aaaa
      data.append(ip.bytes)
    case .types(let types):
      type = .nsec
      write(record.name, to: &data)
      // One window of types below 256 (RFC 4034 section 4.1.2).
      var map: [UInt8] = []
      for type in types where type.rawValue < 256 {
        let place = Int(type.rawValue / 8)
        while map.count <= place { map.append(0) }
        map[place] |= 0x80 >> UInt8(type.rawValue % 8)
      }
      data.uint8(0)
      data.uint8(UInt8(map.count))
      data.append(map)
    case .other: return
    }
    write(record.name, to: &writer)
    writer.uint16(type.rawValue)
    writer.uint16(internet | (record.isUnique ? highBit : 0))
    writer.uint32(record.lifetime)
    writer.uint16(UInt16(truncatingIfNeeded: data.count))
    writer.append(data.bytes)
  }

  private static func write(_ name: String, to writer: inout ByteWriter) {
    for label in name.utf8.split(separator: UInt8(ascii: ".")) {
      let part = Array(label.prefix(63))
      writer.uint8(UInt8(part.count))
      writer.append(part)
    }
    writer.uint8(0)
  }

  // MARK: Reading

  /// The maximum number of questions and of records read; a message with more questions is
  /// malformed.
  private static let entriesMaximum = 32

  /// Parses a message; nil if it is malformed.
  package init?(_ bytes: [UInt8]) {
    guard let message = try? DNSMessage(reading: bytes) else { return nil }
    self = message
  }

  private init(reading bytes: [UInt8]) throws(ReadError) {
    var reader = ByteReader(bytes.span.bytes)
    id = try reader.uint16()
    let flags = try reader.uint16()
    // Only standard queries matter here (RFC 6762 section 18.3).
    guard flags & 0x7800 == 0 else { throw .malformed }
    isResponse = flags & 0x8000 != 0
    let questionCount = Int(try reader.uint16())
    let recordCount = Int(try reader.uint16())
    try reader.skip(4)
    guard questionCount <= DNSMessage.entriesMaximum else { throw .malformed }
    for _ in 0..<questionCount {
      let name = try DNSMessage.name(&reader, in: bytes)
      let type = DNSType(rawValue: try reader.uint16())
      let unicast = try reader.uint16() & DNSMessage.highBit != 0
      questions.append(Question(name: name, type: type, wantsUnicast: unicast))
    }
    for _ in 0..<min(recordCount, DNSMessage.entriesMaximum) {
      answers.append(try DNSMessage.record(&reader, in: bytes))
    }
  }

  private static func record(_ reader: inout ByteReader, in bytes: [UInt8]) throws(ReadError)
    -> Record
  {
    let name = try name(&reader, in: bytes)
    let type = DNSType(rawValue: try reader.uint16())
    let isUnique = try reader.uint16() & highBit != 0
    let lifetime = try reader.uint32()
    let data = [UInt8](try reader.span(Int(try reader.uint16())))
    var value = Record.Value.other(type)
    if type == .a || type == .aaaa {
      guard data.count == (type == .a ? 4 : 16), let ip = IPAddress(bytes: data) else {
        throw .malformed
      }
      value = .address(ip)
    } else if type == .nsec {
      value = .types(types(data))
    }
    return Record(name: name, value: value, lifetime: lifetime, isUnique: isUnique)
  }

  /// Parses the types in an NSEC record's first window; the name before it may be compressed.
  private static func types(_ data: [UInt8]) -> [DNSType] {
    var place = 0
    while place < data.count, data[place] != 0, data[place] < 0x40 { place += Int(data[place]) + 1 }
    place += place < data.count && data[place] >= 0xc0 ? 2 : 1
    guard place + 2 <= data.count, data[place] == 0 else { return [] }
    let map = data[(place + 2)...].prefix(Int(data[place + 1]))
    var found: [DNSType] = []
    for (index, byte) in map.enumerated() {
      for bit in 0..<8 where byte & 0x80 >> UInt8(bit) != 0 {
        found.append(DNSType(rawValue: UInt16(index * 8 + bit)))
      }
    }
    return found
  }

  /// Parses a name that may end with a pointer to an earlier one (RFC 1035 section 4.1.4).
  private static func name(_ reader: inout ByteReader, in bytes: [UInt8]) throws(ReadError)
    -> String
  {
    var labels: [String] = []
    var length = 0
    while true {
      let count = try reader.uint8()
      if count == 0 { return labels.joined(separator: ".") }
      if count >= 0xc0 {
        let target = Int(count & 0x3f) << 8 | Int(try reader.uint8())
        labels += try pointed(target, in: bytes, length: length)
        return labels.joined(separator: ".")
      }
      labels.append(try label(count, &reader, &length))
    }
  }

  /// Follows a pointer to its labels; further pointers must lead backwards, so the loop ends.
  private static func pointed(_ target: Int, in bytes: [UInt8], length: Int) throws(ReadError)
    -> [String]
  {
    var labels: [String] = []
    var length = length
    var limit = target + 1
    var reader = ByteReader(bytes.span.bytes)
    try reader.skip(target)
    while true {
      let count = try reader.uint8()
      if count == 0 { return labels }
      if count >= 0xc0 {
        let next = Int(count & 0x3f) << 8 | Int(try reader.uint8())
        guard next < limit - 1 else { throw .malformed }
        limit = next + 1
        reader = ByteReader(bytes.span.bytes)
        try reader.skip(next)
        continue
      }
      labels.append(try label(count, &reader, &length))
    }
  }

  private static func label(
    _ count: UInt8, _ reader: inout ByteReader, _ length: inout Int
  ) throws(ReadError) -> String {
    length += Int(count) + 1
    guard count < 0x40, length <= 255 else { throw .malformed }
    return String(decoding: [UInt8](try reader.span(Int(count))), as: UTF8.self).lowercased()
  }
}
