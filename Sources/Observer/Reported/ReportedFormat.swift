import Wire

/// The supported formats of other stacks' reports.
package enum ReportedFormat: String, Hashable, Sendable, CaseIterable {
  /// An rtcstats dump, file format 2 or 3.
  case rtcstats
  /// Lines that Jitsi's clients and services send to their rtcstats server.
  case jitsi
  /// A dump of chrome://webrtc-internals, or of the 2016 rtcstats server.
  case internals
  /// getStats reports as JSON.
  case getstats
  /// Firefox's about:webrtc page, saved.
  case aboutwebrtc

  /// Detects a file's format; fails if the format is unknown.
  ///
  /// - Parameter head: the first bytes, at least a few hundred if the file has them.
  package init?(head: [UInt8]) {
    if head.starts(with: Array("RTCStatsDump".utf8)) {
      self = .rtcstats
      return
    }
    if SavedPage.begins(head) {
      self = .aboutwebrtc
      return
    }
    if let lines = LogUnwrapper.lines(atTheBeginOf: head) {
      self = Self.ofLines(Array(lines.utf8)[...])
      return
    }
    var start = head.drop { $0 == 0x20 || (0x09...0x0d).contains($0) }
    if start.starts(with: Array("```".utf8)) {
      // Skip the fence around pasted code.
      start = start.drop { $0 != 0x0a }.dropFirst()
    }
    let words = String(decoding: start.prefix(2048), as: UTF8.self)
    switch start.first {
    case UInt8(ascii: "{"):
      if words.prefix(while: { !$0.isNewline }).contains("\"fileFormat\"") {
        // An rtcstats dump without its first line.
        self = .rtcstats
      } else if words.contains("\"statsSessionId\"") {
        self = .jitsi
      } else if ["\"getUserMedia\"", "\"PeerConnections\"", "\"UserAgent"].contains(
        where: words.contains)
      {
        self = .internals
      } else {
        // A guess is enough, because the same parser reads both formats.
        self = words.contains("\"type\"") ? .getstats : .internals
      }
    case UInt8(ascii: "["):
      // A log line begins with a method's name or number, getStats output with an object.
      let next = start.dropFirst().drop { $0 == 0x20 || (0x09...0x0d).contains($0) }
      if next.first == UInt8(ascii: "\"") || next.prefix(3).contains(UInt8(ascii: ",")) {
        self = Self.ofLines(start)
      } else {
        self = .getstats
      }
    default: return nil
    }
  }

  /// Returns the format of a log that does not begin with the head of an rtcstats dump.
  private static func ofLines(_ text: ArraySlice<UInt8>) -> Self {
    let lines = text.split(separator: 0x0a, maxSplits: 9).prefix(9)
    if lines.contains(where: { $0.starts(with: Array("{".utf8)) }) {
      let first = lines.first.map { String(decoding: $0, as: UTF8.self) } ?? ""
      if first.contains("\"fileFormat\"") { return .rtcstats }
      if first.contains("\"statsSessionId\"") { return .jitsi }
    }
    let times = lines.compactMap { line in
      line.lastIndex(of: UInt8(ascii: ",")).flatMap { comma in
        Double(String(decoding: line[(comma + 1)...], as: UTF8.self).filter { $0 != "]" }.trimmed)
      }
    }
    if areRelative(times) { return .rtcstats }
    // Only rtcstats has numbers in place of names.
    return lines.contains(where: { hasNumber(Array($0)) }) ? .rtcstats : .jitsi
  }

  private static func hasNumber(_ line: [UInt8]) -> Bool {
    let method = line.dropFirst().prefix { $0 != UInt8(ascii: ",") }
    let name = String(decoding: method, as: UTF8.self).filter { $0 != "\"" }.trimmed
    return line.first == UInt8(ascii: "[") && ReportedNames.methods[name] != nil
  }

  /// Returns whether a log's first time is a Unix time in milliseconds and each later time counts
  /// from the previous line.
  static func areRelative(_ times: [Double]) -> Bool {
    guard let first = times.first, first > 1e11, times.count > 1 else { return false }
    return times.dropFirst().allSatisfy { $0.magnitude < 1e9 }
  }

  /// The format as messages name it, such as `rtcstats dump`.
  package var words: String {
    switch self {
    case .rtcstats: "rtcstats dump"
    case .jitsi: "Jitsi log"
    case .internals: "webrtc-internals dump"
    case .getstats: "getStats report"
    case .aboutwebrtc: "saved about:webrtc page"
    }
  }
}

extension ReportedEvent {
  /// Sorts events by time, keeping the order within each connection.
  ///
  /// Events that a page buffered before it connected to its server appear late in a log. The order
  /// within a connection matters because each report builds on the previous one.
  ///
  /// - Parameter keys: each event's connection and time, in file order; times from other clocks are
  ///   set to nil.
  /// - Returns: the indexes of the events in time order.
  package static func order(_ keys: inout [(connection: String?, milliseconds: Double?)]) -> [Int] {
    let own = keys.filter { $0.connection != nil }.compactMap(\.milliseconds)
    if let first = own.min(), let last = own.max() {
      // Servers stamp their own events with their own clocks, which may be years off in a stored
      // log.
      for place in keys.indices where keys[place].connection == nil {
        guard let time = keys[place].milliseconds else { continue }
        if time < first - dayMilliseconds || time > last + dayMilliseconds {
          keys[place].milliseconds = nil
        }
      }
    }
    var last: [String?: Double] = [:]
    var times: [Double] = []
    times.reserveCapacity(keys.count)
    var isSorted = true
    for (connection, milliseconds) in keys {
      let before = last[connection] ?? -.infinity
      // An event without a time follows immediately after the previous one.
      let time = max(before, milliseconds ?? times.last ?? -.infinity)
      last[connection] = time
      if let latest = times.last, latest > time { isSorted = false }
      times.append(time)
    }
    let places = Array(keys.indices)
    return isSorted ? places : places.sorted { (times[$0], $0) < (times[$1], $1) }
  }

  private static var dayMilliseconds: Double { 86_400_000 }
}
