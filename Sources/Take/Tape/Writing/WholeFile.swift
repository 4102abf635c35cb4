import Glibc
import Synchronization
import Wire

/// A file that appears under its name only when it is complete.
///
/// Until then, it has another name in the same folder. An abandoned file is removed: when this
/// object is destroyed, by `UnfinishedFiles.removeAll` if the process ends, or by the next process
/// after a crash. Devices and pipes are written in place.
package final class WholeFile {
  /// Why a file cannot be written.
  package struct Failure: Error, Hashable, Sendable, CustomStringConvertible {
    package var path: String
    /// The errno value.
    package var code: Int32

    package init(path: String, code: Int32) {
      self.path = path
      self.code = code
    }

    package var description: String {
      switch code {
      case EEXIST: "\(path) exists already: choose another name or remove the file"
      case ENODEV: "\(path): a take can only be written to a file, and this is none"
      default: "\(path): it cannot be written: \(SystemCode(code))"
      }
    }
  }

  /// What to do if the file exists.
  package enum Present: Sendable {
    /// Leave it unchanged and throw an error.
    case kept
    case replaced
  }

  /// The path of the file once it is complete.
  package let path: String
  /// The path to write to until the file is complete.
  package let temporary: String
  private let present: Present
  private let isTake: Bool
  /// The final location: `path`, or the target of a link there.
  private let target: String
  private var isFinished = false

  /// Chooses the temporary name, but creates no file.
  ///
  /// - Parameter isTake: whether SQLite writes the file, in which case it cannot be a device or
  ///   pipe.
  package init(_ path: String, _ present: Present, isTake: Bool = false) throws(Failure) {
    self.path = path
    self.present = present
    self.isTake = isTake
    var status = stat()
    let exists = stat(path.systemPath, &status) == 0
    if exists, status.st_mode & S_IFMT == S_IFDIR { throw Failure(path: path, code: EISDIR) }
    if exists, status.st_mode & S_IFMT != S_IFREG {
      // Renaming a take over a device would replace the device.
      guard !isTake else { throw Failure(path: path, code: ENODEV) }
      (target, temporary) = (path, path)
      return
    }
    guard !exists || present == .replaced else { throw Failure(path: path, code: EEXIST) }
    // If the path is a link, such as /dev/stdout, the target is written instead of the link.
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

  /// Opens the file for writing; the caller must close it.
  ///
  /// - Parameter mode: the mode of a new file; an existing device or pipe keeps its own.
  package func open(mode: UInt32 = 0o600) throws(Failure) -> Int32 {
    guard temporary != target else {
      // The path was not a regular file, so it is written in place. If a regular file has appeared
      // there meanwhile, it is not truncated.
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
      // SQLite would apply the old file's log to the new file.
      if isTake { for ending in ["-wal", "-shm"] { unlink((target + ending).systemPath) } }
      guard rename(from, to) == 0 else { throw Failure(path: path, code: errno) }
    case .kept:
      // If another process has created the file meanwhile, its file is kept.
      let code = link(from, to) == 0 ? 0 : errno
      if code == 0 {
        unlink(from)
      } else if [EPERM, ENOTSUP, ENOSYS].contains(code), access(to, F_OK) != 0 {
        // This file system has no hard links.
        guard rename(from, to) == 0 else { throw Failure(path: path, code: errno) }
      } else {
        throw Failure(path: path, code: code)
      }
    }
    isFinished = true
    UnfinishedFiles.forget(temporary)
  }

  /// Writes a complete file or none; by default only its owner can read it.
  package static func write(
    _ bytes: some Sequence<UInt8>, to path: String, _ present: Present, mode: UInt32 = 0o600
  ) throws(Failure) {
    let file = try WholeFile(path, present)
    let descriptor = try file.open(mode: mode)
    let written = write(Array(bytes), into: descriptor)
    // Some errors of the disk are reported only by `close`.
    let closed = close(descriptor) == 0 ? 0 : errno
    guard written == 0, closed == 0 else {
      throw Failure(path: path, code: written == 0 ? closed : written)
    }
    try file.finish()
  }

  /// Writes all bytes; returns 0, or an errno value after an error.
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

  /// Creates a folder for output and the folders above it.
  ///
  /// They are removed again if nothing is written into them, because the command fails or a signal
  /// ends it.
  package static func makeFolder(
    _ path: String, mode: UInt32 = 0o700
  ) -> Result<Bool, SystemCode> {
    NewFile.makeFolder(path, mode: mode) { UnfinishedFiles.add(folder: $0) }
  }
}

// MARK: - NewFile

/// Creates files and folders for keys and conversations.
///
/// They are private to their owner, and links that another user planted are not followed.
package enum NewFile {
  /// Creates a file; neither a file nor a link may exist at the path.
  ///
  /// - Parameter mode: the exact mode, whatever the umask; 0600 for anything that contains parts of
  ///   a call.
  /// - Returns: a descriptor for reading and writing, or the system's error.
  package static func create(_ path: String, mode: UInt32 = 0o600) -> Result<Int32, SystemCode> {
    let descriptor = open(
      path.systemPath, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode & 0o600)
    guard descriptor >= 0 else { return .failure(SystemCode(errno)) }
    // `open` reduces the mode by the umask; this sets it exactly.
    guard fchmod(descriptor, mode) == 0 else {
      let code = SystemCode(errno)
      close(descriptor)
      return .failure(code)
    }
    return .success(descriptor)
  }

  /// Creates a folder and the folders above it, by default accessible only to their owner.
  ///
  /// A folder that exists is left unchanged.
  ///
  /// - Parameters:
  ///   - mode: the mode of new folders, to which the umask applies; 0700 for folders that contain
  ///     takes.
  ///   - didMake: called with each folder that was created, outermost first.
  /// - Returns: whether the folder was created, or the system's error.
  package static func makeFolder(
    _ path: String, mode: UInt32 = 0o700, _ didMake: (String) -> Void = { _ in }
  ) -> Result<Bool, SystemCode> {
    if mkdir(path.systemPath, mode) == 0 {
      didMake(path)
      return .success(true)
    }
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
    if case .failure(let code) = makeFolder(String(above[..<slash]), mode: mode, didMake) {
      return .failure(code)
    }
    if mkdir(path.systemPath, mode) == 0 {
      didMake(path)
      return .success(true)
    }
    // Another process may have created the folder meanwhile.
    let last = SystemCode(errno)
    let isFolder = stat(path.systemPath, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR
    return isFolder ? .success(false) : .failure(last)
  }
}

/// An errno value, read before another call could replace it.
package struct SystemCode: Error, Hashable, Sendable, CustomStringConvertible {
  package var number: Int32

  package init(_ number: Int32) { self.number = number }

  /// The system's message for the value.
  package var description: String { String(cString: strerror(number)) }
}
