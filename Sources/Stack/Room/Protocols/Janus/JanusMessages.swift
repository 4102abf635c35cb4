import SDP
import Wire

/// The purpose of a handle in a Janus session.
enum JanusRole: String, Hashable, Sendable {
  /// The local participant and the media it sends.
  case main
  /// Media received from other participants.
  case subscriber
  /// Messages over a data channel.
  case text
}

/// The purpose of a message to a plugin, which determines how its reply is handled.
enum JanusAsk: Hashable, Sendable {
  case join
  /// An offer that publishes local media.
  case publish
  case unpublish
  case configure(ActionID?, JanusSetting)
  /// A request to subscribe, to unsubscribe, or to restart ICE.
  case subscription
  /// The local answer to the server's offer to a subscriber.
  case start
  case setUp
  case acknowledge
}

/// What a `configure` message changes, which determines the error code if the server refuses it.
enum JanusSetting: Hashable, Sendable {
  case localMedia, profile, pause, restart
}

/// The purpose of a request, which determines how its reply is handled.
enum JanusPurpose: Hashable, Sendable {
  case create, claim, keepalive, destroy, trickle, detach
  case attach(JanusRole)
  case message(JanusRole, JanusAsk)
}

/// A plugin's answer to a message.
enum JanusReply: Hashable, Sendable {
  /// The plugin's data, and its description if there is one.
  case data(JSONValue, SessionDescription?)
  case failed(code: Int?, reason: String)
}

/// An unsolicited message from the server.
enum JanusEvent: Hashable, Sendable {
  case data(JSONValue, SessionDescription?)
  /// A remote candidate; nil after the last one.
  case candidate(CandidateInit?)
  /// The media path is gone; the handle remains.
  case hangup(String)
  case detached
  /// Any other event about a handle: its name and the complete message.
  case note(String, JSONValue)
}

/// A message from a Janus server, with the fields that all plugins share.
struct JanusMessage {
  var type: String
  var session: Int64?
  var transaction: String?
  var sender: Int64?
  /// The id of a new session or handle: `data.id` in a response; nil in other messages.
  var id: Int64?
  /// The plugin's part of the message: `plugindata.data`; nil in other messages.
  var data: JSONValue?
  var description: SessionDescription?
  var error: (code: Int?, reason: String)?
  var whole: JSONValue

  /// Parses a message; nil if it is not a Janus message.
  init?(_ value: JSONValue) {
    guard let type = value["janus"]?.text else { return nil }
    self.type = type
    whole = value
    session = value["session_id"]?.integer
    transaction = value["transaction"]?.text
    sender = value["sender"]?.integer
    id = value["data"]?["id"]?.integer
    data = value["plugindata"]?["data"]
    if let jsep = value["jsep"], let sdp = jsep["sdp"]?.text,
      let type = jsep["type"]?.text.flatMap(SDPType.init(rawValue:))
    {
      description = SessionDescription(type: type, sdp: sdp)
    }
    if let error = value["error"] {
      self.error = (error["code"]?.integer.map { Int(clamping: $0) }, error["reason"]?.text ?? "")
    } else if let data, let code = data["error_code"]?.integer {
      // Plugins report errors in an event's data.
      error = (Int(clamping: code), data["error"]?.text ?? "")
    }
  }

  /// Returns the candidate in a `trickle` message (W3C RTCIceCandidateInit); an inner nil is the
  /// end of candidates.
  static func candidate(_ value: JSONValue) -> CandidateInit?? {
    if value["completed"]?.flag == true { return .some(nil) }
    guard let candidate = value["candidate"]?.text else { return nil }
    return CandidateInit(
      candidate: candidate, sdpMid: value["sdpMid"]?.text,
      sdpMLineIndex: value["sdpMLineIndex"]?.integer.map { Int(clamping: $0) })
  }
}

extension JSONValue {
  /// Converts a description to a `jsep` object.
  static func jsep(_ description: SessionDescription) -> JSONValue {
    .members(("type", .text(description.type.rawValue)), ("sdp", .text(description.sdp)))
  }

  /// Converts the identifier of a room or participant to a number if it is one, or else to a
  /// string.
  ///
  /// Servers use numbers unless they are configured to use strings.
  static func identifier(_ text: String) -> JSONValue {
    if let number = Int64(text), number >= 0, String(number) == text { return .integer(number) }
    return .text(text)
  }
}

/// A stream's description in a videoroom: the extra value, and a mark if the stream is inactive.
///
/// It is the only text about a stream that the server passes on to other participants.
struct JanusDescription: Hashable, Sendable {
  private static let mark = "(off)"

  var extraValue: String
  var isActive: Bool

  init(extraValue: String, isActive: Bool) {
    self.extraValue = extraValue
    self.isActive = isActive
  }

  init(_ text: String) {
    isActive = !text.hasSuffix(JanusDescription.mark)
    let value = isActive ? text[...] : text.dropLast(JanusDescription.mark.count)
    extraValue = String(!isActive && value.hasSuffix(" ") ? value.dropLast() : value)
  }

