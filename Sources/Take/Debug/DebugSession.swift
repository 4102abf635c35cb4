import Media
package import Replay
package import Tape
package import Wire

/// A place in a take, between two steps.
package struct DebugPosition: Hashable, Sendable {
  /// The last executed step; 0 before the first.
  package var step = 0
  package var at = Instant.zero
  package var isAtEnd = false
}

/// A take that can be stepped through in both directions.
///
/// The take is executed in separate processes: one is at the current place, and forked copies at
/// other steps serve as checkpoints. To go back, a copy of the nearest checkpoint runs to the
/// place. Running forward leaves checkpoints at equal intervals, so one is near each visited place,
/// and their number is bounded.
package final class DebugSession {
  struct Checkpoint {
    var step: Int
    var at: Instant
    var channel: WalkChannel
    /// Whether the checkpoint was created while going back, in addition to the regular checkpoints.
    var isExtra = false
  }

  package let path: String
  package internal(set) var position = DebugPosition()
  /// The first difference from the recording; nil until its step has been executed.
  package private(set) var divergence: String?

  /// The walk that opens the file before the first fork and keeps it open, so that all processes
  /// see the file in the same state.
  let anchor: TapeWalk
  var present: WalkChannel
  var checkpoints: [Checkpoint]
  /// The number of steps between checkpoints.
  private let stride: Int
  /// Finds steps by conditions on rows; nil until first used.
  var finder: StepFinder?
  /// Called repeatedly during long operations, with the time reached in the take.
  private let progress: (Instant) -> Void
  /// Polled whenever a process reports progress: returning true aborts the work; if nil, work
  /// cannot be aborted.
  package var isInterrupted: (() -> Bool)?

  /// The maximum number of regular checkpoints, and the minimum number of steps between them;
  /// fewer steps replay in a moment anyway.
  private static let checkpointMaximum = 96
  private static let strideMinimum = 250
  /// The maximum number of checkpoints created while going back.
  private static let extraMaximum = 8
  /// When going back, an extra checkpoint is created this many steps before the target, because
  /// users often go back further.
  private static let backStride = 48

  /// Opens a take in a new process; the calling process must have a single thread.
  ///
  /// If the take contains media, its frames replace the codecs.
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

  /// The time of the take's last step, and the number of steps in the take.
  package var end: Instant { anchor.end }
  package var stepCount: Int { anchor.stepCount }
  /// The maximum number of recent steps available at any place.
  package static let recentMaximum = 20

  package var checkpointCount: Int { checkpoints.count }

  // MARK: Moving

  /// Runs forward the given number of steps.
  package func run(steps: Int) throws(DebugFailure) { try walk(until: [], steps: steps) }

  /// Makes the current process continue; returns the index of the satisfied condition, if any.
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

  /// Goes to just before a step, forward or back.
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
    // If a checkpoint is just before the wanted step, nothing has to run.
    if position.step < wanted - 1 { try walk(until: [], before: wanted) }
  }

  /// Goes to just before the first step after a time, forward or back.
  package func seek(to time: Instant) throws(DebugFailure) {
    let isBack = position.at > time
    if isBack || checkpoints.contains(where: { $0.at <= time && $0.step > position.step }) {
      try activate { $0.at <= time }
    }
    try walk(until: [], notAfter: time)
  }

  /// Replaces the current process with a copy of the last suitable checkpoint.
  func activate(_ fits: (Checkpoint) -> Bool) throws(DebugFailure) {
    guard let checkpoint = checkpoints.last(where: fits) else { return }
    present = try copy(of: checkpoint.channel)
    position = DebugPosition(step: checkpoint.step, at: checkpoint.at)
  }

  // MARK: Inspection

  /// Returns descriptions of the last steps, oldest first.
  package func recentSteps(_ count: Int) throws(DebugFailure) -> [(lines: [String], json: String)] {
    try look { $0.recent = count }.recent.map { ($0.lines, $0.json) }
  }

  /// Returns every peer's state at this place.
  package func states() throws(DebugFailure) -> [(peer: UInt32, label: String, tree: SnapshotTree)]
  {
    try look { $0.states = true }.states.map { ($0.peer, $0.label, $0.tree) }
  }

  /// Returns each peer's `getStats` result at this place, as JSON arrays.
  package func stats() throws(DebugFailure) -> [String] {
    try look { $0.stats = true }.stats
  }

  /// Returns every peer's state at another place, with the last step before it; the session does
  /// not move.
  package func states(at place: StepCondition) throws(DebugFailure)
    -> (states: [(peer: UInt32, label: String, tree: SnapshotTree)], step: Int)
  {
    let (kept, here) = (present, position)
    defer { (present, position) = (kept, here) }
    // A copy moves there, so that the current process need not come back.
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

  /// Sends a request to a process and handles its messages until it is done.
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
      throw WalkFailure(reply.error ?? "a checkpoint could not be copied")
    } catch let failure as WalkFailure {
      throw .walk(failure)
    } catch {
      throw .walk(WalkFailure("a checkpoint of \(path) ended; open the take again"))
    }
  }

  /// Runs work that may be interrupted; after an interruption, the session is at its former place.
  ///
  /// Checkpoints created on the way stay. An interrupted process ends by itself, because the
  /// session closes its end of the channel.
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
    // The extra checkpoint farthest from the current place is the least useful.
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

/// Thrown when `isInterrupted` returns true, to leave the loop that handles a process's messages.
private struct WalkInterruption: Error {}

/// The reason that a session cannot execute a command.
package enum DebugFailure: Error, Sendable {
  case take(TapeError)
  case walk(WalkFailure)
  case condition(ConditionError)
  /// A command that is unknown or impossible here.
  case command(String)
  case file(WholeFile.Failure)
  /// `isInterrupted` returned true during the work.
  case interrupted

  /// The failure as one sentence.
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
