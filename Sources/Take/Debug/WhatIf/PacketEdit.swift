package import Replay
import Tape
package import Wire

/// A change to some of the datagrams received in a take.
///
///     drop 'packet rtp ssrc=1 from=1.2s to=1.5s'      corrupt 'packet rtp probability=2%'
///     delay '80ms packet rtp every=10'                 duplicate 'packet stun'
package struct PacketEdit: Hashable, Sendable, CustomStringConvertible {
  /// The change made to each selected datagram.
  package enum Action: Hashable, Sendable {
    case drop
    case delay(Interval)
    case duplicate
    case corrupt
  }

  package let action: Action
  /// The condition that selects datagrams.
  package let condition: StepCondition
  /// The bounds of the part of the take to which the edit applies; nil for no bound.
  let from: StepCondition?
  let to: StepCondition?
  /// The edit applies to every n-th selected datagram, starting with the first.
  let every: Int
  /// The probability, in thousandths, that a selected datagram is edited; the run's seed determines
  /// which datagrams are.
  let share: UInt64
  /// The edit as written.
  package let description: String

  /// Parses a selector: a condition on packets with `from=`, `to=`, `every=` and `probability=`.
  package init(_ action: Action, _ text: String) throws(ConditionError) {
    self.action = action
    description = "\(action.name) \(text)"
    var rest: [Substring] = []
    var (from, to): (StepCondition?, StepCondition?)
    var (every, share) = (1, UInt64(1000))
    for word in text.split(separator: " ") {
      let parts = word.split(separator: "=", maxSplits: 1)
      switch (parts.first, parts.count) {
      case ("from", 2): from = try Self.place(parts[1], of: "from")
      case ("to", 2): to = try Self.place(parts[1], of: "to")
      case ("every", 2):
        guard let number = Int(parts[1]), number > 0 else {
          throw ConditionError("every= needs a number from 1, not \(parts[1])")
        }
        every = number
      // `share` is the former name.
      case ("probability", 2), ("share", 2):
        let digits = parts[1].hasSuffix("%") ? parts[1].dropLast() : parts[1]
        guard let percent = TimeText.number(digits), (0...100).contains(percent) else {
          throw ConditionError("\(parts[0])= needs a percentage from 0 to 100, not \(parts[1])")
        }
        share = UInt64(percent * 10)
      default: rest.append(word)
      }
    }
    if let from, let to, let first = from.instant, let last = to.instant, first > last {
      throw ConditionError("from=\(from) lies after to=\(to): give the earlier one first")
    }
    if let from, let to, let first = from.stepNumber, let last = to.stepNumber, first > last {
      throw ConditionError("from=\(from) lies after to=\(to): give the earlier one first")
    }
    (self.from, self.to, self.every, self.share) = (from, to, every, share)
    condition = try StepCondition(rest.isEmpty ? "packet" : rest.joined(separator: " "))
    guard condition.selectsDatagrams else {
      throw ConditionError(
        "\"\(condition)\" selects no datagrams; try 'packet rtp ssrc=1' or 'packet rtcp pli'")
    }
  }

  /// Parses a delay followed by a selector, as in `80ms packet rtp`.
  package init(delay text: String) throws(ConditionError) {
    let words = text.split(separator: " ", maxSplits: 1)
    guard let first = words.first, first.hasSuffix("s") || first.hasSuffix("min"),
      let length = TimeText.seconds(first, in: .milliseconds),
      (0...60).contains(length)
    else {
      throw ConditionError(
        "a delay begins with its length, from 0 to 60000 ms, as in '80ms packet rtp'")
    }
    try self.init(
      .delay(.microseconds(Int64((length * 1e6).rounded()))),
      words.count > 1 ? String(words[1]) : "packet")
  }

  private static func place(_ text: Substring, of name: String) throws(ConditionError)
    -> StepCondition
  {
    guard let place = try? StepCondition(String(text)), place.stopsBefore else {
      throw ConditionError(
        "\(name)= needs a time from 0 to 1000000000 s (1.25s) or a step from 1 (step:120), not "
          + "\(text)")
    }
    return place
  }

  /// Returns whether a step is within the edit's part of the take, bounds included.
  func covers(_ step: StepHead) -> Bool {
    let isLate = from.map {
      $0.stepNumber.map { step.number >= $0 } ?? ($0.instant ?? .zero <= step.at)
    }
    let isEarly = to.map {
      $0.stepNumber.map { step.number <= $0 } ?? (step.at <= $0.instant ?? .zero)
    }
    return isLate ?? true && isEarly ?? true
  }
}

extension PacketEdit.Action {
  fileprivate var name: String {
    switch self {
    case .drop: "drop"
    case .delay(let length): "delay by \(length.milliseconds) ms"
    case .duplicate: "duplicate"
    case .corrupt: "corrupt"
    }
  }
}

/// Decides which edits apply to each datagram.
struct PacketEditor {
  private let edits: [PacketEdit]
  /// The number of datagrams that each edit selected per peer, so that `every` counts each peer's
  /// datagrams separately.
  private var counts: [[UInt32: Int]]
  private let chance: EntropyStream
  /// The number of datagrams that each edit changed.
  private(set) var changed: [Int]

  init(_ edits: [PacketEdit], seed: UInt64) {
    self.edits = edits
    counts = edits.map { _ in [:] }
    changed = edits.map { _ in 0 }
    chance = Entropy(seed: (0..<8).map { UInt8(truncatingIfNeeded: seed >> (8 * $0)) })
      .stream("what-if")
  }

  /// Returns the edits that apply to a step, in order.
  mutating func actions(
    _ step: TapeChunk.Step, _ rows: RowList, _ memory: RowMemory
  ) -> [PacketEdit.Action] {
    var actions: [PacketEdit.Action] = []
    for (index, edit) in edits.enumerated()
    where edit.covers(step.head)
      && edit.condition.selects(step, rows, memory)
    {
      let count = counts[index][step.head.actor, default: 0]
      counts[index][step.head.actor] = count + 1
      guard count % edit.every == 0, chance.integer(below: 1000) < edit.share else {
        continue
      }
      changed[index] += 1
      actions.append(edit.action)
    }
    return actions
  }
}
