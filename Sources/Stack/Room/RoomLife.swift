import Wire

/// The state of a room, how far connecting is, and until when it may take.
struct RoomLife {
  private(set) var state = RoomState.initialized
  /// The last progress that was told, 0 before any.
  private(set) var progress = 0
  /// When connecting or leaving has taken too long.
  private(set) var deadline: Instant?
  /// Whether an error was told that ends the room.
  private(set) var hasFailed = false

  /// How far connecting is with each thing that is done.
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

  /// Goes on to another state; nil when it is that already.
  mutating func enter(_ next: RoomState, at now: Instant, limit: Interval? = nil) -> RoomOutput? {
    guard next != state else { return nil }
    defer { state = next }
    deadline = limit.map { now + $0 }
    if next == .disconnecting { deadline = now + RoomLife.leaveLimit }
    return .state(machine: "room", from: state.rawValue, to: next.rawValue)
  }

  /// Tells progress, which never goes back; nil when that is no news.
  mutating func reach(_ milestone: Milestone) -> RoomOutput? {
    guard state == .connecting, milestone.rawValue > progress else { return nil }
    progress = milestone.rawValue
    return .event(.connecting(progress: progress))
  }

  mutating func fail() { hasFailed = true }

  /// What has taken too long; nil when nothing has.
  mutating func expire(at now: Instant) -> RoomState? {
    guard let deadline, deadline <= now else { return nil }
    self.deadline = nil
    return state
  }
}

/// The right to enter, and when it has to be renewed.
struct RoomToken {
  private(set) var text: String?
  /// When another one is asked for.
  private(set) var deadline: Instant?
  private(set) var isAwaited = false

  /// It is renewed when four fifths of its time are over.
  mutating func renew(_ text: String, lifetime: Interval?, at now: Instant) {
    self.text = text
    isAwaited = false
    deadline = lifetime.map { now + $0 * 4 / 5 }
  }

  mutating func forget() { self = RoomToken() }

  /// Whether another one is to be asked for now.
  mutating func consumeDue(at now: Instant) -> Bool {
    guard let deadline, deadline <= now else { return false }
    self.deadline = nil
    isAwaited = true
    return true
  }
}

/// The calls that are answered when the room is there, and those when it is over.
struct WaitingCalls {
  private var entering: UInt32?
  private var leaving: [UInt32] = []

  mutating func awaitRoom(_ call: UInt32) { entering = call }

  mutating func awaitEnd(_ call: UInt32) { leaving.append(call) }

  /// The room is there.
  mutating func enter() -> [RoomOutput] {
    entering.take().map { [.reply(call: $0, .done)] } ?? []
  }

  /// The room will not be there.
  mutating func refuse(_ failure: SignalingFailure) -> [RoomOutput] {
    entering.take().map { [.reply(call: $0, .failed(failure))] } ?? []
  }

  /// The room is over.
  mutating func leave() -> [RoomOutput] {
    defer { leaving = [] }
    return leaving.map { .reply(call: $0, .done) }
  }
}
