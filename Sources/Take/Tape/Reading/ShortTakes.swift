import CSQLite
import Glibc
import Wire

/// Reads short takes one after another, to run the same queries on each.
///
/// Before SQLite answers a query, it parses the file's schema and compiles the query with all its
/// views: for a take of one second, that is ten times the work of answering. So such a file is read
/// into a connection's in-memory database, and statements compiled for one take run on the next,
/// provided that both schemas are equal to the byte. A take that is long, still being recorded, or
/// unlike what recorders leave behind is opened like any other.
package final class ShortTakes {
  /// The largest file that is read into memory, in bytes: calls of about ten seconds.
  static let largest = 8 << 20

  private var memory: TakeMemory?
  /// The number of schemas that had to be parsed.
  private(set) var schemaCount = 0

  package init() {}

  /// Runs queries on a take, with this version's views.
  ///
  /// - Parameters:
  ///   - largestValue: as in `TakeFile.openForQueries`; the same each time.
  ///   - ask: runs the queries and leaves the connection as it was. If it fails, it is called again
  ///     with the file itself.
  package func read<Answer>(
    _ path: String, largestValue: Int32,
    _ ask: (borrowing SQLiteConnection) throws(TapeError) -> Answer
  ) throws(TapeError) -> Answer {
    if let memory = memory(with: path, largestValue) {
      do throws(TapeError) {
        return try ask(memory.connection)
      } catch {
        self.memory = nil
        // Reading took too long or is no longer wanted, so it is not repeated with the file.
        if error.kind == .failed { throw error }
      }
    }
    let connection = try TakeFile.openForQueries(path, largestValue: largestValue)
    return try ask(connection)
  }

  private func memory(with path: String, _ largestValue: Int32) -> TakeMemory? {
    guard let bytes = Self.bytes(of: path) else { return nil }
    if let memory, memory.load(bytes) { return memory }
    memory = nil
    schemaCount += 1
    memory = try? TakeMemory(bytes, path: path, largestValue)
    return memory
  }

  // MARK: Files

  /// Returns the bytes of a short take that no process is writing; nil for any other file.
  private static func bytes(of path: String) -> [UInt8]? {
    guard let before = FileState(path),
      case .success(let bytes) = FileBytes.read(path, atMost: largest), bytes.count == before.size,
      isAsRecorded(bytes), FileState(path) == before
    else { return nil }
    return bytes
  }

  /// A file of suitable size, without a log or a journal beside it.
  private struct FileState: Equatable {
    var size: Int
    private var changed: (Int, Int)
    private var number: UInt64

    init?(_ path: String) {
      var status = stat()
      guard stat(path.systemPath, &status) == 0, status.st_mode & S_IFMT == S_IFREG,
        (ShortTakes.headerBytes...ShortTakes.largest).contains(Int(status.st_size)),
        FileBytes.kind(of: path + "-wal") == nil, FileBytes.kind(of: path + "-journal") == nil
      else { return nil }
      size = Int(status.st_size)
      changed = (status.st_ctim.tv_sec, status.st_ctim.tv_nsec)
      number = UInt64(status.st_ino)
    }

    static func == (one: Self, other: Self) -> Bool {
      one.size == other.size && one.changed == other.changed && one.number == other.number
    }
  }

  private static let headerBytes = 100

  /// Returns whether a file's header is that of a properly finished take (SQLite file format
  /// section 1.3).
  private static func isAsRecorded(_ bytes: [UInt8]) -> Bool {
    func number(_ offset: Int) -> Int64 {
      bytes[offset..<offset + 4].reduce(0) { $0 << 8 | Int64($1) }
    }
    let pageSize = Int64(TakeSchema.pageSize)
    // A rollback journal for writing and reading, no reserved bytes, and constants.
    let usual = [UInt8(pageSize >> 8), UInt8(pageSize & 0xff), 1, 1, 0, 64, 32, 32]
    guard bytes.starts(with: "SQLite format 3\0".utf8), bytes[16..<24].elementsEqual(usual),
      number(24) == number(92), number(28) * pageSize == Int64(bytes.count)
    else { return false }
    // No vacuum pages, and UTF-8.
    return number(52) == 0 && number(56) == 1 && number(68) == TakeHeader.applicationID
  }
}

/// A connection to an in-memory database that holds one take after another.
private final class TakeMemory {
  let connection: SQLiteConnection
  private let memory: UnsafeMutableRawBufferPointer
  private let schema: [UInt8]
  /// The schema cookie and the header bytes after it, as in the first take.
  private let cookie: [UInt8]
  private var changes: UInt32 = 0

  /// Loads the first take, and checks that it is one.
  init(_ bytes: [UInt8], path: String, _ largestValue: Int32) throws(TapeError) {
    let store: StatementStore?
    let format: Int64
    cookie = Array(bytes[40..<72])
    do throws(SQLiteError) {
      guard let start = sqlite3_malloc64(sqlite3_uint64(ShortTakes.largest)) else {
        throw SQLiteError(code: .noMemory, message: "out of memory")
      }
      memory = UnsafeMutableRawBufferPointer(start: start, count: ShortTakes.largest)
      Self.write(bytes, cookie, 0, to: memory)
      let opened = try SQLiteConnection(memory: memory)
      try opened.execute(TakeFile.settings(cacheKilobytes: 16_000))
      schema = try Self.schema(opened)
      store = opened.statements
      format = try opened.integer("PRAGMA user_version") ?? 0
      guard (TakeHeader.oldestFormat...TakeHeader.currentFormat).contains(format) else {
        throw SQLiteError(code: .misuse, message: "another format")
      }
      connection = opened
    } catch {
      throw TapeError(path: path, error)
    }
    store?.schema = try SchemaCheck(connection, path: path, format: format)
    connection.limitCells(to: largestValue)
    do throws(SQLiteError) {
      try TakeSchema.putViews(over: connection, format: format)
    } catch {
      throw TapeError(path: path, error)
    }
  }

  /// Replaces the previous take with another.
  ///
  /// - Returns: false if its schema differs, after which the connection cannot be used.
  func load(_ bytes: [UInt8]) -> Bool {
    guard let statements = connection.statements, statements.usedCount == 0,
      bytes[44..<72].elementsEqual(cookie[4...])
    else { return false }
    statements.content += 1
    changes += 1
    Self.write(bytes, cookie, changes, to: memory)
    return (try? Self.schema(connection)) == schema
  }

  /// Copies a file into memory.
  ///
  /// With the same schema cookie, SQLite reuses its parsed schema; with another change counter, it
  /// reads every page again.
  private static func write(
    _ bytes: [UInt8], _ cookie: [UInt8], _ changes: UInt32,
    to memory: UnsafeMutableRawBufferPointer
  ) {
    memory.copyBytes(from: bytes)
    for (place, byte) in cookie.prefix(4).enumerated() { memory[40 + place] = byte }
    for place in [24, 92] {
      memory.storeBytes(of: changes.bigEndian, toByteOffset: place, as: UInt32.self)
    }
  }

  /// Returns the schema as in the file, with the pages where its tables begin.
  private static func schema(
    _ connection: borrowing SQLiteConnection
  ) throws(SQLiteError) -> [UInt8] {
    let rows = try connection.prepare(
      "SELECT type, name, tbl_name, rootpage, sql FROM sqlite_schema")
    var schema: [UInt8] = []
    while try rows.step() {
      for column in 0..<rows.columnCount {
        let bytes = rows.lentBytes(column)
        withUnsafeBytes(of: bytes.count) { schema.append(contentsOf: $0) }
        schema.append(contentsOf: bytes)
      }
    }
    return schema
  }
}
