import FoundationEssentials
package import Queries
package import Replay
package import Tape
import Wire

/// The differences between two sessions, or between one session's runs under two builds, in time
/// order on a common clock.
package struct TakeDiff: Sendable {
  /// The point at which the two takes' clocks are aligned.
  package enum Alignment: String, CaseIterable, Sendable {
    /// At the start of each take.
    case start
    /// At the first `connected` in each take.
    case connected
    /// By wall-clock time.
    case wall
  }

  /// A value that differs between the sessions.
  package struct Difference: Hashable, Sendable, Codable {
    /// The time on the first take's clock.
    package var atNanoseconds: Int64
    package var peer: Int64
    /// One of `setup`, `signaling`, `state`, `track`, `pair`, `frames`, `first frame`, `freeze`,
    /// `event` and `stats`.
    package var kind: String
    package var what: String
    package var left: String
    package var right: String

    /// The time of a total over an entire session, which sorts totals after all other differences.
    static let endOfSession = Int64.max / 2
    /// Whether the difference is in a total, which has no time.
    var isTotal: Bool { atNanoseconds >= Self.endOfSession / 2 }

    package func encode(to encoder: any Encoder) throws {
      var container = encoder.container(keyedBy: CodingKeys.self)
      if !isTotal { try container.encode(atNanoseconds, forKey: .atNanoseconds) }
      try container.encode(peer, forKey: .peer)
      try container.encode(kind, forKey: .kind)
      try container.encode(what, forKey: .what)
      try container.encode(left, forKey: .left)
      try container.encode(right, forKey: .right)
    }
  }

  package let paths: [String]
  package let alignment: Alignment
  /// The start of the second take's clock on the first take's clock.
  package let offsetNanoseconds: Int64
  package let common: CommonRun
  package private(set) var differences: [Difference] = []

  /// The tolerance for times of state changes, in nanoseconds.
  private static let stateTolerance: Int64 = 100_000_000
  /// Two counts are treated as equal if their difference is at most this share of the larger one,
  /// or below `countLeast`.
  private static let countTolerance = 0.1
  private static let countLeast = 3.0

  /// - Parameter pair: the numbers of the two peers to compare; nil compares all peers, matched by
  ///   label or else by number.
  package init(
    _ left: String, _ right: String, alignment: Alignment, pair: (left: Int64, right: Int64)? = nil
  ) throws(TapeError) {
    paths = [left, right]
    self.alignment = alignment
    let (before, after) = (try SessionFacts(path: left), try SessionFacts(path: right))
    common = try CommonRun(left, right)
    offsetNanoseconds = TakeDiff.offset(before, after, alignment, pair)
    compareSetup(before, after)
    for peer in before.peers where pair.map({ $0.left == peer.number }) ?? true {
      let other =
        if let pair {
          after.peers.first { $0.number == pair.right }
        } else {
          after.peers.first { !peer.label.isEmpty && $0.label == peer.label }
            ?? after.peers.first { $0.number == peer.number }
        }
      guard let other else {
        add(0, peer.number, "setup", "peer \(peer.label)", "takes part", "is missing")
        continue
      }
      if peer.configuration != other.configuration {
        let here = SecretText.hidden(in: peer.configuration)
        let there = SecretText.hidden(in: other.configuration)
        add(
          0, peer.number, "setup", "configuration", here,
          here == there ? "\(there) with different secrets" : there)
      }
      compareMessages(before, after, peer.number, other.number)
      compareStates(before, after, peer.number, other.number)
      compareFacts(before, after, peer.number, other.number)
    }
    differences = differences.enumerated().sorted {
      ($0.element.atNanoseconds, $0.offset) < ($1.element.atNanoseconds, $1.offset)
    }.map(\.element)
  }

  private static func offset(
    _ left: SessionFacts, _ right: SessionFacts, _ alignment: Alignment,
    _ pair: (left: Int64, right: Int64)?
  ) -> Int64 {
    func connected(_ facts: SessionFacts, _ peer: Int64?) -> Int64 {
      facts.states.first {
        $0.machine == "connection" && $0.to == "connected" && peer ?? $0.peer == $0.peer
      }?.atNanoseconds ?? 0
    }
    return switch alignment {
    case .start: 0
    case .connected: connected(left, pair?.left) - connected(right, pair?.right)
    case .wall: right.header.startUnixNanoseconds -| left.header.startUnixNanoseconds
    }
  }

  private mutating func add(
    _ at: Int64, _ peer: Int64, _ kind: String, _ what: String, _ left: String, _ right: String
  ) {
    differences.append(
      Difference(
        atNanoseconds: at, peer: peer, kind: kind, what: what, left: left, right: right))
  }

  private mutating func compareSetup(_ left: SessionFacts, _ right: SessionFacts) {
    if left.header.toolVersion != right.header.toolVersion {
      add(0, 0, "setup", "tool version", left.header.toolVersion, right.header.toolVersion)
    }
    for difference in right.header.toolchain.differences(from: left.header.toolchain) {
      add(0, 0, "setup", difference.part, difference.there, difference.here)
    }
  }

  // MARK: Signaling

  private mutating func compareMessages(
    _ left: SessionFacts, _ right: SessionFacts, _ peer: Int64, _ other: Int64
  ) {
    let before = left.messages.filter { $0.peer == peer }
    let after = right.messages.filter { $0.peer == other }
    for index in 0..<max(before.count, after.count) {
      let old = index < before.count ? before[index] : nil
      let new = index < after.count ? after[index] : nil
      let at =
        old?.atNanoseconds ?? (new.map { $0.atNanoseconds +| offsetNanoseconds } ?? 0)
      guard let old, let new, old.direction == new.direction, old.type == new.type else {
        add(
          at, peer, "signaling", "message \(index + 1)",
          old.map { "\($0.type) \($0.direction)" } ?? "none",
          new.map { "\($0.type) \($0.direction)" } ?? "none")
        // Messages after the first difference cannot be compared.
        return
      }
      for line in DescriptionDiff(old.text, new.text).lines {
        let isAdded = line.contains(": + ")
        add(
          at, peer, "signaling", "\(old.type) \(old.direction)", isAdded ? "" : line,
          isAdded ? line : "")
      }
    }
  }

  // MARK: States

  private mutating func compareStates(
    _ left: SessionFacts, _ right: SessionFacts, _ peer: Int64, _ other: Int64
  ) {
    let before = left.states.filter { $0.peer == peer }
    let after = right.states.filter { $0.peer == other }
    var machines: [String] = []
    for state in before + after where !machines.contains(state.machine) {
      machines.append(state.machine)
    }
    for machine in machines {
      let old = before.filter { $0.machine == machine }
      let new = after.filter { $0.machine == machine }
      for index in 0..<max(old.count, new.count) {
        let (here, there) = (
          index < old.count ? old[index] : nil, index < new.count ? new[index] : nil
        )
        let arrival = there.map { $0.atNanoseconds +| offsetNanoseconds }
        let at = min(here?.atNanoseconds ?? .max, arrival ?? .max)
        guard let here, let arrival, here.to == there?.to else {
          add(
            at, peer, "state", machine, here.map { text($0.to, $0.atNanoseconds) } ?? "no more",
            there.map { text($0.to, arrival ?? 0) } ?? "no more")
          break
        }
        if (here.atNanoseconds -| arrival).magnitude > UInt64(Self.stateTolerance) {
          add(
            at, peer, "state", machine, text(here.to, here.atNanoseconds), text(here.to, arrival))
        }
      }
    }
  }

  private func text(_ state: String, _ at: Int64) -> String { "\(state) at \(seconds(at)) s" }

  // MARK: Values

  private mutating func compareFacts(
    _ left: SessionFacts, _ right: SessionFacts, _ peer: Int64, _ other: Int64
  ) {
    let before = left.facts.filter { $0.peer == peer }
    var after = right.facts.filter { $0.peer == other }
    for fact in before {
      guard let index = after.firstIndex(where: { $0.kind == fact.kind && $0.name == fact.name })
      else {
        add(time(fact), peer, fact.kind, fact.name, fact.value, "none")
        continue
      }
      let new = after.remove(at: index)
      if !isClose(fact, new) {
        add(time(fact), peer, fact.kind, fact.name, fact.value, new.value)
      }
    }
    for fact in after {
      add(time(fact) +| offsetNanoseconds, peer, fact.kind, fact.name, "none", fact.value)
    }
  }

  /// Returns a fact's time, or `endOfSession` for a total.
  private func time(_ fact: SessionFacts.Fact) -> Int64 {
    fact.kind == "frames" ? Difference.endOfSession : fact.atNanoseconds
  }

  private func isClose(_ left: SessionFacts.Fact, _ right: SessionFacts.Fact) -> Bool {
    if left.value == right.value { return true }
    guard left.kind == "stats" || left.kind == "frames" || left.kind == "first frame",
      let old = Double(left.value), let new = Double(right.value)
    else { return false }
    let distance = abs(old - new)
    // An event counter that is zero in only one session always differs, whatever the tolerance.
    if (old == 0) != (new == 0), left.name.hasSuffix("Count") { return false }
    return distance <= Self.countTolerance * max(old, new) || distance < Self.countLeast
  }

  // MARK: Printing

  package var isEmpty: Bool { differences.isEmpty && common.difference == nil }

  package var text: String { text() }

  /// Returns the report as text for a terminal.
  package func text(_ look: TableLook = TableLook()) -> String {
    var lines = ["\(paths[0]) and \(paths[1]), clocks set by \(alignment.rawValue)"]
    if let difference = common.difference {
      lines.append(
        common.steps == 0
          ? "different sessions from the first step on"
          : "the same up to step \(common.steps) at \(seconds(common.atNanoseconds)) s; then "
            + difference)
      if common.steps > 0 {
        lines += common.fields.prefix(20).map {
          "  \($0.name): \($0.recorded ?? "-") | \($0.replayed ?? "-")"
        }
      }
    } else {
      lines.append("the same in every step")
    }
    guard !differences.isEmpty else {
      return (lines + ["no difference in meaning"]).joined(separator: "\n")
    }
    let rows = differences.map { difference in
      [
        difference.isTotal ? "total" : seconds(difference.atNanoseconds),
        difference.peer == 0 ? "" : String(difference.peer), difference.kind, difference.what,
        difference.left, difference.right,
      ]
    }
    let table = TextTable(
      columns: ["seconds", "peer", "kind", "what", "first take", "second take"], rows: rows,
      alignsRight: [true, true], wraps: true)
    return (lines + ["", table.text(look)]).joined(separator: "\n")
  }

  /// The differences as a JSON object.
  package var json: String {
    JSONText.object([
      ("takes", .list(paths.map { .text($0) })), ("alignment", .text(alignment.rawValue)),
      ("offset_ns", .integer(offsetNanoseconds)), ("common", JSONText(CanonicalJSON.text(common))),
      ("differences", JSONText(CanonicalJSON.text(differences))),
    ]).text
  }
}
