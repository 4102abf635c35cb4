import Wire

/// A message from the script that records a page: lines with events, or encoded frames.
///
/// Messages are numbered within one load of the page, so that no message counts twice.
package struct ScriptUnit: Hashable, Sendable {
  /// The payload of a message from the page's script.
  package enum Content: Hashable, Sendable {
    /// Events, and the number of lines that are not events.
    case events([ReportedEvent], strangeLines: Int)
    case frames([Frame])
  }

  /// An encoded frame that the page received.
  package struct Frame: Hashable, Sendable {
    package var connection: String
    package var unixMilliseconds: Double
    package var mid: String
    package var isVideo: Bool
    /// The codec in lower case, as in `vp8`.
    package var codec: String
    package var ssrc: UInt32
    package var rtpTime: UInt32
    package var isKey: Bool
    /// The width in pixels; 0 if unknown, and for audio.
    package var width: Int
    package var height: Int
    package var bytes: [UInt8]
  }

  /// Identifies one load of the page: 32 hexadecimal digits.
  package var load: String
  package var number: UInt64
  package var content: Content

  /// Returns whether a string identifies a session or a page load, that is, consists of 128 bits in
  /// lower-case hexadecimal.
  package static func isName(_ text: some StringProtocol) -> Bool {
    text.utf8.count == 32
      && text.utf8.allSatisfy { byte in
        (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
          || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains(byte)
      }
  }

  // MARK: Text

  /// Reads `LOAD NUMBER`, and on further lines `[method, connection, value, correlation, time]`;
  /// fails if the first line differs.
  package init?(text: String) {
    var lines = text.split(separator: "\n", omittingEmptySubsequences: true)[...]
    let head = lines.popFirst()?.split(separator: " ") ?? []
    guard head.count == 2, Self.isName(head[0]), let number = UInt64(head[1]) else { return nil }
    load = String(head[0])
    self.number = number
    var events: [ReportedEvent] = []
    var strangeLines = 0
    for line in lines {
      if let event = Self.event(String(line)) {
        events.append(event)
      } else {
        strangeLines += 1
      }
    }
    content = .events(events, strangeLines: strangeLines)
  }

  private static func event(_ line: String) -> ReportedEvent? {
    guard case .list(let items)? = try? JSONValue(parsing: line, limits: limits),
      items.count == 5, let method = items[0].text, let time = items[4].number
    else { return nil }
    let connection = items[1].text
    let value = items[2].unlessNull
    let content: ReportedEvent.Content
    switch method {
    case "create": content = .connection(configuration: value)
    case "stats":
      guard let report = value.flatMap({ ReportedStats($0) }) else { return nil }
      content = .stats(report)
    default: content = ReportedNames.content(method, value)
    }
    return ReportedEvent(
      connection: connection, unixMilliseconds: time, content: content,
      correlation: items[3].text)
  }

  /// The limits on a line: statistics of a conference with hundreds of streams must fit.
  private static let limits: JSONValue.Limits = {
    var limits = JSONValue.Limits()
    limits.values = 200_000
    return limits
  }()

  // MARK: Frames

  /// Reads the length of a head in two bytes, the head `[load, number, [[connection, facts]...]]`,
  /// and the bytes of all frames; fails for anything else.
  package init?(frames bytes: [UInt8]) {
    guard bytes.count >= 2 else { return nil }
    let end = 2 + (Int(bytes[0]) << 8 | Int(bytes[1]))
    guard end <= bytes.count else { return nil }
    let head = String(decoding: bytes[2..<end], as: UTF8.self)
    guard case .list(let items)? = try? JSONValue(parsing: head), items.count == 3,
      let load = items[0].text, Self.isName(load),
      let number = items[1].integer.flatMap({ UInt64(exactly: $0) })
    else { return nil }
    var frames: [Frame] = []
    var rest = bytes[end...]
    for item in items[2].elements {
      guard let frame = Frame(item, &rest) else { return nil }
      frames.append(frame)
    }
    guard !frames.isEmpty, rest.isEmpty else { return nil }
    self.load = load
    self.number = number
    content = .frames(frames)
  }
}

extension ScriptUnit.Frame {
  /// Reads a frame's connection and facts, and removes its bytes from the rest of the message;
  /// fails if they are malformed.
  fileprivate init?(_ item: JSONValue, _ rest: inout ArraySlice<UInt8>) {
    let parts = item.elements
    guard parts.count == 2, let connection = parts[0].text else { return nil }
    let facts = parts[1]
    func count<Number: FixedWidthInteger>(_ name: String) -> Number {
      facts[name]?.integer.flatMap { Number(exactly: $0) } ?? 0
    }
    let codec = (facts["mimeType"]?.text ?? "").split(separator: "/").last ?? ""
    guard let size = facts["size"]?.integer.flatMap({ Int(exactly: $0) }), size >= 0,
      size <= rest.count, let time = facts["time"]?.number, codec.utf8.count <= 40,
      let mid = facts["mid"]?.text, mid.utf8.count <= 64
    else { return nil }
    self.init(
      connection: connection, unixMilliseconds: time, mid: mid,
      isVideo: facts["kind"]?.text == "video", codec: codec.lowercased(), ssrc: count("ssrc"),
      rtpTime: count("rtpTime"), isKey: facts["key"]?.flag ?? false, width: count("width"),
      height: count("height"), bytes: Array(rest.prefix(size)))
    rest = rest.dropFirst(size)
  }
}
