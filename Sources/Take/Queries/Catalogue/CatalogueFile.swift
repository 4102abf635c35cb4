import Crypto
import FoundationEssentials
import Glibc
import Tape
import Wire

final class CatalogueDatabase {
  let connection: SQLiteConnection

  init(_ connection: consuming SQLiteConnection) { self.connection = connection }
}

/// A folder's catalogue file: beside the takes, or in the user's cache if the folder is not
/// writable.
///
/// A file is complete once it gets its name, and never changes afterwards. If two processes write a
/// file simultaneously, the later file replaces the earlier one; readers continue with the file
/// that they have open.
struct CatalogueFile {
  /// The file's name in the folder, which lists of takes ignore.
  static let name = ".retake.catalogue"

  /// The possible locations, best first.
  private let places: [String]

  init(folder: String) {
    var places = [(folder.hasSuffix("/") ? folder : folder + "/") + Self.name]
    if let cache = Self.cache {
      let bytes = Array(Self.absolute(folder).utf8)
      places.append("\(cache)/\(hexadecimal(SHA256.hash(bytes))).catalogue")
    }
    self.places = places
  }

  /// The user's cache folder (XDG Base Directory Specification); nil without a home directory.
  private static var cache: String? {
    let environment = ProcessInfo.processInfo.environment
    if let chosen = environment["XDG_CACHE_HOME"], chosen.hasPrefix("/") {
      return chosen + "/retake/catalogues"
    }
    return environment["HOME"].flatMap {
      $0.hasPrefix("/") ? $0 + "/.cache/retake/catalogues" : nil
    }
  }

  private static func absolute(_ path: String) -> String {
    guard let resolved = realpath(path.systemPath, nil) else { return path }
    defer { free(resolved) }
    return SystemPath.name(UnsafeRawBufferPointer(start: resolved, count: strlen(resolved)))
  }

  // MARK: Reading

  /// Opens the existing file if this build wrote it.
  func existing() -> (database: CatalogueDatabase, path: String)? {
    for path in places {
      if let database = try? Self.open(path) { return (database, path) }
    }
    return nil
  }

  /// Opens a file; returns nil if this build did not write it, or if another user may have.
  private static func open(_ path: String) throws(SQLiteError) -> CatalogueDatabase? {
    var status = stat()
    // A file that another user owns or can write is not trusted.
    guard lstat(path.systemPath, &status) == 0, status.st_mode & S_IFMT == S_IFREG,
      status.st_uid == geteuid(), status.st_mode & 0o022 == 0, status.st_size > 0
    else { return nil }
    let connection = try SQLiteConnection(path: path, mode: .readOnly)
    try connection.execute(
      "PRAGMA query_only = ON; PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON")
    guard try connection.integer("PRAGMA application_id") == CatalogueSchema.applicationID,
      try connection.integer("PRAGMA user_version") == CatalogueSchema.version
    else { return nil }
    let schema = try connection.prepare("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL")
    var texts: [String] = []
    while try schema.step() { texts.append(schema.text(0) ?? "") }
    guard texts == CatalogueSchema.creation else { return nil }
    let origin = try connection.prepare("SELECT build FROM origin")
    guard try origin.step(), origin.text(0) == build else { return nil }
    return CatalogueDatabase(connection)
  }

  /// Identifies this build, because another build's rules may produce other findings.
  private static let build: String = {
    var status = stat()
    guard stat("/proc/self/exe", &status) == 0 else { return retakeVersion }
    let written = status.st_mtim
    return "\(retakeVersion) \(status.st_size) \(written.tv_sec).\(written.tv_nsec)"
  }()

  // MARK: Writing

  struct Draft {
    let database: CatalogueDatabase
    /// Whether the draft started as a copy of the existing file.
    let isCopy: Bool
    /// The temporary and final paths; nil if the file is not stored.
    fileprivate let paths: (temporary: String, final: String)?

    /// Renames the file to its final name; open connections stay valid.
    func finish() {
      guard let paths else { return }
      let descriptor = Glibc.open(paths.temporary.systemPath, O_RDONLY | O_CLOEXEC)
      if descriptor >= 0 {
        fsync(descriptor)
        close(descriptor)
      }
      if rename(paths.temporary.systemPath, paths.final.systemPath) == 0 {
        UnfinishedFiles.forget(paths.temporary)
      } else {
        UnfinishedFiles.remove(paths.temporary)
      }
    }
  }

  /// Starts a new file, optionally with a copy of an existing file's contents.
  func draft(copying existing: String?) throws(SQLiteError) -> Draft {
    for place in places where Self.mayStand(at: place) {
      let folder = FileBytes.folder(of: place)
      // The takes' folder exists; the cache folder may have to be created.
      if FileBytes.kind(of: folder) == nil {
        guard place != places.first, case .success = NewFile.makeFolder(folder) else { continue }
      }
      let temporary = UnfinishedFiles.name(in: folder + "/")
      guard case .success(let descriptor) = NewFile.create(temporary) else {
        UnfinishedFiles.forget(temporary)
        continue
      }
      let isCopy = existing.map { Self.copy($0, into: descriptor) }
      close(descriptor)
      do throws(SQLiteError) {
        guard isCopy != false else { throw SQLiteError(code: .full, message: "") }
        let connection = try SQLiteConnection(path: temporary, mode: .readWrite)
        try Self.prepare(connection, isNew: isCopy == nil)
        return Draft(
          database: CatalogueDatabase(connection), isCopy: isCopy == true,
          paths: (temporary, place))
      } catch {
        UnfinishedFiles.remove(temporary)
      }
    }
    return try Self.unkept()
  }

  /// Returns whether a path is free or names a regular file of this user, which a new catalogue
  /// replaces.
  private static func mayStand(at path: String) -> Bool {
    var status = stat()
    guard lstat(path.systemPath, &status) == 0 else { return errno == ENOENT }
    return status.st_mode & S_IFMT == S_IFREG && status.st_uid == geteuid()
  }

  /// Creates the tables in a temporary file that disappears with its connection.
  static func unkept() throws(SQLiteError) -> Draft {
    let connection = try SQLiteConnection(path: "", mode: .readWrite)
    try prepare(connection, isNew: true)
    return Draft(database: CatalogueDatabase(connection), isCopy: false, paths: nil)
  }

  private static func prepare(_ connection: borrowing SQLiteConnection, isNew: Bool)
    throws(SQLiteError)
  {
    // The file has no readers before it is complete, and is discarded if writing it fails.
    try connection.execute("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF")
    guard isNew else { return }
    for statement in CatalogueSchema.creation { try connection.execute(statement) }
    try connection.execute(
      "PRAGMA application_id = \(CatalogueSchema.applicationID); "
        + "PRAGMA user_version = \(CatalogueSchema.version)")
    try connection.prepare("INSERT INTO origin VALUES (?)").insert([.text(build)])
  }

  /// Copies a file in chunks; returns false on failure.
  private static func copy(_ path: String, into descriptor: Int32) -> Bool {
    guard case .success(let source) = FileBytes.open(path) else { return false }
    defer { close(source) }
    while true {
      var count = 0
      let piece = [UInt8](unsafeUninitializedCapacity: 1 << 20) { buffer, filled in
        count = Glibc.read(source, buffer.baseAddress, buffer.count)
        filled = max(0, count)
      }
      if count == 0 { return true }
      guard count > 0, WholeFile.write(piece, into: descriptor) == 0 else { return false }
    }
  }
}
