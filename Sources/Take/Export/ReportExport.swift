package import Tape
import Wire

/// Writes what a take has of calls, events and statistics in the forms that browsers dump them in
/// and public importers open.
package struct ReportExport {
  /// The form.
  package enum Form: Sendable {
    /// A dump of chrome://webrtc-internals, of a Chrome of 2025 and later.
    case internals
    /// A dump of rtcstats, file format 3, with methods and members by their names.
    case rtcstats
  }

  /// What was written.
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

  /// - Parameter withSecrets: whether passwords and keys of descriptions and configurations stay.
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

  /// Writes the file; one without any connection is not written.
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

/// Somebody who reports: a peer, or with the number 0 the page.
struct Reporter {
  var number: Int64
  var name: String
  var label: String
  var role: String
  var at: Int64
  var configuration: JSONValue
}

/// A call, its result or an event, in the words of the W3C API.
struct ReportEvent {
  enum Kind { case call, success, failure, event }

  var row: Int64
  var peer: Int64
  /// In nanoseconds since the take began, and as Unix time in milliseconds.
  var at: Int64
  var time: Double
  var kind: Kind
  /// `createOffer`, `iceconnectionstatechange`.
  var name: String
  var value: JSONValue
  /// What a call and its result share.
  var call: Int64?
}

/// A report of getStats.
struct StatsReport {
  struct Object {
    var id: String
    var type: String
    /// Unix time in milliseconds.
    var timestamp: Double
    var members: [JSONValue.Member]
  }

  var row: Int64
  var peer: Int64
  /// Unix time in milliseconds.
  var time: Double
  /// All objects, in the order in which they came up.
  var objects: [Object]
  /// The ids of those that changed since the report before, and of those that are gone.
  var changed: Set<String>
  var gone: [String]
}

protocol ReportWriting {
  func begin() throws(ExportFailure)
  mutating func add(_ event: ReportEvent) throws(ExportFailure)
  mutating func add(_ report: StatsReport) throws(ExportFailure)
  mutating func finish() throws(ExportFailure)
}

/// What nobody else may have of descriptions and configurations.
enum ReportSecrets {
  /// Members whose values are passwords, keys or what holds them.
  private static let names: Set<String> = [
    "credential", "password", "certificates", "privateKey", "key", "keys", "seed", "secret",
    "token", "icePassword", "pwd", "accessToken", "authorization",
  ]
  /// The beginnings of lines of descriptions with secrets (RFC 8839, RFC 4568).
  private static let lines = ["a=ice-pwd:", "a=crypto:", "a=key-mgmt:", "k="]

  /// The value without secrets, as deep as they stand.
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

  /// Keys of certificates and of maps have no value any longer; what is empty was no secret.
  private static func hidden(_ value: JSONValue) -> JSONValue {
    switch value {
    case .text(let text): text.isEmpty ? value : .text("removed")
    case .list: .list([])
    case .object: .object([])
    default: value
    }
  }

  /// A description without its secrets; JSON inside of a text is looked into.
  static func removed(fromText text: String) -> String {
    if text.hasPrefix("{"), let inner = try? JSONValue(parsing: text) {
      return removed(from: inner).json
    }
    guard lines.contains(where: { text.contains($0) }) else { return text }
    // CR LF is one character, which is no "\n".
    let kept = text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline)
      .map { line in
        lines.first { line.hasPrefix($0) }.map { $0 + "removed" } ?? String(line)
      }
    return kept.joined(separator: text.contains("\r\n") ? "\r\n" : "\n")
  }
}
