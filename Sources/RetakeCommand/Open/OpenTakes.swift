import Foundation
import Page
import Queries
import Stats
import Tape
import Wire

/// The takes that `retake open` shows, and what pages have read of them.
actor OpenTakes {
  /// Why a request is not answered, in one sentence.
  struct Refusal: Error {
    var reason: String
    var isUnknown: Bool

    init(_ reason: String, isUnknown: Bool = false) {
      self.reason = reason
      self.isUnknown = isUnknown
    }
  }

  private struct Session {
    var number: Int
    var path: String
    var content: PageContent
  }

  private struct PacketList {
    var path: String
    var filter: String
    /// A list of a take that grows is made anew when it did.
    var fileBytes: Int
    var rows: [Int64]
  }

  private let path: String
  private let isFolder: Bool
  private var sessions: [Session] = []
  private var sessionCount = 0
  private var lists: [PacketList] = []

  /// Pages that are open at once; the oldest then reads its take anew.
  private static let sessionMaximum = 16
  private static let listMaximum = 8
  private static let takeMaximum = 5_000
  /// A recorder writes ten times a second.
  private static let liveSeconds = 5.0

  /// Looks whether there is something to show.
  init(path: String) throws(CommandFailure) {
    var isDirectory: ObjCBool = false
    guard FileManager.default.fileExists(atPath: path, isDirectory: &isDirectory) else {
      throw CommandFailure(.noSuchFile, "\(path): there is no such file or folder")
    }
    self.path = path
    isFolder = isDirectory.boolValue
    guard !isFolder else { return }
    do throws(TapeError) {
      _ = try TakeFile.open(path)
    } catch {
      throw CommandFailure(error)
    }
  }

  // MARK: Takes

  /// What there is: for one take only its name.
  func catalogue() -> String {
    guard isFolder else {
      return "{\"isFolder\":false,\"takes\":[{\"name\":\(jsonString(ownName))}]}"
    }
    let entries = names().map { name in
      PageCatalogue.entry(path: file(name), name: name, isLive: isLive(file(name)))
    }
    return "{\"isFolder\":true,\"folder\":\(jsonString(ownName)),"
      + "\"takes\":[\(entries.joined(separator: ",\n"))]}"
  }

  private var ownName: String { URL(fileURLWithPath: path).lastPathComponent }

  private func file(_ name: String) -> String { isFolder ? path + "/" + name : path }

  /// The takes of the folder and of those in it, in the order of their names.
  private func names() -> [String] {
    let walk = FileManager.default.enumerator(atPath: path)
    var names: [String] = []
    while let name = walk?.nextObject() as? String, names.count < Self.takeMaximum {
      if name.hasSuffix(".take") { names.append(name) }
    }
    return names.sorted()
  }

  private func checked(_ name: String) throws(Refusal) -> String {
    guard isFolder ? names().contains(name) : name.isEmpty || name == ownName else {
      throw Refusal("there is no take \(name.prefix(200)) here", isUnknown: true)
    }
    return file(name)
  }

  private func isLive(_ path: String) -> Bool {
    [path + "-wal", path].contains { path in
      let attributes = try? FileManager.default.attributesOfItem(atPath: path)
      let changed = attributes?[.modificationDate] as? Date
      return changed.map { -$0.timeIntervalSinceNow < Self.liveSeconds } ?? false
    }
  }

  private func reading<Value>(_ body: () throws(TapeError) -> Value) throws(Refusal) -> Value {
    do throws(TapeError) {
      return try body()
    } catch {
      throw Refusal(error.description)
    }
  }

  private func asking<Value>(
    _ path: String, _ body: (borrowing SQLiteConnection) throws(SQLiteError) -> Value
  ) throws(Refusal) -> Value {
    try reading { () throws(TapeError) in
      let connection = try TakeFile.openForQueries(path)
      do throws(SQLiteError) {
        return try body(connection)
      } catch {
        throw TapeError(path: path, error)
      }
    }
  }

  // MARK: Readings

  /// All of a take; what comes later is asked for with the number of the session.
  func begin(_ name: String) throws(Refusal) -> [UInt8] {
    sessionCount += 1
    let path = try checked(name)
    if sessions.count == Self.sessionMaximum { sessions.removeFirst() }
    sessions.append(
      Session(number: sessionCount, path: path, content: PageContent(path: path)))
    return try more(sessionCount)
  }

  /// What came since the last time: the length of the JSON in four bytes, the JSON, the columns.
  func more(_ number: Int) throws(Refusal) -> [UInt8] {
    guard let place = sessions.firstIndex(where: { $0.number == number }) else {
      throw Refusal("this page was left too long ago; load it again", isUnknown: true)
    }
    let path = sessions[place].path
    let result = try reading { () throws(TapeError) in try sessions[place].content.read() }
    let media = try asking(path) { connection throws(SQLiteError) in
      try PageMedia.places(connection)
    }
    let object = result.object(with: [
      ("form", "\"served\""), ("session", String(number)),
      ("isLive", isLive(path) ? "true" : "false"),
      ("media", "[" + media.map(\.place.facts).joined(separator: ",") + "]"),
    ])
    var bytes: [UInt8] = []
    let length = UInt32(clamping: object.utf8.count)
    bytes.reserveCapacity(Int(length) + result.columns.count + 4)
    bytes += (0..<4).map { UInt8(truncatingIfNeeded: length >> (24 - 8 * $0)) }
    bytes += object.utf8
    bytes += result.columns
    return bytes
  }

  func findings(_ name: String) throws(Refusal) -> String {
    let path = try checked(name)
    return try reading { () throws(TapeError) in try PageContent.findings(path: path) }
  }

  func details(_ name: String) throws(Refusal) -> String {
    let path = try checked(name)
    return try reading { () throws(TapeError) in try PageCatalogue.details(path: path) }
  }

  func stats(_ name: String, at seconds: Double) throws(Refusal) -> String {
    let path = try checked(name)
    let instant = Instant(nanoseconds: Int64(exactly: (seconds * 1e9).rounded()) ?? 0)
    let samples = try reading { () throws(TapeError) in
      try StatSamples(path: path, at: instant)
    }
    let peers = samples.peers.map { peer in
      "{\"peer\":\(peer.number),\"objects\":[\(peer.objects.map(\.json).joined(separator: ","))]}"
    }
    return "[" + peers.joined(separator: ",") + "]"
  }

  func media(_ name: String, _ place: PageMedia.Place) throws(Refusal) -> PageMedia {
    let path = try checked(name)
    let found = try asking(path) { connection throws(SQLiteError) in
      try PageMedia(place, connection)
    }
    guard let found else {
      throw Refusal("the take keeps no media of this track", isUnknown: true)
    }
    return found
  }

  // MARK: Packets

  private func list(_ name: String, _ filter: String) throws(Refusal) -> PacketList {
    let path = try checked(name)
    let size = [path, path + "-wal"].reduce(0) { sum, path in
      let attributes = try? FileManager.default.attributesOfItem(atPath: path)
      return sum + (attributes?[.size] as? Int ?? 0)
    }
    if let known = lists.first(where: {
      $0.path == path && $0.filter == filter && $0.fileBytes == size
    }) {
      return known
    }
    let wanted: PacketFilter
    do throws(PacketFilter.Failure) {
      wanted = try PacketFilter(filter)
    } catch {
      throw Refusal(error.description)
    }
    let rows = try asking(path) { connection throws(SQLiteError) in
      try PagePackets.rows(wanted, connection)
    }
    let list = PacketList(path: path, filter: filter, fileBytes: size, rows: rows)
    lists.removeAll { $0.path == path && $0.filter == filter }
    if lists.count == Self.listMaximum { lists.removeFirst() }
    lists.append(list)
    return list
  }

  func packets(_ name: String, filter: String, from: Int, count: Int) throws(Refusal) -> String {
    let list = try list(name, filter)
    let begin = min(max(from, 0), list.rows.count)
    let rows = list.rows[begin..<min(begin + max(count, 0), list.rows.count)]
    let lines = try asking(list.path) { connection throws(SQLiteError) in
      try PagePackets.list(rows, connection)
    }
    return "{\"total\":\(list.rows.count),\"from\":\(begin),\"rows\":\(lines)}"
  }

  func packetIndex(_ name: String, filter: String, at seconds: Double) throws(Refusal) -> String {
    let list = try list(name, filter)
    let index = try asking(list.path) { connection throws(SQLiteError) in
      try PagePackets.index(of: seconds, in: list.rows, connection)
    }
    return "{\"index\":\(index)}"
  }

  func packet(_ name: String, row: Int64) throws(Refusal) -> String {
    try asking(try checked(name)) { connection throws(SQLiteError) in
      try PagePackets.detail(row, connection)
    }
  }

  // MARK: SQL

  private static let rowMaximum = 20_000
  private static let querySeconds = 20.0

  /// The rows of one query: names of columns, and rows as lists.
  func rows(_ name: String, sql: String) throws(Refusal) -> String {
    let path = try checked(name)
    let begin = ContinuousClock.now
    let watch = SQLiteWatch { begin.duration(to: .now) < .seconds(Self.querySeconds) }
    defer { withExtendedLifetime(watch) {} }
    do throws(TapeError) {
      let connection = try TakeFile.openForQueries(path)
      connection.setWatch(watch)
      do throws(SQLiteError) {
        return try answer(sql, connection)
      } catch {
        throw TapeError(
          path: name, place: SQLConsole.queryPlace,
          reason: error.code.primary == .interrupted
            ? "the query took longer than \(Int(Self.querySeconds)) s" : error.message,
          kind: .failed)
      }
    } catch {
      throw Refusal(error.reason)
    }
  }

  private func answer(_ sql: String, _ connection: borrowing SQLiteConnection)
    throws(SQLiteError) -> String
  {
    var statement = try connection.prepare(sql)
    guard statement.isReadOnly else {
      throw SQLiteError(code: .readOnly, message: "a take is only read, never written")
    }
    let names = (0..<statement.columnCount).map { jsonString(statement.columnName($0)) }
    var lines: [String] = []
    var isCut = false
    while !isCut, try statement.step() {
      let values = names.indices.map { (statement.value($0) ?? .null).json }
      lines.append("[" + values.joined(separator: ",") + "]")
      isCut = lines.count == Self.rowMaximum
    }
    return "{\"columns\":[\(names.joined(separator: ","))],\"isCut\":\(isCut),"
      + "\"rows\":[\(lines.joined(separator: ",\n"))]}"
  }
}
