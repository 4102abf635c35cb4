import Glibc
import Wire

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
