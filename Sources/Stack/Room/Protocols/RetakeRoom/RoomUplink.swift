import Peer
import SDP
import Wire

/// The connection that sends local media in one of Retake's own rooms.
struct RoomUplink: Publisher {
  var publication = Publication()
  var isPublished = false
  /// The server's numbers for local media.
  private var numbers: [RoomLocalNumber] = []

  mutating func update(_ media: LocalMediaInfo, _ desk: inout RoomDesk) {
    guard publication.update(media) != nil,
      let number = numbers.last(where: { $0.local == media.id.number })?.number
    else { return }
    desk.send(
      .update(
        RoomMedia(
          number: number, kind: media.kind, isActive: media.isActive,
          isAlwaysOn: media.isAlwaysOn, extraValue: media.extraValue)))
  }

  func send(
    _ offer: SessionDescription, _ places: [LocalMediaPlace], _ desk: inout RoomDesk
  ) {
    let media = places.compactMap { place in
      publication.info(of: place.media).map { RoomLocalMedia($0, mid: place.mid) }
    }
    desk.ask(.offer) { .offer(request: $0, sdp: offer.sdp, media: media) }
  }

  func send(_ candidate: CandidateInit?, _ desk: inout RoomDesk) {
    desk.send(.candidate(.up, candidate))
  }

  func askStop(_ desk: inout RoomDesk) { desk.ask(.stop) { .stop(request: $0) } }

  /// Sets the server's answer as the remote description; ignores an answer without an offer.
  mutating func handle(answer sdp: String, _ desk: inout RoomDesk) {
    guard publication.phase == .offered, let connection = publication.connection else { return }
    isPublished = true
    desk.request(connection, .setRemote(SessionDescription(type: .answer, sdp: sdp)))
  }

  mutating func handle(_ locals: [RoomLocalNumber]) {
    numbers.removeAll { known in locals.contains { $0.local == known.local } }
    numbers += locals.prefix(Roster.mediaMaximum)
  }

  mutating func handle(_ layers: [SendLayer], mid: String, _ desk: inout RoomDesk) {
    if let connection = publication.connection {
      desk.request(connection, .setLayers(mid: mid, layers))
    }
  }

  /// Handles the result of the current offer; without a fault, the offered media is published.
  mutating func settle(_ fault: RoomFault?, _ desk: inout RoomDesk) {
    if let fault { return fail(SignalingFailure(fault.code, fault.message), &desk) }
    desk.emit(publication.settle { _ in desk.roster.nextMedia() })
    if publication.isDue { offer(&desk) }
  }

  /// Records that a moderator switched local media off or on.
  mutating func muted(_ local: UInt32, _ isMuted: Bool, _ desk: inout RoomDesk) {
    guard var info = publication.info(of: LocalMediaID(local)) else { return }
    info.isActive = !isMuted
    _ = publication.update(info)
    desk.emit(.localMuted(info.id, isMuted))
  }

  /// Publishes all wanted media after joining or rejoining.
  mutating func entered(_ desk: inout RoomDesk) {
    if publication.phase == .offered { publication.withdraw() }
    if publication.isDue || (!publication.wanted.isEmpty && !isPublished) { offer(&desk) }
  }

  mutating func close(_ desk: inout RoomDesk) {
    isPublished = false
    numbers = []
    publication.close(&desk)
  }
}

extension RoomLocalMedia {
  init(_ info: LocalMediaInfo, mid: String) {
    self.init(
      mid: mid, local: info.id.number, kind: info.kind, isActive: info.isActive,
      isAlwaysOn: info.isAlwaysOn, extraValue: info.extraValue, layers: info.layers)
  }
}

// MARK: - RoomDownlink

/// The connection that receives media in one of Retake's own rooms; the server makes an offer after
/// every change.
struct RoomDownlink: Sendable {
  private struct Stream: Hashable, Sendable {
    var media: MediaID
    var mid: String
  }

  private var connection: ConnectionID?
  private var isAnswering = false
  /// An offer that arrived while the previous one was being answered.
  private var nextOffer: (sdp: String, places: [RoomPlace])?
  private var wanted: [MediaID] = []
  private var streams: [Stream] = []

  var status: [(name: String, value: String)] { [("received", String(streams.count))] }

  mutating func subscribe(_ action: ActionID, _ media: [MediaID], _ desk: inout RoomDesk) {
    guard let numbers = numbers(media, desk), !numbers.isEmpty else {
      let missing = media.first { desk.roster.media($0) == nil }
      return desk.emit(
        action, SignalingFailure(.noSuchMedia, "nobody publishes such media", media: missing))
    }
    wanted += media.filter { !wanted.contains($0) }
    desk.ask(.action(action, .subscribeFailed, media.first)) {
      .subscribe(request: $0, numbers)
    }
  }