  var text: String {
    isActive
      ? extraValue
      : extraValue.isEmpty ? JanusDescription.mark : extraValue + " " + JanusDescription.mark
  }
}

// MARK: - JanusDesk

/// The state that the plugins share: the session, the participants and outputs.
struct JanusDesk: PublishingDesk {
  var session: JanusSession
  var roster = Roster()
  var join = RoomJoin(room: "")
  /// The local participant's id; nil before joining.
  var participant: String?
  /// Whether the current session has joined the room.
  private(set) var isEntered = false
  private var wasJoined = false
  let options: [String: String]
  var step = SignalingStep()

  init(_ configuration: SignalingConfiguration, prefix: String) {
    session = JanusSession(configuration, prefix: prefix)
    options = configuration.options
  }

  /// Fails the actions that can no longer be answered because the transport or session was lost.
  mutating func answerAbandoned() {
    for (action, setting) in session.removeAbandoned() {
      emit(
        action,
        SignalingFailure(
          setting == .pause ? .pauseFailed : .profileFailed, "the way to the server was lost"))
    }
  }

  // MARK: Session

  mutating func attach(_ plugin: String, as role: JanusRole) {
    session.attach(plugin, as: role, at: now, into: &step.outputs)
  }

  mutating func detach(_ role: JanusRole) {
    session.detach(role, at: now, into: &step.outputs)
  }

  mutating func ask(
    _ ask: JanusAsk, of role: JanusRole = .main, _ body: JSONValue,
    _ description: SessionDescription? = nil
  ) {
    session.message(body, description, ask, to: role, at: now, into: &step.outputs)
  }

  mutating func trickle(_ candidate: CandidateInit?, to role: JanusRole) {
    session.trickle(candidate, to: role, at: now, into: &step.outputs)
  }

  mutating func open() { session.open(at: now, into: &step.outputs) }
  mutating func retry() { session.link.retry(at: now) }
  mutating func dropLink() { session.dropLink(into: &step.outputs) }
  mutating func create() { session.create(at: now, into: &step.outputs) }

  /// Records that the server no longer has the session.
  mutating func forget() {
    session.forget()
    isEntered = false
  }

  /// Records that the current session is not in the room.
  mutating func left() { isEntered = false }

  mutating func leave() -> Bool { session.leave(at: now, into: &step.outputs) }

  mutating func handle(_ transport: TransportID, _ event: TransportEvent) -> [JanusSession.News] {
    session.handle(transport, event, at: now, into: &step.outputs)
  }

  mutating func pass() -> [JanusSession.News] { session.pass(at: now, into: &step.outputs) }

  // MARK: Connections

  mutating func connect(_ role: ConnectionRole) -> ConnectionID {
    openConnection(role, ICEServers())
  }

  // MARK: Joining

  /// Records that the room was joined, or rejoined after the session was lost.
  mutating func entered(_ id: String, session name: String?) {
    participant = id
    isEntered = true
    if wasJoined { return }
    wasJoined = true
    emit(.joined(JoinedRoom(participant: id, session: name, participants: roster.participants)))
  }
}

/// The parts of a client that are specific to one Janus plugin.
protocol JanusPlugin: Sendable {
  /// The name, as in `janus.plugin.videoroom`.
  static var name: String { get }
  var abilities: SignalingAbilities { get }
  var status: [(name: String, value: String)] { get }

  init(options: [String: String])
  /// Called when a handle has been attached.
  mutating func attached(_ role: JanusRole, _ desk: inout JanusDesk)
  mutating func handle(
    _ reply: JanusReply, to ask: JanusAsk, of role: JanusRole, _ desk: inout JanusDesk)
  mutating func handle(_ event: JanusEvent, of role: JanusRole, _ desk: inout JanusDesk)
  /// Handles an intent; every action in it must eventually be answered by a result.
  mutating func handle(_ intent: RoomIntent, _ desk: inout JanusDesk)
  mutating func handle(
    _ report: ConnectionReport, of connection: ConnectionID, _ desk: inout JanusDesk)
  /// Repeats pending requests after the session has been resumed on another transport.
  mutating func resume(_ desk: inout JanusDesk)
  /// Drops the connections after the session has been lost; wanted media and subscriptions are
  /// kept.
  mutating func reset(_ desk: inout JanusDesk)
  /// Fails all actions because the room has ended.
  mutating func abandon(_ failure: SignalingFailure, _ desk: inout JanusDesk)
}

extension JanusDesk {
  /// Reports an event as a notification, except events about media flow.
  mutating func record(_ type: String, _ whole: JSONValue) {
    // Media flow is observed on the connection itself.
    guard !["webrtcup", "media"].contains(type) else { return }
    emit(.notification(type: type, whole.json))
  }
}

extension SignalingFailure {
  /// Converts a Janus server's error to a room error.
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
