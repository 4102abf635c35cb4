package import Wire

/// Dissects a packet into fields with their positions: STUN (RFC 8489), DTLS (RFC 6347 and 9147),
/// RTP and RTCP (RFC 3550), SCTP (RFC 9260), TURN channel headers (RFC 8656).
///
/// The stack's machines parse only the fields that they act upon; this type parses any bytes, as
/// far as possible, for display.
package struct PacketFields: Sendable {
  /// A field with its formatted value and position.
  package struct Field: Hashable, Sendable {
    package let name: String
    package let value: String
    /// The offset of the field's first byte in the packet, and the field's length in bytes.
    package let from: Int
    package let length: Int
  }

  /// The fields of one protocol, or of one of several records or reports in a packet.
  package struct Layer: Hashable, Sendable {
    package let name: String
    package internal(set) var fields: [Field]
  }

  /// The layers, from the outermost inwards.
  package private(set) var layers: [Layer] = []

  /// Dissects a packet.
  ///
  /// - Parameters:
  ///   - kind: the protocol as in the `packet` view, or `sctp` for the contents of DTLS.
  ///   - isClear: whether RTP and RTCP are decrypted; otherwise only their headers are readable.
  package init(_ bytes: [UInt8], kind: String, isClear: Bool = false) {
    guard let first = bytes.first else { return }
    var reader = FieldReader(bytes)
    if first & 0xf0 == 0x40 {
      layers.append(
        reader.layer("TURN channel") { (reader) throws(FieldReader.End) in
          try reader.field("channel", 2, words: FieldReader.hexadecimal32)
          try reader.field("length", 2)
        })
    }
    switch kind == "turn" ? Self.kind(after: reader) : kind {
    case "stun": layers.append(STUNFields.layer(&reader))
    case "dtls": layers += DTLSFields.layers(&reader)
    case "rtp": layers.append(RTPFields.layer(&reader, isClear: isClear))
    case "rtcp": layers += RTCPFields.layers(&reader, isClear: isClear)
    case "sctp": layers.append(SCTPFields.layer(&reader))
    default: break
    }
  }

  /// Returns the protocol inside a TURN channel, by its first byte (RFC 7983 section 7).
  private static func kind(after reader: FieldReader) -> String {
    switch reader.next ?? 0xff {
    case 0..<4: "stun"
    case 20..<64: "dtls"
    default: "other"
    }
  }

  /// Summarizes a packet in one line by its first characteristic field; the start of the packet
  /// suffices.
  package static func line(_ bytes: [UInt8], kind: String) -> String {
    let layers = PacketFields(bytes, kind: kind).layers
    let fields = layers.flatMap(\.fields)
    func value(_ name: String) -> String? { fields.first { $0.name == name }?.value }
    switch kind {
    case "stun": return value("type") ?? ""
    case "dtls": return value("handshake") ?? value("content type") ?? ""
    case "rtcp": return value("packet type") ?? ""
    default: return layers.map(\.name).joined(separator: ", ")
    }
  }

  package var json: JSONText {
    .list(
      layers.map { layer in
        .object([
          ("name", .text(layer.name)),
          (
            "fields",
            .list(
              layer.fields.map { field in
                .object([
                  ("name", .text(field.name)), ("value", .text(field.value)),
                  ("from", .integer(field.from)), ("length", .integer(field.length)),
                ])
              })
          ),
        ])
      })
  }
}

/// Reads numbers and bytes sequentially, recording each as a field with its position.
struct FieldReader {
  /// Thrown if fewer bytes are left than a field has.
  struct End: Error {}

  let bytes: [UInt8]
  /// The next byte's offset.
  var at: Int
  private(set) var fields: [PacketFields.Field] = []
  /// The maximum number of fields per layer, because a packet of 64 KiB could have tens of
  /// thousands.
  private static let fieldMaximum = 1_000
  /// The maximum number of a field's bytes to show.
  private static let shownMaximum = 24

  init(_ bytes: [UInt8], at begin: Int = 0) {
    self.bytes = bytes
    at = begin
  }

  var left: Int { bytes.count - at }

  /// The next byte, which is not consumed; nil at the end.
  var next: UInt8? { at < bytes.count ? bytes[at] : nil }

  var hasRoom: Bool { fields.count < Self.fieldMaximum }

  /// Reads the next number, of at most four bytes, without adding a field for it.
  mutating func number(_ length: Int) throws(End) -> Int {
    guard left >= length else { throw End() }
    let value = bytes[at..<(at + length)].reduce(0) { $0 << 8 | Int($1) }
    at += length
    return value
  }

  /// Reads the next number as a field and returns it.
  @discardableResult
  mutating func field(
    _ name: String, _ length: Int, words: (Int) -> String = { String($0) }
  ) throws(End) -> Int {
    let from = at
    let value = try number(length)
    add(name, words(value), from: from)
    return value
  }

  /// Adds the next `length` bytes, or the remaining bytes if there are fewer, as a field.
  mutating func block(_ name: String, _ length: Int, words: ([UInt8]) -> String = Self.text) {
    let from = at
    let part = part(length)
    add(name, words(part), from: from)
  }

  /// Returns the next `length` bytes, or the remaining bytes if there are fewer.
  mutating func part(_ length: Int) -> [UInt8] {
    let end = min(at + max(length, 0), bytes.count)
    defer { at = end }
    return Array(bytes[at..<end])
  }

  /// Adds a field that ends at the current offset.
  mutating func add(_ name: String, _ value: String, from: Int) {
    guard hasRoom else { return }
    fields.append(.init(name: name, value: value, from: from, length: at - from))
  }

  /// Reads a layer; if the bytes end too early, its last field says so.
  mutating func layer(_ name: String, _ read: (inout FieldReader) throws(End) -> Void)
    -> PacketFields.Layer
  {
    fields = []
    do throws(End) {
      try read(&self)
    } catch {
      fields.append(.init(name: Self.cutShort, value: "the bytes end here", from: at, length: 0))
    }
    return .init(name: name, fields: fields)
  }

  /// Whether the last layer ended too early.
  var isCutShort: Bool { fields.last?.name == Self.cutShort }

  private static let cutShort = "cut short"

  // MARK: Formatting

  /// Formats bytes in hexadecimal, shortened if there are many.
  static func text(_ bytes: [UInt8]) -> String {
    let shown = bytes.prefix(shownMaximum).map { hexadecimal([$0]) }.joined(separator: " ")
    return bytes.count > shownMaximum ? "\(shown) … (\(bytes.count) bytes)" : shown
  }

  static func hexadecimal32(_ value: Int) -> String {
    let digits = String(value, radix: 16)
    return "0x" + String(repeating: "0", count: max(8 - digits.count, 0)) + digits
  }

  /// Returns a formatter that adds a number's name, as in `ClientHello (1)`; numbers without a name
  /// stay as they are.
  static func named(_ names: [Int: String]) -> (Int) -> String {
    { value in names[value].map { "\($0) (\(value))" } ?? String(value) }
  }
}
