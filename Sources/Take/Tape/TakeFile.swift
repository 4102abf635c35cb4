import FoundationEssentials
import Glibc
import Wire

/// Opens takes for reading, even while they are being recorded.
package enum TakeFile {
  /// Opens a take read-only and checks that this version can read it.
  ///
  /// If the recorder was killed, there is a write-ahead log beside the take. SQLite merges it in
  /// memory, and the take itself is not written.
  ///
  /// - Parameter cacheKilobytes: the size of the page cache; a small one suffices to read each
  ///   table once and in order.
  package static func open(_ path: String, cacheKilobytes: Int = 16_000) throws(TapeError)
    -> SQLiteConnection
  {
    try checkBeginning(of: path)
    let opened: SQLiteConnection
    let application: Int64
    let format: Int64
    let isEmpty: Bool
    do throws(SQLiteError) {
      let connection = try connect(path)
      try connection.execute(settings(cacheKilobytes: cacheKilobytes))
      application = try connection.integer("PRAGMA application_id") ?? 0
      format = try connection.integer("PRAGMA user_version") ?? 0
      isEmpty = try connection.integer("SELECT count(*) FROM sqlite_schema") == 0
      opened = connection
    } catch {
      throw TapeError(path: path, error)
    }
    guard application != 0 || !isEmpty else {
      throw TapeError(
        path: path, place: "",
        reason: "it contains nothing: it was stopped before it began, or copied without its log "
          + "\(path)-wal")
    }
    try check(path, application: application, format: format)
    _ = try SchemaCheck(opened, path: path, format: format)
    try checkLog(of: path, opened)
    return opened
  }

  /// Returns SQL for the settings of a connection, which must run before anything is read from a
  /// take.
  static func settings(cacheKilobytes: Int) -> String {
    """
    PRAGMA query_only = ON;
    PRAGMA trusted_schema = OFF;
    PRAGMA cell_size_check = ON;
    PRAGMA cache_size = -\(cacheKilobytes);
    """
  }

  /// Opens a take for queries, with this version's views instead of the views stored in the file.
  ///
  /// - Parameters:
  ///   - largestValue: the size in bytes above which a value makes a query fail.
  ///   - keepsInMemory: whether temporary data stays in memory; setting the pragma later would drop
  ///     the views and expose the file's.
  package static func openForQueries(
    _ path: String, largestValue: Int32 = largestAnswer, keepsInMemory: Bool = false
  ) throws(TapeError) -> SQLiteConnection {
    let connection = try open(path)
    connection.limitCells(to: largestValue)
    do throws(SQLiteError) {
      if keepsInMemory { try connection.execute("PRAGMA temp_store = MEMORY") }
      let format = try connection.integer("PRAGMA user_version") ?? TakeHeader.currentFormat
      try TakeSchema.putViews(over: connection, format: format)
    } catch {
      throw TapeError(path: path, error)
    }
    return connection
  }

  /// Opens a take so that several queries see the same state, even while it is being recorded.
  package static func openSnapshot(_ path: String) throws(TapeError) -> SQLiteConnection {
    let connection = try openForQueries(path, largestValue: largestOnPage)
    do throws(SQLiteError) {
      // The first query begins the snapshot, and closing the connection ends the transaction.
      try connection.execute("BEGIN")
    } catch {
      throw TapeError(path: path, error)
    }
    return connection
  }

  /// The maximum size in bytes of a value in queries: enough for an 8K video frame, and more than
  /// Retake's own queries need.
  package static let largestAnswer: Int32 = 64 << 20

  /// The maximum size in bytes of a value in queries for pages.
  ///
  /// It is smaller because rendering a page needs several copies. Data channel messages have up to
  /// 1 MB, and encoded video frames are rarely larger.
  package static let largestOnPage: Int32 = 16 << 20

  /// Returns whether a take has a write-ahead log, because the take is being recorded or its
  /// recorder was killed.
  package static func hasLog(_ path: String) -> Bool {
    var status = stat()
    return stat((path + "-wal").systemPath, &status) == 0 && status.st_size > 0
  }

  /// Refuses a write-ahead log of another take, because SQLite would apply its pages to this take.
  ///
  /// A log does not name its file. But a file has its `take` row from the first checkpoint on, and
  /// this row never changes.
  private static func checkLog(
    of path: String, _ connection: borrowing SQLiteConnection
  ) throws(TapeError) {
    guard hasLog(path) else { return }
    let digest = "SELECT digest FROM take"
    // During a checkpoint the file alone may be in any state, so an unreadable file proves nothing.
    guard let alone = try? SQLiteConnection(path: uri(path) + "?immutable=1", mode: .readOnly),
      let without = try? alone.bytes(digest), without.count == 32,
      let with = try? connection.bytes(digest), with != without
    else { return }
    throw TapeError(
      path: path, place: "",
      reason: "the log \(path)-wal beside it is of another take; move it away, or copy the take "
        + "again together with its own log")
  }

  /// Checks the first bytes of the file before SQLite does.
  ///
  /// For a file that is not a database, SQLite's error depends on the file's length.
  private static func checkBeginning(of path: String) throws(TapeError) {
    func error(_ reason: String, _ kind: TapeError.Kind = .invalid) -> TapeError {
      TapeError(path: path, place: "", reason: reason, kind: kind)
    }
    var status = stat()
    let code = stat(path.systemPath, &status) == 0 ? 0 : errno
    guard code == 0 else {
      if code == ENOENT { throw error("there is no such file", .missing) }
      throw error("it cannot be opened: \(SystemCode(code))", .failed)
    }
    guard status.st_mode & S_IFMT == S_IFREG else { throw error("it is not a file") }
    guard status.st_size > 0 else { throw error("it is empty, not a take") }
    let beginning: [UInt8]
    switch FileBytes.read(path, atMost: 100) {
    case .success(let bytes): beginning = bytes
    case .failure(let code): throw error("it cannot be opened: \(code)", .failed)
    }
    guard beginning.starts(with: "SQLite format 3\u{0}".utf8) else {
      throw error("it is not a take: \(Self.words(for: beginning))")
    }
    // If there is a write-ahead log, the file may be in any state, and the log repairs it.
    if hasLog(path) { return }
    let expected = sizeInHeader(beginning)
    guard Int64(status.st_size) >= expected else {
      throw error(
        "it is cut short, with \(status.st_size) of \(expected) bytes; restore it from a copy")
    }
  }

  /// Describes a file that is not an SQLite file, and whether `retake import` may be able to read
  /// it.
  private static func words(for beginning: [UInt8]) -> String {
    let makes = "retake import makes a take of it"
    let captures: [[UInt8]] = [
      [0xd4, 0xc3, 0xb2, 0xa1], [0xa1, 0xb2, 0xc3, 0xd4], [0x4d, 0x3c, 0xb2, 0xa1],
      [0xa1, 0xb2, 0x3c, 0x4d], [0x0a, 0x0d, 0x0d, 0x0a],
    ]
    let compressed: [[UInt8]] = [[0x1f, 0x8b], [0x28, 0xb5, 0x2f, 0xfd]]
    if captures.contains(where: { beginning.starts(with: $0) }) {
      return "it is a packet capture; \(makes)"
    }
    if compressed.contains(where: { beginning.starts(with: $0) }) {
      return "it is compressed; if it is a packet capture or a dump of statistics, \(makes)"
    }
    if ["MJR0", "MEETECHO", "#!rtpplay1.0"].contains(where: { beginning.starts(with: $0.utf8) }) {
      return "it is a recording of packets; \(makes)"
    }
    let first = beginning.first { ![0x09, 0x0a, 0x0d, 0x20, 0xef, 0xbb, 0xbf].contains($0) }
    if first == UInt8(ascii: "{") || first == UInt8(ascii: "[") {
      return "it is JSON; if it is a dump of a browser's or another stack's statistics, \(makes)"
    }
    if beginning.starts(with: "<".utf8) {
      return "it is a web page; if it is about:webrtc as saved by Firefox, \(makes)"
    }
    return "not a SQLite file"
  }

  /// Returns the size that the file's header states (SQLite file format section 1.3).
  private static func sizeInHeader(_ bytes: [UInt8]) -> Int64 {
    guard bytes.count == 100 else { return 512 }
    func number(_ offset: Int, _ width: Int) -> Int64 {
      bytes[offset..<offset + width].reduce(0) { $0 << 8 | Int64($1) }
    }
    let pageSize = number(16, 2) == 1 ? 65_536 : number(16, 2)
    return pageSize * number(28, 4)
  }

  private static func check(_ path: String, application: Int64, format: Int64) throws(TapeError) {
    guard application == TakeHeader.applicationID else {
      throw TapeError(
        path: path, place: "", reason: "it is a SQLite file of another program, not a take")
    }
    guard format <= TakeHeader.currentFormat else {
      throw TapeError(
        path: path, place: "",
        reason:
          "it has format \(format), made by a newer Retake; this one reads formats up to "
          + "\(TakeHeader.currentFormat), so install a newer one")
    }
    guard format >= 1 else {
      throw TapeError(path: path, place: "", reason: "it has no format number; it is damaged")
    }
    guard format >= TakeHeader.oldestFormat else {
      throw TapeError(
        path: path, place: "",
        reason:
          "it has format \(format), made by an older Retake; this one reads formats from "
          + "\(TakeHeader.oldestFormat), so read it with the version that made it, or record "
          + "again")
    }
  }

  /// Opens the file.
  ///
  /// If its folder is not writable, no file is created beside the take.
  private static func connect(_ path: String) throws(SQLiteError) -> SQLiteConnection {
    do throws(SQLiteError) {
      let connection = try SQLiteConnection(path: path, mode: .readOnly)
      _ = try connection.integer("SELECT count(*) FROM sqlite_schema")
      return connection
    } catch {
      guard [.cannotOpen, .readOnly, .permission].contains(error.code.primary) else {
        throw error
      }
      guard hasLog(path) else {
        return try SQLiteConnection(path: uri(path) + "?immutable=1", mode: .readOnly)
      }
      return try withoutSharedMemory(path)
    }
  }

  /// Opens a take with a write-ahead log in a folder that is not writable.
  ///
  /// SQLite cannot create its shared memory file there, so this process reads the log alone and
  /// without locks.
  static func withoutSharedMemory(_ path: String) throws(SQLiteError) -> SQLiteConnection {
    let connection = try SQLiteConnection(path: uri(path) + "?vfs=unix-none", mode: .readOnly)
    try connection.execute("PRAGMA locking_mode = EXCLUSIVE")
    return connection
  }

  private static func uri(_ path: String) -> String {
    let folder = path.hasPrefix("/") ? "" : FileManager.default.currentDirectoryPath + "/"
    var uri = "file://"
    for byte in SystemPath.bytes(of: folder + path) {
      switch byte {
      // Unreserved characters (RFC 3986 section 2.3) and the slash are not escaped.
      case 0x30...0x39, 0x41...0x5a, 0x61...0x7a, 0x2d...0x2f, 0x5f, 0x7e:
        uri.unicodeScalars.append(Unicode.Scalar(byte))
      default: uri += "%" + hexadecimal([byte])
      }
    }
    return uri
  }
}

