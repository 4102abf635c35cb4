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
  struct Checkpoint {
    var step: Int
    var at: Instant
    var channel: WalkChannel
    /// Left while going back, not at its place in the row.
    var isExtra = false
  }

  package let path: String
  package internal(set) var position = DebugPosition()
  /// What the stack did differently from the recording, once that place was passed.
  package private(set) var divergence: String?

  /// Opened before the first copy was made and kept open, so that the file stays as all see it.
  let anchor: TapeWalk
  var present: WalkChannel
  var checkpoints: [Checkpoint]
  /// How many steps checkpoints are apart.
  private let stride: Int
  /// What tells the steps that conditions name; made when it is first asked.
  var finder: StepFinder?
  /// Called now and then during long work, with the place that was reached.
  private let progress: (Instant) -> Void
  /// Asked as often whether the work is to be left.
  package var isInterrupted: (() -> Bool)?

  /// How many checkpoints a whole take gets, but for those of a short one, which are not closer
  /// than it takes to replay in a moment.
  private static let checkpointMaximum = 96
  private static let strideMinimum = 250
  /// How many checkpoints are left while going back.
  private static let extraMaximum = 8
  /// Before a place that is gone back to, another checkpoint is left: most often one continues
  /// going back.
  private static let backStride = 48

  /// Opens a take in a process of its own; the calling process must have one thread.
  ///
  /// Frames of the take stand in for the codecs where it has them.
  package init(
    path: String, kinds: MachineKinds = MachineKinds(),
    progress: @escaping (Instant) -> Void = { _ in }
  ) throws(DebugFailure) {
    self.path = path
    self.progress = progress
    let walk: TapeWalk
    do throws(TapeError) {
      let header = try TapeReader(path: path).header
      let substitution = try Substitution(of: path, header, by: try Toolchain.current(for: path))
      walk = try TapeWalk(
        path: path, skipsCodecs: header.keepsMedia, security: substitution.security,
        kinds: kinds, codecs: { LibraryCodecs() })
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
    try saveCheckpoint()
  }

  /// The time of the last step of the take, and how many steps it has.
  package var end: Instant { anchor.end }
  package var stepCount: Int { anchor.stepCount }
  /// How many of the last steps are remembered at any place.
  package static let recentMaximum = 20

  /// How many checkpoints there are.
  package var checkpointCount: Int { checkpoints.count }

  // MARK: Moving

  /// Goes on by a number of steps.
  package func run(steps: Int) throws(DebugFailure) { try walk(until: [], steps: steps) }

  /// Lets the present process continue.
  @discardableResult
  func walk(
    until conditions: [StepCondition], steps: Int? = nil, before: Int? = nil,
    notAfter time: Instant? = nil
  ) throws(DebugFailure) -> Int? {
    var order = WalkOrder()
    order.conditions = conditions.map(\.description)
    order.steps = steps
    order.before = before
    order.notAfterNanoseconds = time?.nanoseconds
    order.checkpointsBeyond = checkpoints.last { !$0.isExtra }?.step ?? 0
    order.checkpointSteps = stride
    let reply = try ask(.run(order))
    position.isAtEnd = reply.isAtEnd
    return reply.hit
  }

  /// Goes to just before a step, in whichever direction it lies.
  package func seek(before step: Int) throws(DebugFailure) {
    let wanted = max(1, step)
    if wanted <= position.step {
      if wanted - DebugSession.backStride > 0 {
        try activate { $0.step < wanted - DebugSession.backStride }
        try walk(until: [], before: wanted - DebugSession.backStride)
        try saveCheckpoint(isExtra: true)
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

  /// Goes to just before the first step after a time, in whichever direction it lies.
  package func seek(to time: Instant) throws(DebugFailure) {
    let isBack = position.at > time
    if isBack || checkpoints.contains(where: { $0.at <= time && $0.step > position.step }) {
      try activate { $0.at <= time }
    }
    try walk(until: [], notAfter: time)
  }

  /// Lets a copy of the last fitting checkpoint take the place of the present process.
  func activate(_ fits: (Checkpoint) -> Bool) throws(DebugFailure) {
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

  /// The state of every peer at another place, and its step; this one stays.
  package func states(at place: StepCondition) throws(DebugFailure)
    -> (states: [(peer: UInt32, label: String, tree: SnapshotTree)], step: Int)
  {
    let (kept, here) = (present, position)
    defer { (present, position) = (kept, here) }
    // The present process stays where it is.
    present = try copy(of: kept)
    _ = try go(to: place)
    return (try states(), position.step)
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
  func ask(_ request: WalkRequest, on other: WalkChannel? = nil, moves: Bool = true)
    throws(DebugFailure) -> WalkReply
  {
    let channel = other ?? present
    do {
      try channel.send(request)
      while true {
        let (reply, copy) = try channel.receive(WalkReply.self)
        let at = Instant(nanoseconds: reply.atNanoseconds)
        switch reply.kind {
        case .progress:
          progress(at)
          if isInterrupted?() == true { throw WalkInterruption() }
        case .checkpoint:
          if let copy { store(Checkpoint(step: reply.step, at: at, channel: copy)) }
          if isInterrupted?() == true { throw WalkInterruption() }
        case .done:
          if let error = reply.error { throw WalkFailure(error) }
          if moves { position = DebugPosition(step: reply.step, at: at, isAtEnd: reply.isAtEnd) }
          if moves { divergence = reply.divergence ?? divergence }
          return reply
        }
      }
    } catch let failure as WalkFailure {
      throw .walk(failure)
    } catch is WalkInterruption {
      throw .interrupted
    } catch {
      throw .walk(WalkFailure("the process that replays \(path) ended; open the take again"))
    }
  }

  func copy(of channel: WalkChannel) throws(DebugFailure) -> WalkChannel {
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

  /// Does something that may be interrupted, after which the session is where it was.
  ///
  /// Checkpoints that were made by the way stay. The process that was walking ends by itself, since
  /// nobody listens to it any more.
  func returning<Value>(_ body: () throws(DebugFailure) -> Value) throws(DebugFailure) -> Value {
    guard isInterrupted != nil else { return try body() }
    let (kept, place) = (try copy(of: present), position)
    do throws(DebugFailure) {
      return try body()
    } catch {
      if case .interrupted = error { (present, position) = (kept, place) }
      throw error
    }
  }

  private func saveCheckpoint(isExtra: Bool = false) throws(DebugFailure) {
    store(
      Checkpoint(
        step: position.step, at: position.at, channel: try copy(of: present), isExtra: isExtra))
  }

  private func store(_ checkpoint: Checkpoint) {
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

/// Somebody does not want to wait for a walk.
private struct WalkInterruption: Error {}

/// Why a session cannot do what it was asked.
package enum DebugFailure: Error, Sendable {
  case take(TapeError)
  case walk(WalkFailure)
  case condition(ConditionError)
  /// A command that is not understood, or cannot be done here.
  case command(String)
  case file(WholeFile.Failure)
  /// Somebody did not want to wait for the end.
  case interrupted

  /// The reason in one sentence.
  package var description: String {
    switch self {
    case .take(let error): error.description
    case .walk(let failure): failure.description
    case .condition(let error): error.description
    case .command(let text): text
    case .file(let failure): failure.description
    case .interrupted: "interrupted"
    }
  }
}
