import ArgumentParser
import CEdit
import CProcess
import Debug
import FoundationEssentials
import Glibc
import Live
import Replay
import Tape
import Wire

/// Steps through a take in both directions.
struct DebugCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "debug",
    abstract: "Step through a take forward and backward, and inspect the stack anywhere.",
    discussion: """
      The stack runs from the take step by step. Commands come from --command, from standard \
      input, or from the terminal, with history (Ctrl-R also searches earlier sessions) and Tab \
      completion; Enter repeats the last command, Ctrl-C cancels one, and "help" lists them. Going \
      back is quick: the session keeps copies of the replaying process as checkpoints.

      Examples:
        retake debug call.take
        retake debug call.take -c 'seek 12.3s' -c 'show 1 flow.receiving[1]'
        retake debug call.take -c 'seek state ice-connection failed' \\
          -c 'back packet in stun'
        echo 'next packet rtcp pli' | retake debug call.take --json
      """)

  @OptionGroup var options: TakeOptions

  @Option(
    name: [.customShort("c"), .long], help: "A command; may be given several times.",
    transform: Taking.text())
  var command: [String] = []

  func run() throws {
    reportEndings(of: options.take)
    let progress = Progress("replaying")
    let session = try debugging {
      () throws(DebugFailure) in
      try DebugSession(path: options.take) { at in
        progress.show("replaying: \(decimal(Double(at.nanoseconds) / 1e9, 1)) s")
      }
    }
    let console = DebugConsole(session)
    var unmet = false
    if !command.isEmpty {
      for line in command {
        let answer = try answer(line, console, progress)
        unmet = unmet || answer.isUnmet
        if answer.ends { break }
      }
    } else if isatty(STDIN_FILENO) != 0, isatty(STDOUT_FILENO) != 0 {
      try talk(session, console, progress)
    } else {
      while let line = readLine() {
        let answer = try answer(line, console, progress)
        unmet = unmet || answer.isUnmet
        if answer.ends { break }
      }
    }
    // The unmet condition has already been reported.
    if unmet { throw CommandFailure(.unmet, "") }
  }

  /// Executes a line of a script; a failure ends the script.
  private func answer(
    _ line: String, _ console: DebugConsole, _ progress: Progress
  ) throws -> DebugConsole.Answer {
    let answer = try debugging { () throws(DebugFailure) in try console.execute(line) }
    progress.clear()
    if let step = answer.opensDebuggerAt {
      try NativeDebugger(take: options.take).open(before: "step:\(step)")
    }
    if options.json {
      try Output.json(SecretText.hidden(in: answer.json.text))
    } else if !answer.text.isEmpty {
      try Output.line(SecretText.hidden(in: answer.text))
    }
    return answer
  }

  /// Runs an interactive session: failures are reported, and the session continues.
  private func talk(_ session: DebugSession, _ console: DebugConsole, _ progress: Progress) throws {
    try Output.line(
      "\(options.take): \(decimal(console.duration, 3)) s; help lists the commands")
    let editor = LineEditor { console.completions(of: $0) }
    Interruption.notice()
    session.isInterrupted = { Interruption.isAsked }
    var last = ""
    while true {
      let line: String
      // Forget an earlier Ctrl-C before prompting; doing so later might lose a new one.
      Interruption.forget()
      switch editor.readLine(prompt: "(\(console.place)) ") {
      case .end: return try Output.line("")
      case .cancelled: continue
      case .text(let text): line = text
      }
      // An empty line repeats the last command, as in other debuggers.
      let wanted = line.isEmpty ? last : line
      editor.remember(line)
      last = wanted
      do {
        let answer = try console.execute(wanted)
        progress.clear()
        if answer.ends { return }
        if let step = answer.opensDebuggerAt {
          try NativeDebugger(take: options.take).open(before: "step:\(step)")
        }
        if !answer.text.isEmpty { try Output.line(SecretText.hidden(in: answer.text)) }
      } catch let failure as DebugFailure {
        progress.clear()
        if case .interrupted = failure {
          try Output.line("interrupted; still at \(console.place)")
        } else {
          try Output.line(failure.description)
        }
      }
    }
  }
}

