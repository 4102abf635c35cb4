import SDP
package import Wire

/// A client of Retake's own room protocol.
///
/// Option: `voices`, the number of voices that the server should send at the same time; by default,
/// it sends all.
package struct RetakeRoomMachine: SignalingMachine {
  package static let name = "room"

  private enum Phase: String {
    case idle, connecting, joining, joined, reconnecting, leaving, over
  }

  private var desk: RoomDesk
  private var up = RoomUplink()
  private var down = RoomDownlink()
  private var phase = Phase.idle
  private var participant: String?
  /// The session id, with which the server can continue the session on another transport.
  private var session: String?
  private var joinDue: Instant?
  private let voices: UInt32?

  package init(_ configuration: SignalingConfiguration, entropy: Entropy) {
    desk = RoomDesk(configuration)
    voices = configuration.options[RetakeRoomMachine.voicesOption].flatMap { UInt32($0) }
  }

  /// The option with the number of voices that the server should send.
  package static let voicesOption = "voices"

  package var abilities: SignalingAbilities {
    let usual: SignalingAbilities = [
      .separateConnections, .subscriptions, .messages, .profiles, .pausing, .audioSelection,
      .mediaUpdates,
    ]
    return voices == nil ? usual : usual.union(.reportedVoices)
  }

  package var deadline: Instant? {
    phase == .over ? nil : earliest(desk.deadline, joinDue)
  }

  package var status: [(name: String, value: String)] {
    [
      ("phase", phase.rawValue), ("participant", participant ?? ""), ("session", session ?? ""),
      ("waiting", String(desk.waitingCount)),
    ] + up.status + down.status
  }

  package mutating func step(
    _ input: SignalingInput, at now: Instant, into outbox: inout Outbox<SignalingOutput>
  ) {
    // There are no events after the end.
    guard phase != .over else { return }
    desk.begin(at: now)
    switch input {
    case .deadline: pass()
    case .transport(let id, let event): if let news = desk.link.handle(id, event) { handle(news) }
    case .intent(let intent): handle(intent)
    case .connection(let id, let report):
      up.handle(report, of: id, &desk)
      down.handle(report, of: id, &desk)
    case .response: break
    }
    desk.end(into: &outbox)
  }

  private mutating func pass() {
    if let news = desk.passLink() { handle(news) }
    for purpose in desk.expire() {
      let words = "the server gave no answer within \(RoomDesk.answerSeconds) s"
      settle(purpose, RoomFault(.subscribeTimedOut, words))
    }
    if let due = joinDue, due <= desk.now {
      lose("the server did not let in within \(RoomDesk.answerSeconds) s")
    }
  }

  // MARK: Intents

  private mutating func handle(_ intent: RoomIntent) {
    guard phase != .leaving else {
      if let action = intent.action {
        desk.emit(action, SignalingFailure(.invalidState, "the room is being left"))
      }
      return
    }
    switch intent {
    case .join(let join):
      guard phase == .idle else { return }
      phase = .connecting
      desk.join = join
      desk.join.voices = join.voices ?? voices
      guard desk.link.url != nil else {
        return end(
          SignalingFailure(.unreachable, "no address of a server is given", isCritical: true))
      }
      desk.open()
    case .leave: leave()
    case .networkChanged:
      guard phase == .joined || phase == .reconnecting else { return }
      lose("the network has changed", now: true)
    case .renewToken(let token):
      desk.join.token = token
      if desk.isEntered { desk.send(.renew(token: token)) }
    default: handleMedia(intent)
    }
  }

  private mutating func handleMedia(_ intent: RoomIntent) {
    switch intent {
    case .publish(let request): up.publish(request, &desk)
    case .unpublish(let action, let media): up.unpublish(action, media, &desk)
    case .updateLocal(let media): up.update(media, &desk)
    case .restartICE(let connection):
      up.restart(connection, &desk)
      down.restart(connection, &desk)
    default:
      // All other intents need the current session.
      guard desk.isEntered else {
        if let action = intent.action {
          desk.emit(action, SignalingFailure(.invalidState, "the room is not entered"))
        }
        return
      }
      handleReceived(intent)
    }
  }

  private mutating func handleReceived(_ intent: RoomIntent) {
    switch intent {
    case .subscribe(let action, let media): down.subscribe(action, media, &desk)
    case .unsubscribe(let action, let media): down.unsubscribe(action, media, &desk)
    case .setProfile(let action, let media, let profile):
      down.set(profile, action, media, &desk)
    case .setPaused(let action, let media, let isPaused):
      down.pause(isPaused, action, media, &desk)
    case .sendMessage(let action, let message):
      desk.ask(.action(action, .messageFailed, nil)) { .message(request: $0, message) }
    default: break
    }
  }

  private mutating func leave() {
    guard phase != .idle else { return end(nil) }
    phase = .leaving
    joinDue = nil
    desk.send(.leave)
    if desk.close() { end(nil) }
  }

  // MARK: Transport

  private mutating func handle(_ news: ServerLink.News) {
    switch news {
    case .opened:
      if phase == .connecting {
        desk.emit([.progress(.opened), .progress(.attached), .progress(.joining)])
        phase = .joining
      }
      joinDue = desk.now + .seconds(RoomDesk.answerSeconds)
      var join = desk.join
      if let participant { join.participant = participant }
      desk.send(.join(join, resumes: session))
    case .frame(.text(let text)):
      // A message that cannot be parsed is from a later protocol version.
      guard let notice = try? RoomNotice(parsing: text) else { return }
      handle(notice)
    case .frame(.binary): break
    case .lost(let code, let reason):
      if phase == .leaving { return end(nil) }
      lose(code.map { "the server closed with \($0) \(reason)" } ?? reason)
    case .closed: end(nil)
    }
  }

  private mutating func lose(_ reason: String, now: Bool = false) {
    joinDue = nil
    desk.drop()
    desk.isEntered = false
    desk.abandon("the way to the server was lost")
    switch phase {
    case .connecting where !desk.link.isExhausted: desk.open()
    case .joined, .reconnecting:
      guard !desk.link.isHopeless else { fallthrough }
      phase = .reconnecting
      desk.emit(.reconnecting(attempt: desk.link.attempt + 1, reason: reason))
      if now { desk.open() } else { desk.link.retry(at: desk.now) }
    default: end(SignalingFailure(.unreachable, reason, isCritical: true))
    }
  }

  private mutating func end(_ failure: SignalingFailure?, _ ending: RoomEnding? = nil) {
    guard phase != .over else { return }
    let wasLeaving = phase == .leaving
    phase = .over
    desk.abandon("the room is over")
    up.abandon(SignalingFailure(.invalidState, "the room is over"), &desk)
    up.close(&desk)
    down.close(&desk)
    desk.drop()
    if let failure, !wasLeaving { desk.emit(.failed(failure)) }
    desk.emit(.ended(ending ?? RoomEnding(.disconnected, message: failure?.message ?? "")))
  }

  // MARK: Server

  private mutating func handle(_ notice: RoomNotice) {
    if phase == .leaving { return }
    switch notice {
    case .joined(let id, let name, let isResumed, let members, let servers):
      guard joinDue != nil else { return }
      enter(id, name, isResumed: isResumed, members, servers)
    case .error(let fault, let isCritical):
      let failure = SignalingFailure(
        fault.code, fault.message, isCritical: isCritical, serverCode: fault.code.rawValue)
      if isCritical { end(failure) } else { desk.emit(.failed(failure)) }
    case .ended(let ending): end(nil, ending)
    case .moved(let url):
      desk.emit(.redirected(url))
      desk.link.redirect(to: [url])
      lose("the server sends to another one", now: true)
    default: if desk.isEntered { handleNews(notice) }
    }
  }

  private mutating func enter(
    _ id: String, _ name: String, isResumed: Bool, _ members: [RoomMember], _ servers: ICEServers
  ) {
    joinDue = nil
    let isReturn = phase == .reconnecting
    // The connections belong to the previous session, which was not resumed.
    if isReturn, !(isResumed && name == session) {
      up.close(&desk)
      down.close(&desk)
    }
    let goesOn = isReturn && isResumed && name == session
    (participant, session) = (id, name)
    desk.servers = servers
    desk.isEntered = true
    desk.link.settle()
    phase = .joined
    var events = desk.roster.retain(members.map(\.id).filter { $0 != id })
    for member in members where member.id != id { events += enter(member) }
    if isReturn {
      desk.emit(events)
      desk.emit(.reconnected)
    } else {
      desk.emit(
        .joined(JoinedRoom(participant: id, session: name, participants: desk.roster.participants))
      )
    }
    up.entered(&desk)
    if !goesOn { down.entered(&desk) }
  }

  private mutating func enter(_ member: RoomMember) -> [SignalingEvent] {
    desk.roster.enter(member.id, displayName: member.displayName, metadata: member.metadata)
      + desk.roster.set(member.media.map(Roster.Offer.init(room:)), of: member.id)
  }

  private mutating func handleNews(_ notice: RoomNotice) {
    switch notice {
    case .entered(let member): if member.id != participant { desk.emit(enter(member)) }
    case .left(let id, let cause): desk.emit(desk.roster.leave(id, cause))
    case .published(let id, let media):
      for each in media { desk.emit(desk.roster.update(Roster.Offer(room: each), of: id)) }
    case .unpublished(let id, let numbers):
      for number in numbers { desk.emit(desk.roster.remove(key: String(number), of: id)) }
    case .changed(let id, let media):
      desk.emit(desk.roster.update(Roster.Offer(room: media), of: id))
    case .talking(let id, let isTalking, let level):
      desk.emit(.talking(participant: id, isTalking, level: level))
    case .voices(let numbers):
      desk.emit(.voices(numbers.compactMap { desk.roster.media(key: String($0)) }))
    case .message(let message): desk.emit(.message(message))
    case .result(let request, let fault):
      if let purpose = desk.requests.settle(number: request) { settle(purpose, fault) }
    default: handleNegotiation(notice)
    }
  }

  private mutating func handleNegotiation(_ notice: RoomNotice) {
    switch notice {
    case .answer(let sdp): up.handle(answer: sdp, &desk)
    case .offer(let sdp, let places): down.handle(offer: sdp, places, &desk)
    case .candidate(.up, let candidate): up.handle(candidate, &desk)
    case .candidate(.down, let candidate): down.handle(candidate, &desk)
    case .local(let locals): up.handle(locals)
    case .muted(let local, let isMuted): up.muted(local, isMuted, &desk)
    case .layers(let mid, let layers): up.handle(layers, mid: mid, &desk)
    default: break
    }
  }

  private mutating func settle(_ purpose: RoomDesk.Purpose, _ fault: RoomFault?) {
    switch purpose {
    case .offer: up.settle(fault, &desk)
    case .stop: up.stopped(fault.map { SignalingFailure($0.code, $0.message) }, &desk)
    case .subscription:
      if let fault { desk.emit(.failed(SignalingFailure(.subscribeFailed, fault.message))) }
    case .action(let action, let usual, let media):
      let failure = fault.map { fault in
        // If the server states a specific error code, it replaces the request's usual code.
        SignalingFailure(
          fault.code == .serviceError ? usual : fault.code, fault.message, media: media)
      }
      desk.emit(action, failure)
    }
  }
}

