import Glibc
import Synchronization
import Wire

/// A file that appears under its name only once it is complete.
///
/// It is written under another name in the same folder. Abandoning it, or ending the process after
/// `UnfinishedFiles.removeAll`, leaves nothing behind that blocks the next attempt;
/// `UnfinishedFiles` removes the leftovers of killed processes. Devices and pipes are written in
/// place.
package final class WholeFile {
  /// The reason that a file cannot be written, as one sentence.
  package struct Failure: Error, Hashable, Sendable, CustomStringConvertible {
    package var path: String
    /// The errno value.
    package var code: Int32

    package init(path: String, code: Int32) {
      self.path = path
      self.code = code
    }

    package var description: String {
      code == EEXIST
        ? "\(path) exists already: choose another name or remove the file"
        : "\(path): it cannot be written: \(SystemCode(code))"
    }
  }

  /// The policy for a file that exists.
  package enum Present: Sendable {
    /// Leave it unchanged and write nothing.
    case kept
    case replaced
  }

  /// The complete file's path.
  package let path: String
  /// The path to write to.
  package let temporary: String
  private let present: Present
  private let isTake: Bool
  /// The final location: `path`, or the target of a link there.
  private let target: String
  private var isFinished = false

  /// Chooses the temporary name without creating the file.
  ///
  /// - Parameter isTake: whether only a regular file is acceptable.
  package init(_ path: String, _ present: Present, isTake: Bool = false) throws(Failure) {
    self.path = path
    self.present = present
    self.isTake = isTake
    var status = stat()
    let exists = stat(path.systemPath, &status) == 0
    if exists, status.st_mode & S_IFMT == S_IFDIR { throw Failure(path: path, code: EISDIR) }
    if exists, status.st_mode & S_IFMT != S_IFREG, !isTake {
      (target, temporary) = (path, path)
      return
    }
    guard !exists || present == .replaced else { throw Failure(path: path, code: EEXIST) }
    // If the path is a link, such as /dev/stdout, its target is written.
    let resolved = exists ? realpath(path.systemPath, nil) : nil
    let final = resolved.map { WholeFile.name(at: $0) } ?? path
    free(resolved)
    let slash = final.utf8.lastIndex(of: UInt8(ascii: "/"))
    (target, temporary) = (final, UnfinishedFiles.name(in: slash.map { final[...$0] } ?? ""))
  }

  private static func name(at bytes: UnsafeMutablePointer<CChar>) -> String {
    SystemPath.name(UnsafeRawBufferPointer(start: bytes, count: strlen(bytes)))
  }

  deinit {
    guard !isFinished, temporary != target else { return }
    UnfinishedFiles.remove(temporary)
  }

  /// Opens the file for writing; the caller closes it.
  ///
  /// - Parameter mode: the file's mode, unless it is written in place.
  package func open(mode: UInt32 = 0o600) throws(Failure) -> Int32 {
    guard temporary != target else {
      // The path was not a regular file and is written in place. It is not truncated, even if it
      // has become a regular file since.
      let descriptor = Glibc.open(path.systemPath, O_WRONLY | O_CLOEXEC)
      guard descriptor >= 0 else { throw Failure(path: path, code: errno) }
      return descriptor
    }
    switch UnfinishedFiles.create(temporary, mode: mode) {
    case .success(let descriptor): return descriptor
    case .failure(let code): throw Failure(path: path, code: code.number)
    }
  }

  /// Renames the complete file to its final name.
  package func finish() throws(Failure) {
    guard temporary != target else { return }
    let (from, to) = (temporary.systemPath, target.systemPath)
    switch present {
    case .replaced:
      // A log beside it belongs to the old file, and SQLite would apply it to the new one.
      if isTake { for ending in ["-wal", "-shm"] { unlink((target + ending).systemPath) } }
      guard rename(from, to) == 0 else { throw Failure(path: path, code: errno) }
    case .kept:
      // If another process has created the file meanwhile, leave that file unchanged.
      let code = link(from, to) == 0 ? 0 : errno
      if code == 0 {
        unlink(from)
      } else if [EPERM, ENOTSUP, ENOSYS].contains(code), access(to, F_OK) != 0 {
        // Some file systems have no hard links.
        guard rename(from, to) == 0 else { throw Failure(path: path, code: errno) }
      } else {
        throw Failure(path: path, code: code)
      }
    }
    isFinished = true
    UnfinishedFiles.forget(temporary)
  }

  /// Writes a complete file, by default readable only by its owner.
  package static func write(
    _ bytes: some Sequence<UInt8>, to path: String, _ present: Present, mode: UInt32 = 0o600
  ) throws(Failure) {
    let file = try WholeFile(path, present)
    let descriptor = try file.open(mode: mode)
    let written = write(Array(bytes), into: descriptor)
    // Some disk errors are reported only by `close`.
    let closed = close(descriptor) == 0 ? 0 : errno
    guard written == 0, closed == 0 else {
      throw Failure(path: path, code: written == 0 ? closed : written)
    }
    try file.finish()
  }

  /// Writes all bytes; returns 0 or an errno value.
  package static func write(_ bytes: [UInt8], into descriptor: Int32) -> Int32 {
    bytes.withUnsafeBytes { bytes in
      var rest = bytes[...]
      while !rest.isEmpty {
        let count = Glibc.write(
          descriptor, UnsafeRawBufferPointer(rebasing: rest).baseAddress, rest.count)
        let code = count < 0 ? errno : 0
        if code == EINTR { continue }
        guard count > 0 else { return code == 0 ? EIO : code }
        rest = rest.dropFirst(count)
      }
      return 0
    }
  }

  /// Creates a folder and its missing parents; if this process ends before its files are complete,
  /// the empty ones are removed.
  package static func makeFolder(_ path: String) -> Result<Bool, SystemCode> {
    let result = NewFile.makeFolder(path)
    if case .success(true) = result { UnfinishedFiles.add(path) }
    return result
  }
}

