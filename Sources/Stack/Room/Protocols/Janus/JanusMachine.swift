package import Wire

/// A client of a Janus server, in which one of the server's plugins acts as the room.
///
/// Options: `plugin` (`videoroom`, `audiobridge` or `echotest`), `apisecret`, `token`, `pin`, and
/// the plugin's own.
package struct JanusMachine: SignalingMachine {
  package static let name = "janus"

  private enum Phase: String {
    case idle, connecting, joining, joined, reconnecting, leaving, over
  }

  private var desk: JanusDesk
  private var plugin: any JanusPlugin
  private let pluginName: String
  private var phase = Phase.idle

  package init(_ configuration: SignalingConfiguration, entropy: Entropy) {
    let number = entropy.stream("signaling").integer(UInt32.self)
    let digits = String(number, radix: 16)
    desk = JanusDesk(configuration, prefix: digits)
    let plugins: [any JanusPlugin.Type] = [
      JanusVideoRoom.self, JanusAudioBridge.self, JanusEchoTest.self,
    ]
    let wanted = configuration.options["plugin"]
    let type = plugins.first { $0.name == wanted } ?? JanusVideoRoom.self
    plugin = type.init(options: configuration.options)
    pluginName = type.name
  }

  package var abilities: SignalingAbilities { plugin.abilities }

  package var deadline: Instant? { phase == .over ? nil : desk.session.deadline }

  package var status: [(name: String, value: String)] {
    [("phase", phase.rawValue), ("plugin", pluginName)] + desk.session.status + plugin.status
  }

  package mutating func step(
    _ input: SignalingInput, at now: Instant, into outbox: inout Outbox<SignalingOutput>
  ) {
    // There are no events after the end.
    guard phase != .over else { return }
    desk.begin(at: now)
    switch input {
    case .deadline: handle(desk.pass())
    case .transport(let id, let event): handle(desk.handle(id, event))
    case .intent(let intent): handle(intent)
    case .connection(let id, let report): plugin.handle(report, of: id, &desk)
    case .response: break
    }
    if phase != .over { desk.answerAbandoned() }
    desk.end(into: &outbox)
  }

  // MARK: Intents

  private mutating func handle(_ intent: RoomIntent) {
    switch intent {
    case .join(let join):
      guard phase == .idle else { return }
      phase = .connecting
      desk.join = join
      desk.open()
      if desk.session.deadline == nil {
        end(SignalingFailure(.unreachable, "no address of a server is given", isCritical: true))
      }
    case .leave: leave()
    case .networkChanged:
      guard phase == .joined || phase == .reconnecting else { return }
      desk.dropLink()
      reconnect("the network has changed", now: true)
    case .renewToken(let token): desk.join.token = token
    default:
      if phase == .leaving {
        answer(intent)
      } else {
        plugin.handle(intent, &desk)
      }
    }
  }

  private mutating func answer(_ intent: RoomIntent) {
    guard let action = intent.action else { return }
    desk.emit(action, SignalingFailure(.invalidState, "the room is being left"))
  }

  private mutating func leave() {
    switch phase {
    case .idle, .over: end(nil)
    case .leaving: break
    default:
      phase = .leaving
      if desk.leave() { end(nil) }
    }
  }

  // MARK: Session events

  private mutating func handle(_ news: [JanusSession.News]) {
    for news in news where phase != .over { handle(news) }
  }

  private mutating func handle(_ news: JanusSession.News) {
    switch news {
    case .opened: if phase == .connecting { desk.emit(.progress(.opened)) }
    case .ready(let isNew): ready(isNew: isNew)
    case .attached(let role): attached(role)
    case .reply(let role, let ask, let reply): handle(reply, to: ask, of: role)
    case .event(let role, let event): handle(event, of: role)
    case .lost(let reason): lose(reason)
    case .refused(let code, let reason): refuse(code, reason)
    case .closed: end(nil)
    }
  }

  private mutating func ready(isNew: Bool) {
    if isNew {
      if phase == .reconnecting {
        plugin.reset(&desk)
        desk.left()
      }
      desk.attach(pluginName, as: .main)
    } else {
      plugin.resume(&desk)
      returned()
    }
  }

  private mutating func attached(_ role: JanusRole) {
    if role == .main, phase == .connecting {
      phase = .joining
      desk.emit(.progress(.attached))
      desk.emit(.progress(.joining))
    }
    let isEntering = phase == .joining || phase == .reconnecting
    plugin.attached(role, &desk)
    if isEntering, desk.isEntered { returned() }
  }

  private mutating func handle(_ reply: JanusReply, to ask: JanusAsk, of role: JanusRole) {
    if role == .main, ask == .join, case .failed(let code, let reason) = reply {
      // 436: the server has not yet noticed that the previous session is gone.
      if phase == .reconnecting, code == 436 || code == nil {
        desk.dropLink()
        return reconnect(reason)
      }
      return end(SignalingFailure(.joinRefused, janus: code, reason, isCritical: true))
    }
    let isEntering = phase == .joining || phase == .reconnecting
    plugin.handle(reply, to: ask, of: role, &desk)
    if isEntering, desk.isEntered { returned() }
  }

  /// Records that the room was joined or rejoined.
  private mutating func returned() {
    let wasAway = phase == .reconnecting
    phase = .joined
    desk.session.link.settle()
    if wasAway { desk.emit(.reconnected) }
  }

  private mutating func handle(_ event: JanusEvent, of role: JanusRole) {
    switch event {
    case .detached where role == .main:
      end(nil, RoomEnding(.destroyed, message: "the server has detached the handle"))
    case .data(let data, _) where role == .main:
      if let ending = ending(data) { return end(nil, ending) }
      plugin.handle(event, of: role, &desk)
    default: plugin.handle(event, of: role, &desk)
    }
  }

  /// Returns why the room ended, from fields that all plugins share; nil if it has not ended.
  private func ending(_ data: JSONValue) -> RoomEnding? {
    if data["leaving"]?.text == "ok" || data["left"] != nil, data["reason"]?.text == "kicked" {
      return RoomEnding(.kicked, message: "kicked")
    }
    if ["videoroom", "audiobridge"].contains(where: { data[$0]?.text == "destroyed" }) {
      return RoomEnding(.destroyed, message: "the room was destroyed")
    }
    return nil
  }

  // MARK: Losses and closing

  private mutating func lose(_ reason: String) {
    switch phase {
    case .leaving: end(nil)
    case .connecting, .joining:
      guard phase == .connecting, !desk.session.link.isExhausted else {
        return end(SignalingFailure(.unreachable, reason, isCritical: true))
      }
      desk.open()
    case .joined, .reconnecting: reconnect(reason)
    case .idle, .over: break
    }
  }

  private mutating func refuse(_ code: Int?, _ reason: String) {
    switch phase {
    case .joined, .reconnecting:
      desk.dropLink()
      reconnect(reason)
    case .leaving: if desk.leave() { end(nil) }
    default: end(SignalingFailure(.joinRefused, janus: code, reason, isCritical: true))
    }
  }

  private mutating func reconnect(_ reason: String, now: Bool = false) {
    guard !desk.session.link.isHopeless else {
      return end(SignalingFailure(.unreachable, reason, isCritical: true))
    }
    phase = .reconnecting
    // Only a session that has entered the room is worth claiming.
    if !desk.isEntered { desk.forget() }
    desk.emit(.reconnecting(attempt: desk.session.link.attempt + 1, reason: reason))
    if now { desk.open() } else { desk.retry() }
  }

  private mutating func end(_ failure: SignalingFailure?, _ ending: RoomEnding? = nil) {
    guard phase != .over else { return }
    let wasLeaving = phase == .leaving
    phase = .over
    plugin.abandon(SignalingFailure(.invalidState, "the room is over"), &desk)
    plugin.reset(&desk)
    desk.dropLink()
    desk.answerAbandoned()
    if let failure, !wasLeaving { desk.emit(.failed(failure)) }
    desk.emit(
      .ended(
        ending
          ?? RoomEnding(
            .disconnected, code: failure?.serverCode, message: failure?.message ?? "")))
  }
}

extension RoomIntent {
  /// The action that a result must answer, if any.
  var action: ActionID? {
    switch self {
    case .publish(let request): request.action
    case .unpublish(let action, _), .subscribe(let action, _), .unsubscribe(let action, _),
      .setProfile(let action, _, _), .setPaused(let action, _, _), .sendMessage(let action, _):
      action
    case .join, .updateLocal, .restartICE, .networkChanged, .renewToken, .leave: nil
    }
  }
}
