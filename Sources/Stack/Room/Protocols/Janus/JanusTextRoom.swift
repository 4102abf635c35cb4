import Peer
import SDP
import Wire

/// Participants' messages through the textroom plugin, on a data channel in a connection of its
/// own.
///
/// The room with the given number or name must exist. A message's type is not transmitted.
struct JanusTextRoom: Sendable {
  static let name = "textroom"
  /// The channel label that Janus and its clients use.
  static let label = "JanusDataChannel"
  static let waitingMaximum = 1000

  private enum Phase: String { case idle, setting, answering, opening, joining, open }

  private let room: String
  private var phase = Phase.idle
  private var connection: ConnectionID?
  private var requests = RequestTable<ActionID?>(prefix: "text")
  private var waiting: [(message: UserMessage, action: ActionID)] = []

  init(room: String) { self.room = room }

  var status: [(name: String, value: String)] { [("texts", phase.rawValue)] }

  mutating func attached(_ desk: inout JanusDesk) {
    phase = .setting
    desk.ask(.setUp, of: .text, .members(("request", "setup")))
  }

  mutating func handle(_ reply: JanusReply, to ask: JanusAsk, _ desk: inout JanusDesk) {
    switch (ask, reply) {
    case (.setUp, .data(_, let offer?)):
      guard phase == .setting else { return }
      let connection = connection ?? desk.connect(.both)
      self.connection = connection
      phase = .answering
      desk.request(connection, .setRemote(offer))
    case (.setUp, .data(_, nil)): fail(nil, "the server made no offer", &desk)
    case (_, .failed(let code, let reason)): fail(code, reason, &desk)
    default: break
    }
  }

  mutating func handle(_ event: JanusEvent, _ desk: inout JanusDesk) {
    switch event {
    case .candidate(let candidate):
      if let connection { desk.request(connection, .addCandidate(candidate)) }
    case .hangup(let reason): fail(nil, reason, &desk)
    case .detached: fail(nil, "the server has detached the handle", &desk)
    case .note(let type, let whole): desk.record(type, whole)
    case .data: break
    }
  }

  mutating func handle(
    _ report: ConnectionReport, of connection: ConnectionID, _ desk: inout JanusDesk
  ) {
    guard connection == self.connection else { return }
    switch report {
    case .description(let answer, _) where phase == .answering:
      phase = .opening
      desk.ask(.acknowledge, of: .text, .members(("request", "ack")), answer)
      desk.request(
        connection,
        .createChannel(
          label: JanusTextRoom.label, isOrdered: true, maximumRetransmits: nil, id: nil))
    case .candidate(let candidate): desk.trickle(candidate, to: .text)
    case .channelOpened(JanusTextRoom.label): if phase == .opening { enter(&desk) }
    case .channelMessage(JanusTextRoom.label, .text(let text)): handle(text, &desk)
    case .refused(let error): fail(nil, error.message, &desk)
    default: break
    }
  }

  private mutating func enter(_ desk: inout JanusDesk) {
    phase = .joining
    let name = desk.participant ?? desk.join.displayName
    send(
      "join",
      [
        ("username", .text(name)), ("pin", desk.options["pin"].map { .text($0) }),
        (
          "display", desk.join.displayName.isEmpty ? nil : .text(desk.join.displayName)
        ),
      ], nil, &desk)
  }

  mutating func send(_ message: UserMessage, _ action: ActionID, _ desk: inout JanusDesk) {
    guard phase == .open else {
      guard waiting.count < JanusTextRoom.waitingMaximum else {
        return desk.emit(
          action, SignalingFailure(.messageFailed, "too many messages wait for the room"))
      }
      waiting.append((message, action))
      return
    }
    let names = message.targets.map { JSONValue.text($0) }
    send(
      "message",
      [("text", .text(message.text)), ("tos", names.isEmpty ? nil : .list(names))], action, &desk)
  }

  private mutating func send(
    _ type: String, _ members: [(String, JSONValue?)], _ action: ActionID?,
    _ desk: inout JanusDesk
  ) {
    guard let connection else { return }
    // A reliable channel loses an answer only if the channel is lost, which is reported.
    let due = desk.now + .seconds(60 * 60)
    let head: [(String, JSONValue?)] = [
      ("textroom", .text(type)), ("transaction", .text(requests.add(action, due: due))),
      ("room", .identifier(room)),
    ]
    let value = JSONValue.object(
      (head + members).compactMap { name, value in value.map { JSONValue.Member(name, $0) } })
    desk.request(connection, .sendOnChannel(label: JanusTextRoom.label, .text(value.json)))
  }

  private mutating func handle(_ text: String, _ desk: inout JanusDesk) {
    guard let value = try? JSONValue(parsing: text) else { return }
    switch value["textroom"]?.text {
    case "success"?, "error"?:
      guard let purpose = value["transaction"]?.text.flatMap({ requests.settle($0) }) else {
        return
      }
      let code = value["error_code"]?.integer.map { Int(clamping: $0) }
      let reason = value["error"]?.text ?? "the message was refused"
      let hasFailed = value["textroom"]?.text == "error"
      if let action = purpose {
        desk.emit(
          action, hasFailed ? SignalingFailure(.messageFailed, janus: code, reason) : nil)
      } else if hasFailed {
        fail(code, reason, &desk)
      } else if phase == .joining {
        phase = .open
        let all = waiting
        waiting = []
        for (message, action) in all { send(message, action, &desk) }
      }
    case "message"?:
      guard let sender = value["from"]?.text, let text = value["text"]?.text else { return }
      // Janus also sends a message to its sender.
      guard sender != desk.participant else { return }
      let isWhisper = value["whisper"]?.flag == true
      let targets = isWhisper ? [desk.participant].compactMap { $0 } : []
      desk.emit(.message(UserMessage(sender: sender, targets: targets, text: text)))
    default: break
    }
  }

  private mutating func fail(_ code: Int?, _ reason: String, _ desk: inout JanusDesk) {
    let failure = SignalingFailure(.messageFailed, janus: code, reason)
    let actions = requests.removeAll().compactMap { $0 } + waiting.map(\.action)
    waiting = []
    for action in actions { desk.emit(action, failure) }
    if actions.isEmpty { desk.emit(.failed(failure)) }
    close(&desk)
  }

  mutating func abandon(_ failure: SignalingFailure, _ desk: inout JanusDesk) {
    for (_, action) in waiting { desk.emit(action, failure) }
    waiting = []
  }

  mutating func reset(_ desk: inout JanusDesk) {
    let failure = SignalingFailure(.messageFailed, "the session with the server is gone")
    for action in requests.removeAll().compactMap({ $0 }) { desk.emit(action, failure) }
    close(&desk)
  }

  private mutating func close(_ desk: inout JanusDesk) {
    phase = .idle
    if let connection { desk.request(connection, .close) }
    connection = nil
  }
}
