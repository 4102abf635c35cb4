import Wire

// libwebrtc's event logs, version 2 (rtc_event_log2.proto) and version 1, which contain RTP
// headers.

extension PacketRecording {
  mutating func readEventLog(_ file: [UInt8]) {
    var log = EventLog(file)
    log.readPackets { packet in
      add(
        packet.bytes, at: packet.unixMilliseconds * 1_000_000 + packet.microseconds * 1000,
        isOutgoing: packet.isOutgoing, originalLength: packet.length)
    }
    if !log.hasDate { notes.append("it contains no date: the take begins in 1970") }
    if log.logCount > 1 {
      notes.append("it contains \(log.logCount) logs, one after another, in one take")
    }
    if log.hasNoExtensionIDs {
      notes.append("it contains no header extension ids: the import assigns them")
    }
    notes.append("it contains RTP headers without payloads, so nothing can be decoded")
    if !log.others.isEmpty {
      let list = log.others.map { counted($0.count, $0.what) }.joined(separator: ", ")
      notes.append("omitted, because a take cannot contain it: \(list)")
    }
    if log.damagedBytes > 0 {
      notes.append("\(counted(UInt64(log.damagedBytes), "byte")) are damaged or cut off")
    }
  }
}

/// Parses the messages of an event log, and passes its packets to a closure one by one.
package struct EventLog {
  struct Packet {
    /// The Unix time in milliseconds; if the log has no date, the time since it began.
    var unixMilliseconds: Int64
    /// The microseconds within the millisecond, from 0 to 999.
    var microseconds: Int64 = 0
    var isOutgoing: Bool
    var bytes: [UInt8]
    var length: Int
  }

  typealias Sink = (Packet) -> Void

  private let file: [UInt8]
  private var packetCount = 0
  /// The time at which the current log began, by its own clock and as Unix time.
  private var beganMilliseconds: Int64?
  private var beganUnixMilliseconds: Int64 = 0
  /// Whether the file states a date.
  private(set) var hasDate = false
  /// The number of consecutive logs in the file.
  private(set) var logCount = 1
  private(set) var damagedBytes = 0
  private(set) var hasNoExtensionIDs = false
  /// The numbers of events other than packets, by name, in order of first appearance.
  private(set) var others: [(what: String, count: UInt64)] = []

  private static let otherNames: [Int: String] = [
    6: "audio playout event", 7: "decoded frame", 18: "loss-based estimate",
    19: "delay-based estimate", 20: "audio adaptation", 21: "probe cluster", 22: "probe result",
    23: "failed probe", 24: "application limit", 25: "candidate pair", 26: "connectivity check",
    27: "DTLS state", 28: "DTLS writable state", 32: "route change", 33: "remote estimate",
    34: "minimum delay",
  ]

  /// Determines when the log began; the event that states it may follow the first packets.
  init(_ file: [UInt8]) {
    self.file = file
    var reader = ProtobufReader(file[...])
    var first: Int64?
    while let field = reader.next() {
      guard case .bytes(let body) = field.value else { continue }
      switch field.number {
      case 1:
        guard let time = ProtobufMessage(body).integer(1) else { continue }
        first = min(first ?? time / 1000, time / 1000)
      case 16 where !hasDate: begin(ProtobufMessage(body))
      case 2...5: first = first ?? ProtobufMessage(body).integer(1)
      default: break
      }
    }
    beganMilliseconds = beganMilliseconds ?? first
    damagedBytes = reader.rest
  }

  private mutating func begin(_ event: ProtobufMessage) {
    beganMilliseconds = event.integer(1) ?? beganMilliseconds
    beganUnixMilliseconds = max(0, min(event.integer(3) ?? 0, 4_000_000_000_000))
    hasDate = hasDate || beganUnixMilliseconds > 0
  }

  /// Converts a time of the current log's clock to Unix time.
  private func unixMilliseconds(_ time: Int64) -> Int64 {
    let passed = beganMilliseconds.map { time &- $0 } ?? 0
    return beganUnixMilliseconds + max(-86_400_000_000, min(passed, 86_400_000_000))
  }

  /// Reads the events, and emits the packets among them.
  mutating func readPackets(_ emit: Sink) {
    var reader = ProtobufReader(file[...])
    var logs = 0
    while packetCount < Self.packetsMaximum, let field = reader.next() {
      guard case .bytes(let body) = field.value else { continue }
      switch field.number {
      case 1: readEvent(ProtobufMessage(body), emit)
      case 2, 3: readPackets(ProtobufMessage(body), isOutgoing: field.number == 3, emit)
      case 4, 5: readControl(ProtobufMessage(body), isOutgoing: field.number == 5, emit)
      case 16:
        // Another log follows, perhaps from a process with another clock.
        begin(ProtobufMessage(body))
        logs += 1
        logCount = logs
      default: if let what = Self.otherNames[field.number] { count(what) }
      }
    }
  }

  /// The maximum number of packets in total: libwebrtc's logs have at most 250 MB.
  private static let packetsMaximum = 10_000_000
  /// The maximum number of packets in one batch, whose values are decoded together: libwebrtc
  /// writes a batch every few seconds, or after some 10,000 events.
  private static let batchMaximum: Int64 = 200_000

  // MARK: Detection

  /// The fields of an event stream (rtc_event_log2.proto).
  private static let fields: Set<Int> = Set(2...7).union(16...34).union(101...104)

  /// Returns whether a file begins with version 2 events.
  ///
  /// Such a file begins with the event that begins a log, or with several events whose first field
  /// is a time.
  static func beginsLikeVersion2(_ head: [UInt8]) -> Bool {
    var reader = ProtobufReader(head[...])
    var events = 0
    while events < 4, let field = reader.next() {
      guard case .bytes(let body) = field.value, fields.contains(field.number),
        body.first == 0x08
      else { return false }
      if field.number == 16 { return true }
      events += 1
    }
    return events >= 4 || (events > 1 && reader.rest == 0)
  }

  /// Returns whether a file begins with the first event of version 3.
  package static func beginsLikeVersion3(_ head: [UInt8]) -> Bool {
    head.starts(with: [0x80, 0xd6, 0x80, 0x25])
  }

  // MARK: Version 1

  /// Returns whether a file begins with the length, time and kind of a version 1 event.
  static func beginsLikeVersion1(_ head: [UInt8]) -> Bool {
    var reader = ProtobufReader(head[...])
    guard head.first == 0x0a, let field = reader.next(), case .bytes(let body) = field.value else {
      return false
    }
    let event = ProtobufMessage(body)
    guard body.first == 0x08, let kind = event.integer(2), (1...18).contains(kind) else {
      return false
    }
    return event.integer(1) != nil
  }

  /// Names of version 1 events that are not packets, by kind.
  private static let version1Names: [Int64: String] = [
    5: "audio playout event", 6: "loss-based estimate", 7: "delay-based estimate",
    8: "stream configuration", 9: "stream configuration", 10: "stream configuration",
    11: "stream configuration", 16: "audio adaptation", 17: "probe cluster", 18: "probe result",
  ]

  private mutating func readEvent(_ event: ProtobufMessage, _ emit: Sink) {
    guard let time = event.integer(1), let kind = event.integer(2) else { return }
    let body = ProtobufMessage(event.bytes(kind == 3 ? 3 : 4) ?? [])
    let bytes: ArraySlice<UInt8>?
    switch kind {
    case 3: bytes = body.bytes(4)
    case 4: bytes = body.bytes(3)
    default:
      if let what = Self.version1Names[kind] { count(what) }
      return
    }
    guard let bytes, bytes.count >= 4, let isIncoming = body.integer(1) else { return }
    let length = kind == 3 ? Int(clamping: body.integer(3) ?? 0) : bytes.count
    packetCount += 1
    emit(
      Packet(
        unixMilliseconds: unixMilliseconds(time / 1000), microseconds: max(0, time % 1000),
        isOutgoing: isIncoming == 0, bytes: Array(bytes),
        length: max(bytes.count, min(length, 65_000))))
  }

  private mutating func count(_ what: String) {
    if let place = others.firstIndex(where: { $0.what == what }) {
      others[place].count += 1
    } else {
      others.append((what, 1))
    }
  }

  // MARK: Packets

  /// Reads a batch of packets: the first packet's fields, the number of further packets, and their
  /// deltas in fields from 101 on.
  private mutating func readPackets(
    _ message: ProtobufMessage, isOutgoing: Bool, _ emit: Sink
  ) {
    // The log may state any number of packets, but sequence numbers differ from packet to packet,
    // so each packet needs at least one bit of delta.
    let room = min(Int64((message.bytes(104)?.count ?? 0) * 8), Self.batchMaximum)
    let count = min(max(message.integer(11) ?? 0, 0), room)
    guard let time = message.integer(1), message.integer(6) != nil else { return }
    func values(_ field: Int) -> [UInt64?] {
      DeltaReader.values(
        base: message.unsigned(field), deltas: message.bytes(100 + field), count: Int(count))
    }
    let times = [Int64?](
      [time]
        + DeltaReader.values(
          base: UInt64(bitPattern: time), deltas: message.bytes(101), count: Int(count)
        ).dropFirst().map { $0.map { Int64(bitPattern: $0) } })
    let (markers, types, numbers) = (values(2), values(3), values(4))
    let (clocks, sources) = (values(5), values(6))
    let (payloads, headers, paddings) = (values(8), values(9), values(10))
    let (transport, levels, voices) = (values(15), values(19), values(20))
    let sendTimes = values(17)
    for place in 0...Int(count) {
      guard let source = sources[place], let number = numbers[place] else { continue }
      var head = ByteWriter()
      var extensions: [(UInt8, [UInt8])] = []
      if let value = transport[place] {
        extensions.append(
          (5, [UInt8(truncatingIfNeeded: value >> 8), UInt8(truncatingIfNeeded: value)]))
      }
      if let value = sendTimes[place] {
        extensions.append(
          (2, [16, 8, 0].map { UInt8(truncatingIfNeeded: value >> UInt64($0)) }))
      }
      if let value = levels[place] {
        let voice: UInt8 = voices[place] == 1 ? 128 : 0
        extensions.append((1, [voice | UInt8(truncatingIfNeeded: value & 127)]))
      }
      if !extensions.isEmpty { hasNoExtensionIDs = true }
      head.uint8(extensions.isEmpty ? 0x80 : 0x90)
      head.uint8(
        UInt8(truncatingIfNeeded: types[place] ?? 0) & 127 | (markers[place] == 1 ? 128 : 0))
      head.uint16(UInt16(truncatingIfNeeded: number))
      head.uint32(UInt32(truncatingIfNeeded: clocks[place] ?? 0))
      head.uint32(UInt32(truncatingIfNeeded: source))
      if !extensions.isEmpty {
        var body: [UInt8] = extensions.flatMap { [$0 << 4 | UInt8($1.count - 1)] + $1 }
        while body.count % 4 != 0 { body.append(0) }
        head.uint16(0xbede)
        head.uint16(UInt16(body.count / 4))
        head.append(body)
      }
      let length = [headers[place], payloads[place], paddings[place]]
        .reduce(0) { $0 + Int(min($1 ?? 0, 65_000)) }
      packetCount += 1
      emit(
        Packet(
          unixMilliseconds: unixMilliseconds(times[place] ?? time), isOutgoing: isOutgoing,
          bytes: head.bytes, length: max(length, head.bytes.count)))
    }
  }

  private mutating func readControl(
    _ message: ProtobufMessage, isOutgoing: Bool, _ emit: Sink
  ) {
    guard let time = message.integer(1), let first = message.bytes(2) else { return }
    let room = min(Int64(message.bytes(102)?.count ?? 0), Self.batchMaximum)
    let count = Int(min(max(message.integer(3) ?? 0, 0), room))
    let times = DeltaReader.values(
      base: UInt64(bitPattern: time), deltas: message.bytes(101), count: count)
    var blobs = [first]
    blobs += DeltaReader.blobs(message.bytes(102) ?? [], count: count)
    for (place, blob) in blobs.enumerated() where blob.count >= 4 {
      let at = place < times.count ? times[place].map { Int64(bitPattern: $0) } ?? time : time
      packetCount += 1
      emit(
        Packet(
          unixMilliseconds: unixMilliseconds(at), isOutgoing: isOutgoing, bytes: Array(blob),
          length: blob.count))
    }
  }
}