/// Runs part of a session, converting errors to command failures.
func debugging<Value>(_ body: () throws(DebugFailure) -> Value) throws -> Value {
  do throws(DebugFailure) {
    return try body()
  } catch {
    switch error {
    case .take(let error): throw CommandFailure(error)
    case .condition, .command: throw CommandFailure(.usage, error.description)
    case .walk, .file: throw CommandFailure(.inputOutput, error.description)
    case .interrupted: throw CommandFailure(.interrupted, error.description)
    }
  }
}

// MARK: - LineEditor

/// Reads lines from a terminal with libedit's editing, history and completion.
///
/// It is created after the session: the processes that execute the take are forked earlier, so none
/// of them inherits the terminal's settings or buffers.
final class LineEditor {
  /// The result of reading a line.
  enum Line: Equatable {
    case text(String)
    /// The user pressed Ctrl-C.
    case cancelled
    /// The user pressed Ctrl-D, or the terminal was closed.
    case end
  }

  private let history: OpaquePointer?
  private var editor: OpaquePointer?
  private let historyFile: String?
  private let complete: (String) -> [String]
  private var prompt: UnsafeMutablePointer<CChar>?
  private var isCancelled = false

  /// The maximum number of lines in the history, and of completions to list.
  private static let historyMaximum: Int32 = 1_000
  private static let listedMaximum = 100

  /// - Parameter complete: returns a line's completions.
  init(history path: String? = LineEditor.usualHistory, complete: @escaping (String) -> [String]) {
    self.complete = complete
    historyFile = path
    history = history_init()
    // With the user's locale, libedit counts a multi-byte character as one character.
    setlocale(LC_CTYPE, "")
    guard let history else { return }
    _ = cedit_limit(history, LineEditor.historyMaximum)
    if let path { _ = cedit_load(history, path) }
    editor = cedit_open(
      history, Unmanaged.passUnretained(self).toOpaque(), { LineEditor.owner(of: $0)?.prompt },
      { editor, _ in LineEditor.owner(of: editor)?.offer() ?? UInt8(CC_ERROR) },
      { editor, _ in LineEditor.owner(of: editor)?.cancel() ?? UInt8(CC_ERROR) })
  }

  deinit {
    if let editor { el_end(editor) }
    if let history { history_end(history) }
    free(prompt)
  }

  private static func owner(of editor: OpaquePointer?) -> LineEditor? {
    guard let editor, let owner = cedit_owner(editor) else { return nil }
    return Unmanaged<LineEditor>.fromOpaque(owner).takeUnretainedValue()
  }

  func readLine(prompt text: String) -> Line {
    guard let editor else { return Swift.readLine().map { .text($0) } ?? .end }
    free(prompt)
    prompt = strdup(PrintableText.line(text))
    isCancelled = false
    var count: Int32 = 0
    guard let line = cedit_line(editor, &count) else { return isCancelled ? .cancelled : .end }
    let words = String(cString: line).trimmed
    return .text(words)
  }

  // MARK: History

  /// The path of `debug_history` in the XDG Base Directory Specification's state folder; nil
  /// without a home directory.
  static var usualHistory: String? {
    let environment = ProcessInfo.processInfo.environment
    if let folder = environment["XDG_STATE_HOME"], folder.hasPrefix("/") {
      return folder + "/retake/debug_history"
    }
    guard let home = environment["HOME"], home.hasPrefix("/") else { return nil }
    return home + "/.local/state/retake/debug_history"
  }

  /// Adds a line to the persistent history, if it is writable.
  func remember(_ line: String) {
    guard let history, !line.isEmpty else { return }
    _ = cedit_remember(history, line)
    guard let path = historyFile else { return }
    let folder = URL(fileURLWithPath: path).deletingLastPathComponent().path
    try? FileManager.default.createDirectory(
      atPath: folder, withIntermediateDirectories: true,
      attributes: [.posixPermissions: 0o700])
    // The history contains peers' and files' names, so it is private.
    let descriptor = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { return }
    fchmod(descriptor, 0o600)
    close(descriptor)
    _ = cedit_save(history, path)
  }

