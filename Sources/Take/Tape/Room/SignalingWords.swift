import Room
import Wire

/// The text of a signaling message and the words that classify it, for its row.
struct SignalingWords {
  var type: String
  var message: String

  private static let binaryType = "binary"

  init(_ frame: SignalingFrame) {
    switch frame {
    case .text(let text): (type, message) = (SignalingWords.words(of: text), text)
    case .binary(let bytes): (type, message) = (SignalingWords.binaryType, hexadecimal(bytes))
    }
  }

  /// Restores the message from a row; nil if the row is malformed.
  static func frame(_ row: SignalingRow) -> SignalingFrame? {
    guard row.type == binaryType else { return .text(row.message) }
    return bytes(hexadecimal: row.message).map { .binary($0) }
  }

  /// The JSON members whose values classify a message, in order of precedence.
  private static let names = [
    "janus", "type", "request", "videoroom", "audiobridge", "echotest", "textroom", "event_type",
  ]
  /// The number of bytes to search; the members that classify a message come first.
  private static let reach = 4_096
  private static let longest = 32

  /// Classifies a JSON message by the values of its known members; `message` if it has none.
  static func words(of text: String) -> String {
    var found = [String?](repeating: nil, count: names.count)
    var strings = JSONStrings(text.utf8.prefix(reach))
    var name: (text: String, index: Int)?
    while let string = strings.next() {
      if string.isName {
        name = names.firstIndex(of: string.text).map { (string.text, $0) }
      } else if let known = name {
        if found[known.index] == nil, (1...longest).contains(string.text.utf8.count) {
          found[known.index] = string.text
        }
        name = nil
      }
    }
    let words = found.compactMap(\.self)
    // `binary` is reserved for messages that are not text.
    return words.isEmpty || words == [binaryType] ? "message" : words.joined(separator: " ")
  }
}

extension SignalingFrame {
  var byteCount: Int {
    switch self {
    case .text(let text): text.utf8.count
    case .binary(let bytes): bytes.count
    }
  }
}

extension SignalingRow {
  init(_ frame: SignalingFrame, over transport: String, isInbound: Bool) {
    let text = SignalingWords(frame)
    self.init(
      direction: Direction(isInbound: isInbound), transport: transport, type: text.type,
      message: text.message)
  }
}

/// Reads the strings in a JSON text, and distinguishes member names from values.
///
/// Escapes are not decoded, because the known words contain none.
private struct JSONStrings {
  private var rest: Substring.UTF8View.SubSequence

  init(_ text: String.UTF8View.SubSequence) { rest = Substring(text).utf8[...] }

  mutating func next() -> (text: String, isName: Bool)? {
    let quote = UInt8(ascii: "\"")
    guard let begin = rest.firstIndex(of: quote) else { return nil }
    rest = rest[rest.index(after: begin)...]
    let start = rest.startIndex
    var isEscaped = false
    guard
      let end = rest.firstIndex(where: { byte in
        if isEscaped {
          isEscaped = false
          return false
        }
        isEscaped = byte == UInt8(ascii: "\\")
        return byte == quote
      })
    else { return nil }
    let text = String(decoding: rest[start..<end], as: UTF8.self)
    rest = rest[rest.index(after: end)...]
    let follower = rest.first { $0 != UInt8(ascii: " ") }
    return (text, follower == UInt8(ascii: ":"))
  }
}

/// An HTTP request as JSON, for its row.
struct RequestText: Codable {
  var method: String
  var url: String
  var fields: [HTTPField]
  var body: BodyText

  init(_ request: ServiceRequest) {
    (method, url, fields) = (request.method, request.url, request.fields)
    body = BodyText(request.body)
  }
}

/// An HTTP response as JSON, for its row.
struct ResponseText: Codable {
  var status: Int?
  var fields: [HTTPField]?
  var body: BodyText?
  var failure: String?

  init(_ result: HTTPResult) {
    switch result {
    case .answered(let status, let fields, let body):
      (self.status, self.fields, self.body) = (status, fields, BodyText(body))
    case .failed(let reason): failure = reason
    }
  }

  var result: HTTPResult? {
    if let failure { return .failed(failure) }
    guard let status, let fields, let bytes = body?.bytes else { return nil }
    return .answered(status: status, fields: fields, body: bytes)
  }
}

/// The body of a request or response: text if it is UTF-8, otherwise hexadecimal.
struct BodyText: Codable {
  var text: String?
  var hex: String?

  init(_ bytes: [UInt8]) {
    let text = String(decoding: bytes, as: UTF8.self)
    if Array(text.utf8) == bytes { self.text = text } else { hex = hexadecimal(bytes) }
  }

  var bytes: [UInt8]? {
    if let text { return Array(text.utf8) }
    return hex.flatMap { Tape.bytes(hexadecimal: $0) }
  }
}

/// Parses hexadecimal digits; nil if the text is malformed.
private func bytes(hexadecimal text: String) -> [UInt8]? {
  let digits = Array(text.utf8)
  guard digits.count.isMultiple(of: 2) else { return nil }
  var bytes: [UInt8] = []
  bytes.reserveCapacity(digits.count / 2)
  for index in stride(from: 0, to: digits.count, by: 2) {
    guard let high = value(digits[index]), let low = value(digits[index + 1]) else { return nil }
    bytes.append(high << 4 | low)
  }
  return bytes
}

private func value(_ digit: UInt8) -> UInt8? {
  switch digit {
  case UInt8(ascii: "0")...UInt8(ascii: "9"): digit - UInt8(ascii: "0")
  case UInt8(ascii: "a")...UInt8(ascii: "f"): digit - UInt8(ascii: "a") + 10
  default: nil
  }
}