/// A field in the protocol buffers wire format (proto2).
struct ProtobufField {
  enum Value {
    case number(UInt64)
    case bytes(ArraySlice<UInt8>)
  }
  var number: Int
  var value: Value
}

/// Reads a sequence of fields; ends before the first damaged one.
struct ProtobufReader {
  private var bytes: ArraySlice<UInt8>
  /// The number of bytes not parsed yet; once `next` returns nil, these cannot be parsed.
  var rest: Int { bytes.count }

  init(_ bytes: ArraySlice<UInt8>) { self.bytes = bytes }

  mutating func next() -> ProtobufField? {
    var copy = bytes
    guard let tag = Self.varint(&copy), tag >> 3 > 0, tag >> 3 < 1 << 29 else { return nil }
    let number = Int(tag >> 3)
    switch tag & 7 {
    case 0:
      guard let value = Self.varint(&copy) else { return nil }
      bytes = copy
      return ProtobufField(number: number, value: .number(value))
    case 1, 5:
      let count = tag & 7 == 1 ? 8 : 4
      guard copy.count >= count else { return nil }
      let value = copy.prefix(count).reversed().reduce(0 as UInt64) { $0 << 8 | UInt64($1) }
      bytes = copy.dropFirst(count)
      return ProtobufField(number: number, value: .number(value))
    case 2:
      guard let count = Self.varint(&copy), count <= UInt64(copy.count) else { return nil }
      bytes = copy.dropFirst(Int(count))
      return ProtobufField(number: number, value: .bytes(copy.prefix(Int(count))))
    default: return nil
    }
  }

