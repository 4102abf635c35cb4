import SDP
import Wire

/// The echotest plugin as a room: a participant called `echo` publishes whatever this side
/// publishes.
struct JanusEchoTest: JanusPlugin {
  static let name = "echotest"
  static let echo = "echo"

  private var mix = JanusMix()

  init(options: [String: String]) {}

  var abilities: SignalingAbilities { [] }
  var status: [(name: String, value: String)] { mix.status }

  mutating func attached(_ role: JanusRole, _ desk: inout JanusDesk) {
    guard role == .main, !desk.isEntered else { return }
    // There is nothing to join: the handle is the room.
    let isReturn = desk.participant != nil
    let events = desk.roster.enter(Self.echo, displayName: Self.echo)
    if isReturn { desk.emit(events) }
    desk.entered(desk.join.participant ?? "self", session: nil)
    mix.entered(&desk)
  }

  mutating func handle(
    _ reply: JanusReply, to ask: JanusAsk, of role: JanusRole, _ desk: inout JanusDesk
  ) {
    guard ask == .publish else { return }
    mix.handle(reply, to: ask, &desk)
    let offers = mix.places.compactMap { place in
      mix.info(of: place.media).map { Roster.Offer(key: place.mid, kind: $0.kind) }
    }
    desk.emit(desk.roster.set(offers, of: Self.echo))
    for place in mix.places {
      guard let media = desk.roster.media(owner: Self.echo, key: place.mid) else { continue }
      mix.assign([media.id], in: place.mid, &desk)
    }
  }

  mutating func handle(_ event: JanusEvent, of role: JanusRole, _ desk: inout JanusDesk) {
    switch event {
    case .candidate(let candidate): mix.handle(candidate, &desk)
    case .hangup(let reason): mix.hangUp(reason, &desk)
    case .note(let type, let whole): desk.record(type, whole)
    case .data, .detached: break
    }
  }

  mutating func handle(_ intent: RoomIntent, _ desk: inout JanusDesk) {
    if case .updateLocal(let media) = intent { _ = mix.update(media) }
    mix.handle(intent, &desk)
  }

  mutating func handle(
    _ report: ConnectionReport, of connection: ConnectionID, _ desk: inout JanusDesk
  ) {
    guard let offer = mix.handle(report, of: connection, &desk) else { return }
    desk.ask(.publish, .members(("audio", true), ("video", true)), offer)
  }

  mutating func resume(_ desk: inout JanusDesk) { mix.resume(&desk) }

  mutating func abandon(_ failure: SignalingFailure, _ desk: inout JanusDesk) {
    mix.abandon(failure, &desk)
  }

  mutating func reset(_ desk: inout JanusDesk) {
    mix.reset(&desk)
    desk.emit(desk.roster.set([], of: Self.echo))
  }
}
