import Dispatch
import FoundationEssentials
import Glibc
import Replay
import Synchronization
import Wire

/// The standard streams: all that a command says goes through here, so that nothing gets lost
/// without a word, and so that nothing of what others wrote reaches a terminal as a command.
///
/// Text is written with what has no shape escaped (`PrintableText`), also into files and pipes, of
/// which terminals show what comes through. Control sequences are made here alone, of the marks of
/// `Ink`.
package enum Output {
  /// What a text is, which says how characters without a shape are escaped in it.
  enum Form: Sendable {
    /// Text for people, tables, and comma-separated values: `\u{1b}`.
    case text
    /// JSON, whose readers get the character back: `\u001b`.
    case json
  }

  /// Writes text to standard output at once, all of it.
  ///
  /// - Throws: a failure with status 74 where it cannot be written, and one without words and with
  ///   status 0 when the reader of a pipe went away, as `head` does when it has enough.
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

  /// Prints a result whose status says more than its words: also when nobody reads them, the
  /// command goes on to that.
  static func verdict(_ show: () throws -> Void) throws {
    do {
      try show()
    } catch let failure as CommandFailure where failure.status == .readerIsGone {}
  }

  /// Writes a line to standard output.
  package static func line(_ text: String) throws(CommandFailure) { try write(text + "\n") }

  /// Writes a value of JSON in the form of all verbs to standard output, and ends the line.
  package static func json(_ text: String, in form: JSONForm) throws(CommandFailure) {
    try json(form.text(text))
  }

  /// Writes a value of JSON to standard output, and ends the line.
  static func json(_ text: String) throws(CommandFailure) { try write(text + "\n", as: .json) }

  /// Writes text to standard error; where that fails, there is nobody left to tell.
  static func writeError(_ text: String) { _ = put(PrintableText.lines(text), into: STDERR_FILENO) }

  /// Puts a text in the place of the line on standard error, which has to be a terminal.
  static func replaceLine(with text: String) {
    _ = put("\r\u{1b}[K" + PrintableText.line(text), into: STDERR_FILENO)
  }

  /// Lets a pipe that nobody reads, and a limit on the size of files, be errors like others; keeps
  /// files that are opened later from taking the place of a standard stream that was closed.
  static func prepare() {
    signal(SIGPIPE, SIG_IGN)
    signal(SIGXFSZ, SIG_IGN)
    for descriptor in STDIN_FILENO...STDERR_FILENO where fcntl(descriptor, F_GETFD) < 0 {
      // The lowest free number is this one; writing to what is open for reading fails.
      _ = open("/dev/null", O_RDONLY)
    }
  }

  /// Writes all of a text; returns the system's error number when it cannot.
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
          // Somebody else made the terminal or pipe answer at once.
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

/// Text for standard output that comes from somewhere that cannot fail with it.
final class OutputPieces: Sendable {
  private let form: Output.Form
  private let failure = Mutex<CommandFailure?>(nil)

  init(_ form: Output.Form = .text) { self.form = form }

  /// Whether more can be written.
  var areWanted: Bool { failure.withLock { $0 == nil } }

  /// Writes a piece, unless an earlier one could not be written.
  func take(_ text: String) { try? write(text) }

  /// Writes a piece, unless an earlier one could not be written.
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

  /// Fails when a piece could not be written.
  func check() throws(CommandFailure) {
    if let failure = failure.withLock({ $0 }) { throw failure }
  }
}

/// Prints a line to standard error; line ends in it are escaped, so that a name cannot pretend to
/// be a line of its own.
package func printError(_ line: String) { Output.writeError(PrintableText.line(line) + "\n") }

/// Prints lines to standard error.
func printErrors(_ lines: String) { Output.writeError(lines + "\n") }

// MARK: - Progress

/// A line on standard error that follows work once it has taken a second; silent when nobody
/// watches.
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

  /// Work that is over by then needs no line.
  private static let usualDelay = Duration.seconds(1)
  /// The eye follows no faster.
  private static let interval = Duration.milliseconds(100)

  /// Creates the line of some work, which may be known to take so many seconds.
  init(_ what: String, seconds: Double? = nil, after delay: Duration = Progress.usualDelay) {
    self.what = what
    self.seconds = seconds
    self.delay = delay
  }

  /// Shows the line four times a second until the task is cancelled.
  func run(_ detail: @Sendable () -> String) async {
    while !Task.isCancelled {
      show("\(time), \(detail())")
      guard (try? await Task.sleep(for: .milliseconds(250))) != nil else { return }
    }
  }

  /// `recording: 1.2 of 10 s`.
  private var time: String {
    let limit = seconds.map { " of \(decimal($0, 0))" } ?? ""
    return "\(what): \(decimal(begin.duration(to: .now).seconds, 1))\(limit) s"
  }

  /// Shows a line in place of the last one.
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

  /// Removes the line.
  func clear() {
    above {}
  }

  /// Removes the line for good.
  func end() {
    clear()
    state.withLock { $0.isOver = true }
  }

  /// Does something for which the line has to be away, such as printing another.
  func above(_ body: () -> Void) {
    state.withLock { state in
      if state.hasLine { Progress.clearLine() }
      state.hasLine = false
      body()
    }
  }

  /// Removes whatever line stands on the terminal.
  static func clearLine() {
    if isatty(STDERR_FILENO) != 0 { Output.replaceLine(with: "") }
  }

  // MARK: Work that tells nothing

  /// Does some work, and shows how long it has taken and more.
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
  /// The duration in seconds.
  package var seconds: Double {
    Double(components.seconds) + Double(components.attoseconds) / 1e18
  }
}
