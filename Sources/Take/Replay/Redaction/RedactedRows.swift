import Crypto
import Peer
import Room
import Tape
import Wire

/// Redacts the rows of a take, inputs and outputs alike.
///
/// The stack is then driven with the redacted inputs. If that is impossible, the redacted outputs
/// are used.
final class RedactedRows {
  private let text: RedactedText
  private let packets: RedactedPackets?
  private var paths: [Int64: (peer: UInt32, isInbound: Bool)] = [:]
  private var codecs: [Int64: String] = [:]
  private var blankContents: Set<Int64> = []
  private var kinds: [UInt32: MachineKind] = [:]
  /// Who wrote the text of the row being redacted.
  private var author = RedactedText.Author.anybody
  /// Each actor's random bytes, by stream: the redacted take has them instead of the seed.
  var drawn: [UInt32: [String: String]] = [:]
  /// Replaces originals that are left in a redacted string; nil until a search has found one in the
  /// new take.
  var scrub: ((String) -> String)?

  /// - Parameter packets: redacts datagrams; nil leaves them unchanged.
  init(_ text: RedactedText, _ packets: RedactedPackets?) {
    (self.text, self.packets) = (text, packets)
  }

  private var parts: Redaction.Parts { text.standIns.parts }

  /// Returns the redacted rows of a step.
  func mapped(_ step: TapeChunk.Step, _ rows: RowList) -> RowList {
    var copy = RowList()
    let actor = step.head.actor
    if step.head.kind == .genesis { kinds[actor] = ActorWords(step, rows).kind }
    let kind = kinds[actor] ?? .endpoint
    let isOwn = kind != .observer && kind != .reported
    for row in step.rows {
      author = !isOwn ? .anybody : step.outputRows.contains(row) ? .machine : .caller
      let table = rows.table(row)
      if table == .content, dropsContent(of: step, rows, row) { continue }
      var values = rows.row(row)
      for (index, column) in table.columns.enumerated() where index < values.count {
        switch values[index] {
        case .text(let old): values[index] = .text(text(old, table, column.name, rows, row))
        case .blob(let old):
          values[index] = .blob(bytes(old, table, column.name, rows, row, actor))
        default: break
        }
      }
      finish(&values, table, rows, row, actor)
      if let scrub {
        for index in values.indices {
          if case .text(let text) = values[index] { values[index] = .text(scrub(text)) }
        }
      }
      copy.append(table, values)
    }
    return copy
  }

  // MARK: Text

  private func text(
    _ old: String, _ table: Table, _ column: String, _ rows: RowList, _ row: Int
  ) -> String {
    switch (table, column) {
    case (.path, _) where column != "direction", (.candidate, "address"),
      (.candidate, "related_address"), (.candidatePair, "local"), (.candidatePair, "remote"),
      (.candidatePair, "base"):
      return text.host(old)
    case (.network, "address"), (.network, "remote"): return text.hosts(old)
    case (.candidate, "username_fragment"): return text.standIns.word(old, .keys)
    case (.candidate, "extensions"): return text.free(old)
    case (.peer, "label"), (.actor, "label"), (.peer, "role"): return text.value(old)
    case (.channel, "label"), (.channel, "protocol"): return text.standIns.word(old, .names)
    case (.presence, "id"), (.presence, "name"), (.carriage, "extra_value"):
      return text.standIns.word(old, .names)
    case (.signaling, "message"): return text.value(old, key: "signaling")
    case (.callRequest, "arguments"), (.callReply, "reply"), (.event, "detail"),
      (.peer, "configuration"), (.actor, "configuration"), (.stat, "members"), (.rtcp, "fields"):
      return arguments(old, rows, row)
    case (.callReply, "error") where author == .anybody: return text.value(old, key: "error")
    case (.stat, "id"): return text.by(author).object(old) ?? text.free(old)
    case (.callReply, "error"), (.coverage, "reason"): return text.free(old)
    case (.capture, "kind"), (.relayed, "protocol"): return old
    default: return text.standIns.known(old).map { Vocabulary.isCommon(old) ? old : $0 } ?? old
    }
  }

