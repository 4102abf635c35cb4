import CProcess
import Dispatch
import Glibc
import Synchronization
import Wire

/// A descriptor of the system, closed when it is let go of.
package final class FileDescriptor: Sendable {
  private let descriptor: Mutex<Int32>
  private let isOwned: Bool

  /// - Parameter isOwned: whether it is closed in the end.
  package init(_ number: Int32, isOwned: Bool = true) {
    descriptor = Mutex(number)
    self.isOwned = isOwned
  }

  deinit { if isOwned { close() } }

  /// Its number; -1 once it is closed.
  package var number: Int32 { descriptor.withLock { $0 } }

  /// Closes it, where that has not been done yet.
  package func close() {
    descriptor.withLock { number in
      if number >= 0 { Glibc.close(number) }
      number = -1
    }
  }

  /// The size of its file in bytes; nil if that is unknown.
  package var size: UInt64? {
    var status = stat()
    return fstat(number, &status) == 0 ? UInt64(clamping: status.st_size) : nil
  }

  /// Waits for bytes and reads up to so many; none at the end, and where it cannot be read.
  /// - Parameter offset: where to read in a file; nil continues after what was read before.
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

  /// Waits until all bytes are written; false where that fails, as where nobody reads a pipe.
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

/// Files as their bytes, by names that need not be UTF-8.
package enum FileBytes {
  /// Opens a file for reading.
  package static func open(_ path: String) -> Result<Int32, SystemCode> {
    let descriptor = Glibc.open(path.systemPath, O_RDONLY | O_CLOEXEC)
    return descriptor < 0 ? .failure(SystemCode(errno)) : .success(descriptor)
  }

  /// Reads a file from its beginning.
  ///
  /// - Parameter limit: how many bytes are read at most.
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

  /// What stands under a name, links followed.
  package enum Kind: Hashable, Sendable {
    case file, folder
    /// A device, a pipe or a socket.
    case other
  }

  /// What stands under a name; nil for nothing.
  package static func kind(of path: String) -> Kind? {
    var status = stat()
    guard stat(path.systemPath, &status) == 0 else { return nil }
    return switch status.st_mode & S_IFMT {
    case S_IFREG: .file
    case S_IFDIR: .folder
    default: .other
    }
  }

  /// The size of a file in bytes; 0 when it is not there.
  package static func size(of path: String) -> Int {
    var status = stat()
    return stat(path.systemPath, &status) == 0 ? Int(status.st_size) : 0
  }

  /// Removes a file that may be there.
  package static func remove(_ path: String) { unlink(path.systemPath) }

  /// The names of all files below a folder, with the folders between, in order.
  ///
  /// Links to folders are not followed.
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

  /// The last part of a path.
  package static func name(of path: String) -> String {
    String(path.split(separator: "/").last ?? "")
  }

  /// The last part of a path without what stands behind its last dot.
  package static func stem(of path: String) -> String {
    let name = name(of: path)
    guard let dot = name.lastIndex(of: "."), dot > name.startIndex else { return name }
    return String(name[..<dot])
  }

  /// The folder of a path as it is written, without a slash at its end; empty for a mere name.
  package static func folder(of path: String) -> String {
    guard let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")) else { return "" }
    return slash == path.startIndex ? "/" : String(path[..<slash])
  }
}

/// Starts a detached thread that is left out of signal delivery; the body ends it by returning.
///
/// The name has at most 15 characters and shows in debuggers and `top -H`.
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

/// Starts a thread as `startThread` does, for work that nobody can continue without.
///
/// Where the system has no thread left, one of libdispatch's pool does it.
package func startWorker(named name: String, _ body: @escaping @Sendable () -> Void) {
  do throws(SystemError) {
    try startThread(named: name, body)
  } catch {
    DispatchQueue.global().async(execute: body)
  }
}

/// A refusal of the operating system.
public struct SystemError: Error, Hashable, Sendable, CustomStringConvertible {
  /// What was asked for, in words: `open a UDP socket`, ...
  public var operation: String
  /// The positive errno value.
  public var code: Int32

  /// Creates an error from an errno value of either sign, as the C shims give it.
  public init(operation: String, code: Int32) {
    self.operation = operation
    self.code = code == .min ? .max : abs(code)
  }

  /// `cannot open a UDP socket: Too many open files`.
  public var description: String { "cannot \(operation): \(String(cString: strerror(code)))" }
}

/// Returns the descriptor or count of a C shim, or throws its negative errno.
@discardableResult
package func checked(_ operation: String, _ result: Int32) throws(SystemError) -> Int32 {
  guard result >= 0 else { throw SystemError(operation: operation, code: result) }
  return result
}