  mutating func unsubscribe(_ action: ActionID, _ media: [MediaID], _ desk: inout RoomDesk) {
    wanted.removeAll { media.contains($0) }
    // No request is needed for media that is no longer published, because the server has stopped
    // sending it.
    let numbers = media.compactMap { self.numbers([$0], desk)?.first }
    guard !numbers.isEmpty else { return desk.emit(action) }
    desk.ask(.action(action, .unsubscribeFailed, media.first)) {
      .unsubscribe(request: $0, numbers)
    }
  }

  /// Returns the server's numbers for media; nil if one is missing.
  private func numbers(_ media: [MediaID], _ desk: RoomDesk) -> [UInt32]? {
    var numbers: [UInt32] = []
    for id in media {
      guard let number = desk.roster.media(id).flatMap({ UInt32($0.key) }) else { return nil }
      numbers.append(number)
    }
    return numbers
  }

  func set(
    _ profile: VideoProfile, _ action: ActionID, _ media: MediaID, _ desk: inout RoomDesk
  ) {
    guard let number = numbers([media], desk)?.first else {
      return desk.emit(
        action, SignalingFailure(.notSubscribed, "the media is not received", media: media))
    }
    desk.ask(.action(action, .profileFailed, media)) {
      .profile(request: $0, media: number, profile)
    }
  }

  func pause(
    _ isPaused: Bool, _ action: ActionID, _ media: MediaID, _ desk: inout RoomDesk
  ) {
    guard let number = numbers([media], desk)?.first else {
      return desk.emit(
        action, SignalingFailure(.notSubscribed, "the media is not received", media: media))
    }
    desk.ask(.action(action, .pauseFailed, media)) {
      .pause(request: $0, media: number, isPaused: isPaused)
    }
  }

  func restart(_ connection: ConnectionID, _ desk: inout RoomDesk) {
    if connection == self.connection { desk.send(.restart) }
  }

  // MARK: Offers from the server

  mutating func handle(offer sdp: String, _ places: [RoomPlace], _ desk: inout RoomDesk) {
    guard !isAnswering else {
      nextOffer = (sdp, places)
      return
    }
    let connection = connection ?? desk.connect(.down)
    self.connection = connection
    isAnswering = true
    assign(places, connection, &desk)
    desk.request(connection, .setRemote(SessionDescription(type: .offer, sdp: sdp)))
  }

  private mutating func assign(
    _ places: [RoomPlace], _ connection: ConnectionID, _ desk: inout RoomDesk
  ) {
    var now: [Stream] = []
    for place in places {
      guard let media = desk.roster.media(key: String(place.number)),
        !now.contains(where: { $0.media == media })
      else { continue }
      now.append(Stream(media: media, mid: place.mid))
    }
    for old in streams where !now.contains(old) { desk.emit(.unassigned(old.media)) }
    for new in now where !streams.contains(new) {
      desk.emit(.assigned(new.media, connection, mid: new.mid))
    }
    streams = now
  }

  mutating func handle(
    _ report: ConnectionReport, of connection: ConnectionID, _ desk: inout RoomDesk
  ) {
    guard connection == self.connection else { return }
    switch report {
    case .description(let answer, _) where isAnswering && answer.type == .answer:
      desk.send(.answer(sdp: answer.sdp))
      proceed(&desk)
    case .refused(let error):
      guard isAnswering else { return }
      desk.emit(.failed(SignalingFailure(.answerFailed, error.message)))
      proceed(&desk)
    case .candidate(let candidate): desk.send(.candidate(.down, candidate))
    default: break
    }
  }

  private mutating func proceed(_ desk: inout RoomDesk) {
    isAnswering = false
    if let next = nextOffer.take() { handle(offer: next.sdp, next.places, &desk) }
  }

  mutating func handle(_ candidate: CandidateInit?, _ desk: inout RoomDesk) {
    if let connection { desk.request(connection, .addCandidate(candidate)) }
  }

  // MARK: Losses

  /// Requests wanted media that is still published, after rejoining with another session.
  mutating func entered(_ desk: inout RoomDesk) {
    wanted.removeAll { desk.roster.media($0) == nil }
    guard let numbers = numbers(wanted, desk), !numbers.isEmpty else { return }
    desk.ask(.subscription) { .subscribe(request: $0, numbers) }
  }

  mutating func close(_ desk: inout RoomDesk) {
    isAnswering = false
    nextOffer = nil
    for stream in streams { desk.emit(.unassigned(stream.media)) }
    streams = []
    if let connection { desk.request(connection, .close) }
    connection = nil
  }
}