  /// Redacts a column that contains JSON or any other text, such as a call's arguments.
  private func arguments(_ old: String, _ rows: RowList, _ row: Int) -> String {
    if let call = CallRequestRow(rows, row), call.name == "keyLog" || call.name == "srtpKey" {
      return keyed(old, as: call.name == "keyLog" ? "keylog" : "srtpkey")
    }
    guard let first = old.utf8.first else { return old }
    let isJSON = first == UInt8(ascii: "{") || first == UInt8(ascii: "[")
    if isJSON { return text.by(author).json(old) }
    if first == UInt8(ascii: "\""), let value = CanonicalJSON.value(String.self, from: old) {
      return JSONText.text(text.value(value)).text
    }
    return first < 0x3a || ["null", "true", "false"].contains(old) ? old : text.free(old)
  }

  private func keyed(_ old: String, as key: String) -> String {
    guard let values = CanonicalJSON.value([String: String].self, from: old) else {
      return text.json(old)
    }
    return CanonicalJSON.text(values.mapValues { text.value($0, key: key) })
  }

  // MARK: Bytes

  private func bytes(
    _ old: [UInt8], _ table: Table, _ column: String, _ rows: RowList, _ row: Int, _ actor: UInt32
  ) -> [UInt8] {
    switch (table, column) {
    case (.peer, "seed"), (.actor, "seed"):
      return parts.contains(.keys)
        ? text.standIns.noise("seed", old + [UInt8(truncatingIfNeeded: actor)], count: old.count)
        : old
    case (.packet, "bytes"):
      guard let packets, case .integer(let path) = rows[row, column: "path"],
        let known = paths[path]
      else { return old }
      return packets.datagram(old, of: known.peer, isInbound: known.isInbound)
    case (.frame, "bytes"):
      guard parts.contains(.media), case .integer(let format) = rows[row, column: "format"] else {
        return old
      }
      return RedactedMedia.frame(old, codecs[format] ?? "")
    case (.relayed, "bytes"):
      return packets?.datagram(old, of: 0, isInbound: true) ?? old
    case (.content, "bytes") where RedactedRows.isRelayed(rows, row):
      return packets?.datagram(old, of: 0, isInbound: true) ?? old
    case (.content, "bytes"):
      return parts.contains(.media) ? blank(old, rows, row) : old
    case (.message, "bytes"):
      guard parts.contains(.messages) else { return old }
      return RedactedSCTP.message(old, isBinary: rows[row, column: "binary"] == .integer(1))
    default: return old
    }
  }

  /// Returns whether a row is the content of an unencrypted packet that a relay forwards.
  static func isRelayed(_ rows: RowList, _ row: Int) -> Bool {
    row + 1 < rows.count && CaptureRow(rows, row + 1)?.isRelayed == true
  }

  /// Redacts captured media without changing its length: encoded frames keep their headers, audio
  /// keeps its level, and raw video becomes zeros.
  private func blank(_ old: [UInt8], _ rows: RowList, _ row: Int) -> [UInt8] {
    for next in (row + 1)..<max(row + 1, min(rows.count, row + 4)) {
      guard let capture = CaptureRow(rows, next) else { continue }
      if capture.kind == "h264" || capture.kind == "av1" {
        return RedactedMedia.frame(old, capture.kind)
      }
      let channels = min(max(capture.channels ?? 1, 1), 64)
      return RedactedRows.hum(
        old, samples: channels * min(max(capture.samples ?? 1, 1), 1 << 24))
    }
    return [UInt8](repeating: 0, count: old.count)
  }

