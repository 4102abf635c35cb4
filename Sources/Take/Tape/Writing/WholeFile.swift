import Glibc
import Synchronization
import Wire

/// A file that is there under its name when it is complete, and never before.
///
/// It is written under another name in the same folder. Whoever gives up on it, and a process that
/// calls `removeUnfinished` before it ends, leave nothing behind that blocks the next try; what a
/// process left that was killed, `UnfinishedFiles` removes. What is no regular file, a device or a
/// pipe, is written in place.
package final class WholeFile {
  /// Why a file cannot be written, in one sentence.
  package struct Failure: Error, Hashable, Sendable, CustomStringConvertible {
    /// The file.
    package var path: String
    /// The error number of the system.
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

  /// What becomes of a file that is there.
  package enum Present: Sendable {
    /// It is left as it is, and nothing is written.
    case kept
    /// It is replaced.
    case replaced
  }

  /// The name of the complete file.
  package let path: String
  /// Where to write it.
  package let temporary: String
  private let present: Present
  private let isTake: Bool
  /// Where the complete file stands: `path`, or what it links to.
  private let target: String
  private var isFinished = false

  /// Chooses the name to write under; nothing is made yet.
  ///
  /// - Parameter isTake: whether only a regular file will do.
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
    // Behind a link, as /dev/stdout is one, the file that it names is meant.
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

  /// Opens the file to write into it; whoever calls this closes it.
  ///
  /// - Parameter mode: that of the file, unless it is one that is written in place.
  package func open(mode: UInt32 = 0o600) throws(Failure) -> Int32 {
    guard temporary != target else {
      // It was no regular file, and is written as it is; if it is one by now, nothing is emptied.
      let descriptor = Glibc.open(path.systemPath, O_WRONLY | O_CLOEXEC)
      guard descriptor >= 0 else { throw Failure(path: path, code: errno) }
      return descriptor
    }
    switch UnfinishedFiles.create(temporary, mode: mode) {
    case .success(let descriptor): return descriptor
    case .failure(let code): throw Failure(path: path, code: code.number)
    }
  }

  /// Gives the file its name; it is complete.
  package func finish() throws(Failure) {
    guard temporary != target else { return }
    let (from, to) = (temporary.systemPath, target.systemPath)
    switch present {
    case .replaced:
      // A log beside it is that of the old one, and SQLite would put it into the new one.
      if isTake { for ending in ["-wal", "-shm"] { unlink((target + ending).systemPath) } }
      guard rename(from, to) == 0 else { throw Failure(path: path, code: errno) }
    case .kept:
      // A name that was taken meanwhile is not taken away again.
      let code = link(from, to) == 0 ? 0 : errno
      if code == 0 {
        unlink(from)
      } else if [EPERM, ENOTSUP, ENOSYS].contains(code), access(to, F_OK) != 0 {
        // Not all file systems have links.
        guard rename(from, to) == 0 else { throw Failure(path: path, code: errno) }
      } else {
        throw Failure(path: path, code: code)
      }
    }
    isFinished = true
    UnfinishedFiles.forget(temporary)
  }

  /// Writes a file in one go, readable by its owner alone unless another mode is given.
  package static func write(
    _ bytes: some Sequence<UInt8>, to path: String, _ present: Present, mode: UInt32 = 0o600
  ) throws(Failure) {
    let file = try WholeFile(path, present)
    let descriptor = try file.open(mode: mode)
    let written = write(Array(bytes), into: descriptor)
    // Not all that is wrong with a disk is told before a file is closed.
    let closed = close(descriptor) == 0 ? 0 : errno
    guard written == 0, closed == 0 else {
      throw Failure(path: path, code: written == 0 ? closed : written)
    }
    try file.finish()
  }

  /// Writes all bytes; returns the error number when that fails, and else 0.
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

  /// Creates a folder for files, and those above it that are missing; when this process ends before
  /// what is in it is complete, an empty one goes again.
  package static func makeFolder(_ path: String) -> Result<Bool, SystemCode> {
    let result = NewFile.makeFolder(path)
    if case .success(true) = result { UnfinishedFiles.add(path) }
    return result
  }
}

// MARK: - NewFile

/// Makes files and folders, which hold keys and what people said: for their owner alone, and never
/// through something that somebody else put in the place.
package enum NewFile {
  /// Creates a file, which must not be there, not even as a link.
  ///
  /// - Parameter mode: what the file is, whatever the mask of the process says; 0600 for all that
  ///   holds something of a call.
  /// - Returns: the open file, for reading and writing; or the error number of the system.
  package static func create(_ path: String, mode: UInt32 = 0o600) -> Result<Int32, SystemCode> {
    let descriptor = open(
      path.systemPath, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode & 0o600)
    guard descriptor >= 0 else { return .failure(SystemCode(errno)) }
    // The mode given to `open` is narrowed by the process's mask, and is exact here.
    guard fchmod(descriptor, mode) == 0 else {
      let code = SystemCode(errno)
      close(descriptor)
      return .failure(code)
    }
    return .success(descriptor)
  }

  /// Creates a folder and those above it that are missing, for their owner alone.
  ///
  /// One that is there stays as it is.
  /// - Parameter mode: what the folders are, less the mask of the process; 0700 for all that holds
  ///   takes.
  /// - Returns: whether this made it; or why it is not there.
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

/// An error number of the system, kept when it was current.
package struct SystemCode: Error, Hashable, Sendable, CustomStringConvertible {
  package var number: Int32

  package init(_ number: Int32) { self.number = number }

  /// In the words of the system.
  package var description: String { String(cString: strerror(number)) }
}
