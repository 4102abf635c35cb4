package import Wire

/// Reads a saved copy of Firefox's about:webrtc page.
///
/// The page marks each piece of text with its translation key (`data-l10n-id`), so the browser's
/// language does not matter.
package struct SavedPage {
  /// The browser settings that differ from the default, according to the page; nil if there are
  /// none.
  package private(set) var head: JSONValue?
  package private(set) var events: [ReportedEvent] = []

  private var connection: String?
  private var begun: Double?
  private var saved: Double?
  private var configuration: String?
  private var objects: [ReportedStats.Object] = []
  private var pending: [ReportedEvent] = []
  private var preferences: [JSONValue.Member] = []

  /// The stream being read: its SSRC, kind and codec, and the index of its object.
  private var stream = (ssrc: Int64(0), kind: "", codec: "", place: Int?.none)
  /// The translation key of the last label, which identifies the next text.
  private var label = ""
  private var side = ""
  private var descriptionTime: Double?
  private var columns: [String] = []
  private var cells: [String] = []
  private var section = ""

  /// Returns whether a file begins like a saved `about:webrtc` page.
  package static func begins(_ head: [UInt8]) -> Bool {
    let start = head.drop { $0 == 0x20 || (0x09...0x0d).contains($0) }
    return start.first == UInt8(ascii: "<")
      && String(decoding: head.prefix(64 << 10), as: UTF8.self).contains("about-webrtc-")
  }

  /// The maximum number of objects and events in a page.
  private static let most = 100_000

  package init(_ text: String) {
    var scanner = MarkupScanner(text)
    while let piece = scanner.next(), events.count + objects.count < Self.most {
      switch piece {
      case .element(let element): read(element)
      case .text(let text, let element): read(text, in: element)
      case .end(let name): if name == "tr" { finishRow() }
      }
    }
    finishConnection()
    if !preferences.isEmpty { head = .object([.init("preferences", .object(preferences))]) }
  }

  // MARK: Elements

  private mutating func read(_ element: MarkupElement) {
    if let id = element["id"] {
      if id.hasPrefix("pc-heading: ") { beginConnection(String(id.dropFirst(12))) }
      if id.hasPrefix("rtp-stats: ") { (label, isConfiguration) = ("", false) }
    }
    if element.name == "table" { columns = [] }
    if element.name == "td" { cells.append("") }
    if element.name == "br", isConfiguration, configuration != nil { configuration? += "\n" }
    if element.name == "h4" || element.name == "h5" { stream.place = nil }
    guard let name = element["data-l10n-id"], name.hasPrefix("about-webrtc-") else { return }
    let short = String(name.dropFirst("about-webrtc-".count))
    let arguments = element["data-l10n-args"].flatMap { try? JSONValue(parsing: $0) }
    switch (element.name, short) {
    case (_, "connection-open"), (_, "connection-closed"):
      saved = arguments?["now"]?.text.flatMap(ReportedDate.milliseconds)
      if short == "connection-closed" {
        add(.call(name: "close", arguments: nil), at: saved)
      }
    case ("h4", "local-sdp-heading"): side = "setLocalDescription"
    case ("h4", "remote-sdp-heading"): side = "setRemoteDescription"
    case (_, _) where short.hasSuffix("-heading"): section = String(short.dropLast(8))
    case ("h5", "sdp-set-timestamp"): descriptionTime = arguments?["timestamp"]?.unixMilliseconds
    case ("th", _): columns.append(short)
    case (_, "type-local"), (_, "type-remote"), (_, "decoder-label"), (_, "encoder-label"):
      label = short
    default:
      label = short
      count(short, arguments)
    }
  }

  private mutating func read(_ text: String, in element: MarkupElement) {
    let words = text.split(whereSeparator: \.isWhitespace)
    if let path = element["data-pref-path"] ?? element.parentPreference {
      if element["class"] == "valueDisplay" {
        preferences.append(.init(path, .text(text)))
      }
      return
    }
    if element["class"] == "peer-connection-config" || configuration != nil && isConfiguration {
      configuration = (configuration ?? "") + text
    }
    switch element.name {
    case "h5":
      // The heading has the form `audio/opus - SSRC 3146584612`.
      guard words.count >= 4, words[words.count - 2] == "SSRC", let ssrc = Int64(words.last ?? "")
      else { return }
      isConfiguration = false
      let parts = words[0].split(separator: "/")
      stream = (ssrc, String(parts.first ?? ""), String(words[0]), nil)
    case "td": cells.append((cells.popLast() ?? "") + text)
    case "pre": describe(text)
    case "span": readMeasure(text, words)
    default: break
    }
  }

  /// Whether the text being read belongs to the connection's configuration.
  private var isConfiguration = false

  // MARK: Connections

  private mutating func beginConnection(_ name: String) {
    finishConnection()
    let words = name.split(separator: " ")
    connection = words.first.map(String.init) ?? name
    // The second word is the time of the connection's creation, in microseconds.
    begun = words.count > 1 ? Double(words[1]).map { $0 / 1000 } : nil
    isConfiguration = true
  }

  private mutating func finishConnection() {
    guard let connection else { return }
    var all = [
      ReportedEvent(
        connection: connection, unixMilliseconds: begun,
        content: .connection(
          configuration: configuration.map { .object([.init("text", .text($0))]) }))
    ]
    all += pending.sorted { ($0.unixMilliseconds ?? 0) < ($1.unixMilliseconds ?? 0) }
    if !objects.isEmpty {
      all.append(
        ReportedEvent(
          connection: connection, unixMilliseconds: saved,
          content: .stats(ReportedStats(form: .whole, timestamp: saved, objects: objects))))
    }
    events += all
    (self.connection, configuration, objects, pending) = (nil, nil, [], [])
    stream.place = nil
  }

  private mutating func add(_ content: ReportedEvent.Content, at time: Double?) {
    guard let connection, pending.count < Self.most else { return }
    pending.append(
      ReportedEvent(connection: connection, unixMilliseconds: time ?? begun, content: content))
  }

  /// Adds a description; an offer leaves the DTLS role to the remote side.
  private mutating func describe(_ text: String) {
    guard let time = descriptionTime, !side.isEmpty else { return }
    descriptionTime = nil
    let lines = text.split(whereSeparator: \.isNewline)
    let isOffer = lines.contains("a=setup:actpass")
    let sdp = lines.map { $0 + "\r\n" }.joined()
    add(
      .call(
        name: side,
        arguments: .members(("type", .text(isOffer ? "offer" : "answer")), ("sdp", .text(sdp)))),
      at: time)
  }

  // MARK: Statistics

  /// Returns an object's index; adds the object if it is missing.
  private mutating func place(_ id: String, _ members: [JSONValue.Member]) -> Int {
    if let place = objects.firstIndex(where: { $0.id == id }) { return place }
    objects.append(ReportedStats.Object(id: id, members: members))
    return objects.count - 1
  }

  private mutating func set(_ name: String, _ value: JSONValue?, of place: Int?) {
    guard let place, let value, objects.indices.contains(place) else { return }
    objects[place].members?.removeAll { $0.name == name }
    objects[place].members?.append(.init(name, value))
  }

  /// Reads counters from the arguments of a translated string, such as `{"packets":300}` for
  /// `received-label`.
  private mutating func count(_ name: String, _ arguments: JSONValue?) {
    switch name {
    case "received-label": set("packetsReceived", arguments?["packets"], of: stream.place)
    case "sent-label": set("packetsSent", arguments?["packets"], of: stream.place)
    case "lost-label": set("packetsLost", arguments?["packets"], of: stream.place)
    case "jitter-label": set("jitter", arguments?["jitter"], of: stream.place)
    case "frames", "channels": codecMembers.append(.init(name, arguments?[name] ?? .null))
    default: break
    }
  }

  /// The codec and counters of a stream whose object does not exist yet.
  private var codecMembers: [JSONValue.Member] = []

  private mutating func readMeasure(_ text: String, _ words: [Substring]) {
    guard stream.ssrc > 0 else { return }
    switch label {
    case "decoder-label", "encoder-label", "channels", "frames":
      if words.count == 2, let type = Int64(words[0]), words[1].contains("/") {
        codecMembers = [
          .init("payloadType", .integer(type)), .init("mimeType", .text(String(words[1]))),
          .init("isEncoder", .flag(label == "encoder-label")),
        ]
      } else if let first = words.first, let rate = Int64(first), label != "decoder-label" {
        codecMembers.append(.init("clockRate", .integer(rate)))
        if words.count > 1 {
          codecMembers.append(.init("sdpFmtpLine", .text(String(words[1]))))
        }
      }
    case "dropped-frames-label", "discarded-packets-label":
      if let first = words.first, let count = Int64(first) {
        codecMembers.append(
          .init(
            label == "dropped-frames-label" ? "framesDropped" : "packetsDiscarded",
            .integer(count)))
      }
    case "type-local", "type-remote":
      guard let type = words.last, type.hasSuffix("-rtp") else { return }
      beginStream(String(type))
    case "received-label", "sent-label", "lost-label", "jitter-label": readRest(words)
    default: break
    }
  }

  private mutating func beginStream(_ type: String) {
    let known = JSONValue.object(codecMembers)
    stream.place = place(
      "\(type)-\(stream.ssrc)",
      [
        .init("type", .text(type)), .init("ssrc", .integer(stream.ssrc)),
        .init("kind", .text(stream.kind)),
      ])
    guard !type.hasPrefix("remote-"), let payloadType = known["payloadType"] else { return }
    let codec = place("codec-\(payloadType.json)", [.init("type", .text("codec"))])
    for name in ["payloadType", "mimeType", "clockRate", "channels", "sdpFmtpLine"] {
      set(name, known[name], of: codec)
    }
    set("codecId", .text("codec-\(payloadType.json)"), of: stream.place)
    let isSent = known["isEncoder"]?.flag == true
    set(isSent ? "framesEncoded" : "framesDecoded", known["frames"], of: stream.place)
    for name in ["framesDropped", "packetsDiscarded"] { set(name, known[name], of: stream.place) }
    codecMembers = []
  }

  /// Reads the rest of a line: `(47.32 Kb , 8.3 KBps)` and `RTT: 1 ms`.
  private mutating func readRest(_ words: [Substring]) {
    if words.count >= 2, words[0].hasPrefix("("), words[1].hasPrefix("Kb"),
      let kilobytes = Double(words[0].dropFirst()), (0..<1e12).contains(kilobytes)
    {
      let name = label == "sent-label" ? "bytesSent" : "bytesReceived"
      set(name, .integer(Int64((kilobytes * 1024).rounded())), of: stream.place)
    } else if words.count >= 2, words[0] == "RTT:", let milliseconds = Double(words[1]) {
      set("roundTripTime", .number(milliseconds / 1000), of: stream.place)
    }
  }

  // MARK: Tables

  private mutating func finishRow() {
    let row = cells.map { $0.trimmed.isEmpty ? "" : String($0.trimmed) }
    cells = []
    guard !row.isEmpty else { return }
    if columns.first == "ice-state", row.count >= 9 { return addPair(row) }
    let members = zip(columns, row).map { JSONValue.Member($0, .text($1)) }
    guard !members.isEmpty else { return }
    add(.event(name: "about-webrtc-\(section)", detail: .object(members)), at: saved)
  }

  private mutating func addPair(_ row: [String]) {
    guard let local = addCandidate(row[3], "local-candidate"),
      let remote = addCandidate(row[4], "remote-candidate")
    else { return }
    let pair = place(
      "pair \(local) \(remote) \(row[5])", [.init("type", .text("candidate-pair"))])
    set("localCandidateId", .text(local), of: pair)
    set("remoteCandidateId", .text(remote), of: pair)
    set("state", .text(row[0]), of: pair)
    set("nominated", .flag(row[1] == "true"), of: pair)
    set("selected", .flag(row[2] == "true"), of: pair)
    for (name, text) in [("priority", row[6]), ("bytesSent", row[7]), ("bytesReceived", row[8])] {
      set(name, Double(text).flatMap { $0.isFinite ? JSONValue.number($0) : nil }, of: pair)
    }
  }

  /// Adds a candidate written as `192.0.2.1:33611/udp(host)`; returns its id, or nil for anything
  /// else.
  private mutating func addCandidate(_ text: String, _ type: String) -> String? {
    let word = text.split(separator: " ").first ?? ""
    let halves = word.split(separator: "/", maxSplits: 1)
    guard halves.count == 2, let colon = halves[0].lastIndex(of: ":") else { return nil }
    let kind = halves[1].split(separator: "(", maxSplits: 1)
    let id = "\(type) \(word)"
    let candidate = place(id, [.init("type", .text(type))])
    let address = halves[0][..<colon].filter { $0 != "[" && $0 != "]" }
    set("address", .text(address), of: candidate)
    set(
      "port", Int64(halves[0][halves[0].index(after: colon)...]).map { .integer($0) }, of: candidate
    )
    set("protocol", .text(String(kind[0])), of: candidate)
    if kind.count == 2 {
      set("candidateType", .text(String(kind[1].prefix { $0 != ")" })), of: candidate)
    }
    return id
  }
}

