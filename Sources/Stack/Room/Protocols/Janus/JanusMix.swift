import Peer
import SDP
import Wire

/// The single connection of a plugin that sends and receives in the same sections.
struct JanusMix: Sendable {
  private var publication = Publication()
  private var assigned: [MediaID] = []

  var status: [(name: String, value: String)] { publication.status }

  /// Whether the local audio is active; true before there is any.
  var isActive: Bool { publication.wanted.first { $0.kind == .audio }?.isActive ?? true }
  /// The local media that the server has, with its sections.
  var places: [LocalMediaPlace] { publication.publishedPlaces }

  func info(of media: LocalMediaID) -> LocalMediaInfo? { publication.info(of: media) }

  /// Replaces the description of local media; false if it is not published.
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
    guard desk.isEntered, let restartsICE = publication.begin() else { return }
    let role: ConnectionRole = desk.join.role == .down ? .down : .both
    let connection = publication.connection ?? desk.connect(role)
    publication.connection = connection
    desk.request(connection, .makeOffer(iceRestart: restartsICE))
  }

  /// Handles a report of the connection; returns an offer for the plugin to send.
  mutating func handle(
    _ report: ConnectionReport, of connection: ConnectionID, _ desk: inout JanusDesk
  ) -> SessionDescription? {
    guard connection == publication.connection else { return nil }
    switch report {
    case .description(let offer, let places) where offer.type == .offer:
      return publication.offer(places) ? offer : nil
    case .refused(let error):
      let code: RoomErrorCode =
        publication.phase == .offering ? .offerFailed : .remoteDescriptionFailed
      fail(SignalingFailure(code, error.message), &desk)
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

  /// Assigns media to a section, and unassigns those that are gone.
  mutating func assign(_ media: [MediaID], in mid: String, _ desk: inout JanusDesk) {
    guard let connection = publication.connection else { return }
    for id in media where !assigned.contains(id) {
      assigned.append(id)
      desk.emit(.assigned(id, connection, mid: mid))
    }
    assigned.removeAll { desk.roster.media($0) == nil }
  }

  /// Records that the local audio was muted or unmuted by somebody else.
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

  /// Publishes local media after joining, or opens the connection that only receives.
  mutating func entered(_ desk: inout JanusDesk) {
    if !publication.wanted.isEmpty || publication.isDue || desk.join.role == .down { offer(&desk) }
  }

  mutating func resume(_ desk: inout JanusDesk) {
    if publication.phase == .offered { publication.withdraw() }
    if publication.isDue { offer(&desk) }
  }

  mutating func reset(_ desk: inout JanusDesk) { close(&desk) }

  mutating func abandon(_ failure: SignalingFailure, _ desk: inout JanusDesk) {
    desk.emit(publication.finish(failure))
  }

  private mutating func close(_ desk: inout JanusDesk) {
    let connection = publication.connection
    desk.emit(publication.close())
    desk.emit(assigned.map { .unassigned($0) })
    assigned = []
    if let connection { desk.request(connection, .close) }
  }
}