// MARK: - TapeError

/// An error in reading or writing a take, with the file, the place in it and the reason.
public struct TapeError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The kind of error, which determines the exit status.
  public enum Kind: Hashable, Sendable {
    /// The file does not exist.
    case missing
    /// The file exists but is not a take that can be used.
    case invalid
    /// Reading or writing failed.
    case failed
  }

  /// The path of the take.
  public var path: String
  /// The table, row or step; empty if the error is about the entire file.
  public var place: String
  /// What is wrong and, if possible, what to do about it.
  public var reason: String
  /// The kind of error, which determines the exit status.
  public var kind: Kind

  /// Creates an error about a file.
  public init(path: String, place: String, reason: String, kind: Kind = .invalid) {
    self.path = path
    self.place = place
    self.reason = reason
    self.kind = kind
  }

  /// The error as `path: place: reason`, without parts that are empty.
  public var description: String {
    [path, place, reason].filter { !$0.isEmpty }.joined(separator: ": ")
  }
}

extension TapeError {
  /// Explains an error of SQLite to users, who know the file but not SQLite's codes.
  package init(path: String, place: String = "", _ error: SQLiteError) {
    let reason =
      switch error.code.primary {
      case .full: "the disk is full; free some space and record again"
      case .cannotOpen: "it cannot be opened: \(error.message)"
      case .permission, .readOnly: "no permission: \(error.message)"
      case .notADatabase: "it is not a take: not a SQLite file"
      case .corrupt:
        "it is corrupted or cut short: \(error.message); restore it from a copy"
          + (TakeEnding.missingLog(of: path).map { " that has \($0) beside it" } ?? "")
      case .busy: "another process is writing to it; try again when it has finished"
      case .inputOutput: "the disk failed: \(error.message)"
      case .tooBig:
        "it was altered: a value in it is larger than any that a recorder writes"
      default: error.description
      }
    let kind: Kind =
      switch error.code.primary {
      case .full, .cannotOpen, .permission, .readOnly, .busy, .inputOutput: .failed
      default: .invalid
      }
    self.init(path: path, place: place, reason: reason, kind: kind)
  }
}