  /// Returns a tone at the original's level, as 16-bit integers or 32-bit floats like the original;
  /// zeros if the samples have another size.
  private static func hum(_ old: [UInt8], samples count: Int) -> [UInt8] {
    var made: [UInt8] = []
    made.reserveCapacity(old.count)
    switch old.count / count {
    case 2:
      let values = (0..<count).map { index in
        Double(Int16(bitPattern: UInt16(old[2 * index]) | UInt16(old[2 * index + 1]) << 8))
      }
      let level = (values.reduce(0) { $0 + $1 * $1 } / Double(count)).squareRoot()
      let loud = Int16(clamping: Int(level.rounded()))
      for index in 0..<count {
        let bits = UInt16(bitPattern: index % 4 < 2 ? loud : -loud)
        made += [UInt8(truncatingIfNeeded: bits), UInt8(truncatingIfNeeded: bits >> 8)]
      }
    case 4:
      let values = (0..<count).map { index -> Float in
        Float(
          bitPattern: (0..<4).reduce(0) { $0 | UInt32(old[4 * index + $1]) << UInt32(8 * $1) })
      }
      let sum = values.reduce(Float(0)) { $0 + ($1.isFinite ? $1 * $1 : 0) }
      let level = (sum / Float(count)).squareRoot()
      for index in 0..<count {
        let bits = (index % 4 < 2 ? level : -level).bitPattern
        made += (0..<4).map { UInt8(truncatingIfNeeded: bits >> UInt32(8 * $0)) }
      }
    default: break
    }
    return made + [UInt8](repeating: 0, count: max(0, old.count - made.count))
  }

  /// Returns whether a `content` row is removed.
  ///
  /// Captured audio and video of endpoints is removed. Recorded frames replace the codecs that
  /// would encode it, so only its size matters.
  private func dropsContent(of step: TapeChunk.Step, _ rows: RowList, _ row: Int) -> Bool {
    guard parts.contains(.media), kinds[step.head.actor] ?? .endpoint == .endpoint,
      let content = ContentRow(rows, row)
    else { return false }
    for next in step.rows where next > row {
      guard let capture = CaptureRow(rows, next) else { continue }
      guard capture.kind == "audio" || capture.kind == "video" else { return false }
      blankContents.insert(content.number)
      return true
    }
    return false
  }

  // MARK: Dependent values

  /// Records values that later rows depend on, and recomputes values such as digests that depend on
  /// redacted columns.
  private func finish(
    _ values: inout [Value], _ table: Table, _ rows: RowList, _ row: Int, _ actor: UInt32
  ) {
    func set(_ name: String, _ value: Value) {
      if let place = table.column(name), place < values.count { values[place] = value }
    }
    func blob(_ name: String) -> [UInt8]? {
      guard let place = table.column(name), place < values.count,
        case .blob(let bytes) = values[place]
      else { return nil }
      return bytes
    }
    switch table {
    case .path:
      if let path = PathRow(rows, row) {
        paths[path.number] = (path.peer.number, path.direction.isInbound || path.peer.number == 0)
      }
    case .format:
      if let format = FormatRow(rows, row) { codecs[format.number] = format.codec.lowercased() }
    case .content: if let bytes = blob("bytes") { set("digest", .blob(SHA256.hash(bytes))) }
    case .capture:
      if case .integer(let number) = rows[row, column: "content"], blankContents.contains(number) {
        set("content", .null)
      }
    case .frame: if parts.contains(.media) { set("digest", .null) }
    case .message:
      guard parts.contains(.messages), blob("digest") != nil, let message = MessageRow(rows, row)
      else { return }
      let bytes = [UInt8](
        repeating: message.isBinary ? 0xaa : UInt8(ascii: "x"),
        count: min(max(0, message.size), 1 << 24))
      set("digest", .blob(SHA256.hash(bytes)))
    case .peer, .actor:
      guard case .text(let configuration)? = table.column("configuration").map({ values[$0] })
      else { return }
      set("configuration", .text(settings(configuration, table, actor)))
    default: break
    }
  }

  /// Returns a machine's configuration with the bytes that it drew, which replace its seed.
  private func settings(_ configuration: String, _ table: Table, _ actor: UInt32) -> String {
    let scripts = drawn[actor]
    if table == .peer {
      guard var settings = CanonicalJSON.value(PeerConfiguration.self, from: configuration),
        scripts != nil || !settings.certificates.isEmpty && parts.contains(.keys)
      else { return configuration }
      settings.drawnBytes = scripts ?? settings.drawnBytes
      // The certificates are not needed: DTLS results come from the recording.
      if parts.contains(.keys) { settings.certificates = [] }
      return CanonicalJSON.text(settings)
    }
    guard kinds[actor] == .room, let scripts,
      var settings = CanonicalJSON.value(RoomConfiguration.self, from: configuration)
    else { return configuration }
    settings.drawnBytes = scripts
    return CanonicalJSON.text(settings)
  }
}
