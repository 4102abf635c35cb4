import Wire

/// Extracts the text messages from one direction of an HTTP/1.1 connection (RFC 9112) or a
/// WebSocket on it (RFC 6455).
///
/// It also reads RTSP (RFC 7826) and SIP (RFC 3261), whose messages look like HTTP's but have a
/// body only if they state its length.
struct HTTPReader {
  private static let headMaximum = 64 << 10
  private static let bodyMaximum = 512 << 10

  private enum State {
    case head
    /// A body of this many bytes, not all of which have arrived.
    case body(Int)
    case chunkHead
    case chunk(Int)
    case trailers
    /// A body that ends with the connection.
    case endless
    case frames
  }

  private var state = State.head
  private var buffer: [UInt8] = []
  /// The offset of unread bytes in the buffer.
  private var position = 0
  private var waiting: ArraySlice<UInt8> { buffer[position...] }
  private var body: [UInt8] = []
  private var isEncoded = false
  /// The offset up to which the buffer was searched for the end of a head.
  private var searched = 0
  private var texts: [[UInt8]] = []
  /// The reason that the rest cannot be read; nil while it can.
  private(set) var problem: String?

  /// Returns whether the bytes begin a request or a response.
  static func begins(_ bytes: [UInt8]) -> Bool {
    let starts = [
      "GET ", "POST ", "PUT ", "PATCH ", "DELETE ", "OPTIONS ", "HEAD ", "HTTP/1.", "RTSP/",
    ]
    if starts.contains(where: { bytes.starts(with: $0.utf8) }) { return true }
    // SIP and RTSP are recognised by the first bytes of a line, which arrive before a connection is
    // classified.
    return SignalingText.isSIP(bytes) || isRTSP(bytes)
  }

  private static func isRTSP(_ bytes: [UInt8]) -> Bool {
    let methods = ["DESCRIBE", "ANNOUNCE", "SETUP", "PLAY", "RECORD", "PAUSE", "TEARDOWN"]
    return methods.contains { bytes.starts(with: "\($0) r".utf8) }
  }

  var heldBytes: Int { waiting.count + body.count }

  mutating func append(_ bytes: [UInt8]) {
    buffer.removeFirst(position)
    position = 0
    buffer += bytes
    while problem == nil, advance() {}
  }

  /// Returns the completed messages and removes them.
  mutating func consumeTexts() -> [[UInt8]] {
    defer { texts = [] }
    return texts
  }

  /// Reads the next part; returns false if more bytes are needed.
  private mutating func advance() -> Bool {
    switch state {
    case .head: return readHead()
    case .body(let count):
      guard waiting.count >= count else { return false }
      body = Array(waiting.prefix(count))
      position += count
      endMessage()
    case .chunkHead: return readChunkHead()
    case .chunk(let count):
      guard waiting.count >= count + 2 else { return false }
      body += waiting.prefix(count)
      position += count + 2
      if body.count > Self.bodyMaximum { problem = "a body of more than 512 KiB" }
      state = .chunkHead
    case .trailers:
      guard let end = lineEnd() else { return refuseLongLine() }
      position += end + 2
      if end == 0 { endMessage() }
    case .endless:
      // Only the connection's end ends such a body, so it is skipped: descriptions are not sent
      // this way.
      position = buffer.count
      return false
    case .frames: return readFrame()
    }
    return true
  }

  /// Reports a problem when a line exceeds 64 KiB, since each further byte would search the line
  /// again; always returns false.
  private mutating func refuseLongLine() -> Bool {
    if waiting.count > Self.headMaximum { problem = "a line of more than 64 KiB" }
    return false
  }

  private func lineEnd() -> Int? {
    guard buffer.count >= position + 2 else { return nil }
    for index in position..<buffer.count - 1 where buffer[index] == 13 && buffer[index + 1] == 10 {
      return index - position
    }
    return nil
  }

