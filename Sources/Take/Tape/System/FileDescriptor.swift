import CProcess
import Dispatch
import Glibc
import Synchronization
import Wire

/// A file descriptor that is closed when its last reference is released.
package final class FileDescriptor: Sendable {
  private let descriptor: Mutex<Int32>
  private let isOwned: Bool

  /// - Parameter isOwned: whether releasing the last reference closes the descriptor.
  package init(_ number: Int32, isOwned: Bool = true) {
    descriptor = Mutex(number)
    self.isOwned = isOwned
  }

  deinit { if isOwned { close() } }

  /// The number of the descriptor; -1 after it has been closed.
  package var number: Int32 { descriptor.withLock { $0 } }

  /// Closes the descriptor unless it is already closed.
  package func close() {
    descriptor.withLock { number in
      if number >= 0 { Glibc.close(number) }
      number = -1
    }
  }

  /// The file's size in bytes; nil if unknown.
  package var size: UInt64? {
    var status = stat()
    return fstat(number, &status) == 0 ? UInt64(clamping: status.st_size) : nil
  }

  /// Waits for data and reads up to `maximum` bytes; empty at the end and after an error.
  ///
  /// - Parameter offset: the position in the file at which to read; nil reads on from the current
  ///   position.
  package func read(atMost maximum: Int, from offset: UInt64? = nil) -> [UInt8] {
    let number = number
    return [UInt8](unsafeUninitializedCapacity: maximum) { target, count in
      while true {
        let got =
          offset.map { pread(number, target.baseAddress, maximum, off_t(clamping: $0)) }
          ?? Glibc.read(number, target.baseAddress, maximum)
        if got < 0, errno == EINTR { continue }
        count = max(got, 0)
        return
      }
    }
  }

  /// Writes all bytes, waiting if necessary; returns false after an error, such as a closed pipe.
  package func write(_ bytes: [UInt8]) -> Bool {
    let number = number
    return bytes.withUnsafeBytes { buffer in
      var rest = buffer[...]
      while !rest.isEmpty {
        let part = UnsafeRawBufferPointer(rebasing: rest)
        let put = Glibc.write(number, part.baseAddress, part.count)
        if put < 0, errno == EINTR { continue }
        guard put > 0 else { return false }
        rest = rest.dropFirst(put)
      }
      return true
    }
  }
}

// MARK: - FileBytes

/// Reads files and their properties; their names need not be UTF-8.
package enum FileBytes {
  /// Opens a file for reading; programs that this process executes do not inherit the descriptor.
  package static func open(_ path: String) -> Result<Int32, SystemCode> {
    let descriptor = Glibc.open(path.systemPath, O_RDONLY | O_CLOEXEC)
    return descriptor < 0 ? .failure(SystemCode(errno)) : .success(descriptor)
  }

  /// Reads a file from its beginning.
  ///
  /// - Parameter limit: the maximum number of bytes to read.
  package static func read(_ path: String, atMost limit: Int = .max)
    -> Result<[UInt8], SystemCode>
  {
    let descriptor: Int32
    switch open(path) {
    case .success(let opened): descriptor = opened
    case .failure(let code): return .failure(code)
    }
    defer { close(descriptor) }
    var bytes: [UInt8] = []
    while bytes.count < limit {
      var code: Int32 = 0
      let wanted = min(limit - bytes.count, pieceBytes)
      let piece = [UInt8](unsafeUninitializedCapacity: wanted) { buffer, count in
        let got = Glibc.read(descriptor, buffer.baseAddress, buffer.count)
        code = got < 0 ? errno : 0
        count = max(0, got)
      }
      if code == EINTR { continue }
      guard code == 0 else { return .failure(SystemCode(code)) }
      if piece.isEmpty { break }
      bytes += piece
    }
    return .success(bytes)
  }

  private static let pieceBytes = 256 << 10

  /// The kind of a file; for a link, the kind of its target.
  package enum Kind: Hashable, Sendable {
    case file, folder
    /// A device, a pipe or a socket.
    case other
  }

  /// Returns the kind of the file at a path; nil if there is no file.
  package static func kind(of path: String) -> Kind? {
    var status = stat()
    guard stat(path.systemPath, &status) == 0 else { return nil }
    return switch status.st_mode & S_IFMT {
    case S_IFREG: .file
    case S_IFDIR: .folder
    default: .other
    }
  }

  /// Returns a file's size in bytes; 0 if it does not exist.
  package static func size(of path: String) -> Int {
    var status = stat()
    return stat(path.systemPath, &status) == 0 ? Int(status.st_size) : 0
  }

  /// Removes a file, ignoring errors.
  package static func remove(_ path: String) { unlink(path.systemPath) }

  /// Returns the paths of all files in a folder and its subfolders, relative to the folder and
  /// sorted.
  ///
  /// Links to folders are listed, but not followed.
  package static func names(below folder: String) -> [String] {
    var found: [String] = []
    var waiting = [""]
    while let next = waiting.popLast() {
      for name in FolderListing.names(in: next.isEmpty ? folder : "\(folder)/\(next)") {
        let path = next.isEmpty ? name : "\(next)/\(name)"
        var status = stat()
        guard lstat("\(folder)/\(path)".systemPath, &status) == 0 else { continue }
        if status.st_mode & S_IFMT == S_IFDIR {
          waiting.append(path)
        } else {
          found.append(path)
        }
      }
    }
    return found.sorted()
  }

  /// Returns the last component of a path; empty for `/` and the empty path.
  package static func name(of path: String) -> String {
    String(path.split(separator: "/").last ?? "")
  }

  /// Returns the last component of a path without its extension.
  package static func stem(of path: String) -> String {
    let name = name(of: path)
    guard let dot = name.lastIndex(of: "."), dot > name.startIndex else { return name }
    return String(name[..<dot])
  }

  /// Returns the folder part of a path, without a slash at its end; empty if the path has no slash.
  package static func folder(of path: String) -> String {
    guard let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")) else { return "" }
    return slash == path.startIndex ? "/" : String(path[..<slash])
  }
}

