import Foundation
import Replay
import Stats
import Wire

/// The commands of a debugging session: each takes a line and gives text, or JSON for programs.
package final class DebugConsole {
  /// What a command said.
  package struct Answer: Sendable {
    package var text = ""
    package var json = "{}"
    /// Whether the session is to end.
    package var ends = false
    /// The step to open under another debugger.
    package var opensDebuggerAt: Int?
  }

  let session: DebugSession
  private(set) var breakpoints: [(number: Int, condition: StepCondition)] = []
  private var lastBreakpoint = 0
  private(set) var watched: [String] = []
  private var marked: [(peer: UInt32, label: String, tree: SnapshotTree)] = []
  private var markedAt = DebugPosition()

  package init(_ session: DebugSession) { self.session = session }

  /// The length of the take in seconds.
  package var duration: Double { Double(session.end.nanoseconds) / 1e9 }

  /// `12.345678 s, after step 1234`.
  package var place: String {
    let position = session.position
    guard position.step > 0 else { return "before step 1" }
    let seconds = String(
      format: "%.6f", locale: Locale(identifier: "en_US_POSIX"),
      Double(position.at.nanoseconds) / 1e9)
    return "\(seconds) s, after step \(position.step)" + (position.isAtEnd ? ", the end" : "")
  }

  // MARK: Commands

  /// Executes a line; an empty one does nothing.
  package func execute(_ line: String) throws(DebugFailure) -> Answer {
    let words = line.split(separator: " ").map { String($0) }
    guard let name = words.first else { return Answer() }
    guard let command = DebugCommandName.find(name) else {
      throw .command("there is no command \"\(name)\"; help lists all")
    }
    let rest = words.dropFirst().joined(separator: " ")
    switch command {
    case .help: return help(rest)
    case .quit: return Answer(ends: true)
    case .seek: return try seek(rest)
    case .next: return try step(rest, forward: true)
    case .back: return try step(rest, forward: false)
    case .continue: return try goOn()
    case .break: return try addBreakpoint(rest)
    case .delete: return try deleteBreakpoint(rest)
    case .show: return try show(rest)
    case .stats: return try stats(rest)
    case .steps: return try recent(rest)
    case .watch: return try watch(rest)
    case .mark: return try mark()
    case .diff: return try diff(rest)
    case .picture, .sound: return try media(command, rest)
    case .lldb: return Answer(text: "", opensDebuggerAt: session.position.step + 1)
    }
  }

  private func condition(_ text: String) throws(DebugFailure) -> StepCondition {
    do throws(ConditionError) {
      return try StepCondition(text)
    } catch {
      throw .condition(error)
    }
  }

  // MARK: Moving

  private func seek(_ place: String) throws(DebugFailure) -> Answer {
    switch place {
    case "": throw .command("seek takes a place: start, end, 12.3s, step:120 or a condition")
    case "start": try session.seek(before: 1)
    case "end": try session.run(until: [])
    default:
      let wanted = try condition(place)
      if let step = wanted.stepNumber {
        try session.seek(before: step)
      } else if let time = wanted.instant {
        try session.seek(to: time)
      } else {
        try session.seek(before: 1)
        guard try session.run(until: [wanted]) != nil else {
          return try arrived("nothing in the take meets \"\(wanted)\"")
        }
      }
    }
    return try arrived(nil)
  }

  private func step(_ what: String, forward: Bool) throws(DebugFailure) -> Answer {
    if what.isEmpty || Int(what) != nil {
      let count = max(1, Int(what) ?? 1)
      if forward {
        try session.run(steps: count)
      } else {
        try session.seek(before: session.position.step + 1 - count)
      }
      return try arrived(nil)
    }
    let wanted = try condition(what)
    if forward {
      let hit = try session.run(until: [wanted])
      return try arrived(hit == nil ? "nothing later meets \"\(wanted)\"" : nil)
    }
    let found = try session.goBack(to: wanted)
    return try arrived(found ? nil : "nothing earlier meets \"\(wanted)\"")
  }

  private func goOn() throws(DebugFailure) -> Answer {
    let hit = try session.run(until: breakpoints.map(\.condition))
    let note = hit.map { "breakpoint \(breakpoints[$0].number): \(breakpoints[$0].condition)" }
    return try arrived(note)
  }

  /// Tells where the session is now, with the step that led there.
  private func arrived(_ note: String?) throws(DebugFailure) -> Answer {
    let steps = session.position.step > 0 ? try session.recentSteps(1) : []
    var lines = note.map { [$0] } ?? []
    lines += steps.last?.lines ?? []
    lines.append("at \(place)")
    var members = [
      ("step", String(session.position.step)),
      ("at_ns", String(session.position.at.nanoseconds)),
      ("at_end", session.position.isAtEnd ? "true" : "false"),
      ("note", note.map(jsonString) ?? "null"), ("last", steps.last?.json ?? "null"),
    ]
    if let divergence = session.divergence {
      lines.append(divergence)
      members.append(("divergence", jsonString(divergence)))
    }
    if !watched.isEmpty {
      let values = try watchedValues()
      lines += values.map { "watch \($0.path): \($0.value)" }
      members.append(("watched", object(values.map { ($0.path, jsonString($0.value)) })))
    }
    return Answer(text: lines.joined(separator: "\n"), json: object(members))
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
      object([("number", String($0.number)), ("condition", jsonString($0.condition.description))])
    }
    return Answer(
      text: lines.isEmpty ? "no breakpoints" : lines.joined(separator: "\n"),
      json: object([("breakpoints", "[\(json.joined(separator: ","))]")]))
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

  // MARK: Looking

  /// The trees that a path is about: `2 flow.congestion` is about peer 2 only.
  private func trees(_ text: String) throws(DebugFailure) -> [(label: String, tree: SnapshotTree)] {
    var words = text.split(separator: " ").map { String($0) }
    var states = try session.states()
    guard !states.isEmpty else { throw .command("no peer has begun yet; go on with next") }
    if let first = words.first,
      let peer = states.first(where: { "\($0.peer)" == first || $0.label == first })
    {
      states = [peer]
      words.removeFirst()
    }
    guard words.count <= 1 else {
      throw .command("show takes a peer and a path, as in: show 1 flow.receiving[0]")
    }
    guard let path = words.first else {
      return states.map { ("peer \($0.peer) \($0.label)", $0.tree) }
    }
    let found = states.compactMap { state in
      state.tree[path].map { ("peer \(state.peer) \(state.label)", $0) }
    }
    guard !found.isEmpty else {
      let names = states[0].tree.children.map(\.name).joined(separator: ", ")
      throw .command("there is nothing at \"\(path)\"; the first names are \(names)")
    }
    return found
  }

  private func show(_ text: String) throws(DebugFailure) -> Answer {
    let found = try trees(text)
    let lines = found.flatMap { entry -> [String] in
      [entry.label.trimmingCharacters(in: .whitespaces)]
        + (text.split(separator: " ").isEmpty || !entry.tree.name.hasPrefix("peer ")
          ? entry.tree.name.hasPrefix("peer ")
            ? entry.tree.children.flatMap(\.lines).map { "  \($0)" }
            : entry.tree.lines.map { "  \($0)" }
          : entry.tree.children.flatMap(\.lines).map { "  \($0)" })
    }
    return Answer(
      text: lines.joined(separator: "\n"),
      json: object(found.map { ($0.label, $0.tree.json) }))
  }

  private func stats(_ type: String) throws(DebugFailure) -> Answer {
    let reports = try session.stats()
    var lines: [String] = []
    var kept: [String] = []
    for (index, report) in reports.enumerated() {
      guard
        let list = try? JSONSerialization.jsonObject(with: Data(report.utf8)) as? [[String: Any]]
      else { continue }
      lines.append("peer \(index + 1)")
      var objects: [String] = []
      for object in list where type.isEmpty || object["type"] as? String == type {
        let members = object.keys.sorted().filter { !["id", "type", "timestamp"].contains($0) }
          .map { "\($0) \(object[$0] ?? "")" }
        lines.append("  \(object["type"] ?? "") \(object["id"] ?? "")")
        lines.append("    " + members.joined(separator: ", "))
        if let data = try? JSONSerialization.data(
          withJSONObject: object, options: [.sortedKeys, .withoutEscapingSlashes])
        {
          objects.append(String(decoding: data, as: UTF8.self))
        }
      }
      kept.append("[\(objects.joined(separator: ","))]")
    }
    return Answer(
      text: lines.joined(separator: "\n"),
      json: object([("stats", "[\(kept.joined(separator: ","))]")]))
  }

  private func recent(_ text: String) throws(DebugFailure) -> Answer {
    let steps = try session.recentSteps(max(1, Int(text) ?? 10))
    return Answer(
      text: steps.flatMap(\.lines).joined(separator: "\n"),
      json: object([("steps", "[\(steps.map(\.json).joined(separator: ","))]")]))
  }

  private func watch(_ path: String) throws(DebugFailure) -> Answer {
    if path.isEmpty {
      watched = []
      return Answer(text: "nothing is watched", json: object([("watched", "[]")]))
    }
    _ = try trees(path)
    watched.append(path)
    let values = try watchedValues()
    return Answer(
      text: values.map { "watch \($0.path): \($0.value)" }.joined(separator: "\n"),
      json: object([("watched", object(values.map { ($0.path, jsonString($0.value)) }))]))
  }

  private func watchedValues() throws(DebugFailure) -> [(path: String, value: String)] {
    var values: [(path: String, value: String)] = []
    for path in watched {
      // At an earlier place the thing may not be there yet.
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

  private func mark() throws(DebugFailure) -> Answer {
    marked = try session.states()
    markedAt = session.position
    return Answer(
      text: "marked \(place); diff tells what changes from here on",
      json: object([("marked", String(markedAt.step))]))
  }

  private func diff(_ text: String) throws(DebugFailure) -> Answer {
    let here = try session.states()
    let there: [(peer: UInt32, label: String, tree: SnapshotTree)]
    var (before, after) = ("here", "there")
    if text.isEmpty {
      guard !marked.isEmpty else {
        throw .command("diff takes a step, as in diff step:120, or a mark set before with mark")
      }
      there = marked
      (before, after) = ("step \(markedAt.step)", "step \(session.position.step)")
    } else {
      guard let step = try condition(text).stepNumber else {
        throw .command("diff takes a step, as in diff step:120")
      }
      there = try session.states(before: step)
      (before, after) = ("step \(session.position.step)", "before step \(step)")
    }
    var lines = ["from \(before) to \(after)"]
    var objects: [String] = []
    for state in here {
      guard let other = there.first(where: { $0.peer == state.peer }) else { continue }
      let changes =
        text.isEmpty ? other.tree.changes(to: state.tree) : state.tree.changes(to: other.tree)
      if !changes.isEmpty { lines.append("peer \(state.peer) \(state.label)") }
      for change in changes {
        lines.append("  \(change.path): \(change.before) -> \(change.after)")
        objects.append(
          object([
            ("peer", String(state.peer)), ("path", jsonString(change.path)),
            ("before", jsonString(change.before)), ("after", jsonString(change.after)),
          ]))
      }
    }
    if objects.isEmpty { lines.append("nothing differs") }
    return Answer(
      text: lines.joined(separator: "\n"),
      json: object([("changes", "[\(objects.joined(separator: ","))]")]))
  }

  // MARK: Media

  private func media(_ command: DebugCommandName, _ text: String) throws(DebugFailure) -> Answer {
    let words = text.split(separator: " ").map { String($0) }
    guard let file = words.first else {
      throw .command("\(command.rawValue) takes the name of a file, and peer=1 track=2 to choose")
    }
    let choice = TakeMedia.Choice(words.dropFirst())
    let source = TakeMedia(path: session.path)
    let line =
      command == .picture
      ? try source.writePicture(file, choice, at: session.position.at)
      : try source.writeSound(file, choice, around: session.position.at)
    return Answer(text: line, json: object([("written", jsonString(line))]))
  }

  private func help(_ text: String) -> Answer {
    Answer(
      text: DebugCommandName.help(text),
      json: object(DebugCommandName.allCases.map { ($0.rawValue, jsonString($0.summary)) }))
  }

  private func object(_ members: [(String, String)]) -> String {
    "{" + members.map { "\(jsonString($0.0)):\($0.1)" }.joined(separator: ",") + "}"
  }

  // MARK: Completion

  /// What may stand in place of the last word of a line.
  package func completions(of line: String) -> [String] {
    let words = line.split(separator: " ", omittingEmptySubsequences: false).map { String($0) }
    guard let last = words.last else { return [] }
    let choices: [String]
    if words.count == 1 {
      choices = DebugCommandName.allCases.map(\.rawValue)
    } else {
      switch DebugCommandName.find(words[0]) {
      case .show?, .watch?:
        choices = ((try? session.states()) ?? []).flatMap { $0.tree.paths(below: last) }
      case .next?, .back?, .break?, .seek?: choices = StepCondition.vocabulary
      default: choices = []
      }
    }
    var seen: Set<String> = []
    return choices.filter { $0.hasPrefix(last) && $0 != last && seen.insert($0).inserted }
  }
}
