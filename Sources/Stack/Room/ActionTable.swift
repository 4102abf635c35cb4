import Wire

/// What the service was asked for and has not answered.
struct ActionTable {
  enum Kind: Hashable, Sendable {
    case publish([LocalMediaID])
    case unpublish([LocalMediaID])
    case subscribe([MediaID])
    case unsubscribe([MediaID])
    case profile(MediaID, VideoProfile)
    case pause(MediaID, Bool)
    case message

    /// The number of a request that was never answered.
    var timeout: RoomErrorCode {
      switch self {
      case .publish: .publishFailed
      case .unpublish: .unpublishFailed
      case .subscribe, .unsubscribe: .subscribeTimedOut
      case .profile: .profileFailed
      case .pause: .pauseFailed
      case .message: .messageFailed
      }
    }
  }

  struct Action: Sendable {
    var id: ActionID
    var kind: Kind
    /// The call that is answered with it; nil: what goes wrong is an event.
    var call: UInt32?
    var due: Instant
  }

  private(set) var actions: [Action] = []
  private var last: UInt32 = 0
  private let limit: Interval

  private static let maximum = 4_096

  init(limit: Interval) { self.limit = limit }

  var deadline: Instant? { actions.reduce(nil) { earliest($0, $1.due) } }

  /// Starts to wait for an answer; nil when too many are awaited.
  mutating func begin(_ kind: Kind, call: UInt32?, at now: Instant) -> ActionID? {
    guard actions.count < ActionTable.maximum else { return nil }
    last &+= 1
    actions.append(Action(id: ActionID(last), kind: kind, call: call, due: now + limit))
    return ActionID(last)
  }

  /// The answer is there; nil for one that nobody awaits.
  mutating func end(_ id: ActionID) -> Action? {
    guard let index = actions.firstIndex(where: { $0.id == id }) else { return nil }
    return actions.remove(at: index)
  }

  /// What has not been answered in time.
  mutating func removeOverdue(at now: Instant) -> [Action] {
    let overdue = actions.filter { $0.due <= now }
    actions.removeAll { $0.due <= now }
    return overdue
  }

  mutating func removeAll() -> [Action] {
    defer { actions = [] }
    return actions
  }
}