// MARK: - NewFile

/// Creates files and folders for keys and conversations: private to their owner, and never through
/// a link that another user planted.
package enum NewFile {
  /// Creates a file, which must not exist, not even as a link.
  ///
  /// - Parameter mode: the exact mode, whatever the umask; 0600 for everything that contains parts
  ///   of a call.
  /// - Returns: the descriptor, open for reading and writing, or the system's error.
  package static func create(_ path: String, mode: UInt32 = 0o600) -> Result<Int32, SystemCode> {
    let descriptor = open(
      path.systemPath, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode & 0o600)
    guard descriptor >= 0 else { return .failure(SystemCode(errno)) }
    // The umask narrows the mode passed to `open`; this sets it exactly.
    guard fchmod(descriptor, mode) == 0 else {
      let code = SystemCode(errno)
      close(descriptor)
      return .failure(code)
    }
    return .success(descriptor)
  }

  /// Creates a folder and its missing parents, private to their owner.
  ///
  /// An existing folder is left unchanged.
  ///
  /// - Parameter mode: the folders' mode, less the umask; 0700 for everything that contains takes.
  /// - Returns: whether it was created, or the system's error.
  package static func makeFolder(_ path: String, mode: UInt32 = 0o700)
    -> Result<Bool, SystemCode>
  {
    if mkdir(path.systemPath, mode) == 0 { return .success(true) }
    let code = SystemCode(errno)
    var status = stat()
    if stat(path.systemPath, &status) == 0 {
      return status.st_mode & S_IFMT == S_IFDIR ? .success(false) : .failure(SystemCode(ENOTDIR))
    }
    var above = path[...]
    while above.utf8.last == UInt8(ascii: "/") { above.removeLast() }
    guard code.number == ENOENT, let slash = above.utf8.lastIndex(of: UInt8(ascii: "/")),
      slash > above.startIndex
    else { return .failure(code) }
    if case .failure(let code) = makeFolder(String(above[..<slash]), mode: mode) {
      return .failure(code)
    }
    return mkdir(path.systemPath, mode) == 0 ? .success(true) : .failure(SystemCode(errno))
  }
}

/// An errno value, captured while it was current.
package struct SystemCode: Error, Hashable, Sendable, CustomStringConvertible {
  package var number: Int32

  package init(_ number: Int32) { self.number = number }

  /// The system's message.
  package var description: String { String(cString: strerror(number)) }
}
