import Peer
import SDP
import Wire

/// A room of the videoroom plugin, with one connection for publishing and one for receiving.
///
/// Options: `pin`, `bitrate`, `audiocodec`, `videocodec`, and `textroom` with the number of the
/// textroom plugin's room for messages.
struct JanusVideoRoom: JanusPlugin {
  static let name = "videoroom"

  private var publisher: JanusPublisher
  private var subscriber = JanusSubscriber()
  private var texts: JanusTextRoom?
  private var privateID: Int64?

  init(options: [String: String]) {
    publisher = JanusPublisher(options: options)
    texts = options["textroom"].map { JanusTextRoom(room: $0) }
  }

  var abilities: SignalingAbilities {
    let all: SignalingAbilities = [
      .separateConnections, .subscriptions, .profiles, .pausing, .mediaUpdates,
    ]
    return texts == nil ? all : all.union(.messages)
  }

  var status: [(name: String, value: String)] {
    publisher.status + subscriber.status + (texts?.status ?? [])
  }

  mutating func attached(_ role: JanusRole, _ desk: inout JanusDesk) {
    switch role {
    case .main: enter(&desk)
    case .subscriber: subscriber.attached(privateID: privateID, &desk)
    case .text: texts?.attached(&desk)
    }
  }

  private func enter(_ desk: inout JanusDesk) {
    let join = desk.join
    desk.ask(
      .join,
      .members(
        ("request", "join"), ("ptype", "publisher"), ("room", .identifier(join.room)),
        // Rejoin with the same id after a loss.
        ("id", (desk.participant ?? join.participant).map { .identifier($0) }),
        ("display", join.displayName.isEmpty ? nil : .text(join.displayName)),
        ("token", join.token.map { .text($0) }), ("pin", desk.options["pin"].map { .text($0) }),
        ("metadata", join.metadata.flatMap { try? JSONValue(parsing: $0) })))
  }

  mutating func handle(
    _ reply: JanusReply, to ask: JanusAsk, of role: JanusRole, _ desk: inout JanusDesk
  ) {
    switch role {
    case .main:
      guard ask == .join, case .data(let data, _) = reply else {
        return publisher.handle(reply, to: ask, &desk)
      }
      joined(data, &desk)
    case .subscriber: subscriber.handle(reply, to: ask, &desk)
    case .text: texts?.handle(reply, to: ask, &desk)
    }
  }

  private mutating func joined(_ data: JSONValue, _ desk: inout JanusDesk) {
    guard data["videoroom"]?.text == "joined", let id = data["id"]?.identifier else { return }
    privateID = data["private_id"]?.integer
    let isReturn = desk.participant != nil
    let publishers = data["publishers"]?.elements ?? []
    let attendees = data["attendees"]?.elements ?? []
    let ids = (publishers + attendees).compactMap { $0["id"]?.identifier }
    var events = desk.roster.retain(ids)
    for attendee in attendees {
      events += enter(attendee, &desk)
      // An attendee publishes nothing now, even if it did before the loss.
      guard let id = attendee["id"]?.identifier else { continue }
      events += desk.roster.set([], of: id)
    }
    for publisher in publishers { events += publish(publisher, &desk) }
    // On first joining, `joined` reports all participants together.
    if isReturn { desk.emit(events) }
    desk.entered(id, session: data["private_id"]?.identifier)
    publisher.entered(&desk)
    subscriber.entered(&desk)
    if texts != nil, !desk.session.has(.text) { desk.attach(JanusTextRoom.name, as: .text) }
  }

  private func enter(_ value: JSONValue, _ desk: inout JanusDesk) -> [SignalingEvent] {
    guard let id = value["id"]?.identifier, id != desk.participant else { return [] }
    return desk.roster.enter(
      id, displayName: value["display"]?.text ?? "", metadata: value["metadata"]?.json)
  }

  private func publish(_ value: JSONValue, _ desk: inout JanusDesk) -> [SignalingEvent] {
    guard let id = value["id"]?.identifier, id != desk.participant else { return [] }
    let offers = (value["streams"]?.elements ?? []).compactMap { Roster.Offer(janus: $0) }
    return enter(value, &desk) + desk.roster.set(offers, of: id)
  }

  mutating func handle(_ event: JanusEvent, of role: JanusRole, _ desk: inout JanusDesk) {
    switch (role, event) {
    // A description here is a late answer, which is ignored.
    case (.main, .data(let data, _)): handle(data, &desk)
    case (.main, .candidate(let candidate)): publisher.handle(candidate, &desk)
    case (.main, .hangup(let reason)): publisher.hangUp(reason, &desk)
    case (.subscriber, .data(let data, let description)):
      subscriber.handle(data, description, &desk)
    case (.subscriber, .candidate(let candidate)): subscriber.handle(candidate, &desk)
    case (.subscriber, .hangup(let reason)): subscriber.hangUp(reason, &desk)
    case (.subscriber, .detached): subscriber.detached(&desk)
    case (.text, _): texts?.handle(event, &desk)
    case (.main, .detached): break
    case (_, .note(let type, let whole)): desk.record(type, whole)
    }
  }

