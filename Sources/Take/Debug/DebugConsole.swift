import FoundationEssentials
import Replay
package import Wire

/// The commands of a debugging session: each takes a line and gives text, or JSON for programs.
package final class DebugConsole {
  /// What a command said.
  package struct Answer: Sendable {
    package var text = ""
    package var json = JSONText.object([])
    /// Whether nothing met the condition that was looked for.
    package var isUnmet = false
    /// Whether the session is to end.
    package var ends = false
    /// The step to open under another debugger.
    package var opensDebuggerAt: Int?
  }

  let session: DebugSession
  private(set) var breakpoints: [(number: Int, condition: StepCondition)] = []
  private var lastBreakpoint = 0
  var watched: [String] = []
  var marked: [(peer: UInt32, label: String, tree: SnapshotTree)] = []
  var markedAt = DebugPosition()

  package init(_ session: DebugSession) { self.session = session }

  /// The length of the take in seconds.
  package var duration: Double { Double(session.end.nanoseconds) / 1e9 }

  /// `12.345678 s, after step 1234`.
  package var place: String {
    let position = session.position
    guard position.step > 0 else { return "before step 1" }
    let seconds = decimal(Double(position.at.nanoseconds) / 1e9, 6)
    return "\(seconds) s, after step \(position.step)" + (position.isAtEnd ? ", the end" : "")
  }

  // MARK: Commands

  /// Executes a line; an empty one does nothing.
  package func execute(_ line: String) throws(DebugFailure) -> Answer {
    let words = line.split(separator: " ").map { String($0) }
    guard let name = words.first else { return Answer() }
    guard let command = DebugCommandName.find(name) else {
      let known = DebugCommandName.words
      throw .command("there is no command \"\(name)\"\(Nearest.hint(name, among: known))")
    }
    let rest = words.dropFirst().joined(separator: " ")
    guard command.takesMore || rest.isEmpty else {
      throw .command("\(command.rawValue) takes nothing more, not \"\(rest)\"")
    }
    guard command.walks else { return try look(command, rest) }
    return try session.returning { () throws(DebugFailure) -> Answer in
      switch command {
      case .seek: try seek(rest)
      case .next: try step(rest, forward: true)
      case .back: try step(rest, forward: false)
      case .diff: try diff(rest)
      default: try goOn()
      }
    }
  }

  /// Executes a command after which the session is where it was.
  private func look(_ command: DebugCommandName, _ rest: String) throws(DebugFailure) -> Answer {
    switch command {
    case .help: return try help(rest)
    case .quit: return Answer(ends: true)
    case .break: return try addBreakpoint(rest)
    case .delete: return try deleteBreakpoint(rest)
    case .show: return try show(rest)
    case .stats: return try stats(rest)
    case .steps: return try recent(rest)
    case .watch: return try watch(rest)
    case .mark: return try mark()
    case .frame, .audio: return try media(command, rest)
    case .lldb, .seek, .next, .back, .continue, .diff:
      return Answer(text: "", opensDebuggerAt: session.position.step + 1)
    }
  }

  func condition(_ text: String) throws(DebugFailure) -> StepCondition {
    let read: StepCondition
    do throws(ConditionError) {
      read = try StepCondition(text)
    } catch {
      throw .condition(error)
    }
    if let step = read.stepNumber, step > session.stepCount {
      throw .command("there is no step \(step): the take has \(counted(session.stepCount, "step"))")
    }
    if let time = read.instant, time > session.end {
      throw .command("\(text) is later than the end of the take, which is at \(duration) s")
    }
    return read
  }

  /// A count of steps; 1 when nothing is said.
  func count(_ text: String, of command: DebugCommandName, atMost limit: Int = .max)
    throws(DebugFailure) -> Int
  {
    guard let count = text.isEmpty ? 1 : Int(text), (1...limit).contains(count) else {
      let range = limit == .max ? "from 1 on" : "from 1 to \(limit)"
      throw .command("\(command.rawValue) takes a count \(range), not \(text)")
    }
    return count
  }

  // MARK: Moving

  private func seek(_ place: String) throws(DebugFailure) -> Answer {
    switch place {
    case "": throw .command("seek takes a place: start, end, 12.3s, step:120 or a condition")
    case "start": try session.seek(before: 1)
    case "end": try session.run(until: [])
    default:
      let wanted = try condition(place)
      guard try session.go(to: wanted) else {
        return try arrived("nothing in the take meets \"\(wanted)\"", isUnmet: true)
      }
    }
    return try arrived(nil)
  }

  private func step(_ what: String, forward: Bool) throws(DebugFailure) -> Answer {
    if what.isEmpty || Int(what) != nil {
      let count = try count(what, of: forward ? .next : .back)
      if forward {
        try session.run(steps: count)
      } else {
        try session.seek(before: session.position.step + 1 - min(count, session.position.step))
      }
      return try arrived(nil)
    }
    let wanted = try condition(what)
    if forward {
      let found = try session.goOn(to: wanted)
      return try arrived(found ? nil : "nothing later meets \"\(wanted)\"", isUnmet: !found)
    }
    let found = try session.goBack(to: wanted)
    return try arrived(found ? nil : "nothing earlier meets \"\(wanted)\"", isUnmet: !found)
  }

  private func goOn() throws(DebugFailure) -> Answer {
    let hit = try session.run(until: breakpoints.map(\.condition))
    let note = hit.map { "breakpoint \(breakpoints[$0].number): \(breakpoints[$0].condition)" }
    return try arrived(note)
  }

  /// Tells where the session is now, with the step that led there.
  private func arrived(_ note: String?, isUnmet: Bool = false) throws(DebugFailure) -> Answer {
    let steps = session.position.step > 0 ? try session.recentSteps(1) : []
    var lines = note.map { [$0] } ?? []
    lines += steps.last?.lines ?? []
    lines.append("at \(place)")
    var members: [(String, JSONText?)] = [
      ("step", .integer(session.position.step)),
      ("at_ns", .integer(session.position.at.nanoseconds)),
      ("at_end", .flag(session.position.isAtEnd)),
      ("note", note.map { .text($0) } ?? .null),
      ("last", steps.last.map { JSONText($0.json) } ?? .null),
    ]
    if let divergence = session.divergence {
      lines.append(divergence)
      members.append(("divergence", .text(divergence)))
    }
    if !watched.isEmpty {
      let values = try watchedValues()
      lines += values.map { "watch \($0.path): \($0.value)" }
      members.append(("watched", .object(values.map { ($0.path, .text($0.value)) })))
    }
    return Answer(
      text: lines.joined(separator: "\n"), json: .object(members), isUnmet: isUnmet)
  }

  // MARK: Breakpoints

  private func addBreakpoint(_ text: String) throws(DebugFailure) -> Answer {
    if !text.isEmpty {
      let condition = try condition(text)
      lastBreakpoint += 1
      breakpoints.append((lastBreakpoint, condition))
    }
    let lines = breakpoints.map { "\($0.number)  \($0.condition)" }
    let json = breakpoints.map {
      JSONText.object([
        ("number", .integer($0.number)), ("condition", .text($0.condition.description)),
      ])
    }
    return Answer(
      text: lines.isEmpty ? "no breakpoints" : lines.joined(separator: "\n"),
      json: .object([("breakpoints", .list(json))]))
  }

  private func deleteBreakpoint(_ text: String) throws(DebugFailure) -> Answer {
    if text.isEmpty {
      breakpoints = []
    } else {
      guard let number = Int(text), breakpoints.contains(where: { $0.number == number }) else {
        throw .command("there is no breakpoint \(text); break without more lists them")
      }
      breakpoints.removeAll { $0.number == number }
    }
    return try addBreakpoint("")
  }

  // MARK: Media

  private func media(_ command: DebugCommandName, _ text: String) throws(DebugFailure) -> Answer {
    let words = text.split(separator: " ").map { String($0) }
    guard let file = words.first, !file.contains("=") else {
      throw .command("\(command.rawValue) begins with the name of a file: \(command.usage)")
    }
    let choice = try TakeMedia.Choice(words.dropFirst(), for: command)
    let source = TakeMedia(path: session.path)
    let line =
      command == .frame
      ? try source.writeVideoFrame(file, choice, at: session.position.at)
      : try source.writeAudio(file, choice, around: session.position.at)
    return Answer(text: line, json: .object([("written", .text(line))]))
  }

  private func help(_ text: String) throws(DebugFailure) -> Answer {
    guard text.isEmpty || DebugCommandName.find(text) != nil else {
      throw .command("there is no command \"\(text)\"; help lists all")
    }
    return Answer(
      text: DebugCommandName.help(text),
      json: .object(DebugCommandName.allCases.map { ($0.rawValue, .text($0.summary)) }))
  }
}
