import FoundationEssentials
import ICE
import Tape
import Wire

/// Searches a redacted take for the originals that were replaced in it.
///
/// It searches the file's raw bytes, including free pages, and the decompressed values of all rows.
/// It recognizes originals in UTF-8, UTF-16, hexadecimal, and base64 at any offset, and also
/// addresses that STUN masks.
struct RedactionScan {
  /// Where an original was found, and its length in bytes.
  struct Leak {
    var place: String
    var length: Int
  }

  /// All byte patterns, by their first eight bytes.
  private var patterns: [UInt64: [[UInt8]]] = [:]
  /// Marks the first two bytes of each pattern, so that most places in a file can be skipped fast.
  private var filter = [Bool](repeating: false, count: 1 << 16)
  private let addresses: Set<IPAddress>
  /// Patterns that are in every take, for example because the schema's comments contain them.
  private var universal: Set<[UInt8]> = []
  private(set) var count = 0

  private static let shortest = 8

  /// - Parameter media: excerpts of the original media.
  init(_ standIns: StandIns, media: [[UInt8]]) {
    addresses = Set(standIns.replacedAddresses)
    for (old, _) in standIns.replaced { add(old) }
    for address in addresses {
      add(address.description)
      if !address.isIPv4 { add(bytes: address.bytes) }
    }
    for piece in media { add(bytes: piece) }
    let empty = TakeSchema.emptyBytes ?? []
    while let found = find(empty) {
      universal.insert(Array(empty[found.offset..<found.offset + found.length]))
    }
  }

  private mutating func add(_ text: String) {
    let bytes = Array(text.utf8)
    guard bytes.count >= Self.shortest else { return }
    count += 1
    insert(bytes)
    insert(bytes.flatMap { [$0, 0] })
    insert(bytes.flatMap { [0, $0] })
    insert(Array(hexadecimal(bytes).utf8))
    insert(Array(hexadecimal(bytes).uppercased().utf8))
    for skipped in 0..<3 { insert(Self.base64(bytes, skipped)) }
    let escaped = Array(JSONText.text(text).text.utf8.dropFirst().dropLast())
    if escaped != bytes { insert(escaped) }
    let percent = bytes.flatMap { byte in
      Self.unreserved.contains(byte)
        ? [byte] : [UInt8(ascii: "%")] + Array(hexadecimal([byte]).uppercased().utf8)
    }
    if percent != bytes { insert(percent) }
    // The text may be hexadecimal, so its bytes are searched for too.
    if let binary = [UInt8](hexadecimal: text.utf8.filter { $0 != 58 && $0 != 45 }) {
      add(bytes: binary)
    }
  }