// MARK: - MarkupScanner

/// An HTML element with its attributes.
struct MarkupElement: Sendable {
  var name = ""
  var attributes: [(name: String, value: String)] = []
  /// The name of the preference that an enclosing element shows.
  var parentPreference: String?

  subscript(name: String) -> String? { attributes.first { $0.name == name }?.value }
}

/// Scans HTML piece by piece, without building a tree: browsers save well-formed pages, and from
/// any other input it reads what it can.
struct MarkupScanner {
  enum Piece {
    case element(MarkupElement)
    /// Text, with the element that directly contains it.
    case text(String, MarkupElement)
    case end(String)
  }

  private var bytes: [UInt8]
  private var place = 0
  private var open: [MarkupElement] = []

  /// Elements without an end tag.
  private static let empty: Set<String> = [
    "br", "hr", "img", "input", "link", "meta", "path", "rect",
  ]
  /// The maximum nesting depth of elements.
  private static let deepest = 500

  init(_ text: String) { bytes = Array(text.utf8) }

  mutating func next() -> Piece? {
    while place < bytes.count {
      guard bytes[place] == UInt8(ascii: "<") else { return text() }
      place += 1
      if bytes[place...].starts(with: Array("!--".utf8)) {
        skip(past: "-->")
      } else if place < bytes.count, [UInt8(ascii: "!"), UInt8(ascii: "?")].contains(bytes[place]) {
        skip(past: ">")
      } else if place < bytes.count, bytes[place] == UInt8(ascii: "/") {
        place += 1
        let name = word()
        skip(past: ">")
        if let last = open.lastIndex(where: { $0.name == name }) {
          open.removeSubrange(last...)
        }
        return .end(name)
      } else {
        return element()
      }
    }
    return nil
  }

