package import Queries
import Stats
package import Tape
import Wire

/// A take as `retake open` lists it: out of the catalogue that all verbs have of a folder.
package struct PageCatalogue: Sendable {
  private var members: [(String, JSONText?)]
  private let isComplete: Bool

  /// The takes of a catalogue by their paths, those that could not be read with the reason.
  package static func entries(_ catalogue: TakeCatalogue) throws(TapeError)
    -> [String: PageCatalogue]
  {
    var entries: [String: PageCatalogue] = [:]
    for failure in catalogue.failures {
      entries[failure.path] = PageCatalogue(failure: failure)
    }
    let ids = try findings(catalogue)
    try catalogue.read { (connection) throws(SQLiteError) in
      let rows = try connection.prepare(
        """
        SELECT take, label, start_utc, duration_ns, names, bytes, complete, codecs, relay,
          round_trip_ms, loss_share, concealed_share, findings, severity, finding, finding_text,
          traffic, frozen_ns FROM take
        """)
      while try rows.step() {
        let take = rows.text(0) ?? ""
        entries[take] = PageCatalogue(rows, ids: ids[take] ?? [])
      }
    }
    return entries
  }

  /// The ids of the causes of each take.
  private static func findings(_ catalogue: TakeCatalogue) throws(TapeError)
    -> [String: [String]]
  {
    try catalogue.read { (connection) throws(SQLiteError) in
      let rows = try connection.prepare("SELECT DISTINCT take, id FROM finding WHERE depth = 0")
      var ids: [String: [String]] = [:]
      while try rows.step() {
        let (take, id) = rows.values(String.self, String.self)
        ids[take, default: []].append(id)
      }
      return ids
    }
  }

  /// A take that could not be read, with the reason.
  package init(failure: TapeError) {
    members = [("error", .text(failure.description))]
    isComplete = true
  }

  private init(_ row: borrowing SQLiteStatement, ids: [String]) {
    let (label, start, length, names) = row.values(
      from: 1, String.self, String.self, Int64.self, String.self)
    let (bytes, isComplete, codecs, isRelayed) = row.values(
      from: 5, Int64.self, Bool.self, String.self, Bool.self)
    let (trip, loss, concealed, count) = row.values(
      from: 9, Double?.self, Double?.self, Double?.self, Int64.self)
    let (severity, worst, text, traffic) = row.values(
      from: 13, String.self, String?.self, String?.self, String.self)
    let frozen = row.isNull(17) ? nil : row.integer(17)
    self.isComplete = isComplete
    let findings = JSONText.object([
      ("count", .integer(count)),
      ("severity", .integer(FindingSeverity(name: severity)?.rawValue ?? 0)),
      ("level", worst == nil ? nil : .text(severity)), ("worst", worst.map { .text($0) }),
      ("evidence", text.map { .text($0) }),
    ])
    let facts = JSONText.object([
      ("findings", .list(ids.map { .text($0) })),
      ("codecs", .list(codecs.split(separator: " ").map { .text(String($0)) })),
      ("relay", .flag(isRelayed)), ("round_trip_ms", trip.map { .number($0) }),
      ("loss_share", loss.map { .number($0) }), ("concealed_share", concealed.map { .number($0) }),
      ("frozen_ns", frozen.map { .integer($0) }),
    ])
    members = [
      ("label", .text(label)), ("start", .text(start)), ("seconds", .number(Double(length) / 1e9)),
      ("peers", .text(names)), ("bytes", .integer(bytes)), ("isComplete", .flag(isComplete)),
      (
        "details",
        .object([
          ("findings", findings), ("facts", facts),
          // The catalogue has it as JSON, of numbers alone.
          ("spark", traffic.hasPrefix("[") ? JSONText(traffic) : nil),
        ])
      ),
    ]
  }

  /// The entry as a JSON object.
  package func json(name: String, isLive: Bool) -> String {
    JSONText.object(
      [("name", .text(name))] + members + [("isLive", .flag(isLive && !isComplete))]
    ).text
  }

  /// A take that is being read.
  package static func waiting(name: String) -> String {
    JSONText.object([("name", .text(name)), ("isWaiting", .flag(true))]).text
  }
}
