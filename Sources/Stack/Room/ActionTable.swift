import Wire

/// Requests to the service that are not answered yet.
struct ActionTable {
  enum Kind: Hashable, Sendable {
    case publish([LocalMediaID])
    case unpublish([LocalMediaID])
    case subscribe([MediaID])
    case unsubscribe([MediaID])
    case profile(MediaID, VideoProfile)
    case pause(MediaID, Bool)
    case message

    /// The error code if it is never answered.
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
    /// The call to answer; nil if failure is an event.
    var call: UInt32?
    var due: Instant
  }

  private(set) var actions: [Action] = []
  private var last: UInt32 = 0
  private let limit: Interval

  private static let maximum = 4_096

  init(limit: Interval) { self.limit = limit }

  var deadline: Instant? { actions.reduce(nil) { earliest($0, $1.due) } }

  /// Records a request; nil if too many are unanswered.
  mutating func begin(_ kind: Kind, call: UInt32?, at now: Instant) -> ActionID? {
    guard actions.count < ActionTable.maximum else { return nil }
    last &+= 1
    actions.append(Action(id: ActionID(last), kind: kind, call: call, due: now + limit))
    return ActionID(last)
  }

  /// Records an answer; returns the request, or nil if there is none.
  mutating func end(_ id: ActionID) -> Action? {
    guard let index = actions.firstIndex(where: { $0.id == id }) else { return nil }
    return actions.remove(at: index)
  }

  /// Removes and returns the requests that timed out.
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