  static func varint(_ bytes: inout ArraySlice<UInt8>) -> UInt64? {
    var value: UInt64 = 0
    for shift in stride(from: 0, to: 70, by: 7) {
      guard let byte = bytes.popFirst() else { return nil }
      if shift < 64 { value |= UInt64(byte & 127) << UInt64(shift) }
      if byte & 128 == 0 { return value }
    }
    return nil
  }
}

/// A message's fields by number; if a number repeats, its last field is used.
struct ProtobufMessage {
  private var fields: [Int: ProtobufField.Value] = [:]

  init(_ bytes: ArraySlice<UInt8>) {
    var reader = ProtobufReader(bytes)
    while let field = reader.next() { fields[field.number] = field.value }
  }

  func unsigned(_ field: Int) -> UInt64? {
    if case .number(let value)? = fields[field] { value } else { nil }
  }

  func integer(_ field: Int) -> Int64? { unsigned(field).map { Int64(bitPattern: $0) } }

  func bytes(_ field: Int) -> ArraySlice<UInt8>? {
    if case .bytes(let value)? = fields[field] { value } else { nil }
  }
}

/// Decodes libwebrtc's delta encoding, a bit stream that uses each byte's highest bit first.
struct DeltaReader {
  private let bytes: ArraySlice<UInt8>
  private var bit = 0

