import Wire

/// A room's participants and their published media.
struct ParticipantTable {
  struct Person: Sendable {
    /// The participant's number, which stays the same if the participant leaves and returns.
    var number: Int
    var id: String
    var name: String
    var isLocal: Bool
    var isPresent: Bool
  }

  private(set) var localName = ""
  /// All participants in order of first appearance.
  private(set) var people: [Person] = []
  /// Media of other participants in order of publication.
  private(set) var media: [PublishedMedia] = []

  /// The maximum numbers of participants and media, because a server could announce any number.
  private static let peopleMaximum = 10_000
  private static let mediaMaximum = 20_000

  var local: Person? { people.first { $0.isLocal } }

  /// Other participants who are present, in order of first appearance.
  var others: [Person] { people.filter { $0.isPresent && !$0.isLocal } }

  func person(_ id: String) -> Person? { people.first { $0.id == id } }

  func media(_ id: MediaID) -> PublishedMedia? { media.first { $0.id == id } }

  func media(of owner: String) -> [PublishedMedia] { media.filter { $0.owner == owner } }

  mutating func setOwnName(_ name: String) { localName = name }

  /// Records that a participant is present; returns nil if the participant is already present or
  /// there are too many participants.
  mutating func enter(_ id: String, name: String, isLocal: Bool = false) -> PersonChange? {
    if let index = people.firstIndex(where: { $0.id == id }) {
      guard !people[index].isPresent else { return nil }
      people[index].isPresent = true
      people[index].name = name
      return .entered(number: people[index].number, id: id, name: name, isLocal: isLocal)
    }
    guard people.count < ParticipantTable.peopleMaximum else { return nil }
    let number = people.count + 1
    people.append(
      Person(number: number, id: id, name: name, isLocal: isLocal, isPresent: true))
    return .entered(number: number, id: id, name: name, isLocal: isLocal)
  }

  /// Records that a participant left; returns nil if the participant was not present.
  mutating func leave(_ id: String) -> PersonChange? {
    guard let index = people.firstIndex(where: { $0.id == id && $0.isPresent }) else { return nil }
    people[index].isPresent = false
    return .left(number: people[index].number)
  }

  /// Records published media; returns false if the media is already known, its owner is local or
  /// not present, or there is too much media.
  mutating func publish(_ published: PublishedMedia) -> Bool {
    guard media.count < ParticipantTable.mediaMaximum, media(published.id) == nil,
      let owner = person(published.owner), owner.isPresent, !owner.isLocal
    else { return false }
    media.append(published)
    return true
  }

  mutating func unpublish(_ id: MediaID) -> PublishedMedia? {
    guard let index = media.firstIndex(where: { $0.id == id }) else { return nil }
    return media.remove(at: index)
  }

  /// Records changed media, ignoring owner and kind; returns false if nothing changed.
  mutating func change(_ changed: PublishedMedia) -> Bool {
    guard let index = media.firstIndex(where: { $0.id == changed.id }) else { return false }
    var next = changed
    (next.owner, next.kind) = (media[index].owner, media[index].kind)
    guard next != media[index] else { return false }
    media[index] = next
    return true
  }
}

// MARK: - RoomLife

/// A room's state, the progress of connecting, and the time limits for connecting and leaving.
struct RoomLife {
  private(set) var state = RoomState.initialized
  /// The progress last reported; 0 before the first report.
  private(set) var progress = 0
  /// The instant at which connecting or leaving times out; nil if neither is in progress.
  private(set) var deadline: Instant?
  /// Whether a fatal error has been reported.
  private(set) var hasFailed = false

  /// The steps of connecting, with the progress in percent that each one reaches.
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

  /// Enters a state; returns nil if the room is already in that state.
  mutating func enter(_ next: RoomState, at now: Instant, limit: Interval? = nil) -> RoomOutput? {
    guard next != state else { return nil }
    defer { state = next }
    deadline = limit.map { now + $0 }
    if next == .disconnecting { deadline = now + RoomLife.leaveLimit }
    return .state(machine: "room", from: state.rawValue, to: next.rawValue)
  }

  /// Reports progress, which never decreases; returns nil if the progress is unchanged or the room
  /// is not connecting.
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

/// The token for the room, and when it must be renewed.
struct TokenState {
  private(set) var text: String?
  /// The instant at which to request a new token; nil if no renewal is scheduled.
  private(set) var deadline: Instant?
  private(set) var isAwaited = false

  /// Stores a token, to be renewed after four fifths of its lifetime.
  mutating func renew(_ text: String, lifetime: Interval?, at now: Instant) {
    self.text = text
    isAwaited = false
    deadline = lifetime.map { now + $0 * 4 / 5 }
  }

  mutating func forget() { self = TokenState() }

  /// Returns whether to request another token now.
  mutating func consumeDue(at now: Instant) -> Bool {
    guard let deadline, deadline <= now else { return false }
    self.deadline = nil
    isAwaited = true
    return true
  }
}

/// Calls that are answered when the room is joined or has ended.
struct WaitingCalls {
  private var entering: UInt32?
  private var leaving: [UInt32] = []

  mutating func awaitRoom(_ call: UInt32) { entering = call }

  mutating func awaitEnd(_ call: UInt32) { leaving.append(call) }

  /// Answers the call that waits for the room to be joined.
  mutating func enter() -> [RoomOutput] {
    entering.take().map { [.reply(call: $0, .done)] } ?? []
  }

  /// Fails the pending call to join the room.
  mutating func refuse(_ failure: SignalingFailure) -> [RoomOutput] {
    entering.take().map { [.reply(call: $0, .failed(failure))] } ?? []
  }

  /// Answers the calls that wait for the room to end.
  mutating func leave() -> [RoomOutput] {
    defer { leaving = [] }
    return leaving.map { .reply(call: $0, .done) }
  }
}