extension Roster.Offer {
  init(room media: RoomMedia) {
    self.init(
      key: String(media.number), kind: media.kind, isActive: media.isActive,
      isAlwaysOn: media.isAlwaysOn, extraValue: media.extraValue, profiles: media.profiles)
  }
}

// MARK: - RoomDesk

/// The state that the parts of a client of Retake's own rooms share: the transport, the
/// participants and outputs.
struct RoomDesk: PublishingDesk {
  /// The request that a server's answer belongs to.
  enum Purpose: Hashable, Sendable {
    case offer, stop, subscription
    case action(ActionID, RoomErrorCode, MediaID?)
  }

  static let answerSeconds: Int64 = 10

  var link: ServerLink
  var roster = Roster()
  var join = RoomJoin(room: "")
  /// Whether the room has been joined on the current transport.
  var isEntered = false
  var servers = ICEServers()
  var step = SignalingStep()
  var requests = RequestTable<Purpose>(prefix: "")

  init(_ configuration: SignalingConfiguration) {
    link = ServerLink(urls: configuration.urls, subprotocols: [RoomRequest.subprotocol])
  }

  var deadline: Instant? { earliest(link.deadline, requests.deadline) }
  var waitingCount: Int { requests.waitingCount }

  // MARK: Transport

  mutating func open() { link.open(at: now, into: &step.outputs) }
  mutating func drop() { link.drop(into: &step.outputs) }
  mutating func close() -> Bool { link.close(at: now, into: &step.outputs) }
  mutating func passLink() -> ServerLink.News? { link.pass(at: now, into: &step.outputs) }
  mutating func send(_ request: RoomRequest) { link.send(request.text, into: &step.outputs) }

  /// Sends a request; the answer will have the same number.
  mutating func ask(_ purpose: Purpose, _ request: (UInt32) -> RoomRequest) {
    let due = now + .seconds(RoomDesk.answerSeconds)
    send(request(requests.addNumber(purpose, due: due)))
  }

  mutating func expire() -> [Purpose] { requests.expire(at: now) }

  /// Fails requests that will no longer be answered.
  mutating func abandon(_ reason: String) {
    for case .action(let action, let code, let media) in requests.removeAll() {
      emit(action, SignalingFailure(code, reason, media: media))
    }
  }

  // MARK: Connections

  mutating func connect(_ role: ConnectionRole) -> ConnectionID {
    openConnection(role, servers)
  }
}
