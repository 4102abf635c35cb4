import Glibc
import Synchronization

/// A file that is there under its name when it is complete, and never before.
///
/// It is written under another name in the same folder. Whoever gives up on it, and a process that
/// calls `removeUnfinished` before it ends, leave nothing behind that blocks the next try. What is
/// no regular file, a device or a pipe, is written in place.
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
        : "\(path): it cannot be written: \(String(cString: strerror(code)))"
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
  /// Where the complete file stands: `path`, or what it links to.
  private let target: String
  private var isFinished = false

  /// Chooses the name to write under; nothing is made yet.
  ///
  /// - Parameter isTake: whether only a regular file will do.
  package init(_ path: String, _ present: Present, isTake: Bool = false) throws(Failure) {
    self.path = path
    self.present = present
    var status = stat()
    let exists = stat(path, &status) == 0
    if exists, status.st_mode & S_IFMT == S_IFDIR { throw Failure(path: path, code: EISDIR) }
    if exists, status.st_mode & S_IFMT != S_IFREG, !isTake {
      (target, temporary) = (path, path)
      return
    }
    guard !exists || present == .replaced else { throw Failure(path: path, code: EEXIST) }
    // Behind a link, as /dev/stdout is one, the file that it names is meant.
    let resolved = exists ? realpath(path, nil) : nil
    let final = resolved.map { String(cString: $0) } ?? path
    free(resolved)
    let slash = final.utf8.lastIndex(of: UInt8(ascii: "/"))
    let folder = slash.map { String(final[...$0]) } ?? ""
    let number = Self.count.add(1, ordering: .relaxed).newValue
    let name = "\(folder).retake-\(getpid())-\(number).part"
    (target, temporary) = (final, name)
    Self.unfinished.withLock { _ = $0.insert(name) }
  }

  deinit {
    guard !isFinished, temporary != target else { return }
    Self.remove(temporary)
  }

  /// Gives the file its name; it is complete.
  package func finish() throws(Failure) {
    guard temporary != target else { return }
    switch present {
    case .replaced:
      guard rename(temporary, target) == 0 else { throw Failure(path: path, code: errno) }
    case .kept:
      // A name that was taken meanwhile is not taken away again.
      if link(temporary, target) == 0 {
        unlink(temporary)
      } else if [EPERM, ENOTSUP, ENOSYS].contains(errno), access(target, F_OK) != 0 {
        // Not all file systems have links.
        guard rename(temporary, target) == 0 else { throw Failure(path: path, code: errno) }
      } else {
        throw Failure(path: path, code: errno)
      }
    }
    isFinished = true
    let name = temporary
    Self.unfinished.withLock { _ = $0.remove(name) }
  }

  /// Writes a file in one go, readable by its owner alone unless another mode is given.
  package static func write(
    _ bytes: some Sequence<UInt8>, to path: String, _ present: Present, mode: UInt32 = 0o600
  ) throws(Failure) {
    let file = try WholeFile(path, present)
    let descriptor = open(file.temporary, O_WRONLY | O_CREAT | O_CLOEXEC, mode)
    guard descriptor >= 0 else { throw Failure(path: path, code: errno) }
    let code = write(Array(bytes), into: descriptor)
    guard close(descriptor) == 0, code == 0 else {
      throw Failure(path: path, code: code == 0 ? errno : code)
    }
    try file.finish()
  }

  /// Writes all bytes; gives the error number when that fails.
  static func write(_ bytes: [UInt8], into descriptor: Int32) -> Int32 {
    bytes.withUnsafeBytes { bytes in
      var rest = bytes[...]
      while !rest.isEmpty {
        let count = Glibc.write(
          descriptor, UnsafeRawBufferPointer(rebasing: rest).baseAddress, rest.count)
        if count < 0, errno == EINTR { continue }
        guard count > 0 else { return count == 0 ? EIO : errno }
        rest = rest.dropFirst(count)
      }
      return 0
    }
  }

  // MARK: What is not complete

  private static let count = Atomic(0)
  private static let unfinished = Mutex<Set<String>>([])

  /// Makes a folder, which goes again with the files in it that are not complete.
  package static func makeFolder(_ path: String) -> Bool {
    guard mkdir(path, 0o700) == 0 else { return false }
    unfinished.withLock { _ = $0.insert(path) }
    return true
  }

  /// Removes all files that are not complete, for a process that ends in their midst, and folders
  /// that were made for them and are empty.
  package static func removeUnfinished() {
    // A folder comes after what is in it.
    for path in unfinished.withLock({ $0.sorted(by: >) }) { remove(path) }
  }

  private static func remove(_ path: String) {
    // A take has further files beside it while it is written.
    for ending in ["", "-wal", "-shm", "-journal"] { Glibc.remove(path + ending) }
    unfinished.withLock { _ = $0.remove(path) }
  }
}
