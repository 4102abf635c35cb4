package import Tape
import Wire

/// Writes a take's calls, events and statistics in browsers' dump formats, which public importers
/// read.
package struct ReportExport {
  /// A browser dump's format.
  package enum Form: Sendable {
    /// A chrome://webrtc-internals dump, as in Chrome since 2025.
    case internals
    /// An rtcstats dump, file format 3, with spelled-out methods and members.
    case rtcstats
  }

  /// The dump that an export wrote, with the number of its entries.
  package struct Written: Sendable {
    package var path: String
    package var connections = 0
    package var events = 0
    package var reports = 0
  }

  private let take: String
  private let peer: Int64?
  private let window: ClosedRange<Int64>
  private let present: WholeFile.Present
  private let withSecrets: Bool

  /// - Parameter withSecrets: whether passwords and keys stay in descriptions and configurations.
  package init(
    take: String, peer: Int64?, window: ClosedRange<Int64>, present: WholeFile.Present,
    withSecrets: Bool
  ) {
    self.take = take
    self.peer = peer
    self.window = window
    self.present = present
    self.withSecrets = withSecrets
  }

  /// Writes the file, unless there are no connections.
  package func write(
    _ form: Form, to path: String, progress: (String) -> Void
  ) throws(ExportFailure) -> Written {
    let connection = try ExportFailure.reading { () throws(TapeError) in
      try TakeFile.openForQueries(take)
    }
    let header = try ExportFailure.reading { () throws(TapeError) in
      try TakeHeader.read(from: connection, path: take)
    }
    let reader = ReportReader(
      peer: peer, window: window, start: header.startUnixNanoseconds, withSecrets: withSecrets)
    let reporters = try ExportFailure.asking(take) { () throws(SQLiteError) in
      try reader.reporters(connection)
    }
    let events = try ExportFailure.asking(take) { () throws(SQLiteError) in
      try reader.events(connection, reporters)
    }
    guard reporters.contains(where: { $0.number > 0 }) else {
      return Written(path: path)
    }
    var written = Written(
      path: path, connections: reporters.count { $0.number > 0 }, events: events.count)
    let file = try TextFile(path, present)
    var failure: ExportFailure?
    var writer: any ReportWriting =
      switch form {
      case .internals: InternalsWriter(file, reporters, header)
      case .rtcstats: RTCStatsWriter(file, reporters, header)
      }
    try writer.begin()
    var place = 0
    try ExportFailure.asking(take) { () throws(SQLiteError) in
      try reader.reports(connection, reporters) { report in
        guard failure == nil else { return false }
        written.reports += 1
        if written.reports & 63 == 0 { progress(counted(written.reports, "report")) }
        do throws(ExportFailure) {
          while place < events.count, events[place].row <= report.row {
            try writer.add(events[place])
            place += 1
          }
          try writer.add(report)
        } catch {
          failure = error
        }
        return failure == nil
      }
    }
    if let failure { throw failure }
    for event in events[place...] { try writer.add(event) }
    try writer.finish()
    try file.finish()
    return written
  }
}

/// A peer whose calls and events are exported, or the page, which has the number 0.
struct Reporter {
  var number: Int64
  var name: String
  var label: String
  var role: String
  var at: Int64
  var configuration: JSONValue
}

/// A call, its result or an event, named as in the W3C API.
struct ReportEvent {
  enum Kind { case call, success, failure, event }

  var row: Int64
  var peer: Int64
  /// The time in nanoseconds since the take began, and as Unix time in milliseconds.
  var at: Int64
  var time: Double
  var kind: Kind
  /// A name such as `createOffer` or `iceconnectionstatechange`.
  var name: String
  var value: JSONValue
  /// The number that a call and its result share; nil for events.
  var call: Int64?
}

struct StatsReport {
  struct Object {
    var id: String
    var type: String
    /// The Unix time in milliseconds.
    var timestamp: Double
    var members: [JSONValue.Member]
  }

  var row: Int64
  var peer: Int64
  /// Unix time in milliseconds.
  var time: Double
  /// All objects, in order of first appearance.
  var objects: [Object]
  /// The ids of objects that changed since the previous report, and of those that were removed.
  var changed: Set<String>
  var gone: [String]
}

protocol ReportWriting {
  func begin() throws(ExportFailure)
  mutating func add(_ event: ReportEvent) throws(ExportFailure)
  mutating func add(_ report: StatsReport) throws(ExportFailure)
  mutating func finish() throws(ExportFailure)
}

/// Removes secrets from descriptions and configurations.
enum ReportSecrets {
  /// Members whose values are passwords or keys, or contain them.
  private static let names: Set<String> = [
    "credential", "password", "certificates", "privateKey", "key", "keys", "seed", "secret",
    "token", "icePassword", "pwd", "accessToken", "authorization",
  ]
  /// The prefixes of description lines with secrets (RFC 8839, RFC 4568).
  private static let lines = ["a=ice-pwd:", "a=crypto:", "a=key-mgmt:", "k="]

  /// Returns the value without secrets, however deeply nested.
  static func removed(from value: JSONValue) -> JSONValue {
    switch value {
    case .text(let text): .text(removed(fromText: text))
    case .list(let values): .list(values.map { removed(from: $0) })
    case .object(let members):
      .object(
        members.map { member in
          let isSecret = names.contains(member.name)
          return JSONValue.Member(
            member.name, isSecret ? hidden(member.value) : removed(from: member.value))
        })
    default: value
    }
  }

  /// Returns a secret's replacement: an empty list for a list, an empty object for an object, and
  /// `removed` for a string that is not empty.
  private static func hidden(_ value: JSONValue) -> JSONValue {
    switch value {
    case .text(let text): text.isEmpty ? value : .text("removed")
    case .list: .list([])
    case .object: .object([])
    default: value
    }
  }

  /// Returns text without the secrets of the descriptions in it; JSON objects are searched member
  /// by member.
  static func removed(fromText text: String) -> String {
    if text.hasPrefix("{"), let inner = try? JSONValue(parsing: text) {
      return removed(from: inner).json
    }
    guard lines.contains(where: { text.contains($0) }) else { return text }
    // CR LF is a single Character, and it does not equal "\n".
    let kept = text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline)
      .map { line in
        lines.first { line.hasPrefix($0) }.map { $0 + "removed" } ?? String(line)
      }
    return kept.joined(separator: text.contains("\r\n") ? "\r\n" : "\n")
  }
}
