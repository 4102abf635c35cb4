import CSQLite
import Glibc
import Wire

/// Reads short takes one after the other, for whoever asks each of them the same questions.
///
/// Before SQLite answers anything it parses the schema of the file, and compiles each query with
/// all views that it looks through: of a take of a second, that is ten times as much work as the
/// answers. So such a file is read into memory that a connection has for its database, and what was
/// compiled for one take runs on the next, provided that both have the same schema, to the byte.
/// Everything else is opened as any other take: one that is long, is being recorded, or is in any
/// way not as recorders leave them.
package final class ShortTakes {
  /// The largest file that is read as a whole, in bytes: calls of about ten seconds.
  static let largest = 8 << 20

  private var memory: TakeMemory?
  /// How often a schema had to be parsed.
  private(set) var schemaCount = 0

  package init() {}

  /// Asks a take, with the views of this version.
  ///
  /// - Parameters:
  ///   - largestValue: as in `TakeFile.openForQueries`; the same each time.
  ///   - ask: leaves the connection as it was. It is called once more, with the file itself, when
  ///     it fails.
  package func read<Answer>(
    _ path: String, largestValue: Int32,
    _ ask: (borrowing SQLiteConnection) throws(TapeError) -> Answer
  ) throws(TapeError) -> Answer {
    if let memory = memory(with: path, largestValue) {
      do throws(TapeError) {
        return try ask(memory.connection)
      } catch {
        self.memory = nil
        // It took too long, or is not wanted any more.
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

  /// The bytes of a short take that nobody writes; nil for any other file.
  private static func bytes(of path: String) -> [UInt8]? {
    guard let before = FileState(path),
      case .success(let bytes) = FileBytes.read(path, atMost: largest), bytes.count == before.size,
      isAsRecorded(bytes), FileState(path) == before
    else { return nil }
    return bytes
  }

  /// A file of a size that is read, without a log or a journal beside it.
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

  /// Whether the head of a file is that of a take which was ended in order (SQLite file format
  /// section 1.3).
  private static func isAsRecorded(_ bytes: [UInt8]) -> Bool {
    func number(_ offset: Int) -> Int64 {
      bytes[offset..<offset + 4].reduce(0) { $0 << 8 | Int64($1) }
    }
    let pageSize = Int64(TakeSchema.pageSize)
    // A rollback journal for writing and reading, no reserved bytes, and what never differs.
    let usual = [UInt8(pageSize >> 8), UInt8(pageSize & 0xff), 1, 1, 0, 64, 32, 32]
    guard bytes.starts(with: "SQLite format 3\0".utf8), bytes[16..<24].elementsEqual(usual),
      number(24) == number(92), number(28) * pageSize == Int64(bytes.count)
    else { return false }
    // Without pages for a vacuum, in UTF-8.
    return number(52) == 0 && number(56) == 1 && number(68) == TakeHeader.applicationID
  }
}

/// A connection to a database in memory that holds one take after the other.
private final class TakeMemory {
  let connection: SQLiteConnection
  private let memory: UnsafeMutableRawBufferPointer
  private let schema: [UInt8]
  /// The number of the schema and what follows it in the head of a file, as in the first take.
  private let cookie: [UInt8]
  private var changes: UInt32 = 0

  /// Puts the first take into it, and checks that it is one.
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

  /// Puts another take in the place of the one before.
  ///
  /// - Returns: false where its schema is another one, after which nothing can be asked any more.
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
  /// With the same schema cookie SQLite reuses its parsed schema; with another change counter it
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

  /// The schema as the file has it, with the pages where its tables begin.
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