  private init(_ bytes: ArraySlice<UInt8>) { self.bytes = bytes }

  private mutating func read(_ width: Int) -> UInt64? {
    guard width <= 64, bit + width <= bytes.count * 8 else { return nil }
    var value: UInt64 = 0
    for _ in 0..<width {
      let byte = bytes[bytes.startIndex + bit / 8]
      value = value << 1 | UInt64(byte >> UInt8(7 - bit % 8) & 1)
      bit += 1
    }
    return value
  }

  private mutating func varint() -> UInt64? {
    var value: UInt64 = 0
    for shift in stride(from: 0, to: 70, by: 7) {
      guard let byte = read(8) else { return nil }
      if shift < 64 { value |= (byte & 127) << UInt64(shift) }
      if byte & 128 == 0 { return value }
    }
    return nil
  }

  /// Returns the base value, followed by the values that the deltas yield; nil for absent values,
  /// and from the first damaged delta on.
  static func values(base: UInt64?, deltas: ArraySlice<UInt8>?, count: Int) -> [UInt64?] {
    var values: [UInt64?] = [base]
    guard let deltas, !deltas.isEmpty else {
      // Without deltas all values equal the base.
      return values + [UInt64?](repeating: base, count: count)
    }
    values.reserveCapacity(count + 1)
    var reader = DeltaReader(deltas)
    reader.readAll(base: base, count: count, into: &values)
    if values.count < count + 1 {
      values += [UInt64?](repeating: nil, count: count + 1 - values.count)
    }
    return values
  }

  private mutating func readAll(base: UInt64?, count: Int, into values: inout [UInt64?]) {
    guard let type = read(2), type < 2, let widthCode = read(6) else { return }
    let deltaWidth = Int(widthCode) + 1
    var (isSigned, isOptional, valueWidth) = (false, false, 64)
    if type == 1 {
      guard let signed = read(1), let optional = read(1), let width = read(6) else { return }
      (isSigned, isOptional, valueWidth) = (signed == 1, optional == 1, Int(width) + 1)
    }
    var isThere = [Bool](repeating: true, count: count)
    if isOptional {
      for place in 0..<count {
        guard let flag = read(1) else { return }
        isThere[place] = flag == 1
      }
    }
    let mask = valueWidth == 64 ? UInt64.max : (1 << UInt64(valueWidth)) - 1
    var previous = base
    for place in 0..<count {
      guard isThere[place] else {
        values.append(nil)
        continue
      }
      guard let before = previous else {
        // The first present value is not a delta.
        guard let first = varint() else { return }
        previous = first
        values.append(first)
        continue
      }
      guard let delta = read(deltaWidth) else { return }
      let isNegative = isSigned && delta >> UInt64(deltaWidth - 1) & 1 == 1
      let wide = isNegative && deltaWidth < 64 ? delta | ~((1 << UInt64(deltaWidth)) - 1) : delta
      let value = (before &+ wide) & mask
      previous = value
      values.append(value)
    }
  }

  /// Splits bytes into blobs; the lengths of all blobs precede the first one.
  static func blobs(_ bytes: ArraySlice<UInt8>, count: Int) -> [ArraySlice<UInt8>] {
    var rest = bytes
    var sizes: [Int] = []
    for _ in 0..<count {
      guard let length = ProtobufReader.varint(&rest), length <= UInt64(rest.count) else {
        return []
      }
      sizes.append(Int(length))
    }
    var blobs: [ArraySlice<UInt8>] = []
    for length in sizes {
      guard rest.count >= length else { break }
      blobs.append(rest.prefix(length))
      rest = rest.dropFirst(length)
    }
    return blobs
  }
}
