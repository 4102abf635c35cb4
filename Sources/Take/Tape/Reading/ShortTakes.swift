import CSQLite
import Glibc
import Wire

/// Runs the same queries on many short takes.
///
/// Before SQLite answers a query, it parses the file's schema and compiles the query with all
/// views. For a take of one second, that is ten times the work of answering. Short takes are
/// therefore loaded into one in-memory database, one after another, so that statements stay
/// compiled as long as the takes' schemas are equal byte by byte. A take is opened as a file if it
/// is long, still being recorded, or otherwise unlike a finished recording.
package final class ShortTakes {
  /// The maximum size of a file that is loaded, in bytes; about ten seconds of a call fit.
  static let largest = 8 << 20

  private var memory: TakeMemory?
  /// The number of times that a schema had to be parsed.
  private(set) var schemaCount = 0

  package init() {}

  /// Runs queries on a take with this version's views.
  ///
  /// - Parameters:
  ///   - largestValue: as in `TakeFile.openForQueries`; it must be the same for all takes.
  ///   - ask: runs the queries and must leave the connection unchanged. If it throws an error, it
  ///     is called again with a connection to the file, unless it took too long or was cancelled.
  package func read<Answer>(
    _ path: String, largestValue: Int32,
    _ ask: (borrowing SQLiteConnection) throws(TapeError) -> Answer
  ) throws(TapeError) -> Answer {
    if let memory = memory(with: path, largestValue) {
      do throws(TapeError) {
        return try ask(memory.connection)
      } catch {
        self.memory = nil
        // The queries took too long or were cancelled, so they are not repeated with the file.
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

  /// Returns the bytes of a short take that no process is writing; nil for other files.
  private static func bytes(of path: String) -> [UInt8]? {
    guard let before = FileState(path),
      case .success(let bytes) = FileBytes.read(path, atMost: largest), bytes.count == before.size,
      isAsRecorded(bytes), FileState(path) == before
    else { return nil }
    return bytes
  }

  /// The size, change time and inode of a file; fails if the size is unsuitable or a log or journal
  /// exists.
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

  /// Returns whether the header belongs to a properly finished take (SQLite file format section
  /// 1.3).
  private static func isAsRecorded(_ bytes: [UInt8]) -> Bool {
    func number(_ offset: Int) -> Int64 {
      bytes[offset..<offset + 4].reduce(0) { $0 << 8 | Int64($1) }
    }
    let pageSize = Int64(TakeSchema.pageSize)
    // The header must state a rollback journal rather than a log, no reserved bytes, and the
    // constants of the format.
    let usual = [UInt8(pageSize >> 8), UInt8(pageSize & 0xff), 1, 1, 0, 64, 32, 32]
    guard bytes.starts(with: "SQLite format 3\0".utf8), bytes[16..<24].elementsEqual(usual),
      number(24) == number(92), number(28) * pageSize == Int64(bytes.count)
    else { return false }
    // It must also state no automatic vacuum, text in UTF-8, and a take's application id.
    return number(52) == 0 && number(56) == 1 && number(68) == TakeHeader.applicationID
  }
}

/// An in-memory database into which takes are loaded one after another.
private final class TakeMemory {
  let connection: SQLiteConnection
  private let memory: UnsafeMutableRawBufferPointer
  private let schema: [UInt8]
  /// The schema cookie and the header bytes after it, as in the first take.
  private let cookie: [UInt8]
  private var changes: UInt32 = 0

  /// Loads the first take and checks its schema.
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

  /// Loads another take in place of the previous one.
  ///
  /// - Returns: false if the schema or the rest of the header differs; the connection must not be
  ///   used after that.
  func load(_ bytes: [UInt8]) -> Bool {
    guard let statements = connection.statements, statements.usedCount == 0,
      bytes[44..<72].elementsEqual(cookie[4...])
    else { return false }
    statements.content += 1
    changes += 1
    Self.write(bytes, cookie, changes, to: memory)
    return (try? Self.schema(connection)) == schema
  }

  /// Copies a file into the database's memory.
  ///
  /// All takes get the same schema cookie, so SQLite does not parse the schema again. Each gets
  /// another change counter, so SQLite reads all pages again.
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

  /// Returns the rows of the schema as bytes to compare; they include the number of each table's
  /// root page.
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
