import ICE
import Peer
import Secure
import Tape
import Wire

/// Decodes the unencrypted fields of a datagram; the bytes may be malformed.
enum PacketFields {
  /// Returns the fields in the order of their bytes, at most 200.
  static func of(_ bytes: [UInt8]) -> [DecodedField] {
    var reader = FieldReader(bytes: bytes)
    if let first = bytes.first, (64..<80).contains(first), bytes.count > 4 {
      // A TURN ChannelData message (RFC 8656 section 12.4).
      reader.integer("TURN channel", 2)
      reader.integer("TURN length", 2)
      reader.fields += of(Array(bytes.dropFirst(4)))
      return Array(reader.fields.prefix(200))
    }
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

/// Reads named fields in sequence.
private struct FieldReader {
  let bytes: [UInt8]
  var position = 0
  var fields: [DecodedField] = []

  init(bytes: [UInt8]) { self.bytes = bytes }

  var isAtEnd: Bool { position >= bytes.count }

  /// Returns the big-endian number at an offset from the current position; nil if there are too few
  /// bytes.
  func number(_ offset: Int, _ width: Int) -> UInt64? {
    let start = position + offset
    guard start >= 0, start <= bytes.count - width else { return nil }
    return bytes[start..<start + width].reduce(0) { $0 << 8 | UInt64($1) }
  }

  mutating func add(_ name: String, _ value: String) { fields.append(DecodedField(name, value)) }

  mutating func integer(_ name: String, _ width: Int) {
    if let value = number(0, width) { add(name, String(value)) }
    position += width
  }

  mutating func raw(_ name: String, _ count: Int) {
    let end = min(bytes.count, position + max(0, count))
    guard position < end else { return }
    fields.append(DecodedField(name, Array(bytes[position..<end])))
    position = end
  }

  mutating func rest(_ name: String) { raw(name, bytes.count - position) }

  mutating func readSTUN() {
    add("message", PacketText(bytes).title)
    position = 2
    integer("length", 2)
    raw("cookie", 4)
    raw("transaction", 12)
    for attribute in STUNAttributes(found: bytes) where fields.count < 100 {
      let name = PacketText.name(attribute.type)
      let value = Array(bytes[attribute.range])
      fields.append(
        STUNValueText(type: attribute.type, value)?.text.map { DecodedField(name, $0) }
          ?? DecodedField(name, value))
      // In a Send or Data indication, the DATA attribute is itself a packet (RFC 8656 section
      // 18.4).
      if attribute.type == .data, PacketText(value).layer != "transport" {
        fields += PacketFields.of(value)
      }
      position = min(
        bytes.count, attribute.range.lowerBound + STUNMessage.padded(attribute.range.count))
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
    add("version", String(first >> 6))
    add("padding", String(first >> 5 & 1))
    add("marker", String(bytes[1] >> 7))
    add("payload type", String(bytes[1] & 0x7f))
    position = 2
    integer("sequence number", 2)
    integer("timestamp", 4)
    integer("SSRC", 4)
    for _ in 0..<Int(first & 15) { integer("CSRC", 4) }
    if first & 0x10 != 0, let words = number(2, 2) {
      let isOneByte = number(0, 2) == 0xbede
      raw("extension profile", 2)
      position += 2
      let end = min(bytes.count, position + 4 * Int(words))
      if isOneByte { readElements(to: end) }
      raw("extensions", end - position)
    }
    rest("SRTP payload and tag")
  }

  /// Reads RTP header extensions in the one-byte format (RFC 8285 section 4.2).
  private mutating func readElements(to end: Int) {
    while position < end, bytes[position] >> 4 != 15 {
      let (number, length) = (bytes[position] >> 4, Int(bytes[position] & 15) + 1)
      position += 1
      guard number != 0 else { continue }
      raw("extension \(number)", min(length, end - position))
    }
  }

  mutating func readRTCP() {
    add("packet", PacketText(bytes).title)
    add("count", String(bytes[0] & 31))
    position = 2
    integer("length in words", 2)
    integer("sender SSRC", 4)
    rest("SRTCP body, index and tag")
  }
}

/// Formats values of STUN attributes that are hard to read as bytes, such as addresses.
private struct STUNValueText {
  let text: String?

  init?(type: STUNAttributeType, _ value: [UInt8]) {
    let number = value.prefix(4).reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
    switch type {
    case .errorCode where value.count >= 4:
      let reason = String(decoding: value.dropFirst(4), as: UTF8.self)
      text = "\(Int(value[2] & 7) * 100 + Int(value[3])) \(reason)"
    case .lifetime where value.count == 4, .priority where value.count == 4: text = String(number)
    case .channelNumber where value.count == 4: text = String(number >> 16)
    case .requestedTransport where value.count == 4: text = "protocol \(value[0])"
    case .mappedAddress where value.count == 8, .xorPeerAddress where value.count == 8,
      .xorRelayedAddress where value.count == 8, .xorMappedAddress where value.count == 8:
      // Without the transaction id, only IPv4 addresses can be unmasked.
      let transaction = type == .mappedAddress ? nil : STUNTransactionID(high: 0, low: 0)
      text = SocketAddress(stun: value.span.bytes, maskedBy: transaction)?.description
    default: return nil
    }
  }
}

// MARK: - PacketPlace

/// What is known up to a step: the addresses of paths, and the keys for a peer's DTLS data.
struct PacketPlace {
  /// Decrypts the application data that the peer sent; nil before its handshake, or without a key
  /// log.
  private var protection: DTLSRecordProtection?
  private let path: String

  /// Reads what the take contains up to the end of a step; an unreadable file counts as empty.
  init(path: String, peer: UInt32?, before step: Int) {
    self.path = path
    protection = peer.flatMap { try? Self.protection(path, $0, step) }
  }

  private static func protection(_ path: String, _ peer: UInt32, _ step: Int) throws
    -> DTLSRecordProtection?
  {
    let connection = try TakeFile.open(path)
    let events = try connection.prepare(
      """
      SELECT type, detail FROM event
      WHERE peer = \(peer) AND type IN ('secured', 'keylog') AND row < \(Int64(step + 1) << 16)
      ORDER BY row
      """)
    var secured: SecuredText?
    var log: KeyLogText?
    while try events.step() {
      let (type, detail) = events.values(String.self, String.self)
      if type == "secured" {
        secured = CanonicalJSON.value(SecuredText.self, from: detail)
      } else {
        log = CanonicalJSON.value(KeyLogText.self, from: detail)
      }
    }
    guard let secured, let log = log?.log, let role = DTLSRole(rawValue: secured.role) else {
      return nil
    }
    return DTLSRecordProtection(log.secrets, cipherSuite: secured.cipherSuite, sender: role)
  }

  /// Decrypts a single application data record; nil for anything else, or if the keys do not fit.
  func data(_ record: [UInt8]) -> [UInt8]? {
    let records = DTLSRecord.all(in: record)
    guard records.count == 1, records[0].type == DTLSRecord.applicationData else { return nil }
    return protection?.open(records[0])
  }

  /// Returns the remote address of the sent packet that differs; nil for other rows, and if the
  /// path is unknown.
  func remote(_ difference: StepDifference, _ rows: RowList) -> String? {
    let row: Int?
    switch difference {
    case .value(let recorded, _, _): row = recorded
    case .row(let recorded, _): row = recorded
    case .deadline, .entropy: row = nil
    }
    guard let row, let number = PacketRow(rows, row)?.path.number,
      let connection = try? TakeFile.open(path),
      let paths = try? connection.prepare(
        "SELECT remote FROM path WHERE direction = 'out' AND path = \(number)"),
      (try? paths.step()) == true
    else { return nil }
    return paths.values(String?.self)
  }
}