  /// The characters that are not percent-encoded in URLs (RFC 3986 section 2.3).
  private static let unreserved = Set(
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~".utf8)

  private mutating func add(bytes: [UInt8]) {
    guard bytes.count >= Self.shortest else { return }
    count += 1
    insert(bytes)
    insert(Array(hexadecimal(bytes).utf8))
    for skipped in 0..<3 { insert(Self.base64(bytes, skipped)) }
  }

  /// Returns the base64 digits of bytes that are surrounded by other data.
  ///
  /// The first `skipped` bytes and up to two at the end are left out, because their digits depend
  /// on the neighbouring bytes.
  private static func base64(_ bytes: [UInt8], _ skipped: Int) -> [UInt8] {
    let whole = bytes.dropFirst(skipped)
    let text = Data(whole.prefix(whole.count / 3 * 3)).base64EncodedString()
    return Array(text.utf8)
  }

  private mutating func insert(_ pattern: [UInt8]) {
    guard pattern.count >= Self.shortest else { return }
    let head = Self.head(pattern, 0)
    filter[Int(truncatingIfNeeded: head & 0xffff)] = true
    patterns[head, default: []].append(pattern)
  }

  private static func head(_ bytes: [UInt8], _ start: Int) -> UInt64 {
    (0..<8).reduce(0) { $0 | UInt64(bytes[start + $1]) << UInt64(8 * $1) }
  }

  // MARK: Search

  /// Returns the place of the first original in some bytes; nil if there is none.
  ///
  /// - Parameter ignoresUniversal: whether to ignore patterns that are in every take.
  private func find(_ bytes: [UInt8], from start: Int = 0, ignoresUniversal: Bool = true) -> (
    length: Int, offset: Int
  )? {
    guard bytes.count >= start + 8 else { return nil }
    var window = Self.head(bytes, start)
    var next = start + 8
    while true {
      if filter[Int(truncatingIfNeeded: window & 0xffff)], let found = patterns[window] {
        let start = next - 8
        for pattern in found where start + pattern.count <= bytes.count {
          if bytes[start..<start + pattern.count].elementsEqual(pattern),
            !ignoresUniversal || !universal.contains(pattern)
          {
            return (pattern.count, start)
          }
        }
      }
      guard next < bytes.count else { return nil }
      window = window >> 8 | UInt64(bytes[next]) << 56
      next += 1
    }
  }

  /// Replaces all originals in the text, even inside longer words.
  func scrubbed(_ text: String, _ standIns: StandIns) -> String {
    var bytes = Array(text.utf8)
    var start = 0
    while let found = find(bytes, from: start, ignoresUniversal: false) {
      let range = found.offset..<found.offset + found.length
      let new = Array(standIns.within(String(decoding: bytes[range], as: UTF8.self)).utf8)
      guard new.count == range.count else { break }
      var kept = 0
      for (place, byte) in zip(range, new) {
        // JSON escapes are kept: a backslash with one character, or with `u` and four digits.
        if kept == 0, bytes[place] == UInt8(ascii: "\\") {
          kept = place + 1 < bytes.count && bytes[place + 1] == UInt8(ascii: "u") ? 6 : 2
        }
        if kept == 0 { bytes[place] = byte } else { kept -= 1 }
      }
      start = range.upperBound
    }
    return String(decoding: bytes, as: UTF8.self)
  }

  /// Searches a take; nil if nothing of the original is left.
  func leak(in path: String) throws(TapeError) -> Leak? {
    let reader = try TapeReader(path: path)
    if let found = find(Array(reader.header.label.utf8)) {
      return Leak(place: "take, label", length: found.length)
    }
    while let chunk = try reader.chunk() {
      for step in chunk.steps {
        for row in step.rows {
          if let leak = leak(chunk.rows, row, step.head.number) { return leak }
        }
      }
    }
    return try fileLeak(path)
  }

  private func leak(_ rows: RowList, _ row: Int, _ step: Int) -> Leak? {
    let table = rows.table(row)
    for (index, value) in rows.row(row).enumerated() {
      let bytes: [UInt8]
      switch value {
      case .text(let text): bytes = Array(text.utf8)
      case .blob(let blob): bytes = blob
      default: continue
      }
      let place = "\(table.name), column \(table.columns[index].name), step \(step)"
      if let found = find(bytes, ignoresUniversal: false) {
        return Leak(place: place, length: found.length)
      }
      if table == .packet, hasAddress(bytes) {
        return Leak(place: place + ", in an address of STUN", length: 4)
      }
    }
    return nil
  }

  /// Returns whether a STUN message contains one of the original addresses.
  private func hasAddress(_ bytes: [UInt8]) -> Bool {
    guard let first = bytes.first, first < 4, let message = try? STUNMessage(bytes) else {
      return false
    }
    return message.attributes.contains { attribute in
      let value = Array(bytes[attribute.range])
      return [nil, message.transactionID].contains { transaction in
        SocketAddress(stun: value.span.bytes, maskedBy: transaction).map {
          addresses.contains($0.ip)
        } ?? false
      }
    }
  }

  /// Searches the raw bytes of a take's files, which also contain deleted rows; nil if nothing is
  /// found.
  private func fileLeak(_ path: String) throws(TapeError) -> Leak? {
    for name in [path, path + "-wal", path + "-journal"] {
      guard case .success(let descriptor) = FileBytes.open(name) else { continue }
      let file = FileDescriptor(descriptor)
      var offset: UInt64 = 0
      var rest: [UInt8] = []
      while true {
        let bytes = file.read(atMost: 1 << 20, from: offset)
        guard !bytes.isEmpty else { break }
        offset += UInt64(bytes.count)
        let window = rest + bytes
        if let found = find(window) {
          return Leak(
            place: "the bytes of the file before \(offset)", length: found.length)
        }
        rest = Array(window.suffix(4_096))
      }
    }
    return nil
  }
}
