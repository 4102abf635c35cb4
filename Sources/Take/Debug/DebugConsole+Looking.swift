import Replay
import Wire

// What a session shows of the place where it is.
extension DebugConsole {
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
          ? "a peer and a path are wanted, as in 1 flow.receiving[0], not \"\(text)\"; "
            + "there is \(peers)"
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
      // A room has no stats of its own.
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

  func mark() throws(DebugFailure) -> Answer {
    marked = try session.states()
    markedAt = session.position
    return Answer(
      text: "marked \(place); diff tells what changes from here on",
      json: .object([("marked", .integer(markedAt.step))]))
  }

  func diff(_ text: String) throws(DebugFailure) -> Answer {
    let here = try session.states()
    let there: [(peer: UInt32, label: String, tree: SnapshotTree)]
    var (before, after) = ("here", "there")
    if text.isEmpty {
      guard !marked.isEmpty else {
        throw .command(
          "diff takes a step or a time, as in diff step:120, or a mark set before with mark")
      }
      there = marked
      (before, after) = ("step \(markedAt.step)", "step \(session.position.step)")
    } else {
      let place = try condition(text)
      guard place.stopsBefore else {
        throw .command("diff takes a step or a time, as in diff step:120, not \"\(text)\"")
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