  /// Handles a notification to all participants in the room.
  private func handle(_ data: JSONValue, _ desk: inout JanusDesk) {
    switch data["videoroom"]?.text {
    case "talking"?, "stopped-talking"?:
      guard let id = data["id"]?.identifier else { return }
      let level = data["audio-level-dBov-avg"]?.number.map { -Int(min(max($0, 0), 127)) }
      desk.emit(.talking(participant: id, data["videoroom"]?.text == "talking", level: level))
    case "event"?:
      for value in data["publishers"]?.elements ?? [] { desk.emit(publish(value, &desk)) }
      if let value = data["joining"] { desk.emit(enter(value, &desk)) }
      for name in ["unpublished", "leaving", "kicked"] {
        guard let id = data[name]?.identifier, id != desk.participant else { continue }
        desk.emit(
          name == "unpublished"
            ? desk.roster.set([], of: id)
            : desk.roster.leave(id, name == "kicked" ? .kicked : .left))
      }
      moderate(data, &desk)
    default: desk.record(data["videoroom"]?.text ?? "event", data)
    }
  }

  /// Records that a moderator switched a participant's media off or on.
  private func moderate(_ data: JSONValue, _ desk: inout JanusDesk) {
    guard let action = data["moderation"]?.text, let id = data["id"]?.identifier,
      let mid = data["mid"]?.text
    else { return }
    let isMuted = action == "muted"
    if id == desk.participant {
      if let media = publisher.media(in: mid) { desk.emit(.localMuted(media, isMuted)) }
    } else if var offer = desk.roster.offers(of: id).first(where: { $0.key == mid }) {
      offer.isActive = !isMuted
      desk.emit(desk.roster.update(offer, of: id))
    }
  }

  mutating func handle(_ intent: RoomIntent, _ desk: inout JanusDesk) {
    switch intent {
    case .publish(let request): publisher.publish(request, &desk)
    case .unpublish(let action, let media): publisher.unpublish(action, media, &desk)
    case .updateLocal(let media): publisher.update(media, &desk)
    case .subscribe(let action, let media): subscriber.subscribe(action, media, &desk)
    case .unsubscribe(let action, let media): subscriber.unsubscribe(action, media, &desk)
    case .setProfile(let action, let media, let profile):
      subscriber.set(profile, action, media, &desk)
    case .setPaused(let action, let media, let isPaused):
      subscriber.pause(isPaused, action, media, &desk)
    case .sendMessage(let action, let message):
      guard texts != nil else {
        return desk.emit(
          action, SignalingFailure(.notSupported, "the room has no textroom for messages"))
      }
      texts?.send(message, action, &desk)
    case .restartICE(let connection):
      publisher.restart(connection, &desk)
      subscriber.restart(connection, &desk)
    case .join, .networkChanged, .renewToken, .leave: break
    }
  }

  mutating func handle(
    _ report: ConnectionReport, of connection: ConnectionID, _ desk: inout JanusDesk
  ) {
    publisher.handle(report, of: connection, &desk)
    subscriber.handle(report, of: connection, &desk)
    texts?.handle(report, of: connection, &desk)
  }

  mutating func resume(_ desk: inout JanusDesk) {
    publisher.resume(&desk)
    subscriber.resume(&desk)
  }

  mutating func abandon(_ failure: SignalingFailure, _ desk: inout JanusDesk) {
    publisher.abandon(failure, &desk)
    subscriber.abandon(failure, &desk)
    texts?.abandon(failure, &desk)
  }

  mutating func reset(_ desk: inout JanusDesk) {
    publisher.close(&desk)
    subscriber.reset(&desk)
    texts?.reset(&desk)
  }
}

extension Roster.Offer {
  /// Parses a stream in the videoroom's list; nil if it is not media or is disabled.
  init?(janus stream: JSONValue) {
    guard let mid = stream["mid"]?.text,
      let kind = stream["type"]?.text.flatMap(MediaKind.init(rawValue:)),
      stream["disabled"]?.flag != true
    else { return nil }
    let hasLayers = stream["simulcast"]?.flag == true || stream["svc"]?.flag == true
    let description = JanusDescription(stream["description"]?.text ?? "")
    self.init(
      key: mid, kind: kind, isActive: description.isActive && stream["moderated"]?.flag != true,
      extraValue: description.extraValue,
      profiles: hasLayers ? [.low, .mid, .high] : [])
  }
}

// MARK: - JanusTextRoom

/// Participants' messages through the textroom plugin, on a data channel in a separate connection.
///
/// The textroom plugin must already have a room with this number or name. A message's type is not
/// transmitted.
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
    // On a reliable channel, an answer is lost only together with the channel, and that is
    // reported.
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
