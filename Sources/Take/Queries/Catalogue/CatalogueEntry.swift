import Stats
import Tape
import Wire

/// A take's rows in a catalogue.
///
/// The initializer reads all of them through one connection.
struct CatalogueEntry: Sendable {
  /// The placeholder for the take's path in stored results: a Unicode noncharacter, which no text
  /// contains.
  static let placeholder = Unicode.Scalar(0xfdd5 as UInt32).map { String($0) } ?? "TAKE"
  /// The time limit for reading one take, in seconds; without it, reading a crafted file might
  /// never end.
  private static let secondsMaximum = 300.0
  /// The size limits of a string or blob in a row, and of a stored result, in bytes.
  private static let textMaximum = 4_000
  private static let documentMaximum = 4 << 20

  private(set) var rows: [(relation: String, values: [[Value]])] = []
  /// The names of relations with more rows than a catalogue stores, and the kinds of results that
  /// are too large for it.
  private(set) var cut: [String] = []

  /// Reads a take; fails if the settings skip it.
  ///
  /// - Parameter short: reads short takes one after another; nil for a single take.
  init?(
    path: String, reading: CatalogueReading, through short: ShortTakes? = nil,
    isWanted: @escaping @Sendable () -> Bool
  ) throws(TapeError) {
    var part = TakeSelection()
    if let selection = reading.selection {
      guard let chosen = selection(path) else { return nil }
      part = chosen
    }
    let limit = TakeFile.largestOnPage
    // Reading with other rules, or reading only a part of a take, changes the connection, which
    // therefore must not be shared.
    if let short, reading.isUsual {
      self = try short.read(path, largestValue: limit) { (connection) throws(TapeError) in
        try Self(path, connection, reading, part, isWanted)
      }
    } else {
      let connection = try TakeFile.openForQueries(path, largestValue: limit)
      try self.init(path, connection, reading, part, isWanted)
    }
  }

  private init(
    _ path: String, _ connection: borrowing SQLiteConnection, _ reading: CatalogueReading,
    _ part: TakeSelection, _ isWanted: @escaping @Sendable () -> Bool
  ) throws(TapeError) {
    let begin = ContinuousClock.now
    let watch = SQLiteWatch {
      isWanted() && ContinuousClock.now - begin < .seconds(Self.secondsMaximum)
    }
    connection.setWatch(watch)
    defer {
      connection.setWatch(nil)
      withExtendedLifetime(watch) {}
    }
    do throws(TapeError) {
      if reading.isUsual { try readRelations(path, connection) }
      readSpeakers(try SpeakerTimeline(path: path, connection, part))
      let info = try TakeInfo(path: path, connection, countsRows: true)
      var findings = try TakeFindings(path: path, connection, part, reading.rules)
      if let explanation = reading.explanation {
        findings.explain(try explanation(path, findings.findings))
      }
      let summary = try TakeSummary(path: path, connection, findings: findings)
      try readSummary(path, connection, summary, info)
    } catch {
      guard error.reason.contains("interrupted") else { throw error }
      throw TapeError(
        path: path, place: "",
        reason: isWanted()
          ? "reading it took longer than \(Int(Self.secondsMaximum)) s; retake verify checks "
            + "whether it was altered" : "it was not read completely",
        kind: .failed)
    }
  }

  private mutating func add(_ relation: CatalogueSchema.Relation, _ values: [[Value]]) {
    rows.append((relation.name, values.map { $0.map(Self.short) }))
  }

  /// Cuts text and bytes to `textMaximum`, so that one cell cannot fill the catalogue.
  private static func short(_ value: Value) -> Value {
    switch value {
    case .text(let text) where text.utf8.count > textMaximum:
      .text(String(decoding: text.utf8.prefix(textMaximum), as: UTF8.self) + "...")
    case .blob(let bytes) where bytes.count > textMaximum: .blob(Array(bytes.prefix(textMaximum)))
    default: value
    }
  }

  private mutating func addDocument(_ kind: String, _ json: String) {
    guard json.utf8.count <= Self.documentMaximum else {
      cut.append(kind)
      return
    }
    rows.append((CatalogueSchema.document.name, [[.text(kind), .text(json)]]))
  }

  // MARK: Rows

  private mutating func readRelations(_ path: String, _ connection: borrowing SQLiteConnection)
    throws(TapeError)
  {
    do throws(SQLiteError) {
      for relation in CatalogueSchema.relations where relation.isOfTakes {
        let columns = CatalogueSchema.list(relation.columns)
        let found = try connection.prepare(
          "SELECT \(columns) FROM \(relation.name) LIMIT \(CatalogueSchema.mostRows + 1)")
        var values: [[Value]] = []
        while try found.step() {
          guard values.count < CatalogueSchema.mostRows else {
            cut.append(relation.name)
            break
          }
          values.append(relation.columns.indices.map { found.value($0) ?? .null })
        }
        add(relation, values)
      }
    } catch {
      throw TapeError(path: path, error)
    }
  }

