import SDP
package import Wire

/// A client for channels of WebRTC SFU Sora, using Sora's public signaling protocol.
///
/// Options are the members of `connect` (`SoraConnect.names` and `multistream`), as JSON or text;
/// `connection_timeout`, the time limit for joining in seconds; and `tells_signaling`, which
/// reports every server message as a notification of type `signaling`.
package struct SoraMachine: SignalingMachine {
  package static let name = "sora"

  private enum Phase: String {
    case idle, connecting, offering, joined, reconnecting, leaving, over
  }

  /// The time limit for joining, as in the service's own SDKs.
  private static let connectionSeconds: Int64 = 30
  /// The time to wait for local media before the first offer is answered.
  private static let holdSeconds: Int64 = 2
  private static let leaveSeconds: Int64 = 3
  private static let redirectsMaximum = 5

  private let options: [String: String]
  private let connectionSeconds: Int64
  private var desk: SoraDesk
  private var media = SoraMedia()
  private var join = RoomJoin(room: "")
  private var phase = Phase.idle
  /// The deadline of the current phase: for an offer, for leaving, or for local media before the
  /// first answer.
  private var due: Instant?
  private var redirectCount = 0
  private var wasJoined = false
  private var statistics = SoraStatistics()

  package init(_ configuration: SignalingConfiguration, entropy: Entropy) {
    desk = SoraDesk(configuration)
    options = configuration.options
    connectionSeconds =
      configuration.options["connection_timeout"].flatMap { Int64($0) }.map {
        min(max($0, 1), 3600)
      }
      ?? SoraMachine.connectionSeconds
  }

  package var abilities: SignalingAbilities {
    options["data_channels"] == nil ? .serverOffers : [.serverOffers, .messages]
  }

  package var deadline: Instant? {
    phase == .over ? nil : earliest(earliest(desk.link.deadline, due), desk.channels.deadline)
  }

  package var status: [(name: String, value: String)] {
    [
      ("phase", phase.rawValue), ("connection", desk.participant ?? ""),
      ("signaling", desk.channels.hasSwitched ? "data channel" : "websocket"),
    ] + media.status
  }

  package mutating func step(
    _ input: SignalingInput, at now: Instant, into outbox: inout Outbox<SignalingOutput>
  ) {
    // Nothing happens after the end.
    guard phase != .over else { return }
    desk.begin(at: now)
    switch input {
    case .deadline: pass()
    case .transport(let id, let event): if let news = desk.link.handle(id, event) { handle(news) }
    case .intent(let intent): handle(intent)
    case .connection(let id, let report): handle(report, of: id)
    case .response: break
    }
    desk.end(into: &outbox)
  }

  private mutating func pass() {
    if let news = desk.pass() { handle(news) }
    if desk.channels.consumeDue(at: desk.now) { _ = desk.close() }
    guard let due, due <= desk.now else { return }
    self.due = nil
    switch phase {
    case .offering, .reconnecting:
      desk.drop()
      lose("the server made no offer within \(connectionSeconds) s", code: nil)
    case .joined: media.release(&desk)
    case .leaving: end(nil)
    case .idle, .connecting, .over: break
    }
  }

  // MARK: Intents

  private mutating func handle(_ intent: RoomIntent) {
    if phase == .leaving { return refuse(intent, "the channel is being left") }
    switch intent {
    case .join(let join):
      guard phase == .idle else { return }
      phase = .connecting
      self.join = join
      guard desk.link.url != nil else {
        return end(
          SignalingFailure(.unreachable, "no address of a server is given", isCritical: true))
      }
      desk.open()
    case .leave: leave()
    case .publish(let request):
      guard join.role != .down else { return refuse(intent, "this side only receives") }
      media.publish(request, &desk)
    case .unpublish(let action, let locals): media.unpublish(action, locals, &desk)
    case .sendMessage(let action, let message): send(message, action)
    case .networkChanged:
      // A Sora session ends with its connection.
      guard phase == .joined else { return }
      desk.drop()
      lose("the network has changed", code: nil)
    case .renewToken(let token): join.token = token
    case .updateLocal, .restartICE: break
    default: refuse(intent, "Sora sends everything that is published, and as it is published")
    }
  }

  private mutating func refuse(_ intent: RoomIntent, _ reason: String) {
    guard let action = intent.action else { return }
    desk.emit(action, SignalingFailure(.notSupported, reason))
  }

  private mutating func send(_ message: UserMessage, _ action: ActionID) {
    guard let connection = desk.connection, let request = desk.channels.outgoing(message) else {
      return desk.emit(
        action, SignalingFailure(.messageFailed, "there is no data channel for messages"))
    }
    desk.request(connection, request)
    desk.emit(action)
  }

  private mutating func leave() {
    guard phase != .idle else { return end(nil) }
    phase = .leaving
    due = desk.now + .seconds(SoraMachine.leaveSeconds)
    desk.send(.members(("type", "disconnect"), ("reason", "NO-ERROR")))
    // The server closes the open transport. If nothing is open, the session ends immediately.
    if !desk.link.isOpen, !desk.channels.hasSwitched, desk.close() { end(nil) }
  }

  // MARK: WebSocket

  private mutating func handle(_ news: ServerLink.News) {
    switch news {
    case .opened:
      if phase == .connecting {
        desk.emit([.progress(.opened), .progress(.joining)])
        phase = .offering
      }
      due = desk.now + .seconds(connectionSeconds)
      desk.sendOnSocket(SoraConnect.message(join, options, isRedirected: redirectCount > 0))
    case .frame(.text(let text)):
      guard let value = try? JSONValue(parsing: text) else { return }
      handle(value)
    case .frame(.binary): break
    case .lost(let code, let reason):
      // After the switch, the WebSocket is not needed.
      if desk.channels.outlivesSocket, phase == .joined { return }
      lose(reason, code: code)
    case .closed: if phase == .leaving { end(nil) }
    }
  }

  private mutating func lose(_ reason: String, code: Int?) {
    let words = code.map { reason.isEmpty ? "the server closed with \($0)" : reason } ?? reason
    switch phase {
    case .leaving: end(nil, RoomEnding(.disconnected, code: code, message: reason))
    case .connecting where !desk.link.isExhausted: desk.open()
    case .connecting, .offering:
      let number: RoomErrorCode = code == nil ? .unreachable : .joinRefused
      end(SignalingFailure(number, words, isCritical: true, serverCode: code))
    case .joined, .reconnecting:
      if let code, let ending = SoraMachine.ending(code, reason) {
        return end(nil, ending)
      }
      reconnect(words)
    case .idle, .over: break
    }
  }

  /// Returns the room's ending for a close code, or nil if the server did not close on purpose.
  private static func ending(_ code: Int, _ reason: String) -> RoomEnding? {
    let isKicked = reason.contains("API")
    switch code {
    case 1000, 1005:
      return RoomEnding(isKicked ? .kicked : .disconnected, code: code, message: reason)
    case 4000...4999: return RoomEnding(.kicked, code: code, message: reason)
    default: return nil
    }
  }

  private mutating func reconnect(_ reason: String) {
    reset()
    guard !desk.link.isHopeless else {
      return end(SignalingFailure(.unreachable, reason, isCritical: true))
    }
    phase = .reconnecting
    desk.emit(.reconnecting(attempt: desk.link.attempt + 1, reason: reason))
    desk.link.retry(at: desk.now)
  }

  private mutating func reset() {
    due = nil
    media.close(&desk)
    desk.reset()
    statistics.forget()
  }

  private mutating func end(_ failure: SignalingFailure?, _ ending: RoomEnding? = nil) {
    guard phase != .over else { return }
    let wasLeaving = phase == .leaving
    phase = .over
    media.abandon("the channel was left", &desk)
    media.close(&desk)
    desk.drop()
    if let failure, !wasLeaving { desk.emit(.failed(failure)) }
    desk.emit(
      .ended(
        ending
          ?? RoomEnding(
            .disconnected, code: failure?.serverCode, message: failure?.message ?? "")))
  }

  // MARK: Server

  private mutating func handle(_ value: JSONValue) {
    guard phase != .leaving else { return }
    if options["tells_signaling"] == "true" {
      desk.emit(.notification(type: "signaling", value.json))
    }
    switch value["type"]?.text {
    case "offer"?: if let offer = SoraOffer(value) { handle(offer) }
    case "re-offer"?: handle(reOffer: value, "re-answer")
    case "update"?: handle(reOffer: value, "update")
    case "ping"?: pong(value["stats"]?.flag == true)
    case "notify"?: notify(value)
    case "push"?: desk.emit(.notification(type: "push", (value["data"] ?? .null).json))
    case "switched"?: switched(value)
    case "redirect"?: redirect(value)
    case "close"?: close(value)
    // A type from a later version of the service.
    case let type?: desk.emit(.notification(type: type, value.json))
    case nil: break
    }
  }

  private mutating func handle(_ offer: SoraOffer) {
    guard phase == .offering || phase == .reconnecting, due != nil else { return }
    phase = .joined
    due = desk.now + .seconds(SoraMachine.holdSeconds)
    desk.begin(offer)
    desk.link.settle()
    redirectCount = 0
    if wasJoined {
      desk.emit(.reconnected)
    } else {
      wasJoined = true
      desk.emit(.joined(JoinedRoom(participant: offer.connection, session: offer.session)))
    }
    media.hold(offer, join.role, &desk)
  }

  private mutating func handle(reOffer value: JSONValue, _ answer: String) {
    guard phase == .joined, let sdp = value["sdp"]?.text else { return }
    media.handle(offer: sdp, answeredBy: answer, &desk)
  }

  private mutating func pong(_ wantsStats: Bool) {
    guard wantsStats, let connection = desk.connection else {
      return desk.sendOnSocket(.members(("type", "pong")))
    }
    statistics.ask(connection, isOnChannel: false, &desk)
  }

  private mutating func notify(_ value: JSONValue) {
    let type = value["event_type"]?.text ?? ""
    desk.emit(.notification(type: "notify", value.json))
    guard let id = value["connection_id"]?.text else { return }
    switch type {
    case "connection.created":
      // The notification of the local participant's arrival lists all participants present.
      for other in value["data"]?.elements ?? [] { enter(other) }
      enter(value)
    case "connection.destroyed": desk.emit(desk.roster.leave(id, .left))
    case "spotlight.focused": desk.emit(.talking(participant: id, true, level: nil))
    case "spotlight.unfocused": desk.emit(.talking(participant: id, false, level: nil))
    default: break
    }
  }

  private mutating func enter(_ value: JSONValue) {
    guard let id = value["connection_id"]?.text, id != desk.participant else { return }
    let metadata = value["authn_metadata"] ?? value["metadata"]
    desk.emit(
      desk.roster.enter(
        id, displayName: value["client_id"]?.text ?? "",
        metadata: metadata == .null ? nil : metadata?.json))
  }

  private mutating func switched(_ value: JSONValue) {
    guard phase == .joined else { return }
    desk.channels.switchOver(
      ignoresSocket: value["ignore_disconnect_websocket"]?.flag == true)
    desk.emit(.notification(type: "switched", value.json))
  }

  private mutating func redirect(_ value: JSONValue) {
    guard phase == .offering || phase == .reconnecting, let url = value["location"]?.text else {
      return
    }
    redirectCount += 1
    desk.drop()
    due = nil
    guard redirectCount <= SoraMachine.redirectsMaximum else {
      return end(
        SignalingFailure(
          .joinRefused, "the server sends on more than \(SoraMachine.redirectsMaximum) times",
          isCritical: true))
    }
    desk.emit(.redirected(url))
    desk.link.redirect(to: [url])
    desk.open()
  }

  /// Ends the room after the server closed the session over the data channel.
  private mutating func close(_ value: JSONValue) {
    let code = value["code"]?.integer.map { Int(clamping: $0) } ?? 1000
    let reason = value["reason"]?.text ?? ""
    end(
      nil,
      SoraMachine.ending(code, reason) ?? RoomEnding(.disconnected, code: code, message: reason))
  }

  // MARK: Connection

  private mutating func handle(_ report: ConnectionReport, of connection: ConnectionID) {
    guard connection == desk.connection else { return }
    switch report {
    case .channelMessage(let label, let frame): handle(frame, on: label)
    case .channelClosed(SoraChannel.signaling):
      guard desk.channels.hasSwitched else { return }
      if phase == .leaving { return end(nil) }
      desk.drop()
      lose("the data channel of signaling was closed", code: nil)
    case .channelOpened(let label):
      guard desk.channels[label]?.isOwn == true else { return }
      let told = JSONValue.members(("label", .text(label)))
      desk.emit(.notification(type: "datachannel", told.json))
    case .stats(let action, let text): statistics.answer(action, text, &desk)
    case .state(.failed):
      guard phase == .joined else { return }
      desk.drop()
      lose("the connection failed", code: nil)
    default: media.handle(report, of: connection, &desk)
    }
  }

  private mutating func handle(_ frame: SignalingFrame, on label: String) {
    guard phase == .joined, let channel = desk.channels[label], let bytes = channel.bytes(frame)
    else { return }
    if channel.isOwn {
      if let message = channel.message(bytes) { desk.emit(.message(message)) }
      return
    }
    if label == SoraChannel.signaling { desk.channels.recordSignaling(at: desk.now) }
    guard let text = String(validating: bytes, as: UTF8.self),
      let value = try? JSONValue(parsing: text)
    else { return }
    if label == SoraChannel.stats, value["type"]?.text == "req-stats" {
      if let connection = desk.connection {
        statistics.ask(connection, isOnChannel: true, &desk)
      }
    } else {
      handle(value)
    }
  }
}
