import Peer
import SDP
import Wire

/// The one connection of a plugin that sends and receives over the same: local media, and what
/// comes back in its sections.
struct JanusMix: Sendable {
  private var own = Publication()
  private var assigned: [MediaID] = []

  var status: [(name: String, value: String)] { own.status }

  /// Whether the local audio is switched on; so it is before there is any.
  var isActive: Bool { own.wanted.first { $0.kind == .audio }?.isActive ?? true }
  /// Local media that the server has, and where.
  var places: [LocalMediaPlace] { own.publishedPlaces }

  func info(of media: LocalMediaID) -> LocalMediaInfo? { own.info(of: media) }

  /// Keeps what local media is now; false for media that is not published.
  mutating func update(_ media: LocalMediaInfo) -> Bool {
    own.update(media) != nil && own.mid(of: media.id) != nil
  }

  mutating func take(_ intent: RoomIntent, _ desk: inout JanusDesk) {
    switch intent {
    case .publish(let request):
      own.add(request)
      offer(&desk)
    case .unpublish(let action, let media):
      own.remove(action, media)
      offer(&desk)
    case .restartICE(let connection):
      guard connection == own.connection else { return }
      own.restartICE()
      offer(&desk)
    default:
      guard let action = intent.action else { return }
      desk.tell(action, SignalingFailure(.notSupported, "the plugin cannot do that"))
    }
  }

  private mutating func offer(_ desk: inout JanusDesk) {
    guard desk.isEntered, let restartsICE = own.begin() else { return }
    let role: ConnectionRole = desk.join.role == .down ? .down : .both
    let connection = own.connection ?? desk.connect(role)
    own.connection = connection
    desk.request(connection, .makeOffer(iceRestart: restartsICE))
  }

  /// What the connection tells; returns an offer that the plugin is to send.
  mutating func take(
    _ report: ConnectionReport, of connection: ConnectionID, _ desk: inout JanusDesk
  ) -> SessionDescription? {
    guard connection == own.connection else { return nil }
    switch report {
    case .description(let offer, let places) where offer.type == .offer:
      return own.offer(places) ? offer : nil
    case .refused(let error):
      let code: RoomErrorCode =
        own.phase == .offering ? .offerFailed : .remoteDescriptionFailed
      fail(SignalingFailure(code, error.message), &desk)
    case .candidate(let candidate): desk.trickle(candidate, to: .main)
    default: break
    }
    return nil
  }

  mutating func take(_ reply: JanusReply, to ask: JanusAsk, _ desk: inout JanusDesk) {
    switch (ask, reply) {
    case (.publish, .data(_, let answer)):
      guard own.phase == .offered else { return }
      guard let answer, let connection = own.connection else {
        return fail(SignalingFailure(.publishFailed, "the server gave no answer"), &desk)
      }
      desk.request(connection, .setRemote(answer))
      desk.tell(own.settle { _ in desk.roster.nextMedia() })
      if own.isDue { offer(&desk) }
    case (.publish, .failed(let code, let reason)):
      fail(SignalingFailure(.publishFailed, janus: code, reason), &desk)
    case (.configure, .failed(let code, let reason)):
      desk.tell(.failed(SignalingFailure(.updateFailed, janus: code, reason)))
    default: break
    }
  }

  private mutating func fail(_ failure: SignalingFailure, _ desk: inout JanusDesk) {
    desk.tell(own.fail(failure))
    if own.isDue { offer(&desk) }
  }

  /// Says of media that it comes in a section, and forgets those that are gone.
  mutating func assign(_ media: [MediaID], in mid: String, _ desk: inout JanusDesk) {
    guard let connection = own.connection else { return }
    for id in media where !assigned.contains(id) {
      assigned.append(id)
      desk.tell(.assigned(id, connection, mid: mid))
    }
    assigned.removeAll { desk.roster.media($0) == nil }
  }

  /// Somebody has switched the local audio off or on.
  mutating func muted(_ isMuted: Bool, _ desk: inout JanusDesk) {
    guard var audio = own.wanted.first(where: { $0.kind == .audio }), audio.isActive == isMuted
    else { return }
    audio.isActive = !isMuted
    _ = own.update(audio)
    desk.tell(.localMuted(audio.id, isMuted))
  }

  mutating func take(_ candidate: CandidateInit?, _ desk: inout JanusDesk) {
    if let connection = own.connection { desk.request(connection, .addCandidate(candidate)) }
  }

  mutating func hangUp(_ reason: String, _ desk: inout JanusDesk) {
    guard own.connection != nil, own.phase == .idle else { return }
    desk.tell(.failed(SignalingFailure(.connectionClosed, "the server hung up: \(reason)")))
    close(&desk)
    entered(&desk)
  }

  /// The room is entered: local media is published, or the connection made that only receives.
  mutating func entered(_ desk: inout JanusDesk) {
    if !own.wanted.isEmpty || own.isDue || desk.join.role == .down { offer(&desk) }
  }

  mutating func resume(_ desk: inout JanusDesk) {
    if own.phase == .offered { own.withdraw() }
    if own.isDue { offer(&desk) }
  }

  mutating func reset(_ desk: inout JanusDesk) { close(&desk) }

  mutating func giveUp(_ failure: SignalingFailure, _ desk: inout JanusDesk) {
    desk.tell(own.finish(failure))
  }

  private mutating func close(_ desk: inout JanusDesk) {
    let connection = own.connection
    desk.tell(own.close())
    desk.tell(assigned.map { .unassigned($0) })
    assigned = []
    if let connection { desk.request(connection, .close) }
  }
}