  // MARK: Documents

  private mutating func readSpeakers(_ speakers: SpeakerTimeline) {
    add(
      CatalogueSchema.voice,
      speakers.participants.map { voice in
        [
          .integer(voice.peer), .text(voice.name), .text(voice.person), .integer(voice.track),
          .text(voice.direction), .number(voice.contributor),
          .integer(voice.speakingNanoseconds), .integer(voice.dominantNanoseconds),
          .measure(voice.meanTenthsOfDecibels.map { Double($0) / 10 }),
          .number(voice.loudestDecibels), .number(voice.loudestPercent),
          .integer(voice.measuredNanoseconds), .integer(voice.silentNanoseconds),
        ]
      })
    // `speakers.json` lacks the take's path, so the placeholder is inserted here.
    let take = JSONText.text(Self.placeholder).text
    addDocument("speakers", "{\"take\":\(take),\(speakers.json.dropFirst())")
  }

  private mutating func readSummary(
    _ path: String, _ connection: borrowing SQLiteConnection, _ summary: TakeSummary,
    _ info: TakeInfo
  ) throws(TapeError) {
    let findings = summary.findings
    var (summary, info) = (summary, info)
    summary.path = Self.placeholder
    info.path = Self.placeholder
    addDocument("summary", summary.json)
    addDocument("info", info.json)
    addDocument("findings", findings.json(take: Self.placeholder))
    add(CatalogueSchema.finding, FindingRow.all(of: findings).map(\.values))
    add(CatalogueSchema.connection, summary.connections.map(Self.values))
    add(CatalogueSchema.quality, summary.media.map(Self.values))
    let header: [Value]
    let traffic: [Int64]
    do throws(SQLiteError) {
      header = try Self.header(connection)
      traffic = try Self.traffic(connection)
    } catch {
      throw TapeError(path: path, error)
    }
    add(CatalogueSchema.take, [header + Self.values(summary, info, traffic)])
  }
}

// MARK: Values

extension CatalogueEntry {
  /// Returns the columns `label` to `keeps_media` of a `take` row.
  private static func header(_ connection: borrowing SQLiteConnection) throws(SQLiteError)
    -> [Value]
  {
    let rows = try connection.prepare(
      """
      SELECT label, start_utc, start_unix_ns, \(TakeInfo.end), (SELECT count(*) = 1 FROM ending),
        format, tool_version, redaction, keeps_media FROM take
      """)
    guard try rows.step() else { return [Value](repeating: .null, count: rows.columnCount) }
    return (0..<rows.columnCount).map { rows.value($0) ?? .null }
  }

  private static let trafficParts: Int64 = 60

  /// Returns the number of bytes on the wire in each of `trafficParts` equal parts of the take.
  private static func traffic(_ connection: borrowing SQLiteConnection) throws(SQLiteError)
    -> [Int64]
  {
    var values = [Int64](repeating: 0, count: Int(trafficParts))
    let end = try connection.integer("SELECT max(at_ns) FROM tape") ?? 0
    let rows = try connection.prepare(
      """
      SELECT min(max(at_ns, 0) / \(max(end / trafficParts, 1)), \(trafficParts - 1)) AS part,
        sum(size) FROM packet_store GROUP BY part
      """)
    while try rows.step() {
      let (part, size) = rows.values(Int.self, Int64.self)
      if values.indices.contains(part) { values[part] = size }
    }
    return values
  }

