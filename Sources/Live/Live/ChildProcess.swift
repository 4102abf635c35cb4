import CProcess
import Dispatch
import Glibc
import Synchronization
package import Tape

/// A child process, started by its initialiser and reaped by a thread so that no zombie remains.
///
/// It has the three standard streams and no other descriptor, no blocked or ignored signals, and
/// its own process group, so its parent must pass on an interrupt from the terminal.
package final class ChildProcess: Sendable {
  /// What a standard stream is connected to.
  package enum Stream: Sendable {
    /// `/dev/null`.
    case nothing
    /// The same stream as in this process.
    case inherited
    case pipe(FileDescriptor)
  }

  /// How the process ended.
  package enum Ending: Hashable, Sendable {
    case exited(status: Int32)
    case killed(signal: Int32)

    /// The exit status; nil if a signal ended the process.
    package var status: Int32? {
      guard case .exited(let status) = self else { return nil }
      return status
    }
  }

  package let identifier: Int32
  private let ending = Mutex<Ending?>(nil)
  private let running = DispatchGroup()

  /// Starts a program.
  /// - Parameters:
  ///   - program: an executable's path.
  ///   - arguments: without the program's name.
  ///   - environment: replaces this process's environment; nil to inherit it.
  ///   - whenEnded: called once, on another thread.
  /// - Throws: `SystemError` if the program cannot be started.
  package init(
    _ program: String, _ arguments: [String] = [], environment: [String: String]? = nil,
    input: Stream = .nothing, output: Stream = .inherited, errors: Stream = .inherited,
    whenEnded: (@Sendable (Ending) -> Void)? = nil
  ) throws(SystemError) {
    let words = Self.copies([program] + arguments)
    defer { words.forEach { free($0) } }
    let variables = environment.map { Self.copies($0.map { "\($0)=\($1)" }.sorted()) }
    defer { variables?.forEach { free($0) } }
    let streams = [input, output, errors].enumerated().map { number, stream in
      switch stream {
      case .nothing: Int32(-1)
      case .inherited: Int32(number)
      case .pipe(let end): end.number
      }
    }
    // Keep the pipe ends open until the child has them.
    let code = withExtendedLifetime([input, output, errors]) {
      if let variables {
        cprocess_spawn(program, words + [nil], variables + [nil], streams)
      } else {
        cprocess_spawn(program, words + [nil], nil, streams)
      }
    }
    identifier = try checked("start \(program)", code)
    running.enter()
    startWorker(named: "child") { [self] in
      let ending = awaitEnding()
      running.leave()
      whenEnded?(ending)
    }
  }

  /// Kills the process (SIGKILL).
  package func end() {
    ending.withLock { if $0 == nil { kill(identifier, SIGKILL) } }
  }

  /// Asks the process to end (SIGTERM).
  package func terminate() {
    ending.withLock { if $0 == nil { kill(identifier, SIGTERM) } }
  }

  /// Blocks until the process has ended; returns its exit status, or the signal that killed it.
  @discardableResult
  package func waitUntilExit() -> Ending {
    running.wait()
    return ending.withLock { $0 } ?? .exited(status: 0)
  }

  private func awaitEnding() -> Ending {
    var information = siginfo_t()
    // Wait without reaping: the identifier must stay valid while `end` may send a signal.
    while waitid(P_PID, id_t(identifier), &information, WEXITED | WNOWAIT) < 0, errno == EINTR {}
    return ending.withLock { ending in
      var status: Int32 = 0
      while waitpid(identifier, &status, 0) < 0, errno == EINTR {}
      // A status has the same layout on all of Linux (wait(2)); Swift cannot import the macros.
      let signal = status & 0x7f
      let result: Ending =
        signal == 0 ? .exited(status: status >> 8 & 0xff) : .killed(signal: signal)
      ending = result
      return result
    }
  }

  private static func copies(_ texts: [String]) -> [UnsafeMutablePointer<CChar>?] {
    texts.map { strdup($0) }
  }
}

/// A pipe between this process and a child.
package struct ChildPipe {
  package let reading: FileDescriptor
  package let writing: FileDescriptor

  /// - Throws: `SystemError` if there is no descriptor left.
  package init() throws(SystemError) {
    var ends: [Int32] = [-1, -1]
    try checked("make a pipe", cprocess_pipe(&ends))
    (reading, writing) = (FileDescriptor(ends[0]), FileDescriptor(ends[1]))
  }

  /// Closes the child's end in this process, so that reading ends when the child ends.
  package func closeWriting() { writing.close() }

  /// Closes the child's reading end in this process.
  package func closeReading() { reading.close() }

  /// Reads until the child has closed its end or has written `maximum` bytes.
  package func readAll(atMost maximum: Int) -> String {
    var bytes: [UInt8] = []
    while bytes.count < maximum {
      let more = reading.read(atMost: 1 << 16)
      if more.isEmpty { break }
      bytes += more
    }
    return String(decoding: bytes, as: UTF8.self)
  }

  /// Reads until the child has closed its end, and returns the last bytes.
  package func readLast(_ count: Int) -> String {
    var bytes: [UInt8] = []
    while true {
      let more = reading.read(atMost: 1 << 12)
      if more.isEmpty { return String(decoding: bytes, as: UTF8.self) }
      bytes = (bytes + more).suffix(count)
    }
  }
}

/// Memory that this process has freed but not returned to the system.
public enum ProcessMemory {
  /// Returns free memory to the system.
  ///
  /// The C library keeps freed memory in the threads' arenas, so a recorder that once had many
  /// calls would still use as much memory as it did then.
  public static func trim() { cprocess_memory_trim() }
}

/// The process's limit on open file descriptors.
public enum DescriptorLimit {
  /// Raises the limit to the maximum that the system permits, and returns it.
  ///
  /// The default is 1,024 because `select` cannot handle more; nothing here uses `select`.
  @discardableResult
  public static func raise() -> Int {
    var limit = rlimit()
    let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
    guard getrlimit(resource, &limit) == 0 else { return 0 }
    let before = limit.rlim_cur
    limit.rlim_cur = limit.rlim_max
    if setrlimit(resource, &limit) != 0 { limit.rlim_cur = before }
    return Int(min(limit.rlim_cur, rlim_t(Int32.max)))
  }

  /// Returns how many more descriptors the process may open, up to `maximum`.
  package static func spare(upTo maximum: Int) -> Int {
    var limit = rlimit()
    guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else {
      return maximum
    }
    var count = 0
    var descriptor: Int32 = 0
    while count < maximum, descriptor < min(limit.rlim_cur, rlim_t(Int32.max)) {
      if fcntl(descriptor, F_GETFD) < 0 { count += 1 }
      descriptor += 1
    }
    return count
  }
}
