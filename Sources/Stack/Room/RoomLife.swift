import Wire

/// The state of a room, the progress of connecting, and its time limits.
struct RoomLife {
  private(set) var state = RoomState.initialized
  /// The progress last reported; 0 before any.
  private(set) var progress = 0
  /// The time limit for connecting or leaving.
  private(set) var deadline: Instant?
  /// Whether a fatal error was reported.
  private(set) var hasFailed = false

  /// The progress of connecting after each step.
  enum Milestone: Int {
    case begun = 1
    case signedIn = 10
    case opened = 30
    case attached = 45
    case joining = 60
    case offered = 70
    case checking = 80
    case secured = 90
    case done = 100
  }

  private static let leaveLimit = Interval.seconds(5)

  /// Enters another state; nil if unchanged.
  mutating func enter(_ next: RoomState, at now: Instant, limit: Interval? = nil) -> RoomOutput? {
    guard next != state else { return nil }
    defer { state = next }
    deadline = limit.map { now + $0 }
    if next == .disconnecting { deadline = now + RoomLife.leaveLimit }
    return .state(machine: "room", from: state.rawValue, to: next.rawValue)
  }

  /// Reports progress, which never decreases; nil if unchanged.
  mutating func reach(_ milestone: Milestone) -> RoomOutput? {
    guard state == .connecting, milestone.rawValue > progress else { return nil }
    progress = milestone.rawValue
    return .event(.connecting(progress: progress))
  }

  mutating func fail() { hasFailed = true }

  /// Returns the state whose time limit has passed, if any.
  mutating func expire(at now: Instant) -> RoomState? {
    guard let deadline, deadline <= now else { return nil }
    self.deadline = nil
    return state
  }
}

/// The right to enter, and when it has to be renewed.
struct TokenState {
  private(set) var text: String?
  /// When a new one is requested.
  private(set) var deadline: Instant?
  private(set) var isAwaited = false

  /// Stores a token, to be renewed after four fifths of its lifetime.
  mutating func renew(_ text: String, lifetime: Interval?, at now: Instant) {
    self.text = text
    isAwaited = false
    deadline = lifetime.map { now + $0 * 4 / 5 }
  }

  mutating func forget() { self = TokenState() }

  /// Returns whether to request another one now.
  mutating func consumeDue(at now: Instant) -> Bool {
    guard let deadline, deadline <= now else { return false }
    self.deadline = nil
    isAwaited = true
    return true
  }
}

/// The calls that are answered once the room is joined, and once it is over.
struct WaitingCalls {
  private var entering: UInt32?
  private var leaving: [UInt32] = []

  mutating func awaitRoom(_ call: UInt32) { entering = call }

  mutating func awaitEnd(_ call: UInt32) { leaving.append(call) }

  /// Answers the calls that waited for the room.
  mutating func enter() -> [RoomOutput] {
    entering.take().map { [.reply(call: $0, .done)] } ?? []
  }

  /// Fails the calls that waited for the room.
  mutating func refuse(_ failure: SignalingFailure) -> [RoomOutput] {
    entering.take().map { [.reply(call: $0, .failed(failure))] } ?? []
  }

  /// Answers the calls that waited for the end.
  mutating func leave() -> [RoomOutput] {
    defer { leaving = [] }
    return leaving.map { .reply(call: $0, .done) }
  }
}
