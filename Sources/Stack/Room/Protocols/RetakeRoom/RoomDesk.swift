import SDP
import Wire

/// Shared state of the machine for Retake's own rooms: the transport, the participants, and
/// outputs.
struct RoomDesk: Sendable {
  /// The request that an answer of the server is for.
  enum Purpose: Hashable, Sendable {
    case offer, stop, subscription
    case action(ActionID, RoomErrorCode, MediaID?)
  }

  static let answerSeconds: Int64 = 10

  var link: ServerLink
  var roster = Roster()
  var join = RoomJoin(room: "")
  /// Whether the current transport is in the room.
  var isEntered = false
  var servers = ICEServers()
  private(set) var now = Instant.zero
  private(set) var outputs: [SignalingOutput] = []
  var requests = RequestTable<Purpose>(prefix: "")
  private var connectionCount: UInt32 = 0

  init(_ configuration: SignalingConfiguration) {
    link = ServerLink(urls: configuration.urls, subprotocols: [RoomRequest.subprotocol])
  }

  var deadline: Instant? { earliest(link.deadline, requests.deadline) }
  var waitingCount: Int { requests.waitingCount }

  mutating func begin(at now: Instant) { self.now = now }

  mutating func end(into outbox: inout Outbox<SignalingOutput>) {
    for output in outputs { outbox.append(output) }
    outputs = []
  }

  mutating func emit(_ event: SignalingEvent) { outputs.append(.event(event)) }
  mutating func emit(_ events: [SignalingEvent]) { for event in events { emit(event) } }
  mutating func emit(_ action: ActionID, _ failure: SignalingFailure? = nil) {
    emit(.result(action, failure))
  }

  // MARK: The way to the server

  mutating func open() { link.open(at: now, into: &outputs) }
  mutating func drop() { link.drop(into: &outputs) }
  mutating func close() -> Bool { link.close(at: now, into: &outputs) }
  mutating func passLink() -> ServerLink.News? { link.pass(at: now, into: &outputs) }
  mutating func send(_ request: RoomRequest) { link.send(request.text, into: &outputs) }

  /// Sends a request that is answered by its number.
  mutating func ask(_ purpose: Purpose, _ request: (UInt32) -> RoomRequest) {
    let due = now + .seconds(RoomDesk.answerSeconds)
    send(request(requests.addNumber(purpose, due: due)))
  }

  mutating func expire() -> [Purpose] { requests.expire(at: now) }

  /// Fails requests that will not be answered any more.
  mutating func abandon(_ reason: String) {
    for case .action(let action, let code, let media) in requests.removeAll() {
      emit(action, SignalingFailure(code, reason, media: media))
    }
  }

  // MARK: Connections

  mutating func connect(_ role: ConnectionRole) -> ConnectionID {
    connectionCount += 1
    let id = ConnectionID(connectionCount)
    request(id, .open(role, servers))
    return id
  }

  mutating func request(_ connection: ConnectionID, _ request: ConnectionRequest) {
    outputs.append(.connection(connection, request))
  }
}