  private mutating func text() -> Piece {
    let start = place
    place = bytes[place...].firstIndex(of: UInt8(ascii: "<")) ?? bytes.count
    return .text(Self.plain(bytes[start..<place]), open.last ?? MarkupElement())
  }

  private mutating func element() -> Piece {
    var element = MarkupElement()
    element.name = word()
    while place < bytes.count, bytes[place] != UInt8(ascii: ">") {
      let name = word()
      guard !name.isEmpty else {
        place += 1
        continue
      }
      guard place < bytes.count, bytes[place] == UInt8(ascii: "=") else {
        element.attributes.append((name, ""))
        continue
      }
      place += 1
      element.attributes.append((name, value()))
    }
    let isClosed = place > 0 && place < bytes.count && bytes[place - 1] == UInt8(ascii: "/")
    place += 1
    element.parentPreference = open.last.flatMap { $0["data-pref-path"] ?? $0.parentPreference }
    if !isClosed, !Self.empty.contains(element.name), open.count < Self.deepest {
      open.append(element)
    }
    return .element(element)
  }

  /// Returns a name in lower case and advances past it.
  private mutating func word() -> String {
    let start = place
    while place < bytes.count, !" \t\r\n/>=\"'<".utf8.contains(bytes[place]) { place += 1 }
    return String(decoding: bytes[start..<place], as: UTF8.self).lowercased()
  }

  private mutating func value() -> String {
    guard place < bytes.count else { return "" }
    let quote = bytes[place]
    guard quote == UInt8(ascii: "\"") || quote == UInt8(ascii: "'") else { return word() }
    let start = place + 1
    let end = bytes[start...].firstIndex(of: quote) ?? bytes.count
    place = min(end + 1, bytes.count)
    return Self.plain(bytes[start..<end])
  }

  private mutating func skip(past mark: String) {
    let mark = Array(mark.utf8)
    while place < bytes.count, !bytes[place...].starts(with: mark) { place += 1 }
    place = min(place + mark.count, bytes.count)
  }

  /// Returns text with its character references replaced.
  private static func plain(_ bytes: ArraySlice<UInt8>) -> String {
    var text = String(decoding: bytes, as: UTF8.self)
    guard text.contains("&") else { return text }
    for (name, character) in [
      ("&quot;", "\""), ("&lt;", "<"), ("&gt;", ">"), ("&nbsp;", " "), ("&#39;", "'"),
      ("&amp;", "&"),
    ] { text = text.replacing(name, with: character) }
    return text
  }
}
