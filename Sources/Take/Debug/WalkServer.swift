import CProcess
import FoundationEssentials
import Glibc
import Replay
import Stats
import Tape
import Wire

/// A debugger's request to a process that executes a take.
enum WalkRequest: Codable {
  /// Continue until a condition is satisfied, or for a number of steps.
  case run(WalkOrder)
  /// Find the last step before `step` that satisfies the condition.
  case findLast(condition: String, before: Int)
  /// Return state without moving.
  case look(LookOrder)
  /// Fork the process; the reply passes the copy's channel.
  case copy
}

/// The range of steps to continue over.
struct WalkOrder: Codable {
  /// The conditions as strings; the reply has the index of the satisfied one.
  var conditions: [String] = []
  /// The maximum number of steps; nil for no limit.
  var steps: Int?
  /// The first step that must not be executed, whatever the conditions; nil for no limit.
  var before: Int?
  /// The latest time at which a step may be executed, whatever the conditions; nil for no limit.
  var notAfterNanoseconds: Int64?
  /// The step beyond which checkpoints are created, `checkpointSteps` apart; nil if none are
  /// created.
  var checkpointsBeyond: Int?
  var checkpointSteps = 1
  /// Whether to stop where the stack diverges from the recording.
  var stopsAtDivergence = true
}

/// The parts of the current state that a request asks for.
struct LookOrder: Codable {
  /// Whether to return the state of every peer.
  var states = false
  var stats = false
  /// The number of last steps to return.
  var recent = 0
}

/// The place that a process has reached, and the requested state.
struct WalkReply: Codable {
  /// The kind of message; only `done` ends a request.
  enum Kind: String, Codable {
    case done, progress, checkpoint
  }

  struct Step: Codable, Hashable {
    var number: Int
    var lines: [String]
    var json: String
  }

  struct State: Codable {
    var peer: UInt32
    var label: String
    var tree: SnapshotTree
  }

  var kind = Kind.done
  /// The number of the last executed step, and the step's time.
  var step = 0
  var atNanoseconds: Int64 = 0
  var isAtEnd = false
  /// The index of the condition that ended a `run`; nil if none did.
  var hit: Int?
  /// The step that `findLast` found; nil if there is none.
  var found: Int?
  var recent: [Step] = []
  var states: [State] = []
  var stats: [String] = []
  /// The first difference from the recording; nil until its step has been executed.
  var divergence: String?
  /// The error if the request failed; nil if it succeeded.
  var error: String?
}

// MARK: - WalkChannel

/// One end of the socket between a debugger and a process that executes a take.
final class WalkChannel {
  /// Thrown when the other end is closed.
  struct Gone: Error {}

  private let descriptor: Int32

  /// The maximum length of a message in bytes.
  private static let longest: Int64 = 256 << 20

  init(_ descriptor: Int32) { self.descriptor = descriptor }

  deinit { close(descriptor) }

  /// Sends a message, optionally passing a channel.
  func send(_ message: some Encodable, passing channel: WalkChannel? = nil) throws {
    let data = try JSONEncoder().encode(message)
    let status = data.withUnsafeBytes {
      cprocess_send(
        descriptor, $0.baseAddress, UInt32(clamping: data.count), channel?.descriptor ?? -1)
    }
    if status != 0 { throw Gone() }
  }

  /// Waits for a message; returns it with the channel that was passed along, if any.
  func receive<Message: Decodable>(_: Message.Type) throws -> (Message, WalkChannel?) {
    var passed: Int32 = -1
    let length = cprocess_receive_length(descriptor, &passed)
    let channel = passed >= 0 ? WalkChannel(passed) : nil
    guard (0...WalkChannel.longest).contains(length) else { throw Gone() }
    var data = Data(count: Int(length))
    let status = data.withUnsafeMutableBytes {
      cprocess_receive(descriptor, $0.baseAddress, UInt32(clamping: length))
    }
    if status != 0 { throw Gone() }
    return (try JSONDecoder().decode(Message.self, from: data), channel)
  }

  /// Forks the process; the parent gets the channel to the copy, and the copy gets the channel to
  /// serve.
  static func fork() throws(WalkFailure) -> (toCopy: WalkChannel?, inCopy: WalkChannel?) {
    TapeWalk.prepareForCopy()
    var end: Int32 = -1
    let process = cprocess_fork(&end)
    guard process >= 0 else {
      throw WalkFailure("the process cannot be copied: \(String(cString: strerror(-process)))")
    }
    return process == 0 ? (nil, WalkChannel(end)) : (WalkChannel(end), nil)
  }
}

/// The reason that a walk cannot continue, as one sentence.
package struct WalkFailure: Error, Hashable, Sendable, CustomStringConvertible {
  package let description: String

  init(_ description: String) { self.description = description }
}

// MARK: - WalkServer

/// Executes a take for a debugger at the other end of a channel.
///
/// It runs in a separate process. A fork of that process is a checkpoint: it includes everything
/// that OpenSSL, libsrtp2 and the codecs hold in memory, and continues from the step at which it
/// was forked.
///
/// A copy reads the take through the inherited connection. That is safe because it only reads,
/// within the transaction that the first process opened, and exits without closing anything.
final class WalkServer {
  private let walk: TapeWalk
  private var channel: WalkChannel
  /// The last steps that were executed, oldest first.
  private var recent: [TapeWalk.Step] = []
  /// Whether each stats condition held after each peer's last step; keyed by the condition's text.
  private var held: [String: [UInt32: Bool]] = [:]

