import Dispatch
import FoundationEssentials
import Glibc
import Replay
import Synchronization
import Wire

/// The standard streams.
///
/// All output goes through here, so that write errors are noticed and no control sequence in
/// recorded data reaches a terminal.
///
/// Non-printable characters are escaped (`PrintableText`), even in files and pipes, which are often
/// shown on terminals. Only this type creates control sequences, from `Ink`'s marks.
package enum Output {
  /// The kind of text, which determines how non-printable characters are escaped.
  enum Form: Sendable {
    /// Plain text, tables and CSV: `\u{1b}`.
    case text
    /// JSON, whose readers restore the character: `\u001b`.
    case json
  }

  /// Writes text to standard output immediately and completely.
  ///
  /// - Throws: a failure with status 74 if it cannot be written, or with status 0 and no message if
  ///   the reader closed the pipe, as `head` does.
  static func write(_ text: String, as form: Form = .text) throws(CommandFailure) {
    let plain =
      switch form {
      case .text: PrintableText.lines(text, mark: Terminal.standard.sequence)
      case .json: PrintableText.json(text)
      }
    guard let code = put(plain, into: STDOUT_FILENO) else { return }
    guard code != EPIPE else { throw CommandFailure.readerIsGone }
    throw CommandFailure(
      .inputOutput, "standard output cannot be written: \(String(cString: strerror(code)))")
  }

  /// Prints the result of a command whose exit status matters more than its output: the command
  /// continues even if the reader has closed the output.
  static func verdict(_ show: () throws -> Void) throws {
    do {
      try show()
    } catch let failure as CommandFailure where failure.status == .readerIsGone {}
  }

  package static func line(_ text: String) throws(CommandFailure) { try write(text + "\n") }

  /// Writes a JSON value in the common form, followed by a line feed.
  package static func json(_ text: String, in form: JSONForm) throws(CommandFailure) {
    try json(form.text(text))
  }

  /// Writes a JSON value followed by a line feed.
  static func json(_ text: String) throws(CommandFailure) { try write(text + "\n", as: .json) }

  /// Writes text to standard error, ignoring failures.
  static func writeError(_ text: String) { _ = put(PrintableText.lines(text), into: STDERR_FILENO) }

  /// Replaces the current line on standard error, which must be a terminal.
  ///
  /// Text that does not fit is cut, because wrapped lines could not be replaced.
  static func replaceLine(with text: String) {
    let columns = Terminal.errors.size?.columns ?? .max
    _ = put("\r\u{1b}[K" + PrintableText.line(text).prefix(columns - 1), into: STDERR_FILENO)
  }

  /// Turns broken pipes and file size limits into ordinary errors; opens closed standard streams so
  /// that later files do not take their place.
  static func prepare() {
    signal(SIGPIPE, SIG_IGN)
    signal(SIGXFSZ, SIG_IGN)
    for descriptor in STDIN_FILENO...STDERR_FILENO where fcntl(descriptor, F_GETFD) < 0 {
      // The new descriptor gets the lowest free number; writing to it fails because it is
      // read-only.
      _ = open("/dev/null", O_RDONLY)
    }
  }

  /// Writes a complete string; returns nil on success, or the errno value of the failure.
  private static func put(_ text: String, into descriptor: Int32) -> Int32? {
    var text = text
    return text.withUTF8 { bytes in
      var rest = UnsafeRawBufferPointer(bytes)
      while let base = rest.baseAddress, !rest.isEmpty {
        let count = Glibc.write(descriptor, base, rest.count)
        let code = count < 0 ? errno : 0
        if count > 0 {
          rest = UnsafeRawBufferPointer(rebasing: rest[count...])
        } else if code == EAGAIN {
          // Another process has made the terminal or pipe non-blocking.
          var ready = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
          poll(&ready, 1, -1)
        } else if code != EINTR {
          return code == 0 ? EIO : code
        }
      }
      return nil
    }
  }
}

/// Writes to standard output for closures that cannot throw.
final class OutputPieces: Sendable {
  private let form: Output.Form
  private let failure = Mutex<CommandFailure?>(nil)

  init(_ form: Output.Form = .text) { self.form = form }

  /// Whether output can still be written.
  var areWanted: Bool { failure.withLock { $0 == nil } }

  /// Writes a piece, unless an earlier one failed.
  func add(_ text: String) { try? write(text) }

