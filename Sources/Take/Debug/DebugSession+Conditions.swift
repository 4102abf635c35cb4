package import Replay
import Tape
import Wire

// Searches for the place that satisfies a condition. If the take's rows or statistics samples show
// where that place may be, the session starts from the nearest checkpoint; otherwise it runs the
// stack to find the place.
extension DebugSession {
  /// A range of steps that may satisfy a condition; both bounds are exclusive.
  private typealias Span = (from: Int, before: Int)

  /// Continues until a condition is satisfied, the stack diverges or the take ends; returns the
  /// index of the satisfied condition, or nil if there is none.
  @discardableResult
  package func run(until conditions: [StepCondition]) throws(DebugFailure) -> Int? {
    var spans: [Span] = []
    for condition in conditions { spans += try self.spans(of: condition) }
    spans.sort { $0.from < $1.from }
    let wasDivergent = divergence != nil
    for span in spans where span.before > position.step + 1 {
      if span.from > position.step { try seek(before: span.from + 1) }
      // A divergence also ends the search.
      if !wasDivergent, divergence != nil { return nil }
      let hit = try walk(until: conditions, before: span.before)
      if hit != nil || !wasDivergent && divergence != nil { return hit }
    }
    try seek(before: anchor.stepCount + 1)
    position.isAtEnd = position.step == anchor.stepCount
    return nil
  }

  /// Returns the ranges of steps after the current place in which a condition may be satisfied.
  private func spans(of condition: StepCondition) throws(DebugFailure) -> [Span] {
    if let step = condition.stepNumber {
      return step > position.step + 1 ? [(step - 1, step + 1)] : []
    }
    if let time = condition.instant {
      guard time >= position.at else { return [] }
      let before = checkpoints.last { $0.at <= time && $0.step > position.step }?.step
      return [(before ?? position.step, .max)]
    }
    if condition.isAboutRows {
      let step = try finding { finder throws(TapeError) in
        try finder.first(condition, after: position.step)
      }
      return step.map { [($0 - 1, $0 + 1)] } ?? []
    }
    let spans = try finding { finder throws(TapeError) in
      try finder.spans(of: condition, stepCount: anchor.stepCount)
    }
    return spans?.map { ($0.lowerBound - 1, $0.upperBound + 1) } ?? [(position.step, .max)]
  }

  /// The ranges between consecutive checkpoints; the last range has no end.
  private var checkpointSpans: [Span] {
    zip(checkpoints, checkpoints.dropFirst().map { $0.step + 1 } + [.max]).map {
      ($0.step, $1)
    }
  }

  /// Goes to a place, or to the first step that satisfies a condition; returns false without moving
  /// if there is none.
  package func go(to condition: StepCondition) throws(DebugFailure) -> Bool {
    if let step = condition.stepNumber {
      try seek(before: step)
    } else if let time = condition.instant {
      try seek(to: time)
    } else if condition.isAboutRows {
      return try goOn(to: condition, after: 0)
    } else {
      return try staying(unless: { () throws(DebugFailure) in
        try seek(before: 1)
        return try run(until: [condition]) != nil
      })
    }
    return true
  }

  /// Continues to the next step that satisfies a condition, or to a place ahead; returns false
  /// without moving if there is none.
  package func goOn(to condition: StepCondition) throws(DebugFailure) -> Bool {
    if condition.isAboutRows { return try goOn(to: condition, after: position.step) }
    guard condition.stopsBefore else {
      return try staying(unless: { () throws(DebugFailure) in
        try run(until: [condition]) != nil
      })
    }
    guard condition.lies(after: position) else { return false }
    return try go(to: condition)
  }

  private func goOn(to condition: StepCondition, after step: Int) throws(DebugFailure) -> Bool {
    let found = try finding { finder throws(TapeError) in
      try finder.first(condition, after: step)
    }
    if let found { try seek(before: found + 1) }
    return found != nil
  }

  /// Runs the body; restores the current place if the body returns false.
  private func staying(unless body: () throws(DebugFailure) -> Bool) throws(DebugFailure) -> Bool {
    let (kept, place) = (try copy(of: present), position)
    if try body() { return true }
    (present, position) = (kept, place)
    return false
  }

  /// Goes back to an earlier place, or to just after the last earlier step that satisfies the
  /// condition; returns false without moving if there is none.
  package func goBack(to condition: StepCondition) throws(DebugFailure) -> Bool {
    if condition.stopsBefore {
      guard !condition.lies(after: position) else { return false }
      return try go(to: condition)
    }
    if condition.isAboutRows {
      let found = try finding { finder throws(TapeError) in
        try finder.last(condition, before: position.step)
      }
      if let found { try seek(before: found + 1) }
      return found != nil
    }
    let spans =
      try finding { finder throws(TapeError) in
        try finder.spans(of: condition, stepCount: anchor.stepCount)
      }?.map { (from: $0.lowerBound - 1, before: $0.upperBound + 1) }
      ?? checkpointSpans
    for span in spans.reversed() where span.from < position.step - 1 {
      guard let checkpoint = checkpoints.last(where: { $0.step <= span.from }) else { continue }
      let scratch = try copy(of: checkpoint.channel)
      var order = WalkOrder()
      order.before = span.from + 1
      if checkpoint.step < span.from { try ask(.run(order), on: scratch, moves: false) }
      let limit = min(span.before, position.step)
      let reply = try ask(
        .findLast(condition: condition.description, before: limit), on: scratch, moves: false)
      if let found = reply.found {
        try seek(before: found + 1)
        return true
      }
    }
    return false
  }

  private func finding<Result>(_ body: (StepFinder) throws(TapeError) -> Result)
    throws(DebugFailure) -> Result
  {
    do throws(TapeError) {
      if let finder { return try body(finder) }
      let made = try StepFinder(path: path)
      finder = made
      return try body(made)
    } catch {
      throw .take(error)
    }
  }
}

extension StepCondition {
  /// Returns whether the condition names a place after a position.
  fileprivate func lies(after position: DebugPosition) -> Bool {
    if let stepNumber { return stepNumber > position.step + 1 }
    return instant.map { $0 > position.at } ?? false
  }
}
