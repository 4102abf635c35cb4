import Replay
import Stats

/// A debugging session's commands, with their short forms and descriptions.
package enum DebugCommandName: String, CaseIterable, Sendable {
  case seek, next, back
  case `continue`
  case `break`
  case delete, show, stats, steps, watch, mark, diff, frame, audio, lldb, help, quit

  /// Finds a command by name, short form or unique prefix; returns nil if no single command
  /// matches.
  package static func find(_ word: String) -> DebugCommandName? {
    if let exact = DebugCommandName(rawValue: word) { return exact }
    if let short = shortForms.first(where: { $0.0 == word }) { return short.1 }
    let fitting = allCases.filter { $0.rawValue.hasPrefix(word) }
    return fitting.count == 1 ? fitting[0] : nil
  }

  private static let shortForms: [(String, DebugCommandName)] = [
    ("n", .next), ("b", .back), ("c", .continue), ("s", .show), ("q", .quit), ("previous", .back),
    ("prev", .back), ("exit", .quit), ("?", .help),
    // Former names of `frame` and `audio`.
    ("picture", .frame), ("sound", .audio),
  ]

  /// All names and short forms; the error for an unknown command suggests the most similar one.
  static var words: [String] { allCases.map(\.rawValue) + shortForms.map(\.0) }

  /// Whether the command may execute steps of the take, which can take seconds.
  var walks: Bool { [.seek, .next, .back, .continue, .diff].contains(self) }

  /// Whether the command accepts arguments.
  var takesMore: Bool { usage != rawValue }

  /// The command's syntax, as the help shows it.
  package var usage: String {
    switch self {
    case .seek: "seek start | end | 12.3s | step:120 | CONDITION"
    case .next: "next [COUNT | CONDITION]"
    case .back: "back [COUNT | CONDITION]"
    case .continue: "continue"
    case .break: "break [CONDITION]"
    case .delete: "delete [NUMBER]"
    case .show: "show [PEER] [PATH]"
    case .stats: "stats [TYPE]"
    case .steps: "steps [COUNT]"
    case .watch: "watch [PATH]"
    case .mark: "mark"
    case .diff: "diff [step:120 | 12.3s]"
    case .frame: "frame FILE.png [peer=1] [track=2]"
    case .audio: "audio FILE.wav [peer=1] [track=1] [seconds=2]"
    case .lldb: "lldb"
    case .help: "help [COMMAND]"
    case .quit: "quit"
    }
  }

  package var summary: String {
    switch self {
    case .seek: "go to a place, or to the first step of the take that matches a condition"
    case .next:
      "go forward by steps, or to the next step that matches a condition (packet, event, state)"
    case .back: "go back by steps, or to the last earlier step that matches a condition"
    case .continue: "continue to the next breakpoint or to the end"
    case .break: "set a breakpoint on a condition; without one, list the breakpoints"
    case .delete: "delete a breakpoint, or all of them"
    case .show: "print the state of the stack, or the part at a path; Tab lists the paths"
    case .stats: "print what getStats would return here"
    case .steps: "print the last steps"
    case .watch: "print the value at a path after every move; without a path, stop printing"
    case .mark: "remember this place for diff"
    case .diff: "show what changed since the mark, or between here and another place"
    case .frame: "write the video frame shown here as PNG (also: picture)"
    case .audio: "write the audio around this point as WAV (also: sound)"
    case .lldb: "open this place in lldb, just before the next step"
    case .help: "list the commands"
    case .quit: "end the session"
    }
  }

  /// Returns the usage of a command, or the list of all commands if the word names none.
  static func help(_ word: String) -> String {
    if let command = find(word) {
      return "\(command.usage)\n  \(command.summary)"
    }
    let width = allCases.map(\.usage.count).max() ?? 0
    let lines = allCases.map { command in
      command.usage + String(repeating: " ", count: width - command.usage.count + 2)
        + command.summary
    }
    return lines.joined(separator: "\n") + """


      A condition names rows of the take: a table, words, and field=value (!= < <= > >= ~):
        state ice-connection failed      packet rtcp pli         packet in rtp sequence>=100
        frame in video key               event refused           ssrc 301774210
        call createOffer                 message offer           stat freezeCount>0 kind=video
      """
  }
}

// MARK: - DebugCompletion

/// Completes the last word of an input line.
struct DebugCompletion {
  var breakpoints: [Int] = []
  /// Every peer's state; called only if the line needs it.
  var states: () -> [(peer: UInt32, label: String, tree: SnapshotTree)] = { [] }

  func words(of line: String) -> [String] {
    let words = line.split(separator: " ", omittingEmptySubsequences: false).map { String($0) }
    guard let last = words.last else { return [] }
    let before = words.dropLast().filter { !$0.isEmpty }
    var seen: Set<String> = []
    return choices(after: before, last).filter {
      $0.hasPrefix(last) && $0 != last && seen.insert($0).inserted
    }
  }

  private func choices(after words: [String], _ last: String) -> [String] {
    guard let first = words.first else { return DebugCommandName.allCases.map(\.rawValue) }
    let rest = Array(words.dropFirst())
    switch DebugCommandName.find(first) {
    case .seek?:
      return (rest.isEmpty ? ["start", "end"] : []) + StepCondition.completions(after: rest, last)
    case .next?, .back?, .break?: return StepCondition.completions(after: rest, last)
    case .diff? where rest.isEmpty: return ["step:"]
    case .show?, .watch?: return paths(after: rest, last)
    case .stats? where rest.isEmpty: return StatsMembers.types(with: []).sorted()
    case .delete? where rest.isEmpty: return breakpoints.map { String($0) }
    case .help? where rest.isEmpty: return DebugCommandName.allCases.map(\.rawValue)
    // Options are completed only after the file name, which is the first argument.
    case .frame? where !rest.isEmpty: return ["peer=", "track="]
    case .audio? where !rest.isEmpty: return ["peer=", "track=", "seconds="]
    default: return []
    }
  }

  /// Returns the peers and the paths in all their states or, if a peer is already named, the paths
  /// in its state.
  private func paths(after words: [String], _ last: String) -> [String] {
    guard words.count < 2 else { return [] }
    let states = states()
    guard let named = words.first else {
      return states.flatMap { ["\($0.peer)", $0.label] + $0.tree.paths(below: last) }
        .filter { !$0.isEmpty && !$0.contains(" ") }
    }
    return states.filter { "\($0.peer)" == named || $0.label == named }
      .flatMap { $0.tree.paths(below: last) }
  }
}

extension DebugConsole {
  /// Returns the completions of a line's last word.
  package func completions(of line: String) -> [String] {
    let session = session
    return DebugCompletion(
      breakpoints: breakpoints.map(\.number), states: { (try? session.states()) ?? [] }
    ).words(of: line)
  }
}

/// Formats nanoseconds in seconds with three decimals.
func seconds(_ nanoseconds: Int64) -> String { decimal(Double(nanoseconds) / 1e9, 3) }
