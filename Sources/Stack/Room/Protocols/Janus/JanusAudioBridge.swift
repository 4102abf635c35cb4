import Peer
import SDP
import Wire

/// A room of the audiobridge plugin: a single connection with the mixed audio of all others.
///
/// All participants' audio is assigned to the connection's only section. Option: `pin`.
struct JanusAudioBridge: JanusMixPlugin {
  static let name = "audiobridge"
  /// The key for a participant's audio, which is the participant's only media.
  private static let key = "audio"

  var mix = JanusMix()

  init(options: [String: String]) {}

  var abilities: SignalingAbilities { [.mediaUpdates, .audioSelection, .audioOnly] }

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

  /// Records a participant and whether that participant is muted.
  private func update(_ value: JSONValue, except own: String, _ desk: inout JanusDesk)
    -> [SignalingEvent]
  {
    guard let id = value["id"]?.identifier, id != own else { return [] }
    let offer = Roster.Offer(
      key: Self.key, kind: .audio, isActive: value["muted"]?.flag != true)
    return desk.roster.enter(id, displayName: value["display"]?.text ?? "")
      + desk.roster.set([offer], of: id)
  }

  /// Assigns all audio to the section with the local audio.
  private mutating func assign(_ desk: inout JanusDesk) {
    // A receive-only connection also has a single section, the first.
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

  mutating func reset(_ desk: inout JanusDesk) { mix.close(&desk) }
}

// MARK: - JanusEchoTest

/// The echotest plugin, presented as a room: a participant named `echo` publishes the same media as
/// the local participant.
struct JanusEchoTest: JanusMixPlugin {
  static let name = "echotest"
  static let echo = "echo"

  var mix = JanusMix()

  init(options: [String: String]) {}

  var abilities: SignalingAbilities { [] }

  mutating func attached(_ role: JanusRole, _ desk: inout JanusDesk) {
    guard role == .main, !desk.isEntered else { return }
    // There is no room to join, only the handle.
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

  mutating func reset(_ desk: inout JanusDesk) {
    mix.close(&desk)
    desk.emit(desk.roster.set([], of: Self.echo))
  }
}

// MARK: - JanusMix

/// A plugin with a single connection.
protocol JanusMixPlugin: JanusPlugin {
  var mix: JanusMix { get set }
}

extension JanusMixPlugin {
  var status: [(name: String, value: String)] { mix.status }

  mutating func resume(_ desk: inout JanusDesk) { mix.resume(&desk) }

  mutating func abandon(_ failure: SignalingFailure, _ desk: inout JanusDesk) {
    mix.abandon(failure, &desk)
  }
}

/// The single connection of a plugin; each of its sections can both send and receive.
struct JanusMix: Sendable {
  private var publication = Publication()
  private var assigned: [MediaID] = []

  var status: [(name: String, value: String)] { publication.status }

  /// Whether the local audio is active; true if there is none yet.
  var isActive: Bool { publication.wanted.first { $0.kind == .audio }?.isActive ?? true }
  /// The local media that the server has accepted, with its sections.
  var places: [LocalMediaPlace] { publication.publishedPlaces }

  func info(of media: LocalMediaID) -> LocalMediaInfo? { publication.info(of: media) }

  /// Replaces the description of local media; returns false if the media is not published.
  mutating func update(_ media: LocalMediaInfo) -> Bool {
    publication.update(media) != nil && publication.mid(of: media.id) != nil
  }

  mutating func handle(_ intent: RoomIntent, _ desk: inout JanusDesk) {
    switch intent {
    case .publish(let request):
      publication.add(request)
      offer(&desk)
    case .unpublish(let action, let media):
      publication.remove(action, media)
      offer(&desk)
    case .restartICE(let connection):
      guard connection == publication.connection else { return }
      publication.restartICE()
      offer(&desk)
    default:
      guard let action = intent.action else { return }
      desk.emit(action, SignalingFailure(.notSupported, "the plugin cannot do that"))
    }
  }

