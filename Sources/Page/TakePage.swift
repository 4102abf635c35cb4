import Queries
import Stats
package import Tape

/// A take as one web page that needs no server and no network: what `retake page` writes.
///
/// States, paths, speakers and curves on one clock, the problems, and everything that happened with
/// the text of each signaling message. It has no keys and no media, but the descriptions with their
/// addresses and ICE passwords: it is as secret as the signaling.
package struct TakePage: Sendable {
  /// The page as text.
  package private(set) var html = ""

  /// Asks a take everything that a page draws.
  package init(path: String) throws(TapeError) {
    let info = try TakeInfo(path: path)
    let problems = try TakeProblems(path: path)
    let timeline = try Timeline(path: path)
    let connection = try TakeFile.openForQueries(path)
    var members = TakePage.facts(of: info)
    do throws(SQLiteError) {
      members.append(("drawings", try TakePage.drawings(connection)))
      members.append(("messages", try TakePage.messages(connection)))
    } catch {
      throw TapeError(path: path, error)
    }
    members.append(("problems", problems.json))
    members.append(("timeline", timeline.json))
    let data = "{" + members.map { "\(jsonString($0.0)):\($0.1)" }.joined(separator: ",") + "}"
    html = TakePage.document(data: data, title: info.label)
  }

  private static func facts(of info: TakeInfo) -> [(String, String)] {
    let seconds = Double(info.durationNanoseconds) / 1e9
    let peers = info.peers.map { peer in
      let tracks = peer.tracks.map(jsonString).joined(separator: ",")
      return """
        {"peer":\(peer.peer),"label":\(jsonString(peer.label)),"tracks":[\(tracks)],\
        "bytesIn":\(peer.bytesIn),"bytesOut":\(peer.bytesOut),\
        "packetsIn":\(peer.packetsIn),"packetsOut":\(peer.packetsOut)}
        """
    }
    return [
      ("label", jsonString(info.label)), ("start", jsonString(info.start)),
      ("seconds", StatsValue.number(seconds).json), ("version", jsonString(info.toolVersion)),
      ("isComplete", StatsValue.flag(info.isComplete).json),
      ("peers", "[" + peers.joined(separator: ",") + "]"),
      ("actors", CanonicalJSON.text(info.actors)),
      ("coverage", CanonicalJSON.text(info.coverage)),
    ]
  }

  /// The answers of all queries that have one, each with its SQL.
  private static func drawings(_ connection: borrowing SQLiteConnection) throws(SQLiteError)
    -> String
  {
    var drawings: [String] = []
    for query in PageQuery.all {
      var parts = PageParts(query.form)
      let statement = try connection.prepare(query.sql)
      while try statement.step() {
        parts.add(statement)
      }
      guard let json = parts.json else { continue }
      drawings.append(
        """
        {"title":\(jsonString(query.title)),"sql":\(jsonString(query.sql)),\(json)}
        """)
    }
    return "[" + drawings.joined(separator: ",\n") + "]"
  }

  /// The signaling messages by step, to be unfolded in the listing.
  private static func messages(_ connection: borrowing SQLiteConnection) throws(SQLiteError)
    -> String
  {
    var messages: [String] = []
    let statement = try connection.prepare(
      "SELECT row >> 16, peer, message FROM signaling ORDER BY row")
    while try statement.step() {
      let (step, peer, text) = statement.values(Int.self, Int64.self, String.self)
      messages.append(
        """
        {"step":\(step),"peer":\(peer),"text":\(jsonString(text))}
        """)
    }
    return "[" + messages.joined(separator: ",\n") + "]"
  }

  private static func document(data: String, title: String) -> String {
    func text(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }
    let title = title.isEmpty ? "take" : title
    return text(PackageResources.take_html)
      .replacing("{{title}}", with: escaped(title), maxReplacements: 1)
      .replacing("{{style}}", with: text(PackageResources.take_css), maxReplacements: 1)
      .replacing("{{script}}", with: text(PackageResources.take_js), maxReplacements: 1)
      // Last, and out of reach of what is inside: a label must not end the element it stands in.
      .replacing("{{data}}", with: data.replacing("<", with: "\\u003c"), maxReplacements: 1)
  }

  private static func escaped(_ text: String) -> String {
    text.replacing("&", with: "&amp;").replacing("<", with: "&lt;")
  }
}