  /// Writes a piece; if an earlier piece failed, throws its error instead.
  func write(_ text: String) throws(CommandFailure) {
    try failure.withLock { (failure: inout CommandFailure?) throws(CommandFailure) in
      if let failure { throw failure }
      do throws(CommandFailure) {
        try Output.write(text, as: form)
      } catch {
        failure = error
        throw error
      }
    }
  }

  /// Throws if a piece could not be written.
  func check() throws(CommandFailure) {
    if let failure = failure.withLock({ $0 }) { throw failure }
  }
}

/// Prints a line to standard error; line breaks in it are escaped, so that a name cannot imitate
/// another line.
package func printError(_ line: String) { Output.writeError(PrintableText.line(line) + "\n") }

/// Prints several lines to standard error; unlike in `printError`, line breaks stay.
func printErrors(_ lines: String) { Output.writeError(lines + "\n") }

// MARK: - Progress

/// A progress line on standard error for work that takes more than a second; silent unless standard
/// error is a terminal.
final class Progress: Sendable {
  private struct State {
    var shownAt: ContinuousClock.Instant?
    var hasLine = false
    var isOver = false
  }

  private let what: String
  private let seconds: Double?
  private let delay: Duration
  private let isVisible = isatty(STDERR_FILENO) != 0
  private let begin = ContinuousClock.now
  private let state = Mutex(State())

  /// How long work runs before the line appears.
  private static let usualDelay = Duration.seconds(1)
  /// The minimum interval between updates.
  private static let interval = Duration.milliseconds(100)

  /// Creates a progress line, optionally with an expected duration.
  init(_ what: String, seconds: Double? = nil, after delay: Duration = Progress.usualDelay) {
    self.what = what
    self.seconds = seconds
    self.delay = delay
  }

  /// Updates the line until the task is cancelled.
  func run(_ detail: @Sendable () -> String) async {
    while !Task.isCancelled {
      show("\(time), \(detail())")
      guard (try? await Task.sleep(for: .milliseconds(250))) != nil else { return }
    }
  }

  /// The elapsed time, as in `recording: 1.2 of 10 s`.
  private var time: String {
    let limit = seconds.map { " of \(decimal($0, 0))" } ?? ""
    return "\(what): \(decimal(begin.duration(to: .now).seconds, 1))\(limit) s"
  }

  /// Replaces the progress line, at most once per `interval` and only after `delay`.
  func show(_ text: @autoclosure () -> String) {
    guard isVisible else { return }
    let now = ContinuousClock.now
    guard now - begin >= delay else { return }
    state.withLock { state in
      guard !state.isOver, state.shownAt.map({ now - $0 >= Progress.interval }) ?? true else {
        return
      }
      state.shownAt = now
      state.hasLine = true
      Output.replaceLine(with: text())
    }
  }

  /// Removes the progress line; the next `show` may bring it back.
  func clear() {
    above {}
  }

  /// Removes the progress line; later calls of `show` do nothing.
  func end() {
    clear()
    state.withLock { $0.isOver = true }
  }

  /// Runs a body with the line removed, for example to print another line.
  func above(_ body: () -> Void) {
    state.withLock { state in
      if state.hasLine { Progress.clearLine() }
      state.hasLine = false
      body()
    }
  }

  /// Removes any progress line from the terminal.
  static func clearLine() {
    if isatty(STDERR_FILENO) != 0 { Output.replaceLine(with: "") }
  }

  // MARK: Timed work

  /// Runs work, updating the line with the elapsed time and details.
  func follow<Value>(
    telling detail: @escaping @Sendable () -> String = { "" }, _ work: () throws -> Value
  ) rethrows -> Value {
    guard isVisible else { return try work() }
    let timer = DispatchSource.makeTimerSource()
    timer.setEventHandler { [self] in
      let more = detail()
      show(time + (more.isEmpty ? "" : ", \(more)"))
    }
    timer.schedule(deadline: .now() + 1, repeating: .milliseconds(250))
    timer.activate()
    defer {
      timer.cancel()
      clear()
      state.withLock { $0.isOver = true }
    }
    return try work()
  }
}

extension Duration {
  /// The duration in seconds, with fractions.
  package var seconds: Double {
    Double(components.seconds) + Double(components.attoseconds) / 1e18
  }
}