  /// Skips keep-alives and media between messages; returns false if more bytes are needed.
  private mutating func passBetweenMessages() -> Bool {
    // Empty lines are SIP keep-alives (RFC 5626 section 3.5.1).
    while let first = waiting.first, first == 13 || first == 10 {
      position += 1
      searched = 0
    }
    // RTSP interleaves media between messages (RFC 7826 section 14).
    guard waiting.first == UInt8(ascii: "$") else { return true }
    guard waiting.count >= 4 else { return false }
    let length = Int(buffer[position + 2]) << 8 | Int(buffer[position + 3])
    guard waiting.count >= 4 + length else { return false }
    position += 4 + length
    searched = 0
    return passBetweenMessages()
  }

  private mutating func readHead() -> Bool {
    guard passBetweenMessages() else { return false }
    let end: [UInt8] = [13, 10, 13, 10]
    let place = (searched..<max(searched, waiting.count - 3)).first {
      buffer[position + $0] == end[0]
        && buffer[position + $0..<position + $0 + 4].elementsEqual(end)
    }
    searched = place == nil ? max(0, waiting.count - 3) : 0
    guard let place else {
      if waiting.count > Self.headMaximum { problem = "a head of more than 64 KiB" }
      return false
    }
    let head = String(decoding: waiting.prefix(place), as: UTF8.self)
    position += place + 4
    let lines = head.split(separator: "\r\n")
    guard let first = lines.first, HTTPReader.begins(Array(first.utf8)) else {
      problem = "what follows is not HTTP"
      return false
    }
    var length: Int?
    var isChunked = false
    var upgrades = false
    isEncoded = false
    for line in lines.dropFirst() {
      guard let colon = line.firstIndex(of: ":") else { continue }
      let name = line[..<colon].lowercased()
      let value = line[line.index(after: colon)...].drop { $0 == " " }.lowercased()
      switch name {
      case "content-length", "l": length = Int(value)
      case "transfer-encoding": isChunked = value.contains("chunked")
      case "content-encoding": isEncoded = value != "identity"
      case "upgrade": upgrades = value.contains("websocket")
      default: break
      }
    }
    begin(String(first), length, isChunked, upgrades)
    return true
  }

  private mutating func begin(
    _ first: String, _ length: Int?, _ isChunked: Bool, _ upgrades: Bool
  ) {
    // A response begins with the protocol's name; a request line ends with it.
    let isResponse = first.hasPrefix("HTTP/")
    let isHTTP = isResponse || first.contains(" HTTP/")
    let status = isResponse ? first.split(separator: " ").dropFirst().first ?? "" : ""
    body = []
    if upgrades, !isResponse || status == "101" {
      state = .frames
    } else if isChunked {
      state = .chunkHead
    } else if let length {
      guard (0...Self.bodyMaximum).contains(length) else {
        problem = "a body of \(length) bytes"
        return
      }
      state = .body(length)
    } else if !isHTTP {
      state = .head
    } else if isResponse, !status.hasPrefix("1"), status != "204", status != "304" {
      state = .endless
    } else {
      state = .head
    }
  }

  private mutating func readChunkHead() -> Bool {
    guard let end = lineEnd() else { return refuseLongLine() }
    let digits = waiting.prefix(end).prefix { $0 != UInt8(ascii: ";") }
    let text = String(decoding: digits, as: UTF8.self)
    guard let count = Int(text, radix: 16), (0...Self.bodyMaximum).contains(count) else {
      problem = "a chunk of length \(text.prefix(20))"
      return false
    }
    position += end + 2
    state = count == 0 ? .trailers : .chunk(count)
    return true
  }

  private mutating func endMessage() {
    if !body.isEmpty, !isEncoded { texts.append(body) }
    body = []
    state = .head
  }