/// Starts a detached thread with all signals blocked; it ends when the body returns.
///
/// Debuggers and `top -H` show the first 15 bytes of the name.
package func startThread(
  named name: String, _ body: sending @escaping () -> Void
) throws(SystemError) {
  final class Start {
    let body: () -> Void
    init(_ body: @escaping () -> Void) { self.body = body }
  }
  let start = Unmanaged.passRetained(Start(body))
  let code = cprocess_thread_start(
    name,
    { argument in
      guard let argument else { return }
      Unmanaged<Start>.fromOpaque(argument).takeRetainedValue().body()
    }, start.toOpaque())
  guard code == 0 else {
    start.release()
    throw SystemError(operation: "start a thread", code: code)
  }
}

/// Runs work on a new thread, or on libdispatch's pool if the system cannot create a thread.
package func startWorker(named name: String, _ body: @escaping @Sendable () -> Void) {
  do throws(SystemError) {
    try startThread(named: name, body)
  } catch {
    DispatchQueue.global().async(execute: body)
  }
}

/// Work that another thread does, and its result.
package final class ConcurrentWork<Value: Sendable, Failure: Error>: Sendable {
  private let result = Mutex<Result<Value, Failure>?>(nil)
  private let isDone = DispatchSemaphore(value: 0)

  /// Starts the work.
  ///
  /// Debuggers and `top -H` show the first 15 bytes of the name.
  package init(named name: String, _ work: @escaping @Sendable () throws(Failure) -> Value) {
    startWorker(named: name) { [self] in
      let done: Result<Value, Failure>
      do throws(Failure) {
        done = .success(try work())
      } catch {
        done = .failure(error)
      }
      result.withLock { $0 = done }
      isDone.signal()
    }
  }

  /// Waits for the work to end; returns its result, or throws its error.
  package func value() throws(Failure) -> Value {
    while true {
      isDone.wait()
      isDone.signal()
      if let result = result.withLock({ $0 }) { return try result.get() }
    }
  }
}

/// An error of the operating system.
public struct SystemError: Error, Hashable, Sendable, CustomStringConvertible {
  /// What failed, as in `open a UDP socket`.
  public var operation: String
  /// The errno value, which is positive.
  public var code: Int32

  /// Creates an error from an errno value, which C shims return as a negative number.
  public init(operation: String, code: Int32) {
    self.operation = operation
    self.code = code == .min ? .max : abs(code)
  }

  /// The error as a sentence, such as `cannot open a UDP socket: Too many open files`.
  public var description: String { "cannot \(operation): \(String(cString: strerror(code)))" }
}

/// Returns the result of a C shim, or throws an error if it is a negative errno value.
@discardableResult
package func checked(_ operation: String, _ result: Int32) throws(SystemError) -> Int32 {
  guard result >= 0 else { throw SystemError(operation: operation, code: result) }
  return result
}