  /// Returns the columns `bytes` to `traffic` of a `take` row.
  private static func values(_ summary: TakeSummary, _ info: TakeInfo, _ traffic: [Int64])
    -> [Value]
  {
    func list(_ words: [String], _ separator: String) -> Value {
      var seen: Set<String> = []
      return .text(
        words.filter { !$0.isEmpty && seen.insert($0).inserted }.joined(separator: separator))
    }
    let (connections, media) = (summary.connections, summary.media)
    let pairs = connections.compactMap(\.pair)
    let first = summary.findings.findings.first
    let serious = summary.findings.findings.count { $0.severity >= .medium }
    return [
      .integer(info.fileBytes), .integer(info.steps), .number(info.peers.count),
      list(info.peers.prefix(20).map(\.label), ", "), .integer(summary.packets),
      list(media.map(\.codec).sorted(), " "),
      .flag(pairs.contains { $0.localType == "relay" || $0.remoteType == "relay" }),
      list(connections.map(\.state), ", "),
      .number(connections.compactMap(\.connectedNanoseconds).max()),
      .measure(connections.compactMap(\.roundTrip?.median).max()),
      .measure(media.reduce(0) { $0 + ($1.bitsPerSecond ?? 0) }.rounded()),
      .measure(media.compactMap(\.lossShare).max()),
      .integer(media.reduce(0) { $0 +| ($1.lost ?? 0) }),
      .integer(media.reduce(0) { $0 +| $1.refused }),
      .measure(media.compactMap(\.jitterMilliseconds).max()),
      nanoseconds(media.reduce(0) { $0 + $1.frozenSeconds }),
      .number(media.reduce(0) { $0 +| $1.freezes }),
      .measure(media.compactMap(\.concealedShare).max()), .number(serious),
      .text(first?.severity.name), .text(first?.id), .text(first?.text),
      .text(first?.sideWords), .text(first?.confidence?.name),
      .text("[" + traffic.map(String.init).joined(separator: ",") + "]"),
    ]
  }

  private static func values(_ one: TakeSummary.Connection) -> [Value] {
    [
      .integer(one.peer), .text(one.name), .text(one.other), .flag(one.isObserved),
      .text(one.state), .number(one.connectedNanoseconds), .text(one.pair?.local),
      .text(one.pair?.localType), .text(one.pair?.remote), .text(one.pair?.remoteType),
      .number(one.pair?.changes), .measure(one.roundTrip?.median), .measure(one.roundTrip?.most),
    ]
  }

  private static func values(_ one: TakeSummary.Media) -> [Value] {
    let hasPicture = one.width > 0
    return [
      .integer(one.peer), .text(one.name), .text(one.direction.rawValue), .text(one.kind),
      .text(one.codec), .number(one.packets > 0 ? one.ssrc : nil), .number(one.track),
      .integer(one.packets),
      .number(hasPicture ? one.width : nil), .number(hasPicture ? one.height : nil),
      .measure(hasPicture ? one.framesPerSecond : nil), .measure(one.bitsPerSecond?.rounded()),
      .number(one.lost), .measure(one.lossShare), .integer(one.refused),
      .measure(one.jitterMilliseconds),
      nanoseconds(one.frozenSeconds), .number(one.freezes), .measure(one.concealedShare),
      .measure(one.level),
    ]
  }

  static func nanoseconds(_ seconds: Double) -> Value {
    .integer(Int64(saturating: max(min(seconds, 9e8), 0) * 1e9))
  }
}

struct FindingRow: Sendable {
  var values: [Value]

  /// Returns rows for all findings, each followed by its symptoms.
  static func all(of found: TakeFindings) -> [FindingRow] {
    var rows: [FindingRow] = []
    func add(_ finding: Finding, parent: Int?, depth: Int) {
      let number = rows.count + 1
      rows.append(FindingRow(finding, number: number, parent: parent, depth: depth))
      for symptom in finding.symptoms { add(symptom, parent: number, depth: depth + 1) }
    }
    for finding in found.findings { add(finding, parent: nil, depth: 0) }
    return rows
  }

  private init(_ finding: Finding, number: Int, parent: Int?, depth: Int) {
    let (worst, impact) = (finding.worst, finding.impact)
    let replayed =
      finding.explanation.map {
        $0.hasPrefix("not explained") ? " (\($0))" : " (replayed: \($0))"
      } ?? ""
    func length(_ seconds: Double) -> Value {
      seconds > 0 ? CatalogueEntry.nanoseconds(seconds) : .null
    }
    values = [
      .number(number), .number(parent), .number(depth), .text(finding.id),
      .text(finding.severity.name), .text(finding.side?.rawValue),
      .text(finding.sideWords.isEmpty ? nil : finding.sideWords),
      .text(finding.confidence?.name),
      .text(finding.reservation.isEmpty ? nil : finding.reservation),
      .text(finding.title), .text(finding.subject),
      .text(finding.text + replayed), .number(worst?.peer),
      .text(worst.flatMap { $0.kind.isEmpty ? nil : $0.kind }), .number(worst?.ssrc),
      .number(worst?.track), .text(worst?.direction?.rawValue),
      .integer(finding.fromNanoseconds), .integer(finding.toNanoseconds),
      .integer(finding.lengthNanoseconds), .number(finding.detections.count),
      length(impact.frozenSeconds), length(impact.concealedSeconds),
      length(impact.withoutMediaSeconds), length(impact.delayMilliseconds / 1e3),
      impact.share > 0 ? .measure(impact.share) : .null,
    ]
  }
}
