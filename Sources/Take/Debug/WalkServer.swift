import CProcess
import FoundationEssentials
import Glibc
import Replay
import Stats
import Tape
import Wire

/// What a debugger asks of a process that walks through a take.
enum WalkRequest: Codable {
  /// Goes on until one of the conditions holds, or for some steps.
  case run(WalkOrder)
  /// Looks for the last step before `step` after which the condition holds.
  case findLast(condition: String, before: Int)
  /// Looks around without moving.
  case look(LookOrder)
  /// Creates a copy of the process, whose channel comes with the reply.
  case copy
}

/// How far to go.
struct WalkOrder: Codable {
  /// Conditions as texts; the number of the one that held comes back.
  var conditions: [String] = []
  /// At most so many steps.
  var steps: Int?
  /// Stop before this step, whatever else.
  var before: Int?
  /// Stop before the first step that is later than this, whatever else.
  var notAfterNanoseconds: Int64?
  /// Copies that serve as checkpoints are made beyond this step, so many steps apart.
  var checkpointsBeyond: Int?
  var checkpointSteps = 1
  /// Stop where the stack does something else than the recording.
  var stopsAtDivergence = true
}

/// What to tell about the place.
struct LookOrder: Codable {
  /// Whose state is wanted; empty for nobody's.
  var states = false
  var stats = false
  /// How many of the last steps are wanted.
  var recent = 0
}

/// Where a walk stands, and what was asked for.
struct WalkReply: Codable {
  /// What kind of message this is: only the last one ends a request.
  enum Kind: String, Codable {
    case done, progress, checkpoint
  }

  /// A step that was executed.
  struct Step: Codable, Hashable {
    var number: Int
    var lines: [String]
    var json: String
  }

  /// The state of a peer.
  struct State: Codable {
    var peer: UInt32
    var label: String
    var tree: SnapshotTree
  }

  var kind = Kind.done
  /// The step that was executed last, and its time.
  var step = 0
  var atNanoseconds: Int64 = 0
  var isAtEnd = false
  /// The number of the condition that held.
  var hit: Int?
  /// The step that was looked for.
  var found: Int?
  var recent: [Step] = []
  var states: [State] = []
  var stats: [String] = []
  /// The difference to the recording, once there is one.
  var divergence: String?
  /// Why nothing came of it.
  var error: String?
}

// MARK: - WalkChannel

/// One end of the connection between a debugger and a process that walks.
final class WalkChannel {
  /// The other side is gone.
  struct Gone: Error {}

  private let descriptor: Int32

  /// Messages longer than this are not from a walker.
  private static let longest: Int64 = 256 << 20

  init(_ descriptor: Int32) { self.descriptor = descriptor }

  deinit { close(descriptor) }

  /// Sends a message, and a channel with it.
  func send(_ message: some Encodable, passing channel: WalkChannel? = nil) throws {
    let data = try JSONEncoder().encode(message)
    let status = data.withUnsafeBytes {
      cprocess_send(
        descriptor, $0.baseAddress, UInt32(clamping: data.count), channel?.descriptor ?? -1)
    }
    if status != 0 { throw Gone() }
  }

  /// Waits for a message and for the channel that comes with it.
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

  /// Forks: gives the channel to the copy, or in the copy nil and the channel to serve.
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

/// Why a walk cannot continue, in one sentence.
package struct WalkFailure: Error, Hashable, Sendable, CustomStringConvertible {
  package let description: String

  init(_ description: String) { self.description = description }
}

// MARK: - WalkServer

/// A walk that does what a debugger on the other side of a channel asks for.
///
/// It lives in a process of its own. A copy of that process is a checkpoint: it has the whole
/// machine, with everything that OpenSSL, libsrtp2 and the codecs keep in memory, and continues
/// from where the original was when it was copied.
///
/// A copy reads the take through the connection that it inherits. That is safe because it only
/// reads, inside of the transaction that the first process opened and keeps open, and ends without
/// closing anything.
final class WalkServer {
  private let walk: TapeWalk
  private var channel: WalkChannel
  /// The last steps, for looking back; a step keeps its chunk alive, so these are texts.
  private var recent: [TapeWalk.Step] = []
  /// Whether a stats condition held after the last step of each peer, by its text.
  private var held: [String: [UInt32: Bool]] = [:]

  private static let progressInterval = Duration.milliseconds(200)

  init(_ walk: TapeWalk, _ channel: WalkChannel) {
    self.walk = walk
    self.channel = channel
  }

  /// Serves until the debugger is gone, and ends the process.
  func serve() -> Never {
    do {
      while true {
        let (request, _) = try channel.receive(WalkRequest.self)
        try answer(request)
      }
    } catch {
      cprocess_exit()
    }
    // Not reached: the process has ended.
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

  /// Copies the process; the copy serves its own channel and never comes back from here.
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
    // A place that was passed already is not passed again.
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

  /// Tells now and then how far the walk is; whoever does not want it to continue is gone then.
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

  /// Whether a condition holds now; one about stats only when it did not hold before.
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

  // MARK: Looking

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