  /// Reads a WebSocket frame (RFC 6455 section 5.2); returns false if more bytes are needed or the
  /// frame is not supported.
  private mutating func readFrame() -> Bool {
    let rest = waiting
    guard let head = FrameHead(rest) else { return false }
    guard head.length <= Self.bodyMaximum, body.count + head.length <= Self.bodyMaximum else {
      problem = "a WebSocket message of more than 512 KiB"
      return false
    }
    guard rest.count >= head.count + head.length else { return false }
    guard !head.isCompressed else {
      problem = "compressed WebSocket messages"
      return false
    }
    var payload = Array(rest.dropFirst(head.count).prefix(head.length))
    if let mask = head.mask {
      for index in payload.indices { payload[index] ^= mask[index % 4] }
    }
    position += head.count + head.length
    // Control frames may arrive between the frames of a message.
    guard !head.isControl else { return true }
    body += payload
    if head.isLast {
      texts.append(body)
      body = []
    }
    return true
  }
}

/// A WebSocket frame's head (RFC 6455 section 5.2).
private struct FrameHead {
  /// The length of the header in bytes.
  var count: Int
  var length: Int
  var mask: [UInt8]?
  var isLast: Bool
  var isControl: Bool
  var isCompressed: Bool

  /// Parses a header; fails if it is incomplete.
  init?(_ bytes: ArraySlice<UInt8>) {
    let head = Array(bytes.prefix(14))
    var reader = ByteReader(head.span.bytes)
    do throws(ReadError) {
      let (first, second) = (try reader.uint8(), try reader.uint8())
      isLast = first & 0x80 != 0
      isCompressed = first & 0x40 != 0
      isControl = first & 0x08 != 0
      switch second & 0x7f {
      case 126: length = Int(try reader.uint16())
      case 127: length = Int(clamping: try reader.uint64())
      case let small: length = Int(small)
      }
      mask = second & 0x80 != 0 ? try reader.array(4) : nil
      count = reader.offset
    } catch {
      return nil
    }
  }
}

/// Finds session descriptions in any signaling protocol: on their own, or as strings in JSON,
/// including JSON nested in strings.
enum DescriptionSearch {
  private static let depthMaximum = 4
  private static let foundMaximum = 16

  static func descriptions(in text: [UInt8], depth: Int = 0) -> [String] {
    if text.starts(with: "v=0".utf8) { return [String(decoding: text, as: UTF8.self)] }
    if text.starts(with: "--".utf8) || SignalingText.isSIP(text) {
      // The text is a multipart body, or SIP over a WebSocket (RFC 7118).
      return SignalingText.descriptions(inMessage: text)
    }
    guard depth < depthMaximum else { return [] }
    var found: [String] = []
    var index = 0
    while index < text.count, found.count < foundMaximum {
      guard text[index] == UInt8(ascii: "\"") else {
        index += 1
        continue
      }
      let (string, next) = unescaped(text, from: index + 1)
      index = next
      if string.count > 20, string.starts(with: "v=0".utf8) || string.contains(UInt8(ascii: "\"")) {
        found += descriptions(in: string, depth: depth + 1)
      }
    }
    return found
  }

  /// Unescapes a JSON string (RFC 8259 section 7); also returns the offset after it.
  private static func unescaped(_ text: [UInt8], from start: Int) -> ([UInt8], next: Int) {
    var string: [UInt8] = []
    var index = start
    while index < text.count {
      let byte = text[index]
      index += 1
      if byte == UInt8(ascii: "\"") { return (string, index) }
      guard byte == UInt8(ascii: "\\"), index < text.count else {
        string.append(byte)
        continue
      }
      let escaped = text[index]
      index += 1
      switch escaped {
      case UInt8(ascii: "n"): string.append(10)
      case UInt8(ascii: "r"): string.append(13)
      case UInt8(ascii: "t"): string.append(9)
      case UInt8(ascii: "u"):
        let digits = String(decoding: text[index..<min(index + 4, text.count)], as: UTF8.self)
        if let value = UInt32(digits, radix: 16), let scalar = UnicodeScalar(value) {
          string += Array(String(Character(scalar)).utf8)
        }
        index = min(index + 4, text.count)
      default: string.append(escaped)
      }
    }
    return (string, index)
  }
}