  // MARK: Keys

  /// Handles Ctrl-C: abandons the line and starts another.
  private func cancel() -> UInt8 {
    isCancelled = true
    cedit_print(editor, "^C\n")
    cedit_clear(editor)
    return UInt8(CC_NEWLINE)
  }

  /// Handles the tab key: completes as far as possible, or else lists the choices.
  private func offer() -> UInt8 {
    guard let info = el_line(editor)?.pointee, let start = info.buffer, let cursor = info.cursor
    else { return UInt8(CC_ERROR) }
    let bytes = UnsafeRawBufferPointer(start: start, count: cursor - start)
    let line = String(decoding: bytes, as: UTF8.self)
    let last = line.split(separator: " ", omittingEmptySubsequences: false).last ?? ""
    let choices = complete(line)
    guard let first = choices.first else { return UInt8(CC_ERROR) }
    let common = choices.dropFirst().reduce(first) { common, choice in
      String(zip(common, choice).prefix { $0 == $1 }.map(\.0))
    }
    var more = String(common.dropFirst(last.count))
    if choices.count == 1, !":=>".contains(first.last ?? "=") { more += " " }
    if !more.isEmpty {
      return el_insertstr(editor, more) == 0 ? UInt8(CC_REFRESH) : UInt8(CC_ERROR)
    }
    list(choices)
    return UInt8(CC_REDISPLAY)
  }

  /// Lists choices in columns below the line.
  private func list(_ choices: [String]) {
    let shown = choices.prefix(LineEditor.listedMaximum).map(PrintableText.line)
    let width = (shown.map(\.count).max() ?? 0) + 2
    let columns = max(1, (Terminal.standard.size?.columns ?? 80) / width)
    var text = "\n"
    for (index, choice) in shown.enumerated() {
      let isLast = index % columns == columns - 1 || index == shown.count - 1
      text += choice + (isLast ? "\n" : String(repeating: " ", count: width - choice.count))
    }
    if choices.count > shown.count { text += "and \(choices.count - shown.count) more\n" }
    cedit_print(editor, text)
  }
}

// MARK: - NativeDebugger

/// Opens a replay in lldb (or gdb if lldb does not start), stopped just before a step.
struct NativeDebugger {
  let take: String
  /// Further options of the replay.
  var options: [String] = []

  /// Replaces this process with the debugger; returns only by throwing.
  func open(before condition: String) throws -> Never {
    let own = (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")) ?? ""
    let replay = [own, "replay", take, "--until", condition, "--stop-here"] + options
    // Restore the default, which the debugger and its child expect.
    signal(SIGPIPE, SIG_DFL)
    let stop = "cprocess_stop_here"
    if starts("lldb") {
      execute(["lldb", "-o", "breakpoint set --name \(stop)", "-o", "run", "--"] + replay)
    }
    if starts("gdb") {
      // Silence gdb's complaints about Swift modules.
      let quiet = ["-q", "-iex", "set complaints 0"]
      execute(["gdb"] + quiet + ["-ex", "break \(stop)", "-ex", "run", "--args"] + replay)
    }
    throw CommandFailure(
      .inputOutput,
      "neither lldb nor gdb can be started; install one of them, or run "
        + "\(replay.map(ShellText.word).joined(separator: " ")) under another debugger with a "
        + "breakpoint on \(stop)")
  }

  /// Returns whether a debugger is installed and starts; it does not start if a library is missing.
  private func starts(_ name: String) -> Bool {
    let process = try? ChildProcess(
      "/usr/bin/env", [name, "--version"], output: .nothing, errors: .nothing)
    return process?.waitUntilExit().status == 0
  }

  private func execute(_ arguments: [String]) {
    var pointers = arguments.map { strdup($0) } + [nil]
    pointers.withUnsafeMutableBufferPointer { list in
      if let first = list.first, let program = first, let base = list.baseAddress {
        _ = cprocess_execute(program, base)
      }
    }
    for pointer in pointers { free(pointer) }
  }
}
