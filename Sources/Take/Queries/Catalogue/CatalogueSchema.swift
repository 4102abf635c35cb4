package import Tape
import Wire

/// The tables that queries on a catalogue can name.
///
/// Tables with the name of a take's view or table have the same columns after a `take` column; the
/// other tables summarize takes.
package enum CatalogueSchema {
  struct Relation: Sendable {
    var name: String
    var columns: [String]
    /// The columns' meanings; empty for a table that takes have, because the schema of takes
    /// explains it.
    var meanings: [String] = []
    /// A sentence about the table, for its documentation.
    var purpose: String

    /// The name of the table that stores the rows.
    var storage: String { "\(name)_row" }
    var isOfTakes: Bool { meanings.isEmpty }
  }

  /// The takes' tables and views that a catalogue copies, which usually have at most a few hundred
  /// rows.
  ///
  /// Names that this version's schema lacks are skipped.
  private static let kept = [
    "peer", "actor", "state", "track", "selected_pair", "stream", "participant",
    "participant_track", "speaker", "coverage", "first_frame", "milestone", "gap", "tag",
  ]

  /// The maximum number of rows per table and take; results name the tables that were cut.
  static let mostRows = 5_000

  /// All tables that queries can name, in the order of the printed schema.
  static let relations: [Relation] = own + ofTakes

  private static let ofTakes: [Relation] = {
    guard let empty = try? TakeSchema.emptyTake() else { return [] }
    return kept.compactMap { name in
      guard let rows = try? empty.prepare("SELECT * FROM \(name)") else { return nil }
      return Relation(
        name: name, columns: (0..<rows.columnCount).map { rows.columnName($0) },
        purpose: "As in a take; see its schema.")
    }
  }()

  private static func relation(
    _ name: String, _ purpose: String, _ columns: KeyValuePairs<String, String>
  ) -> Relation {
    Relation(
      name: name, columns: columns.map(\.key), meanings: columns.map(\.value), purpose: purpose)
  }

  static let take = relation(
    "take", "One row per take.",
    [
      "label": "free text given by whoever recorded",
      "start_utc": "wall clock at its beginning",
      "start_unix_ns": "the same in nanoseconds since 1970-01-01 UTC",
      "duration_ns": "how long it lasted", "complete": "1: the recording ended properly",
      "format": "version of its schema", "tool_version": "the version of Retake that recorded",
      "redaction": "0: nothing was redacted", "keeps_media": "1: it has unencrypted media and data",
      "bytes": "size of the file", "steps": "how many steps it has",
      "peers": "how many peers it has", "names": "their labels, with commas between",
      "packets": "packets of RTP", "codecs": "codecs of its media, with spaces between",
      "relay": "1: a selected pair used a TURN server",
      "state": "the last states of its connections, with commas between",
      "connected_ns": "how long the slowest connection took",
      "round_trip_ms": "median of the slowest connection",
      "bits_per_second": "of all its media together",
      "loss_share": "of the stream with the most loss, 0 to 1",
      "packets_lost": "of all streams together",
      "packets_refused":
        "arrived but rejected by SRTP, of all streams together; not part of the loss",
      "jitter_ms": "of the stream with the most jitter",
      "frozen_ns": "duration of freezes, of all streams together",
      "freezes": "how often", "concealed_share": "concealed audio of the worst stream, 0 to 1",
      "findings": "how many causes of severity medium or worse",
      "severity": "that of its first finding; NULL if nothing seems wrong",
      "finding": "the id of its first finding", "finding_text": "the text of that finding",
      "side": "where its cause is, in words; empty if unknown",
      "confidence": "how sure that is: certain, likely or possible",
      "traffic": "JSON: bytes on the wire in each sixtieth of it",
    ])

  static let connection = relation(
    "connection", "One row per peer: its connection and the last selected pair.",
    [
      "peer": "number", "name": "the end, in words", "other": "the other end",
      "observed": "1: an end of a call between others", "state": "the last state",
      "connected_ns": "how long connecting took", "local": "address", "local_type": "of candidate",
      "remote": "address", "remote_type": "of candidate",
      "pair_changes": "how often another pair was selected",
      "round_trip_ms": "median", "longest_round_trip_ms": "the longest",
    ])

  static let quality = relation(
    "quality", "One row per media stream, as seen by its receiver, or else by its sender.",
    [
      "peer": "number", "name": "whose media, in words", "direction": "in or out",
      "kind": "audio or video", "codec": "name", "ssrc": "number", "track": "of the transceiver",
      "packets": "of RTP; 0: none of the negotiated media arrived",
      "width": "of the last picture", "height": "of the last picture",
      "frames_per_second": "shown", "bits_per_second": "on the wire",
      "packets_lost": "on the wire; from the receiver's reports if the receiver is not in the take",
      "loss_share": "0 to 1; NULL: unknown",
      "packets_refused": "arrived but rejected by SRTP; not part of the loss",
      "jitter_ms": "mean interarrival jitter",
      "frozen_ns": "duration of its freezes", "freezes": "how often",
      "concealed_share": "of its audio, 0 to 1", "level_dbov": "mean level without silence",
    ])

  static let finding = relation(
    "finding", "One row per finding: causes, and symptoms with their cause as the parent.",
    [
      "number": "within the take, from 1, the cause with the greatest impact first",
      "parent": "the number of the finding that led to it; NULL for a cause",
      "depth": "0 for a cause",
      "id": "of the rule", "severity": "critical, high, medium, low or info",
      "side": "network, server, signaling, sender, receiver, end or other-end; NULL: unknown",
      "side_name": "the same in words, such as the name of an end",
      "confidence": "certain, likely or possible: how sure the cause and its side are",
      "reservation": "why that is not certain; NULL if it is",
      "title": "of the rule", "subject": "of whom", "text": "the sentence", "peer": "number",
      "kind": "audio or video", "ssrc": "if it is about one stream", "track": "of the transceiver",
      "direction": "in or out", "from_ns": "its beginning", "to_ns": "its end",
      "duration_ns": "how long in all", "count": "how often", "frozen_ns": "without new pictures",
      "concealed_ns": "of concealed audio", "without_media_ns": "without media",
      "delay_ns": "added at worst", "share": "of what was affected, 0 to 1",
    ])

  static let voice = relation(
    "voice_total", "One row per audio track of a peer, or voice mixed into it.",
    [
      "peer": "number", "name": "as in speaker.participant", "person": "if a room names one",
      "track": "of the transceiver", "direction": "in or out", "contributor": "CSRC of a mixer",
      "speaking_ns": "how long it spoke", "dominant_ns": "how long it dominated",
      "dbov": "mean level while speaking", "loudest_dbov": "the loudest moment",
      "loudest_percent": "the same on a meter, 0 to 100", "heard_ns": "how much of it has levels",
      "silent_ns": "how much of that is silence",
    ])

  /// Tables with summaries, whose names do not occur in takes.
  static let summaries = [connection, quality, finding, voice]

  private static let own = [take] + summaries

  /// A table of complete results as JSON that queries cannot name; a placeholder stands for the
  /// take's path.
  static let document = Relation(
    name: "document", columns: ["kind", "json"], purpose: "Results of verbs.")

  /// The version of the file's layout.
  static let version: Int64 = 2
  /// "RTKC": a catalogue's application_id.
  static let applicationID: Int64 = 0x5254_4b43

  /// The statements that create the tables in an empty file.
  static let creation: [String] =
    [
      """
      CREATE TABLE entry (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, stamp TEXT NOT NULL, \
      place TEXT, reason TEXT, kind INTEGER, cut TEXT)
      """,
      "CREATE TABLE origin (build TEXT NOT NULL)",
    ]
    + (relations + [document]).flatMap { relation in
      [
        "CREATE TABLE \(relation.storage) (entry INTEGER NOT NULL, \(list(relation.columns)))",
        "CREATE INDEX \(relation.storage)_entry ON \(relation.storage) (entry)",
      ]
    }

  /// Returns column names, quoted and separated by commas, for a statement.
  static func list(_ columns: [String]) -> String {
    columns.map { "\"\($0)\"" }.joined(separator: ", ")
  }

  /// Creates the catalogue's tables, empty, to check whether they can answer a query.
  static func emptyRelations() throws(SQLiteError) -> SQLiteConnection {
    let connection = try SQLiteConnection(path: ":memory:", mode: .readWrite)
    for relation in relations {
      try connection.execute("CREATE TABLE \(relation.name) (take, \(list(relation.columns)))")
    }
    return connection
  }

  /// The documentation of the tables and their columns, as SQL comments.
  package static var text: String {
    var text = "-- Additional tables for queries over a folder, or over several takes.\n"
    for relation in relations {
      text += "--\n-- \(relation.purpose)\n-- \(relation.name): take"
      guard !relation.isOfTakes else {
        text += ", \(relation.columns.joined(separator: ", "))\n"
        continue
      }
      text += "\n"
      for (column, meaning) in zip(relation.columns, relation.meanings) {
        text += "--   \(column)" + String(repeating: " ", count: max(1, 23 - column.utf8.count))
        text += "-- \(meaning)\n"
      }
    }
    return text
  }
}

