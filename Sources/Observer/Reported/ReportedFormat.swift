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

  /// Detects a file's format; fails if it is none of these.
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
        // Parsing will tell the two kinds of JSON documents apart.
        self = words.contains("\"type\"") ? .getstats : .internals
      }
    case UInt8(ascii: "["):
      // A log line begins with a method name, getStats output with an object.
      let next = start.dropFirst().drop { $0 == 0x20 || (0x09...0x0d).contains($0) }
      if next.first == UInt8(ascii: "\"") {
        self = Self.hasRelativeTimes(start) ? .rtcstats : .jitsi
      } else {
        self = .getstats
      }
    default: return nil
    }
  }

  /// Returns whether the first line has the time of day, and the others how much later they are: an
  /// rtcstats dump without its head.
  private static func hasRelativeTimes(_ text: ArraySlice<UInt8>) -> Bool {
    let times = text.split(separator: 0x0a, maxSplits: 9).prefix(9).compactMap { line in
      line.lastIndex(of: UInt8(ascii: ",")).flatMap { comma in
        Double(String(decoding: line[(comma + 1)...], as: UTF8.self).filter { $0 != "]" }.trimmed)
      }
    }
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
  /// Events that a page buffered before it was connected to its server are late in a log, and each
  /// report builds on the previous one.
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