  private mutating func offer(_ desk: inout JanusDesk) {
    guard desk.isEntered else { return }
    publication.requestOffer(&desk) { $0.connect($0.join.role == .down ? .down : .both) }
  }

  /// Handles a report from the connection; returns the offer that the plugin should send, or nil if
  /// there is none.
  mutating func handle(
    _ report: ConnectionReport, of connection: ConnectionID, _ desk: inout JanusDesk
  ) -> SessionDescription? {
    guard connection == publication.connection else { return nil }
    switch report {
    case .description(let offer, let places) where offer.type == .offer:
      return publication.offer(places) ? offer : nil
    case .refused(let error): fail(publication.failure(of: error), &desk)
    case .candidate(let candidate): desk.trickle(candidate, to: .main)
    default: break
    }
    return nil
  }

  mutating func handle(_ reply: JanusReply, to ask: JanusAsk, _ desk: inout JanusDesk) {
    switch (ask, reply) {
    case (.publish, .data(_, let answer)):
      guard publication.phase == .offered else { return }
      guard let answer, let connection = publication.connection else {
        return fail(SignalingFailure(.publishFailed, "the server gave no answer"), &desk)
      }
      desk.request(connection, .setRemote(answer))
      desk.emit(publication.settle { _ in desk.roster.nextMedia() })
      if publication.isDue { offer(&desk) }
    case (.publish, .failed(let code, let reason)):
      fail(SignalingFailure(.publishFailed, janus: code, reason), &desk)
    case (.configure, .failed(let code, let reason)):
      desk.emit(.failed(SignalingFailure(.updateFailed, janus: code, reason)))
    default: break
    }
  }

  private mutating func fail(_ failure: SignalingFailure, _ desk: inout JanusDesk) {
    desk.emit(publication.fail(failure))
    if publication.isDue { offer(&desk) }
  }

  /// Assigns media to a section, and forgets media that is no longer published.
  mutating func assign(_ media: [MediaID], in mid: String, _ desk: inout JanusDesk) {
    guard let connection = publication.connection else { return }
    for id in media where !assigned.contains(id) {
      assigned.append(id)
      desk.emit(.assigned(id, connection, mid: mid))
    }
    assigned.removeAll { desk.roster.media($0) == nil }
  }

  /// Records that another client muted or unmuted the local audio.
  mutating func muted(_ isMuted: Bool, _ desk: inout JanusDesk) {
    guard var audio = publication.wanted.first(where: { $0.kind == .audio }),
      audio.isActive == isMuted
    else { return }
    audio.isActive = !isMuted
    _ = publication.update(audio)
    desk.emit(.localMuted(audio.id, isMuted))
  }

  mutating func handle(_ candidate: CandidateInit?, _ desk: inout JanusDesk) {
    if let connection = publication.connection {
      desk.request(connection, .addCandidate(candidate))
    }
  }

  mutating func hangUp(_ reason: String, _ desk: inout JanusDesk) {
    guard publication.connection != nil, publication.phase == .idle else { return }
    desk.emit(.failed(SignalingFailure(.connectionClosed, "the server hung up: \(reason)")))
    close(&desk)
    entered(&desk)
  }

  /// Publishes local media after joining, or opens the receive-only connection.
  mutating func entered(_ desk: inout JanusDesk) {
    if !publication.wanted.isEmpty || publication.isDue || desk.join.role == .down { offer(&desk) }
  }

  mutating func resume(_ desk: inout JanusDesk) {
    if publication.phase == .offered { publication.withdraw() }
    if publication.isDue { offer(&desk) }
  }

  mutating func abandon(_ failure: SignalingFailure, _ desk: inout JanusDesk) {
    desk.emit(publication.finish(failure))
  }

  mutating func close(_ desk: inout JanusDesk) {
    let connection = publication.connection
    desk.emit(publication.forget())
    desk.emit(assigned.map { .unassigned($0) })
    assigned = []
    if let connection { desk.request(connection, .close) }
  }
}