  private static let progressInterval = Duration.milliseconds(200)

  init(_ walk: TapeWalk, _ channel: WalkChannel) {
    self.walk = walk
    self.channel = channel
  }

  /// Serves requests until the debugger closes the channel, then exits.
  func serve() -> Never {
    do {
      while true {
        let (request, _) = try channel.receive(WalkRequest.self)
        try answer(request)
      }
    } catch {
      cprocess_exit()
    }
    // Only the compiler needs this call, because `cprocess_exit` does not return.
    exit(0)
  }

  private func answer(_ request: WalkRequest) throws {
    var reply = WalkReply()
    var copy: WalkChannel?
    do {
      switch request {
      case .run(let order): try run(order, &reply)
      case .findLast(let condition, let step):
        reply.found = try findLast(StepCondition(condition), before: step)
      case .look(let order): look(order, &reply)
      case .copy: copy = try fork()
      }
    } catch let failure as WalkFailure {
      reply.error = failure.description
    } catch let error as TapeError {
      reply.error = error.description
    } catch let error as ConditionError {
      reply.error = error.description
    }
    try send(reply, passing: copy)
  }

  private func send(_ reply: WalkReply, passing copy: WalkChannel? = nil) throws {
    var reply = reply
    reply.step = walk.number
    reply.atNanoseconds = walk.at.nanoseconds
    reply.divergence = walk.divergence?.description
    try channel.send(reply, passing: copy)
  }

  /// Forks the process; returns the channel to the copy, but never returns in the copy itself.
  private func fork() throws -> WalkChannel? {
    let (toCopy, inCopy) = try WalkChannel.fork()
    if let inCopy {
      channel = inCopy
      serve()
    }
    return toCopy
  }

  // MARK: Walking

  private func run(_ order: WalkOrder, _ reply: inout WalkReply) throws {
    var conditions: [(number: Int, condition: StepCondition)] = []
    for (number, text) in order.conditions.enumerated() {
      conditions.append((number, try StepCondition(text)))
    }
    guard let next = try walk.next() else {
      reply.isAtEnd = true
      return
    }
    // The walk cannot go back to a place that it has already passed.
    conditions.removeAll { $0.condition.stopsBefore && $0.condition.isReached(before: next) }
    for (_, condition) in conditions where condition.needsStats {
      held[condition.description] = walk.peersMeeting(condition)
    }
    var toldAt = ContinuousClock.now
    var left = order.steps ?? .max
    while let next = try walk.next() {
      if left == 0 || next.number >= order.before ?? .max
        || next.at.nanoseconds > order.notAfterNanoseconds ?? .max
      {
        return
      }
      if let hit = conditions.first(where: {
        $0.condition.stopsBefore && $0.condition.isReached(before: next)
      }) {
        reply.hit = hit.number
        return
      }
      let wasDivergent = walk.divergence != nil
      try advance()
      left -= 1
      if let hit = conditions.first(where: { !$0.condition.stopsBefore && holds($0.condition) }) {
        reply.hit = hit.number
        return
      }
      if order.stopsAtDivergence, !wasDivergent, walk.divergence != nil { return }
      if let beyond = order.checkpointsBeyond, walk.number > beyond,
        walk.number.isMultiple(of: order.checkpointSteps)
      {
        try send(WalkReply(kind: .checkpoint), passing: try fork())
      }
      try report(since: &toldAt)
    }
    reply.isAtEnd = true
  }

  /// Reports progress at most five times per second; throws if the debugger has closed the channel.
  private func report(since toldAt: inout ContinuousClock.Instant) throws {
    guard walk.number & 15 == 0 else { return }
    let now = ContinuousClock.now
    guard now - toldAt >= WalkServer.progressInterval else { return }
    toldAt = now
    try send(WalkReply(kind: .progress))
  }

  private func advance() throws {
    guard let step = try walk.advance() else { return }
    if recent.count == DebugSession.recentMaximum { recent.removeFirst() }
    recent.append(step)
  }

  /// Returns whether a condition is satisfied now.
  ///
  /// A stats condition is satisfied only in the step in which it becomes true for the step's peer.
  private func holds(_ condition: StepCondition) -> Bool {
    let holds = walk.meets(condition)
    guard condition.needsStats, let peer = walk.last?.recorded.peer else { return holds }
    let did = held[condition.description, default: [:]].updateValue(holds, forKey: peer)
    return holds && did != true
  }

  private func findLast(_ condition: StepCondition, before step: Int) throws -> Int? {
    var found: Int?
    if condition.needsStats { held[condition.description] = walk.peersMeeting(condition) }
    var toldAt = ContinuousClock.now
    while let next = try walk.next(), next.number < step {
      try advance()
      if holds(condition) { found = walk.number }
      try report(since: &toldAt)
    }
    return found
  }

  // MARK: Inspection

  private func look(_ order: LookOrder, _ reply: inout WalkReply) {
    reply.isAtEnd = (try? walk.next()) == nil
    if order.states {
      reply.states = walk.states.map {
        WalkReply.State(
          peer: $0.actor, label: $0.label, tree: SnapshotTree($0.name, of: $0.snapshot))
      }
    }
    if order.stats { reply.stats = walk.states.map { walk.stats(of: $0.actor).json } }
    reply.recent = recent.suffix(order.recent).map {
      WalkReply.Step(number: $0.recorded.head.number, lines: $0.lines, json: $0.json)
    }
  }
}
