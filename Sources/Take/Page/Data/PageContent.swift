import Queries
import Stats
package import Tape

/// Everything that a take's page shows: a JSON object, and the bytes of the columns that it refers
/// to.
///
/// This is the contract between Swift and the page's script, which the article `ThePage` describes:
/// only `columns.js` and `series.js` read the bytes, and only `reading.js` reads the object. While
/// a take grows, its content can be read again: then `packets` and `frames` in `series` have only
/// additions; everything else is complete each time.
package struct PageContent: Sendable {
  private let path: String
  private var packets = PacketSeries()
  private var frames = FrameSeries()

  package init(path: String) { self.path = path }

  /// The result of a read: the object's members in order, and the columns.
  package struct Reading: Sendable {
    fileprivate var members: [(String, String)]
    package fileprivate(set) var columns: [UInt8]
    /// The number of bytes of `columns` that a page needs to draw the entire take; the values of
    /// long series follow.
    package fileprivate(set) var earlyCount: Int
    package fileprivate(set) var title: String

    /// Returns the object with additional members, whose values are JSON.
    package func object(with more: [(String, String)]) -> String {
      "{" + (members + more).map { "\(jsonString($0.0)):\($0.1)" }.joined(separator: ",\n") + "}"
    }
  }

  /// The number of packets read so far.
  package var packetCount: Int { packets.count }

  /// Reads the take, or what was added since the last call.
  ///
  /// - Parameters:
  ///   - keepsMessages: whether to include the text of signaling messages.
  ///   - shortMaximum: longer packet and frame series get an overview, and their values come after
  ///     all others.
  ///   - tell: called with the name of the part that is being read.
  package mutating func read(
    keepsMessages: Bool = true, shortMaximum: Int = .max, tell: (String) -> Void = { _ in }
  ) throws(TapeError) -> Reading {
    // Packets have by far the most rows, followed by reports and statistics. Both are read on
    // separate threads, from the same moment as the rest.
    let (path, former) = (path, packets)
    let connection = try TakeFile.openSnapshot(path)
    let moment: PageMoment
    do throws(SQLiteError) { moment = try PageMoment(connection) } catch {
      throw TapeError(path: path, error)
    }
    let reading = Aside { () throws(TapeError) in
      try former.read(path, through: moment.lastPacket)
    }
    let answers = Aside { () throws(TapeError) in
      try PageAnswers.series(PageQuery.inSeries, path: path, at: moment)
    }
    tell("what the take holds")
    let info = try TakeInfo(path: path, connection, countsRows: false)
    let timeline = try Timeline(path: path, connection)
    var list = PageSeriesList(shortMaximum: shortMaximum)
    var members = PageContent.facts(of: info)
    do throws(SQLiteError) {
      tell("frames")
      try frames.read(connection)
      frames.drain(into: &list)
      members += [("sizes", frames.sizes), ("freezes", frames.freezes)]
      for query in PageQuery.spans {
        tell(query.name)
        if let items = try PageAnswers.spans(query, connection) {
          members.append((query.name, items))
        }
      }
      for rows in PageRows.lists(keepsMessages: keepsMessages) {
        tell(rows.name)
        members.append((rows.name, try PageRows.json(rows.sql, connection)))
      }
    } catch {
      throw TapeError(path: path, error)
    }
    tell("reports and statistics")
    let found =
      if let found = try answers.value() { found } else {
        try PageAnswers.series(PageQuery.inSeries, path: path, connection)
      }
    for series in found { list.add(series) }
    tell("packets")
    packets = try reading.value()
    packets.drain(into: &list)
    members.append(("peers", peers(of: info)))
    members.append(("timeline", PageContent.entries(of: timeline)))
    members.append(("queries", PageContent.queries))
    members.append(("series", list.json))
    return Reading(
      members: members, columns: list.bytes, earlyCount: list.earlyCount,
      title: PageContent.title(of: info))
  }

  /// Reads only new packets and frames, and all states, paths, tracks, signaling and presence.
  ///
  /// This must be fast, because it is called often while a take is being recorded. All other parts
  /// stay as they were.
  package mutating func readBriefly() throws(TapeError) -> Reading {
    let connection = try TakeFile.openSnapshot(path)
    var list = PageSeriesList()
    var members = [("isBrief", "true")]
    do throws(SQLiteError) {
      try packets.read(connection)
      packets.drain(into: &list)
      try frames.read(connection)
      frames.drain(into: &list)
      members += [("sizes", frames.sizes), ("freezes", frames.freezes)]
      let isComplete = try connection.integer("SELECT count(*) FROM ending") == 1
      members.append(("isComplete", isComplete ? "true" : "false"))
      let end = try connection.integer(
        "SELECT max(at_ns) FROM (SELECT at_ns FROM tape UNION ALL SELECT at_ns FROM ending)")
      members.append(("seconds", StatsValue.number(Double(max(end ?? 0, frames.end)) / 1e9).json))
      for query in PageQuery.spans where ["states", "path"].contains(query.name) {
        if let items = try PageAnswers.spans(query, connection) {
          members.append((query.name, items))
        }
      }
      for rows in PageRows.lists(keepsMessages: true)
      where ["tracks", "streams", "signaling", "presence", "carriage"].contains(rows.name) {
        members.append((rows.name, try PageRows.json(rows.sql, connection)))
      }
    } catch {
      throw TapeError(path: path, error)
    }
    members.append(("series", list.json))
    return Reading(
      members: members, columns: list.bytes, earlyCount: list.earlyCount, title: "")
  }

  /// Facts about a take that are computed from its rows: the findings and the summary.
  struct Examination: Sendable {
    /// Members of the page's data; their values are JSON.
    var members: [(String, String)]
    /// The findings and the summary as text, for readers without JavaScript.
    var text: String
  }

  static func examine(path: String) throws(TapeError) -> Examination {
    let found = try TakeFindings(path: path)
    let summary = try TakeSummary(path: path, findings: found)
    return Examination(
      members: [("findings", PageFindings(found).json), ("quality", summary.pageObject)],
      // Only the file's name: pages are sent to others, and folders may name people and projects.
      text: summary.text(named: path.split(separator: "/").last.map(String.init)))
  }

  /// Returns a take's findings and the figures of its summary as a JSON object.
  package static func examination(path: String) throws(TapeError) -> String {
    let members = try examine(path: path).members.map { "\(jsonString($0.0)):\($0.1)" }
    return "{" + members.joined(separator: ",\n") + "}"
  }

  /// Returns a take's label, or else the names in it, or else its file name.
  static func title(of info: TakeInfo) -> String {
    if !info.label.isEmpty { return info.label }
    // Labels of a room's connections only repeat the room's label.
    if let room = info.actors.first(where: { $0.kind == "room" && !$0.label.isEmpty }) {
      return room.label
    }
    let labels = info.peers.map(\.label).filter { !$0.isEmpty }
    if labels.count == 2 { return labels.joined(separator: " ↔ ") }
    if let label = labels.first ?? info.actors.map(\.label).first(where: { !$0.isEmpty }) {
      return labels.count > 2 ? "\(label) and \(labels.count - 1) others" : label
    }
    return fileName(info.path)
  }

  static func fileName(_ path: String) -> String {
    path.split(separator: "/").last.map(String.init) ?? path
  }

  private static func facts(of info: TakeInfo) -> [(String, String)] {
    return [
      ("title", jsonString(title(of: info))), ("label", jsonString(info.label)),
      ("file", jsonString(fileName(info.path))), ("start", jsonString(info.start)),
      ("seconds", StatsValue.number(Double(info.durationNanoseconds) / 1e9).json),
      ("steps", String(info.steps)), ("version", jsonString(info.toolVersion)),
      ("isComplete", StatsValue.flag(info.isComplete).json),
      ("ending", info.ending.map(jsonString) ?? "null"),
      ("keepsMedia", StatsValue.flag(info.keepsMedia).json),
      ("fileBytes", String(info.fileBytes)),
      ("actors", CanonicalJSON.text(info.actors)),
      ("coverage", CanonicalJSON.text(info.coverage)),
    ]
  }

  private func peers(of info: TakeInfo) -> String {
    let objects = info.peers.map { peer in
      let totals = packets.totals.filter { $0.peer == peer.peer }
      func sum(_ direction: String, _ value: (PacketSeries.Total) -> Int64) -> String {
        String(totals.filter { $0.direction == direction }.reduce(0) { $0 &+ value($1) })
      }
      return """
        {"peer":\(peer.peer),"label":\(jsonString(peer.label)),"role":\(jsonString(peer.role)),\
        "bytesIn":\(sum("in", \.bytes)),"bytesOut":\(sum("out", \.bytes)),\
        "packetsIn":\(sum("in", \.packets)),"packetsOut":\(sum("out", \.packets))}
        """
    }
    return "[" + objects.joined(separator: ",") + "]"
  }

  /// Returns a timeline's entries as JSON rows `[seconds, step, peer, lane, what]`.
  private static func entries(of timeline: Timeline) -> String {
    let rows = timeline.entries.prefix(entryMaximum).map { entry in
      "[\(StatsValue.number((Double(entry.atNanoseconds) / 1e4).rounded() / 1e5).json),"
        + "\(entry.step),\(entry.peer),\(jsonString(entry.lane)),"
        + "\(jsonString(timeline.words(entry)))]"
    }
    return "[" + rows.joined(separator: ",\n") + "]"
  }

  /// The maximum number of entries; `retake timeline` lists all events.
  private static let entryMaximum = 20_000

  private static let queries: String = {
    let pairs = PageQuery.all.map { ($0.name, $0.sql) } + PageQuery.equivalents
    return "{" + pairs.map { "\(jsonString($0.0)):\(jsonString($0.1))" }.joined(separator: ",\n")
      + "}"
  }()
}
