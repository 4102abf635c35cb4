import FoundationEssentials
import Page
import Queries
import Stats
import Synchronization
import Tape
import Wire

/// A server's takes, and the state of its pages.
actor OpenTakes {
  /// Why a request is refused, in one sentence.
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
    var content: SharedContent
    /// The values left out of the first answer, which the page has not requested yet.
    var late: ArraySlice<UInt8> = []
  }

  private struct PacketList {
    var path: String
    var filter: String
    /// The take's size when the list was created; if the size changes, the list is created again.
    var fileBytes: Int
    var rows: [Int64]
  }

  private let served: ServedTakes
  private var sessions: [Session] = []
  private var sessionCount = 0
  private var lists: [PacketList] = []
  private var clearPackets: ClearPackets?
  private var readings = SharedWork<FirstReading>(keeping: 2)
  private var foundProblems = SharedWork<String>(keeping: 16)
  private let catalogued: ServedCatalogue
  private let work = FileWork(4)
  private let queryWork = FileWork(2, waitingMaximum: 16)
  private let queries: QueryProcess

  /// The maximum number of open pages; if there are more, the oldest page has to load its take
  /// again.
  private static let sessionMaximum = 16
  private static let listMaximum = 8

  /// The length of the longest series that is sent whole; longer series are first drawn from an
  /// overview.
  private let shortMaximum: Int

  /// Creates the state for takes and folders, and checks that each path is one of the two.
  init(paths: [String], shortMaximum: Int = 20_000, queries: QueryProcess = QueryProcess())
    throws(TapeError)
  {
    served = try ServedTakes(paths: paths)
    catalogued = ServedCatalogue(served, work)
    self.queries = queries
    self.shortMaximum = shortMaximum
  }

  // MARK: Takes

  func catalogue() async -> String { await catalogued.json() }

  private func checked(_ name: String) throws(Refusal) -> String {
    guard let file = served.files.first(where: { $0.name == name }) else {
      throw Refusal("there is no take \(name.prefix(200)) here", isUnknown: true)
    }
    return file.path
  }

  /// Reads a take on another thread, so that this actor can answer other requests meanwhile.
  private func reading<Value: Sendable>(
    _ body: @escaping @Sendable () throws(TapeError) -> Value
  ) async throws(Refusal) -> Value {
    let result = await work.run { Result { () throws(TapeError) in try body() } }
    guard let result else { throw Refusal("too many requests are running; try again in a moment") }
    return try value(of: result)
  }

  private func value<Value>(of result: Result<Value, TapeError>) throws(Refusal) -> Value {
    switch result {
    case .success(let value): return value
    case .failure(let error): throw Refusal(error.description)
    }
  }

  private func asking<Value: Sendable>(
    _ path: String,
    _ body: @escaping @Sendable (borrowing SQLiteConnection) throws(SQLiteError) -> Value
  ) async throws(Refusal) -> Value {
    try await reading { () throws(TapeError) in
      let connection = try TakeFile.openForQueries(path)
      do throws(SQLiteError) {
        return try body(connection)
      } catch {
        throw TapeError(path: path, error)
      }
    }
  }

  // MARK: Readings

  /// If there is only one take, reads it before the page requests it, while the browser starts.
  func readAhead() {
    guard let path = served.only, !ServedTakes.isLive(path) else { return }
    _ = firstReading(of: path, FileStamp(path: path))
  }

  private func firstReading(of path: String, _ stamp: FileStamp)
    -> Task<Result<FirstReading, TapeError>, Never>
  {
    let shortMaximum = shortMaximum
    return readings.task(for: stamp) { () throws(TapeError) in
      try FirstReading(path: path, shortMaximum: shortMaximum)
    }
  }

  /// Returns an entire take; the page requests later steps with the session's number.
  ///
  /// - Parameter isOverview: whether to leave out the values of long series, which `late` returns.
  func begin(_ name: String, isOverview: Bool = false) async throws(Refusal) -> [UInt8] {
    let path = try checked(name)
    let stamp = FileStamp(path: path)
    let result = await firstReading(of: path, stamp).value
    if ServedTakes.isLive(path) { readings.forget(stamp) }
    let first = try value(of: result)
    sessionCount += 1
    if sessions.count == Self.sessionMaximum { sessions.removeFirst() }
    var session = Session(
      number: sessionCount, path: path, content: SharedContent(first.content))
    let columns = first.reading.columns
    let earlyCount = isOverview ? first.reading.earlyCount : columns.count
    session.late = columns[earlyCount...]
    sessions.append(session)
    return answer(
      first.reading, columns[..<earlyCount], media: first.media, session: sessionCount, path)
  }

  /// Returns the values left out of the first answer; later calls return nothing.
  func late(_ number: Int) throws(Refusal) -> [UInt8] {
    let place = try place(of: number)
    defer { sessions[place].late = [] }
    return Array(sessions[place].late)
  }

  private func place(of session: Int) throws(Refusal) -> Int {
    guard let place = sessions.firstIndex(where: { $0.number == session }) else {
      throw Refusal("this page was inactive for too long; load it again", isUnknown: true)
    }
    return place
  }

  /// Returns the steps recorded since the last call.
  ///
  /// - Parameter isBrief: whether to skip the parts that take long to compute.
  func more(_ number: Int, isBrief: Bool = false) async throws(Refusal) -> [UInt8] {
    let session = sessions[try place(of: number)]
    let (path, content) = (session.path, session.content)
    let (result, media) = try await reading {
      () throws(TapeError) -> (PageContent.Reading, String?) in
      let result = try content.read(isBrief: isBrief)
      return (result, isBrief ? nil : try FirstReading.media(path))
    }
    return answer(result, result.columns[...], media: media, session: number, path)
  }

  /// Encodes a reading for the page: the JSON's length in four bytes, the JSON, the columns.
  private func answer(
    _ reading: PageContent.Reading, _ columns: ArraySlice<UInt8>, media: String?,
    session number: Int, _ path: String
  ) -> [UInt8] {
    var members = [
      ("form", "\"served\""), ("session", String(number)),
      ("isLive", ServedTakes.isLive(path) ? "true" : "false"),
    ]
    if let media { members.append(("media", media)) }
    let object = reading.object(with: members)
    var bytes: [UInt8] = []
    let length = UInt32(clamping: object.utf8.count)
    bytes.reserveCapacity(Int(length) + columns.count + 4)
    bytes += (0..<4).map { UInt8(truncatingIfNeeded: length >> (24 - 8 * $0)) }
    bytes += object.utf8
    bytes += columns
    return bytes
  }

  func findings(_ name: String) async throws(Refusal) -> String {
    let path = try checked(name)
    let result = await foundProblems.task(for: FileStamp(path: path)) { () throws(TapeError) in
      try PageContent.examination(path: path)
    }.value
    return try value(of: result)
  }

  func stats(_ name: String, at seconds: Double) async throws(Refusal) -> String {
    let path = try checked(name)
    let instant = Instant(nanoseconds: Int64(exactly: (seconds * 1e9).rounded()) ?? 0)
    let samples = try await reading { () throws(TapeError) in
      try StatSamples(path: path, at: instant)
    }
    let peers = samples.peers.map { peer in
      "{\"peer\":\(peer.number),\"objects\":[\(peer.objects.map(\.json).joined(separator: ","))]}"
    }
    return "[" + peers.joined(separator: ",") + "]"
  }

  func media(_ name: String, _ place: PageMedia.Place) async throws(Refusal) -> PageMedia {
    let path = try checked(name)
    let found = try await asking(path) { connection throws(SQLiteError) in
      try PageMedia(place, connection)
    }
    guard let found else {
      throw Refusal("the take has no stored media of this track", isUnknown: true)
    }
    return found
  }

  // MARK: Packets

  private func list(_ name: String, _ filter: String) async throws(Refusal) -> PacketList {
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
    let rows = try await asking(path) { connection throws(SQLiteError) in
      try PagePackets.rows(wanted, connection)
    }
    let list = PacketList(path: path, filter: filter, fileBytes: size, rows: rows)
    lists.removeAll { $0.path == path && $0.filter == filter }
    if lists.count == Self.listMaximum { lists.removeFirst() }
    lists.append(list)
    return list
  }

  func packets(_ name: String, filter: String, from: Int, count: Int) async throws(Refusal)
    -> String
  {
    let list = try await list(name, filter)
    let begin = min(max(from, 0), list.rows.count)
    let rows = list.rows[begin..<min(begin + max(count, 0), list.rows.count)]
    let lines = try await asking(list.path) { connection throws(SQLiteError) in
      try PagePackets.list(rows, connection)
    }
    return "{\"total\":\(list.rows.count),\"from\":\(begin),\"rows\":\(lines)}"
  }

  func packetIndex(_ name: String, filter: String, at seconds: Double) async throws(Refusal)
    -> String
  {
    let list = try await list(name, filter)
    let index = try await asking(list.path) { connection throws(SQLiteError) in
      try PagePackets.index(of: seconds, in: list.rows, connection)
    }
    return "{\"index\":\(index)}"
  }

  func packet(_ name: String, row: Int64) async throws(Refusal) -> String {
    try await asking(try checked(name)) { connection throws(SQLiteError) in
      try PagePackets.detail(row, connection)
    }
  }

  /// Returns a protected packet's contents; the same replay also decrypts the packets near it.
  func clear(_ name: String, row: Int64) async throws(Refusal) -> String {
    let path = try checked(name)
    let place = try await asking(path) { connection throws(SQLiteError) in
      try PagePackets.Place(row: row, connection)
    }
    guard let place else {
      throw Refusal("there is no packet with row \(row)", isUnknown: true)
    }
    if clearPackets?.path != path || clearPackets?.span.contains(place.at) != true {
      clearPackets = try await reading { () throws(TapeError) in
        try ClearPackets(path: path, around: place.at)
      }
    }
    return clearPackets?.json(of: place) ?? "[]"
  }

  // MARK: SQL

  /// Returns a take's tables and views with descriptions of their columns.
  func schema(_ name: String) async throws(Refusal) -> String {
    let path = try checked(name)
    return try await reading { () throws(TapeError) in try PageSchema.json(path: path) }
  }

  /// Returns a query's rows: column names and rows as lists, or comma-separated values.
  func rows(_ name: String, sql: String, as form: AnswerQuery.Form = .json)
    async throws(Refusal) -> String
  {
    let path = try checked(name)
    let queries = queries
    let begin = ContinuousClock.now
    switch await queryWork.run({ queries.answer(sql, take: path, as: form, since: begin) }) {
    case .rows(let text): return text
    case .failed(let reason): throw Refusal(reason)
    case nil: throw Refusal("too many queries are waiting; try again in a moment")
    }
  }
}

/// A page's content so far; the requests of one page are answered in order.
private final class SharedContent: Sendable {
  private let content: Mutex<PageContent>

  init(_ content: PageContent) { self.content = Mutex(content) }

  func read(isBrief: Bool) throws(TapeError) -> PageContent.Reading {
    try content.withLock { (content) throws(TapeError) in
      isBrief ? try content.readBriefly() : try content.read()
    }
  }
}

/// The first reading of an entire take, shared by all pages that show the take.
struct FirstReading: Sendable {
  /// The content from which a page continues as the take grows.
  let content: PageContent
  let reading: PageContent.Reading
  /// The playable tracks, as JSON.
  let media: String

  init(path: String, shortMaximum: Int) throws(TapeError) {
    var content = PageContent(path: path)
    reading = try content.read(shortMaximum: shortMaximum)
    self.content = content
    media = try Self.media(path)
  }

  /// Returns a take's playable tracks as JSON.
  static func media(_ path: String) throws(TapeError) -> String {
    let connection = try TakeFile.openForQueries(path)
    do throws(SQLiteError) {
      return "[" + (try PageMedia.places(connection)).map(\.facts).joined(separator: ",") + "]"
    } catch {
      throw TapeError(path: path, error)
    }
  }
}
