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
