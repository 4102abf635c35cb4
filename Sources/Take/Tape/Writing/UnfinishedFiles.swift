import Glibc
import Synchronization
import Wire

/// Tracks this process's unfinished files, and removes unfinished files that killed processes left
/// behind.
///
/// A file's name is `.retake-`, 32 random hexadecimal digits and `.part`. It is locked (flock)
/// while its process uses it. A killed process loses the lock, so the next process that writes into
/// the folder recognizes the leftover and removes it.
package enum UnfinishedFiles {
  /// The paths of unfinished files, with the descriptors that hold the locks; -1 if a file is not
  /// locked.
  private static let held = Mutex<[String: Int32]>([:])
  /// The folders that this process created for its files.
  private static let made = Mutex<Set<String>>([])
  /// The folders that have been searched for leftovers.
  private static let swept = Mutex<Set<String>>([])

  private static let (beginning, ending) = (".retake-", ".part")
  private static let digitCount = 32
  /// The suffixes of files that SQLite creates beside a take.
  private static let companions = ["-wal", "-shm", "-journal"]
  /// The minimum age, in seconds, at which leftovers of versions without locks are removed.
  private static let unlockedAge = 86_400

  /// Returns a name for a new file in a folder; the folder's path ends in a slash or is empty.
  package static func name(in folder: some StringProtocol) -> String {
    let folder = String(folder)
    sweep(folder)
    var random = SystemRandomNumberGenerator()
    let bytes = (0..<digitCount / 2).map { _ in UInt8.random(in: 0...255, using: &random) }
    let name = folder + beginning + hexadecimal(bytes) + ending
    add(name)
    return name
  }

  /// Registers a file for removal in case the process ends before the file is complete.
  package static func add(_ path: String) { held.withLock { $0[path] = $0[path] ?? -1 } }

  /// Registers a folder for removal in case the process ends while it is empty.
  package static func add(folder: String) { made.withLock { _ = $0.insert(folder) } }

  /// Creates a file; if `add` was called for it, it stays locked until `forget`.
  static func create(_ path: String, mode: UInt32 = 0o600) -> Result<Int32, SystemCode> {
    guard held.withLock({ $0[path] == -1 }) else { return NewFile.create(path, mode: mode) }
    var made = NewFile.create(path, mode: mode)
    for _ in 0..<attempts {
      if case .success(let descriptor) = made {
        if hold(descriptor, path) { break }
        close(descriptor)
      } else if case .failure(let code) = made, code.number != EEXIST {
        break
      }
      // Another process has mistaken the new file for a leftover, because it was not locked yet.
      usleep(1_000)
      made = NewFile.create(path, mode: mode)
    }
    return made
  }

  private static let attempts = 100

  /// Locks a new file; returns false if another process has locked or removed it meanwhile.
  private static func hold(_ descriptor: Int32, _ path: String) -> Bool {
    let kept = fcntl(descriptor, F_DUPFD_CLOEXEC, 0)
    // There are no free descriptors, so whatever the caller does next fails anyway.
    guard kept >= 0 else { return true }
    let code = flock(kept, LOCK_EX | LOCK_NB) == 0 ? 0 : errno
    var status = stat()
    guard code != EWOULDBLOCK, fstat(kept, &status) == 0, status.st_nlink > 0 else {
      close(kept)
      return false
    }
    // If the file system has no locks, no other process can lock the file either.
    guard code == 0, !isInTheWay(kept) else {
      close(kept)
      return true
    }
    held.withLock { $0[path] = kept }
    return true
  }

  /// Returns whether the lock just acquired (flock) conflicts with SQLite's locks (fcntl).
  ///
  /// On local file systems the two kinds are independent. On network file systems they are the
  /// same, and SQLite would find its own take locked; there, nothing is locked or removed.
  private static func isInTheWay(_ descriptor: Int32) -> Bool {
    var wanted = Glibc.flock()
    (wanted.l_type, wanted.l_whence) = (Int16(F_WRLCK), Int16(SEEK_SET))
    return fcntl(descriptor, F_GETLK, &wanted) != 0 || wanted.l_type != Int16(F_UNLCK)
  }

  /// Stops tracking a file that is complete or was removed.
  package static func forget(_ path: String) {
    guard let descriptor = held.withLock({ $0.removeValue(forKey: path) }) else { return }
    if descriptor >= 0 { close(descriptor) }
  }

  /// Removes an unfinished file and the files that SQLite created beside it.
  package static func remove(_ path: String) {
    removeAll(path)
    forget(path)
  }

  private static func removeAll(_ path: String) {
    for ending in [""] + companions { Glibc.remove((path + ending).systemPath) }
  }

  /// Removes a folder and the folders above it if they are empty and were created for files.
  package static func removeIfEmpty(folder: String) {
    let above = made.withLock { folders in
      folders.filter { folder == $0 || folder.hasPrefix($0.hasSuffix("/") ? $0 : $0 + "/") }
    }
    removeIfEmpty(above)
  }

  private static func removeIfEmpty(_ folders: Set<String>) {
    // In descending order, each folder comes after the folders in it.
    for folder in folders.sorted(by: >) where rmdir(folder.systemPath) == 0 {
      made.withLock { _ = $0.remove(folder) }
    }
  }

  /// Removes all unfinished files before the process ends, and the empty folders that were created
  /// for them.
  package static func removeAll() {
    for path in held.withLock({ Array($0.keys) }) { remove(path) }
    removeIfEmpty(made.withLock { $0 })
  }

  // MARK: Leftovers

  /// Removes leftovers of killed processes from a folder, once per process.
  private static func sweep(_ folder: String) {
    guard swept.withLock({ $0.insert(folder).inserted }) else { return }
    for name in FolderListing.names(in: folder.isEmpty ? "." : folder) {
      if isNew(name) {
        removeUnlocked(folder + name, isOld: false)
      } else if let process = earlierProcess(name), kill(process, 0) != 0, errno == ESRCH {
        removeUnlocked(folder + name, isOld: true)
      }
    }
  }

  private static func isNew(_ name: String) -> Bool {
    guard name.hasPrefix(beginning), name.hasSuffix(ending) else { return false }
    let digits = name.dropFirst(beginning.count).dropLast(ending.count)
    return digits.utf8.count == digitCount
      && digits.utf8.allSatisfy { (0x30...0x39).contains($0) || (0x61...0x66).contains($0) }
  }

  /// Returns the process number in a file name of an earlier version, such as
  /// `.retake-4711-1.part`; nil for other names.
  private static func earlierProcess(_ name: String) -> Int32? {
    guard name.hasPrefix(beginning), name.hasSuffix(ending) else { return nil }
    let parts = name.dropFirst(beginning.count).dropLast(ending.count).split(separator: "-")
    guard parts.count == 2, parts[1].utf8.allSatisfy({ (0x30...0x39).contains($0) }) else {
      return nil
    }
    return Int32(parts[0]).flatMap { $0 > 0 ? $0 : nil }
  }

  private static func removeUnlocked(_ path: String, isOld: Bool) {
    // If this process uses the file itself, closing a descriptor here would release SQLite's locks.
    guard held.withLock({ $0[path] == nil }) else { return }
    let descriptor = open(path.systemPath, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
    guard descriptor >= 0 else { return }
    defer { close(descriptor) }
    var status = stat()
    guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG,
      status.st_uid == geteuid(), flock(descriptor, LOCK_EX | LOCK_NB) == 0,
      !isInTheWay(descriptor)
    else { return }
    if isOld, time(nil) - status.st_mtim.tv_sec < unlockedAge { return }
    removeAll(path)
  }
}

/// Lists the contents of folders; names may be any bytes.
package enum FolderListing {
  /// Returns the names in a folder in any order, without `.` and `..`; empty if it cannot be read.
  package static func names(in folder: String) -> [String] {
    guard let stream = opendir(folder.systemPath) else { return [] }
    defer { closedir(stream) }
    var names: [String] = []
    while let entry = readdir(stream) {
      let name = withUnsafeBytes(of: entry.pointee.d_name) { bytes in
        SystemPath.name(bytes.prefix { $0 != 0 })
      }
      if name != ".", name != ".." { names.append(name) }
    }
    return names
  }
}
