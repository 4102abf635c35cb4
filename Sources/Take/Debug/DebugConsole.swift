import FoundationEssentials
import Replay
package import Wire

/// Executes the commands of a debugging session, and returns each result as text and as JSON.
package final class DebugConsole {
  /// The output of a command, as text and as JSON, and its effect on the session.
  package struct Answer: Sendable {
    package var text = ""
    package var json = JSONText.object([])
    /// Whether the command searched for a condition and did not find it.
    package var isUnmet = false
    /// Whether the command ends the session.
    package var ends = false
    /// The step at which to open a debugger for the stack's code; nil unless the command asked for
    /// it.
    package var opensDebuggerAt: Int?
  }

  let session: DebugSession
  private(set) var breakpoints: [(number: Int, condition: StepCondition)] = []
  private var lastBreakpoint = 0
  var watched: [String] = []
  var marked: [(peer: UInt32, label: String, tree: SnapshotTree)] = []
  var markedAt = DebugPosition()

  package init(_ session: DebugSession) { self.session = session }

  /// The take's length in seconds.
  package var duration: Double { Double(session.end.nanoseconds) / 1e9 }

  /// The current place, as in `12.345678 s, after step 1234`.
  package var place: String {
    let position = session.position
    guard position.step > 0 else { return "before step 1" }
    let seconds = decimal(Double(position.at.nanoseconds) / 1e9, 6)
    return "\(seconds) s, after step \(position.step)" + (position.isAtEnd ? ", the end" : "")
  }

  // MARK: Commands

  /// Executes a line; an empty line does nothing.
  package func execute(_ line: String) throws(DebugFailure) -> Answer {
    let words = line.split(separator: " ").map { String($0) }
    guard let name = words.first else { return Answer() }
    guard let command = DebugCommandName.find(name) else {
      let known = DebugCommandName.words
      throw .command("there is no command \"\(name)\"\(Nearest.hint(name, among: known))")
    }
    let rest = words.dropFirst().joined(separator: " ")
    guard command.takesMore || rest.isEmpty else {
      throw .command("\(command.rawValue) has no further arguments: leave out \"\(rest)\"")
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

  /// Executes a command that does not move the session.
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

  /// Parses a number of steps; an empty string means 1.
  func count(_ text: String, of command: DebugCommandName, atMost limit: Int = .max)
    throws(DebugFailure) -> Int
  {
    guard let count = text.isEmpty ? 1 : Int(text), (1...limit).contains(count) else {
      let range = limit == .max ? "from 1 on" : "from 1 to \(limit)"
      throw .command("\(command.rawValue) needs a count \(range), not \(text)")
    }
    return count
  }

  // MARK: Moving

  private func seek(_ place: String) throws(DebugFailure) -> Answer {
    switch place {
    case "": throw .command("seek needs a place: start, end, 12.3s, step:120 or a condition")
    case "start": try session.seek(before: 1)
    case "end": try session.run(until: [])
    default:
      let wanted = try condition(place)
      guard try session.go(to: wanted) else {
        return try arrived("nothing in the take matches \"\(wanted)\"", isUnmet: true)
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
      return try arrived(found ? nil : "nothing later matches \"\(wanted)\"", isUnmet: !found)
    }
    let found = try session.goBack(to: wanted)
    return try arrived(found ? nil : "nothing earlier matches \"\(wanted)\"", isUnmet: !found)
  }

  private func goOn() throws(DebugFailure) -> Answer {
    let hit = try session.run(until: breakpoints.map(\.condition))
    let note = hit.map { "breakpoint \(breakpoints[$0].number): \(breakpoints[$0].condition)" }
    return try arrived(note)
  }

  /// Reports the new place and the step that led there.
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
        throw .command("there is no breakpoint \(text); break alone lists them")
      }
      breakpoints.removeAll { $0.number == number }
    }
    return try addBreakpoint("")
  }

  // MARK: Media

  private func media(_ command: DebugCommandName, _ text: String) throws(DebugFailure) -> Answer {
    let words = text.split(separator: " ").map { String($0) }
    guard let file = words.first, !file.contains("=") else {
      throw .command("\(command.rawValue) needs the name of a file first: \(command.usage)")
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

// MARK: - Inspection

// Commands that print the state at the current place.
extension DebugConsole {
  // MARK: Inspection

  /// Returns the tree at a path in each peer's state, or only in the state of the peer named before
  /// the path, as in `2 flow.congestion`.
  private func trees(_ text: String) throws(DebugFailure) -> [(label: String, tree: SnapshotTree)] {
    var words = text.split(separator: " ").map { String($0) }
    var states = try session.states()
    guard !states.isEmpty else { throw .command("no peer has begun yet; move forward with next") }
    if let first = words.first,
      let peer = states.first(where: { "\($0.peer)" == first || $0.label == first })
    {
      states = [peer]
      words.removeFirst()
    }
    guard let path = words.first else {
      return states.map { ("\($0.tree.name) \($0.label)", $0.tree) }
    }
    let found = states.compactMap { state in
      state.tree[path].map { ("\(state.tree.name) \(state.label)", $0) }
    }
    guard words.count == 1, !found.isEmpty else {
      let peers = states.map { "\($0.peer) \($0.label)" }.joined(separator: ", ")
      throw .command(
        words.count > 1 || Int(path) != nil
          ? "give a peer and a path, as in 1 flow.receiving[0], not \"\(text)\"; there is \(peers)"
          : states[0].tree.absence(of: path))
    }
    return found
  }

  func show(_ text: String) throws(DebugFailure) -> Answer {
    let found = try trees(text)
    let lines = found.flatMap { entry -> [String] in
      let isWhole = ["peer ", "actor "].contains { entry.tree.name.hasPrefix($0) }
      let below = isWhole ? entry.tree.children.flatMap(\.lines) : entry.tree.lines
      return [entry.label.trimmed] + below.map { "  \($0)" }
    }
    return Answer(
      text: lines.joined(separator: "\n"),
      json: .object(found.map { ($0.label, JSONText($0.tree.json)) }))
  }

  func stats(_ type: String) throws(DebugFailure) -> Answer {
    let reports = try session.stats()
    let names = try session.states().map { "\($0.tree.name) \($0.label)" }
    var lines: [String] = []
    var types: Set<String> = []
    var kept: [JSONText] = []
    for (name, report) in zip(names, reports) {
      // A room has no statistics, so its report is empty.
      guard
        let list = try? JSONValue(parsing: report).elements, !list.isEmpty
      else { continue }
      lines.append(name.trimmed)
      var objects: [JSONText] = []
      types.formUnion(list.compactMap { $0["type"]?.text })
      for object in list where type.isEmpty || object["type"]?.text == type {
        let sorted = object.members.sorted { $0.name < $1.name }
        let members = sorted.filter { !["id", "type", "timestamp"].contains($0.name) }
          .map { "\($0.name) \($0.value.text ?? $0.value.json)" }
        lines.append("  \(object["type"]?.text ?? "") \(object["id"]?.text ?? "")")
        lines.append("    " + members.joined(separator: ", "))
        objects.append(JSONText(JSONValue.object(sorted).json))
      }
      kept.append(.list(objects))
    }
    guard type.isEmpty || types.contains(type) else {
      let known = types.sorted().joined(separator: ", ")
      throw .command(
        "there are no stats of type \"\(type)\" here"
          + (known.isEmpty ? "; no peer has begun yet" : "; there are \(known)"))
    }
    return Answer(
      text: lines.joined(separator: "\n"),
      json: .object([("stats", .list(kept))]))
  }

  func recent(_ text: String) throws(DebugFailure) -> Answer {
    let steps = try session.recentSteps(
      text.isEmpty ? 10 : count(text, of: .steps, atMost: DebugSession.recentMaximum))
    return Answer(
      text: steps.flatMap(\.lines).joined(separator: "\n"),
      json: .object([("steps", .list(steps.map { JSONText($0.json) }))]))
  }

  func watch(_ path: String) throws(DebugFailure) -> Answer {
    if path.isEmpty {
      watched = []
      return Answer(text: "nothing is watched", json: .object([("watched", .object([]))]))
    }
    _ = try trees(path)
    watched.append(path)
    let values = try watchedValues()
    return Answer(
      text: values.map { "watch \($0.path): \($0.value)" }.joined(separator: "\n"),
      json: .object([("watched", .object(values.map { ($0.path, .text($0.value)) }))]))
  }

  func watchedValues() throws(DebugFailure) -> [(path: String, value: String)] {
    var values: [(path: String, value: String)] = []
    for path in watched {
      // At an earlier place the value may not exist yet.
      guard let found = try? trees(path) else {
        values.append((path, "-"))
        continue
      }
      for entry in found {
        let text = entry.tree.children.isEmpty ? entry.tree.text : entry.tree.json
        values.append((found.count > 1 ? "\(entry.label) \(path)" : path, text))
      }
    }
    return values
  }

  // MARK: Differences

  func mark() throws(DebugFailure) -> Answer {
    marked = try session.states()
    markedAt = session.position
    return Answer(
      text: "marked \(place); diff shows what changes from here on",
      json: .object([("marked", .integer(markedAt.step))]))
  }

  func diff(_ text: String) throws(DebugFailure) -> Answer {
    let here = try session.states()
    let there: [(peer: UInt32, label: String, tree: SnapshotTree)]
    var (before, after) = ("here", "there")
    if text.isEmpty {
      guard !marked.isEmpty else {
        throw .command(
          "diff needs a step or a time, as in diff step:120, or a place marked with mark")
      }
      there = marked
      (before, after) = ("step \(markedAt.step)", "step \(session.position.step)")
    } else {
      let place = try condition(text)
      guard place.stopsBefore else {
        throw .command("diff needs a step or a time, as in diff step:120, not \"\(text)\"")
      }
      let step: Int
      (there, step) = try session.states(at: place)
      (before, after) = ("step \(session.position.step)", "step \(step)")
    }
    var lines = ["from \(before) to \(after)"]
    var objects: [JSONText] = []
    for state in here {
      guard let other = there.first(where: { $0.peer == state.peer }) else { continue }
      let changes =
        text.isEmpty ? other.tree.changes(to: state.tree) : state.tree.changes(to: other.tree)
      if !changes.isEmpty { lines.append("\(state.tree.name) \(state.label)") }
      for change in changes {
        lines.append("  \(change.path): \(change.before) -> \(change.after)")
        objects.append(
          .object([
            ("peer", .integer(state.peer)), ("path", .text(change.path)),
            ("before", .text(change.before)), ("after", .text(change.after)),
          ]))
      }
    }
    if objects.isEmpty { lines.append("nothing differs") }
    return Answer(
      text: lines.joined(separator: "\n"),
      json: .object([("changes", .list(objects))]))
  }
}
