import ArgumentParser
import Debug
import FoundationEssentials
import Glibc
import Replay
import Tape
import Wire

/// Walks through a take forward and backward.
struct DebugCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "debug",
    abstract: "Walk through a take forward and backward and look into the stack anywhere.",
    discussion: """
      The stack runs from the take step by step. Commands come from --command, from standard \
      input, or from the terminal: with history (Ctrl-R searches that of earlier sessions too), \
      completion by the Tab key, Enter to repeat a command and Ctrl-C to leave one; "help" lists \
      them. Going back is quick: the session keeps copies of the replaying process as checkpoints.

      Examples:
        retake debug call.take
        retake debug call.take -c 'seek 12.3s' -c 'show 1 flow.receiving[1]'
        retake debug call.take -c 'seek state ice-connection failed' -c 'back packet in stun'
        echo 'next packet rtcp pli' | retake debug call.take --json
      """)

  @OptionGroup var options: TakeOptions

  @Option(
    name: [.customShort("c"), .long], help: "A command; may be given several times.",
    transform: Taking.text())
  var command: [String] = []

  func run() throws {
    noteEndings(of: options.take)
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
    // What was looked for and not found was said by then.
    if unmet { throw CommandFailure(.unmet, "") }
  }

  /// Executes a line of a script, whose first failure ends it.
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

  /// Talks with a person: a failure is told, and the session continues.
  private func talk(_ session: DebugSession, _ console: DebugConsole, _ progress: Progress) throws {
    try Output.line(
      "\(options.take): \(decimal(console.duration, 3)) s; help lists the commands")
    let editor = LineEditor { console.completions(of: $0) }
    Interruption.notice()
    session.isInterrupted = { Interruption.isAsked }
    var last = ""
    while true {
      let line: String
      // Not after the line: Ctrl-C may come as soon as that is entered.
      Interruption.forget()
      switch editor.readLine(prompt: "(\(console.place)) ") {
      case .end: return try Output.line("")
      case .cancelled: continue
      case .text(let text): line = text
      }
      // An empty line repeats, as in other debuggers.
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

/// Runs something of a session, or fails with one sentence and the right status.
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
