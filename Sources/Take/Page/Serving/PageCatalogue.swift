import Queries
import Stats
package import Tape
import Wire

/// What a catalogue of takes tells of one of them.
package enum PageCatalogue {
  /// What is quickly known: who, when and how long; also why a file is no take.
  package static func entry(path: String, name: String, isLive: Bool) -> String {
    var members: [(String, JSONText?)] = [("name", .text(name))]
    do {
      let connection = try TakeFile.openForQueries(path)
      let header = try TakeHeader.read(from: connection, path: path)
      let end = try connection.integer("SELECT \(TakeInfo.end)")
      let isComplete = try connection.integer("SELECT count(*) FROM ending") == 1
      var labels: [String] = []
      let rows = try connection.prepare("SELECT label FROM peer ORDER BY row LIMIT 20")
      while try rows.step() { labels.append(rows.text(0) ?? "") }
      members += [
        ("label", .text(header.label)), ("start", .text(header.startText)),
        ("seconds", .number(Double(end ?? 0) / 1e9)),
        ("peers", .text(labels.joined(separator: ", "))),
        ("bytes", .integer(try connection.byteCount())), ("isComplete", .flag(isComplete)),
        ("isLive", .flag(isLive && !isComplete)),
      ]
    } catch {
      members.append(("error", .text("\(error)")))
    }
    return JSONText.object(members).text
  }

  /// What takes longer: the worst finding, the numbers of the call, and how much went over the wire
  /// when.
  package static func details(path: String) throws(TapeError) -> String {
    let findings = try TakeFindings(path: path)
    let found = PageFindings(findings)
    let facts = try TakeSummary(path: path, findings: findings).facts
    let connection = try TakeFile.open(path)
    do throws(SQLiteError) {
      return "{\"findings\":\(found.summary),\"facts\":\(facts.text),"
        + "\"spark\":\(try spark(connection))}"
    } catch {
      throw TapeError(path: path, error)
    }
  }

  private static let sparkLength: Int64 = 60

  private static func spark(_ connection: borrowing SQLiteConnection) throws(SQLiteError)
    -> String
  {
    var values = [Int64](repeating: 0, count: Int(sparkLength))
    let end = try connection.integer("SELECT max(at_ns) FROM tape") ?? 0
    let rows = try connection.prepare(
      """
      SELECT min(max(at_ns, 0) / \(max(end / sparkLength, 1)), \(sparkLength - 1)) AS part,
        sum(size) FROM packet_store GROUP BY part
      """)
    while try rows.step() {
      let (part, size) = rows.values(Int.self, Int64.self)
      if values.indices.contains(part) { values[part] = size }
    }
    return "[" + values.map(String.init).joined(separator: ",") + "]"
  }
}
