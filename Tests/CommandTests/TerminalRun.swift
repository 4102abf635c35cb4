import Foundation
import Synchronization
import Testing

/// A running command in a terminal of its own, with simulated typing and reading.
final class TerminalRun: Sendable {
  private let master: Int32
  private let child: pid_t
  /// The terminal's output, and whether it has ended.
  private final class Shown: Sendable {
    let bytes = Mutex<[UInt8]>([])
    let reaction = Mutex<Reaction?>(nil)
    let isOver = Mutex(false)
  }

  /// Keys to type as soon as certain text is shown.
  private struct Reaction {
    /// The text must appear after this many bytes of output.
    var start: Int
    var wanted: [UInt8]
    var keys: [UInt8]
  }

  private let shown = Shown()
  private let status = Mutex<Int32?>(nil)
  // Linux's TIOCSPTLCK and TIOCGPTN, and glibc's POSIX_SPAWN_SETSID, which Swift does not import.
  private static let unlock: UInt = 0x4004_5431
  private static let tellNumber: UInt = 0x8004_5430
  private static let newSession: Int16 = 0x80

  /// How long a test waits for output, far longer than any command needs, even on a busy machine.
  private static let limit = Duration.seconds(120)

  init(
    _ arguments: [String], columns: UInt16 = 80, rows: UInt16 = 24,
    environment: [String: String] = [:], through other: [String] = []
  ) throws {
    master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC)
    var (unlocked, number): (Int32, Int32) = (0, 0)
    try #require(
      master >= 0 && ioctl(master, Self.unlock, &unlocked) == 0
        && ioctl(master, Self.tellNumber, &number) == 0)
    let name = "/dev/pts/\(number)"
    var size = winsize(ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0)
    try #require(ioctl(master, UInt(TIOCSWINSZ), &size) == 0)
    // The first terminal that a new session opens becomes its controlling terminal.
    var attributes = posix_spawnattr_t()
    posix_spawnattr_init(&attributes)
    var usual = sigset_t()
    sigemptyset(&usual)
    for number in [SIGINT, SIGHUP, SIGPIPE] { sigaddset(&usual, number) }
    posix_spawnattr_setsigdefault(&attributes, &usual)
    // The test threads block signals, and a new process would inherit their mask.
    var blocked = sigset_t()
    sigemptyset(&blocked)
    posix_spawnattr_setsigmask(&attributes, &blocked)
    posix_spawnattr_setflags(
      &attributes,
      Self.newSession | Int16(POSIX_SPAWN_SETSIGDEF) | Int16(POSIX_SPAWN_SETSIGMASK))
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, name, O_RDWR, 0)
    for descriptor in [STDOUT_FILENO, STDERR_FILENO] {
      posix_spawn_file_actions_adddup2(&actions, STDIN_FILENO, descriptor)
    }
    var variables = ProcessInfo.processInfo.environment
    for name in ["NO_COLOR", "PAGER", "LESS"] { variables[name] = nil }
    variables["TERM"] = "xterm"
    variables.merge(environment) { $1 }
    let line = other + [Tool.path] + arguments
    let words = line.map { strdup($0) }
    let settings = variables.map { strdup("\($0.key)=\($0.value)") }
    defer { for word in words + settings { free(word) } }
    var child: pid_t = 0
    let code = posix_spawnp(
      &child, line[0], &actions, &attributes, words + [nil], settings + [nil])
    posix_spawn_file_actions_destroy(&actions)
    posix_spawnattr_destroy(&attributes)
    try #require(code == 0)
    self.child = child
    let (shown, master) = (shown, master)
    // The other end is closed once the command and its children are gone.
    Thread.detachNewThread {
      var bytes = [UInt8](repeating: 0, count: 65_536)
      while true {
        let count = Glibc.read(master, &bytes, bytes.count)
        guard count > 0 else { break }
        let piece = bytes[..<count]
        // A character may arrive in two pieces.
        let all = shown.bytes.withLock {
          $0 += piece
          return $0
        }
        let keys = shown.reaction.withLock { reaction -> [UInt8] in
          guard let wanted = reaction, all[wanted.start...].contains(wanted.wanted) else {
            return []
          }
          reaction = nil
          return wanted.keys
        }
        if !keys.isEmpty { _ = write(master, keys, keys.count) }
      }
      shown.isOver.withLock { $0 = true }
    }
  }

  deinit {
    if status.withLock({ $0 }) == nil {
      kill(child, SIGKILL)
      waitpid(child, nil, 0)
    }
    close(master)
  }

  /// The terminal's output so far.
  var screen: String { String(decoding: shown.bytes.withLock { $0 }, as: UTF8.self) }

  /// Waits until the terminal shows `wanted` after the first `start` characters.
  func wait(for wanted: String, after start: Int = 0) async throws {
    try await poll("\(wanted) in \(screen.suffix(2_000))", within: TerminalRun.limit) {
      screen.dropFirst(start).contains(wanted)
    }
  }

  /// Types `words`; returns the number of characters on the screen beforehand.
  @discardableResult
  func type(_ words: String) -> Int {
    let before = screen.count
    let bytes = Array(words.utf8)
    var sent = 0
    while sent < bytes.count {
      let count = write(master, Array(bytes[sent...]), bytes.count - sent)
      guard count > 0 else { break }
      sent += count
    }
    return before
  }

  /// Types `words`, and presses `keys` as soon as `wanted` is shown.
  ///
  /// The reader thread presses the keys, because other tests may delay the calling thread for
  /// longer than the command runs.
  func type(_ words: String, whenShown wanted: String, press keys: String) -> Int {
    let start = shown.bytes.withLock { $0.count }
    shown.reaction.withLock {
      $0 = Reaction(start: start, wanted: Array(wanted.utf8), keys: Array(keys.utf8))
    }
    return type(words)
  }

  /// Types `words`, and waits until `answer` is shown.
  func type(_ words: String, until answer: String) async throws {
    try await wait(for: answer, after: type(words))
  }

  func send(_ signal: Int32) { kill(child, signal) }

  /// Waits for the command to exit, pressing keys until then; returns the exit status, or minus the
  /// signal that ended it.
  func end(pressing keys: String = "") async throws -> Int32 {
    try await poll("the end, after \(screen.suffix(2_000))", within: TerminalRun.limit) {
      if status.withLock({ $0 }) != nil { return true }
      if !keys.isEmpty { type(keys) }
      var word: Int32 = 0
      guard waitpid(child, &word, WNOHANG) == child else { return false }
      status.withLock { $0 = word & 0x7f == 0 ? (word >> 8) & 0xff : -(word & 0x7f) }
      return true
    }
    // The terminal may deliver the command's last output after the command has exited.
    try await poll("the last words") { shown.isOver.withLock { $0 } }
    return try #require(status.withLock { $0 })
  }
}

extension String {
  /// The lines that a terminal would show at the end; each progress line is overwritten by the
  /// next.
  var terminalLines: [String] {
    replacing("\r\n", with: "\n").split(separator: "\n", omittingEmptySubsequences: false)
      .map { $0.components(separatedBy: "\r\u{1b}[K").last ?? "" }
  }
}
