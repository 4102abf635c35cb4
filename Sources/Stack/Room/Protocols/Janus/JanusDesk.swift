import SDP
import Wire

/// What a plugin's part works with: the session, who is in the room, and what goes out.
struct JanusDesk: Sendable {
  var session: JanusSession
  var roster = Roster()
  var join = RoomJoin(room: "")
  /// The own name in the room; nil before it was entered.
  var participant: String?
  /// Whether the present session is in the room.
  private(set) var isEntered = false
  private var wasJoined = false
  let options: [String: String]
  private(set) var now = Instant.zero
  private(set) var outputs: [SignalingOutput] = []
  private var connectionCount: UInt32 = 0

  init(_ configuration: SignalingConfiguration, prefix: String) {
    session = JanusSession(configuration, prefix: prefix)
    options = configuration.options
  }

  mutating func begin(at now: Instant) { self.now = now }

  /// Gives the outputs of the step away.
  mutating func end(into outbox: inout Outbox<SignalingOutput>) {
    for output in outputs { outbox.append(output) }
    outputs = []
  }

  mutating func emit(_ event: SignalingEvent) { outputs.append(.event(event)) }

  mutating func emit(_ events: [SignalingEvent]) { for event in events { emit(event) } }

  /// The result of something that the room wanted.
  mutating func emit(_ action: ActionID, _ failure: SignalingFailure? = nil) {
    emit(.result(action, failure))
  }

  /// Answers what the room wanted of a way or session that is lost.
  mutating func answerAbandoned() {
    for (action, setting) in session.removeAbandoned() {
      emit(
        action,
        SignalingFailure(
          setting == .pause ? .pauseFailed : .profileFailed, "the way to the server was lost"))
    }
  }

  // MARK: The session

  mutating func attach(_ plugin: String, as role: JanusRole) {
    session.attach(plugin, as: role, at: now, into: &outputs)
  }

  mutating func detach(_ role: JanusRole) {
    session.detach(role, at: now, into: &outputs)
  }

  mutating func ask(
    _ ask: JanusAsk, of role: JanusRole = .main, _ body: JSONValue,
    _ description: SessionDescription? = nil
  ) {
    session.message(body, description, ask, to: role, at: now, into: &outputs)
  }

  mutating func trickle(_ candidate: CandidateInit?, to role: JanusRole) {
    session.trickle(candidate, to: role, at: now, into: &outputs)
  }

  mutating func open() { session.open(at: now, into: &outputs) }
  mutating func retry() { session.retry(at: now) }
  mutating func dropLink() { session.dropLink(into: &outputs) }
  mutating func create() { session.create(at: now, into: &outputs) }
  mutating func settle() { session.settle() }

  /// The session is gone: the server has it no longer.
  mutating func forget() {
    session.forget()
    isEntered = false
  }

  /// The present session is not in the room.
  mutating func left() { isEntered = false }

  mutating func leave() -> Bool { session.leave(at: now, into: &outputs) }

  mutating func handle(_ transport: TransportID, _ event: TransportEvent) -> [JanusSession.News] {
    session.handle(transport, event, at: now, into: &outputs)
  }

  mutating func pass() -> [JanusSession.News] { session.pass(at: now, into: &outputs) }

  // MARK: Connections

  mutating func connect(_ role: ConnectionRole) -> ConnectionID {
    connectionCount += 1
    let id = ConnectionID(connectionCount)
    request(id, .open(role, ICEServers()))
    return id
  }

  mutating func request(_ connection: ConnectionID, _ request: ConnectionRequest) {
    outputs.append(.connection(connection, request))
  }

  // MARK: Entering

  /// The room is entered, or entered again after a loss of the session.
  mutating func entered(_ id: String, session name: String?) {
    participant = id
    isEntered = true
    if wasJoined { return }
    wasJoined = true
    emit(.joined(JoinedRoom(participant: id, session: name, participants: roster.participants)))
  }
}

/// What a plugin of Janus has of its own.
protocol JanusPlugin: Sendable {
  /// As in `janus.plugin.videoroom`.
  static var name: String { get }
  var abilities: SignalingAbilities { get }
  var status: [(name: String, value: String)] { get }

  init(options: [String: String])
  /// A handle is there.
  mutating func attached(_ role: JanusRole, _ desk: inout JanusDesk)
  /// A message was answered.
  mutating func handle(
    _ reply: JanusReply, to ask: JanusAsk, of role: JanusRole, _ desk: inout JanusDesk)
  /// The server says something by itself.
  mutating func handle(_ event: JanusEvent, of role: JanusRole, _ desk: inout JanusDesk)
  /// The room wants something; whatever has an action is answered by a result at last.
  mutating func handle(_ intent: RoomIntent, _ desk: inout JanusDesk)
  mutating func handle(
    _ report: ConnectionReport, of connection: ConnectionID, _ desk: inout JanusDesk)
  /// The session is there again over another way: what was under way is asked anew.
  mutating func resume(_ desk: inout JanusDesk)
  /// The session is gone, and its connections with it; what the room wants is kept.
  mutating func reset(_ desk: inout JanusDesk)
  /// The room is over: what it wanted comes to nothing.
  mutating func abandon(_ failure: SignalingFailure, _ desk: inout JanusDesk)
}

extension JanusDesk {
  /// What every plugin does with notes about a handle.
  mutating func record(_ type: String, _ whole: JSONValue) {
    // What says that media flows is seen on the connection itself.
    guard !["webrtcup", "media"].contains(type) else { return }
    emit(.notification(type: type, whole.json))
  }
}

extension SignalingFailure {
  /// The error of a Janus server in the terms of rooms.
  init(
    _ usual: RoomErrorCode, janus code: Int?, _ reason: String, isCritical: Bool = false,
    media: MediaID? = nil
  ) {
    let number: RoomErrorCode =
      switch code {
      case 428: .noSuchMedia
      case 403, 433, 470: .joinRefused
      default: usual
      }
    self.init(number, reason, isCritical: isCritical, serverCode: code, media: media)
  }
}
