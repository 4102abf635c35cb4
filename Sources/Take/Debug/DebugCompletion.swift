import Replay
import Stats

/// What may stand in place of the last word of a line that somebody types.
struct DebugCompletion {
  /// The numbers of the breakpoints.
  var breakpoints: [Int] = []
  /// The state of every peer; asked only where a line is about it.
  var states: () -> [(peer: UInt32, label: String, tree: SnapshotTree)] = { [] }

  /// The words that fit.
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
    // The name of the file comes first.
    case .frame? where !rest.isEmpty: return ["peer=", "track="]
    case .audio? where !rest.isEmpty: return ["peer=", "track=", "seconds="]
    default: return []
    }
  }

  /// A peer, then what its state has.
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
  /// What may stand in place of the last word of a line.
  package func completions(of line: String) -> [String] {
    let session = session
    return DebugCompletion(
      breakpoints: breakpoints.map(\.number), states: { (try? session.states()) ?? [] }
    ).words(of: line)
  }
}