// MARK: - TakeRelations

/// Summary tables for a query on one take: `finding`, `quality`, `connection` and `voice_total`,
/// with the columns that they have in a catalogue except `take`.
package enum TakeRelations {
  /// Returns the summary tables that a query may name.
  static func named(in sql: String) -> [CatalogueSchema.Relation] {
    let words = Set(
      sql.lowercased().split { !($0.isLetter || $0.isNumber || $0 == "_") }.map(String.init))
    return CatalogueSchema.summaries.filter { words.contains($0.name) }
  }

  /// Creates empty tables for the relations that a query names.
  static func make(
    _ relations: [CatalogueSchema.Relation], in connection: borrowing SQLiteConnection
  ) throws(SQLiteError) {
    for relation in relations {
      try connection.execute(
        "CREATE TEMP TABLE \(relation.name) (\(CatalogueSchema.list(relation.columns)))")
    }
  }

  /// Creates and fills the tables that a query names.
  package static func put(
    namedIn sql: String, over connection: borrowing SQLiteConnection, path: String,
    isWanted: @escaping @Sendable () -> Bool = { true }
  ) throws(TapeError) {
    let relations = named(in: sql)
    guard !relations.isEmpty else { return }
    let reading = CatalogueReading(rules: FindingRule.all)
    guard let entry = try CatalogueEntry(path: path, reading: reading, isWanted: isWanted) else {
      return
    }
    do throws(SQLiteError) {
      try connection.execute("PRAGMA query_only = OFF")
      try make(relations, in: connection)
      for relation in relations {
        let marks = relation.columns.map { _ in "?" }.joined(separator: ", ")
        let insert = try connection.prepare("INSERT INTO \(relation.name) VALUES (\(marks))")
        for rows in entry.rows where rows.relation == relation.name {
          for values in rows.values { try insert.insert(values) }
        }
      }
      try connection.execute("PRAGMA query_only = ON")
    } catch {
      throw TapeError(path: path, error)
    }
  }
}
