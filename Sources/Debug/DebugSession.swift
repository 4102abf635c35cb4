import Media
package import Replay
package import Tape
package import Wire

/// Where a session stands in its take.
package struct DebugPosition: Hashable, Sendable {
  /// The step that was executed last; 0 before the first.
  package var step = 0
  package var at = Instant.zero
  package var isAtEnd = false
}

/// A take that is walked through forward and backward.
///
/// The walk happens in other processes: the present one, and its copies at earlier steps as
/// checkpoints. Going back is to let a copy of the nearest checkpoint go on to the place. Going
/// forward leaves checkpoints an equal number of steps apart, so many over the whole take that any
/// place that was passed once is a small part of the take away, and their number is bounded.
package final class DebugSession {
  private struct Checkpoint {
    var step: Int
    var at: Instant
    var channel: WalkChannel
    /// Left while going back, not at its place in the row.
    var isExtra = false
  }

  package let path: String
  package private(set) var position = DebugPosition()
  /// What the stack did differently from the recording, once that place was passed.
  package private(set) var divergence: String?

  /// Opened before the first copy was made and kept open, so that the file stays as all see it.
  private let anchor: TapeWalk
  private var present: WalkChannel
  private var checkpoints: [Checkpoint]
  /// How many steps checkpoints are apart.
  private let stride: Int
  /// What tells the steps that conditions name; made when it is first asked.
  private var finder: StepFinder?
  /// Called now and then during long work, with the place that was reached.
  private let progress: (Instant) -> Void

  /// How many checkpoints a whole take gets, but for those of a short one, which are not closer
  /// than it takes to replay in a moment.
  private static let checkpointMaximum = 96
  private static let strideMinimum = 250
  /// How many checkpoints are left while going back.
  private static let extraMaximum = 8
  /// Before a place that is gone back to, another checkpoint is left: most often one goes on
  /// going back.
  private static let backStride = 48

  /// Opens a take in a process of its own; the calling process must have one thread.
  ///
  /// Frames of the take stand in for the codecs where it has them.
  package init(path: String, progress: @escaping (Instant) -> Void = { _ in })
    throws(DebugFailure)
  {
    self.path = path
    self.progress = progress
    let walk: TapeWalk
    do throws(TapeError) {
      let header = try TapeReader(path: path).header
      let substitution = try Substitution(of: path, header, by: try Toolchain.current(for: path))
      walk = try TapeWalk(
        path: path, skipsCodecs: header.keepsMedia, security: substitution.security,
        codecs: { LibraryCodecs() })
    } catch {
      throw .take(error)
    }
    anchor = walk
    stride = max(
      DebugSession.strideMinimum, walk.stepCount / DebugSession.checkpointMaximum + 1)
    do throws(WalkFailure) {
      let (toCopy, inCopy) = try WalkChannel.fork()
      if let inCopy { WalkServer(walk, inCopy).serve() }
      guard let toCopy else { throw WalkFailure("the process cannot be copied") }
      present = toCopy
    } catch {
      throw .walk(error)
    }
    checkpoints = []
    try keepCheckpoint()
  }

  /// The time of the last step of the take.
  package var end: Instant { anchor.end }

  /// How many checkpoints there are.
  package var checkpointCount: Int { checkpoints.count }

  // MARK: Moving

  /// Goes on from here until a condition holds; gives the number of the one that did.
  @discardableResult
  package func run(until conditions: [StepCondition]) throws(DebugFailure) -> Int? {
    guard conditions.allSatisfy(\.isAboutRows) else {
      return try walk(until: conditions)
    }
    // Where rows decide, the take's tables tell the place, and the nearest checkpoint leads there.
    var nearest: (step: Int, number: Int)?
    for (number, condition) in conditions.enumerated() {
      guard
        let step = try finding({ finder throws(TapeError) in
          try finder.first(condition, after: position.step)
        })
      else { continue }
      if step < nearest?.step ?? .max { nearest = (step, number) }
    }
    try seek(before: (nearest?.step ?? anchor.stepCount) + 1)
    position.isAtEnd = position.step == anchor.stepCount
    // A difference to the recording ends the way early.
    return position.step == nearest?.step ? nearest?.number : nil
  }

  /// Goes on by a number of steps.
  package func run(steps: Int) throws(DebugFailure) { try walk(until: [], steps: steps) }

  /// Lets the present process go on.
  @discardableResult
  private func walk(until conditions: [StepCondition], steps: Int? = nil, before: Int? = nil)
    throws(DebugFailure) -> Int?
  {
    var order = WalkOrder()
    order.conditions = conditions.map(\.description)
    order.steps = steps
    order.before = before
    order.checkpointsBeyond = checkpoints.last { !$0.isExtra }?.step ?? 0
    order.checkpointSteps = stride
    let reply = try ask(.run(order))
    position.isAtEnd = reply.isAtEnd
    return reply.hit
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

  /// Goes to just before a step, in whichever direction it lies.
  package func seek(before step: Int) throws(DebugFailure) {
    let wanted = max(1, step)
    if wanted <= position.step {
      if wanted - DebugSession.backStride > 0 {
        try activate { $0.step < wanted - DebugSession.backStride }
        try walk(until: [], before: wanted - DebugSession.backStride)
        try keepCheckpoint(isExtra: true)
      } else {
        try activate { $0.step < wanted }
      }
    } else if let nearest = checkpoints.last(where: { $0.step < wanted }),
      nearest.step > position.step
    {
      try activate { $0.step < wanted }
    }
    // A checkpoint may stand exactly there.
    if position.step < wanted - 1 { try walk(until: [], before: wanted) }
  }

  /// Goes to just before the first step after a time.
  package func seek(to time: Instant) throws(DebugFailure) {
    let isBack = position.at > time
    if isBack || checkpoints.contains(where: { $0.at <= time && $0.step > position.step }) {
      try activate { $0.at <= time }
    }
    let condition: StepCondition
    do throws(ConditionError) {
      condition = try StepCondition("\(Double(time.nanoseconds) / 1e9)s")
    } catch {
      throw .condition(error)
    }
    try walk(until: [condition])
  }

  /// Goes back to just after the last step before this one that meets the condition; false when
  /// there is none, and then nothing moves.
  package func goBack(to condition: StepCondition) throws(DebugFailure) -> Bool {
    if condition.isAboutRows {
      let found = try finding { finder throws(TapeError) in
        try finder.last(condition, before: position.step)
      }
      if let found { try seek(before: found + 1) }
      return found != nil
    }
    var limit = position.step
    for checkpoint in checkpoints.reversed() where checkpoint.step < limit - 1 {
      let scratch = try copy(of: checkpoint.channel)
      let reply = try ask(
        .findLast(condition: condition.description, before: limit), on: scratch, moves: false)
      if let found = reply.found {
        try seek(before: found + 1)
        return true
      }
      limit = checkpoint.step + 1
    }
    return false
  }

  /// Lets a copy of the last fitting checkpoint take the place of the present process.
  private func activate(_ fits: (Checkpoint) -> Bool) throws(DebugFailure) {
    guard let checkpoint = checkpoints.last(where: fits) else { return }
    present = try copy(of: checkpoint.channel)
    position = DebugPosition(step: checkpoint.step, at: checkpoint.at)
  }

  // MARK: Looking

  /// The last steps in words, oldest first.
  package func recentSteps(_ count: Int) throws(DebugFailure) -> [(lines: [String], json: String)] {
    try look { $0.recent = count }.recent.map { ($0.lines, $0.json) }
  }

  /// The state of every peer here.
  package func states() throws(DebugFailure) -> [(peer: UInt32, label: String, tree: SnapshotTree)]
  {
    try look { $0.states = true }.states.map { ($0.peer, $0.label, $0.tree) }
  }

  /// What getStats would give for each peer here, as JSON arrays.
  package func stats() throws(DebugFailure) -> [String] {
    try look { $0.stats = true }.stats
  }

  /// The state of every peer at another place; this one stays.
  package func states(before step: Int) throws(DebugFailure)
    -> [(peer: UInt32, label: String, tree: SnapshotTree)]
  {
    let (kept, place) = (present, position)
    defer { (present, position) = (kept, place) }
    try activate { $0.step < step }
    if position.step < step - 1 { try walk(until: [], before: step) }
    return try states()
  }

  private func look(_ change: (inout LookOrder) -> Void) throws(DebugFailure) -> WalkReply {
    var order = LookOrder()
    change(&order)
    let reply = try ask(.look(order))
    position.isAtEnd = reply.isAtEnd
    return reply
  }

  // MARK: Processes

  /// Asks the present process, or another one, and follows what it tells until it is done.
  @discardableResult
  private func ask(_ request: WalkRequest, on other: WalkChannel? = nil, moves: Bool = true)
    throws(DebugFailure) -> WalkReply
  {
    let channel = other ?? present
    do {
      try channel.send(request)
      while true {
        let (reply, copy) = try channel.receive(WalkReply.self)
        let at = Instant(nanoseconds: reply.atNanoseconds)
        switch reply.kind {
        case .progress: progress(at)
        case .checkpoint:
          if let copy { keep(Checkpoint(step: reply.step, at: at, channel: copy)) }
        case .done:
          if let error = reply.error { throw WalkFailure(error) }
          if moves { position = DebugPosition(step: reply.step, at: at, isAtEnd: reply.isAtEnd) }
          if moves { divergence = reply.divergence ?? divergence }
          return reply
        }
      }
    } catch let failure as WalkFailure {
      throw .walk(failure)
    } catch {
      throw .walk(WalkFailure("the process that replays \(path) ended; open the take again"))
    }
  }

  private func copy(of channel: WalkChannel) throws(DebugFailure) -> WalkChannel {
    do {
      try channel.send(WalkRequest.copy)
      let (reply, copy) = try channel.receive(WalkReply.self)
      if let copy { return copy }
      throw WalkFailure(reply.error ?? "a checkpoint gave no copy")
    } catch let failure as WalkFailure {
      throw .walk(failure)
    } catch {
      throw .walk(WalkFailure("a checkpoint of \(path) ended; open the take again"))
    }
  }

  private func keepCheckpoint(isExtra: Bool = false) throws(DebugFailure) {
    keep(
      Checkpoint(
        step: position.step, at: position.at, channel: try copy(of: present), isExtra: isExtra))
  }

  private func keep(_ checkpoint: Checkpoint) {
    let index = checkpoints.lastIndex { $0.step < checkpoint.step }.map { $0 + 1 } ?? 0
    if index < checkpoints.count, checkpoints[index].step == checkpoint.step { return }
    checkpoints.insert(checkpoint, at: index)
    // The farthest from here is needed least.
    let extras = checkpoints.indices.filter { checkpoints[$0].isExtra }
    guard extras.count > DebugSession.extraMaximum,
      let farthest = extras.max(by: { distance($0) < distance($1) })
    else { return }
    checkpoints.remove(at: farthest)
  }

  private func distance(_ index: Int) -> UInt {
    (checkpoints[index].step - position.step).magnitude
  }
}

/// Why a session cannot do what it was asked.
package enum DebugFailure: Error, Sendable {
  case take(TapeError)
  case walk(WalkFailure)
  case condition(ConditionError)
  /// A command that is not understood, or a file that cannot be written.
  case command(String)

  /// The reason in one sentence.
  package var description: String {
    switch self {
    case .take(let error): error.description
    case .walk(let failure): failure.description
    case .condition(let error): error.description
    case .command(let text): text
    }
  }
}
