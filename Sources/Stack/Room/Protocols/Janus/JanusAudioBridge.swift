import SDP
import Wire

/// A room of the audiobridge plugin: one connection with the mixed audio of all others.
///
/// Everybody's audio is assigned to its one section. Option: `pin`.
struct JanusAudioBridge: JanusPlugin {
  static let name = "audiobridge"
  /// The key of a participant's only media.
  private static let key = "audio"

  private var mix = JanusMix()

  init(options: [String: String]) {}

  var abilities: SignalingAbilities { [.mediaUpdates, .audioSelection, .audioOnly] }
  var status: [(name: String, value: String)] { mix.status }

  mutating func attached(_ role: JanusRole, _ desk: inout JanusDesk) {
    guard role == .main else { return }
    let join = desk.join
    desk.ask(
      .join,
      .members(
        ("request", "join"), ("room", .identifier(join.room)),
        ("id", (desk.participant ?? join.participant).map { .identifier($0) }),
        ("display", join.displayName.isEmpty ? nil : .text(join.displayName)),
        ("token", join.token.map { .text($0) }), ("pin", desk.options["pin"].map { .text($0) }),
        ("muted", .flag(!mix.isActive))))
  }

  mutating func handle(
    _ reply: JanusReply, to ask: JanusAsk, of role: JanusRole, _ desk: inout JanusDesk
  ) {
    if ask == .join, case .data(let data, _) = reply {
      joined(data, &desk)
    } else {
      mix.handle(reply, to: ask, &desk)
      assign(&desk)
    }
  }

  private mutating func joined(_ data: JSONValue, _ desk: inout JanusDesk) {
    guard data["audiobridge"]?.text == "joined", let id = data["id"]?.identifier else { return }
    let isReturn = desk.participant != nil
    let others = data["participants"]?.elements ?? []
    var events = desk.roster.retain(others.compactMap { $0["id"]?.identifier })
    for other in others { events += update(other, except: id, &desk) }
    if isReturn { desk.emit(events) }
    desk.entered(id, session: nil)
    mix.entered(&desk)
  }

  /// Records a participant and whether it is muted.
  private func update(_ value: JSONValue, except own: String, _ desk: inout JanusDesk)
    -> [SignalingEvent]
  {
    guard let id = value["id"]?.identifier, id != own else { return [] }
    let offer = Roster.Offer(
      key: Self.key, kind: .audio, isActive: value["muted"]?.flag != true)
    return desk.roster.enter(id, displayName: value["display"]?.text ?? "")
      + desk.roster.set([offer], of: id)
  }

  /// Assigns all audio to the section of the local audio.
  private mutating func assign(_ desk: inout JanusDesk) {
    // A connection that only receives has one section too, the first.
    guard let mid = mix.places.first?.mid ?? (desk.join.role == .down ? "0" : nil) else { return }
    mix.assign(desk.roster.participants.flatMap(\.media).map(\.id), in: mid, &desk)
  }

  mutating func handle(_ event: JanusEvent, of role: JanusRole, _ desk: inout JanusDesk) {
    switch event {
    case .data(let data, _):
      handle(data, &desk)
      assign(&desk)
    case .candidate(let candidate): mix.handle(candidate, &desk)
    case .hangup(let reason): mix.hangUp(reason, &desk)
    case .note(let type, let whole): desk.record(type, whole)
    case .detached: break
    }
  }

  private mutating func handle(_ data: JSONValue, _ desk: inout JanusDesk) {
    guard let type = data["audiobridge"]?.text, let own = desk.participant else { return }
    switch type {
    case "talking", "stopped-talking":
      guard let id = data["id"]?.identifier else { return }
      desk.emit(.talking(participant: id, type == "talking", level: nil))
    case "joined", "event":
      for value in data["participants"]?.elements ?? [] {
        desk.emit(update(value, except: own, &desk))
        if value["id"]?.identifier == own, let isMuted = value["muted"]?.flag {
          mix.muted(isMuted, &desk)
        }
      }
      for name in ["leaving", "kicked"] {
        guard let id = data[name]?.identifier, id != own else { continue }
        desk.emit(desk.roster.leave(id, name == "kicked" ? .kicked : .left))
      }
    default: desk.record(type, data)
    }
  }

  mutating func handle(_ intent: RoomIntent, _ desk: inout JanusDesk) {
    switch intent {
    case .updateLocal(let media):
      guard mix.update(media) else { return }
      desk.ask(
        .configure(nil, .localMedia),
        .members(("request", "configure"), ("muted", .flag(!media.isActive))))
    default: mix.handle(intent, &desk)
    }
  }

  mutating func handle(
    _ report: ConnectionReport, of connection: ConnectionID, _ desk: inout JanusDesk
  ) {
    guard let offer = mix.handle(report, of: connection, &desk) else { return }
    desk.ask(
      .publish, .members(("request", "configure"), ("muted", .flag(!mix.isActive))), offer)
  }

  mutating func resume(_ desk: inout JanusDesk) { mix.resume(&desk) }

  mutating func abandon(_ failure: SignalingFailure, _ desk: inout JanusDesk) {
    mix.abandon(failure, &desk)
  }

  mutating func reset(_ desk: inout JanusDesk) {
    mix.reset(&desk)
  }
}
