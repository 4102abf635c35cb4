import Peer
import SDP
import Wire

/// Local media in a videoroom: its connection and what has been published.
struct JanusPublisher: Sendable {
  private let options: [String: String]
  private var publication = Publication()
  private var isPublished = false

  init(options: [String: String]) { self.options = options }

  var status: [(name: String, value: String)] { publication.status }

  func media(in mid: String) -> LocalMediaID? { publication.media(in: mid) }

  // MARK: Intents

  mutating func publish(_ request: PublicationRequest, _ desk: inout JanusDesk) {
    publication.add(request)
    offer(&desk)
  }

  mutating func unpublish(_ action: ActionID, _ media: [LocalMediaID], _ desk: inout JanusDesk) {
    publication.remove(action, media)
    offer(&desk)
  }

  mutating func update(_ media: LocalMediaInfo, _ desk: inout JanusDesk) {
    guard let before = publication.update(media), publication.mid(of: media.id) != nil else {
      return
    }
    configure(
      media, switches: before.isActive != media.isActive,
      describes: before.description != media.description, &desk)
  }

  private func configure(
    _ media: LocalMediaInfo, switches: Bool, describes: Bool, _ desk: inout JanusDesk
  ) {
    guard switches || describes else { return }
    guard let mid = publication.mid(of: media.id).map({ JSONValue.text($0) }) else { return }
    let stream = JSONValue.members(("mid", mid), ("send", .flag(media.isActive)))
    let description = JSONValue.members(("mid", mid), ("description", .text(media.description)))
    desk.ask(
      .configure(nil, .localMedia),
      .members(
        ("request", "configure"), ("streams", switches ? .list([stream]) : nil),
        ("descriptions", describes ? .list([description]) : nil)))
  }

  mutating func restart(_ connection: ConnectionID, _ desk: inout JanusDesk) {
    guard connection == publication.connection else { return }
    publication.restartICE()
    offer(&desk)
  }

  private mutating func offer(_ desk: inout JanusDesk) {
    guard desk.isEntered else { return }
    if publication.wanted.isEmpty, publication.phase == .idle { return stop(&desk) }
    guard let restartsICE = publication.begin() else { return }
    let connection = publication.connection ?? desk.connect(.up)
    publication.connection = connection
    desk.request(connection, .makeOffer(iceRestart: restartsICE))
  }

  /// Unpublishes everything.
  private mutating func stop(_ desk: inout JanusDesk) {
    if isPublished {
      desk.ask(.unpublish, .members(("request", "unpublish")))
    } else {
      desk.emit(publication.finish(nil))
      close(&desk)
    }
  }

  // MARK: Connection

  mutating func handle(
    _ report: ConnectionReport, of connection: ConnectionID, _ desk: inout JanusDesk
  ) {
    guard connection == publication.connection else { return }
    switch report {
    case .description(let offer, let places) where offer.type == .offer:
      if publication.offer(places) { send(offer, places, &desk) }
    case .refused(let error):
      let code: RoomErrorCode =
        publication.phase == .offering ? .offerFailed : .remoteDescriptionFailed
      fail(SignalingFailure(code, error.message), &desk)
    case .candidate(let candidate): desk.trickle(candidate, to: .main)
    default: break
    }
  }

  private func send(
    _ offer: SessionDescription, _ places: [LocalMediaPlace], _ desk: inout JanusDesk
  ) {
    let descriptions = places.compactMap { place in
      publication.info(of: place.media).map {
        JSONValue.members(("mid", .text(place.mid)), ("description", .text($0.description)))
      }
    }
    desk.ask(
      .publish,
      .members(
        ("request", isPublished ? "configure" : "publish"),
        ("audiocodec", options["audiocodec"].map { .text($0) }),
        ("videocodec", options["videocodec"].map { .text($0) }),
        ("bitrate", options["bitrate"].flatMap { Int64($0) }.map { .integer($0) }),
        ("descriptions", descriptions.isEmpty ? nil : .list(descriptions))),
      offer)
  }

  // MARK: Server

  mutating func handle(_ reply: JanusReply, to ask: JanusAsk, _ desk: inout JanusDesk) {
    switch (ask, reply) {
    case (.publish, .data(_, let answer)):
      guard publication.phase == .offered else { return }
      guard let answer, let connection = publication.connection else {
        return fail(SignalingFailure(.publishFailed, "the server gave no answer"), &desk)
      }
      isPublished = true
      desk.request(connection, .setRemote(answer))
      settle(&desk)
    case (.publish, .failed(let code, let reason)):
      fail(SignalingFailure(.publishFailed, janus: code, reason), &desk)
    case (.unpublish, .failed(let code, let reason)):
      desk.emit(publication.finish(SignalingFailure(.unpublishFailed, janus: code, reason)))
      close(&desk)
    case (.unpublish, .data):
      desk.emit(publication.finish(nil))
      close(&desk)
    case (.configure, .failed(let code, let reason)):
      desk.emit(.failed(SignalingFailure(.updateFailed, janus: code, reason)))
    default: break
    }
  }

  private mutating func settle(_ desk: inout JanusDesk) {
    let known = publication.publishedPlaces
    desk.emit(publication.settle { _ in desk.roster.nextMedia() })
    for place in publication.publishedPlaces where !known.contains(place) {
      // Published media is sent until the server is asked to stop.
      guard let media = publication.info(of: place.media), !media.isActive else { continue }
      configure(media, switches: true, describes: false, &desk)
    }
    if publication.isDue { offer(&desk) }
  }

  private mutating func fail(_ failure: SignalingFailure, _ desk: inout JanusDesk) {
    guard publication.phase != .idle else { return }
    desk.emit(publication.fail(failure))
    if publication.isEmpty { close(&desk) }
    if publication.isDue { offer(&desk) }
  }

  mutating func handle(_ candidate: CandidateInit?, _ desk: inout JanusDesk) {
    if let connection = publication.connection {
      desk.request(connection, .addCandidate(candidate))
    }
  }

  /// Publishes again on another connection after the server hung up.
  mutating func hangUp(_ reason: String, _ desk: inout JanusDesk) {
    // A connection being negotiated is not the one that was hung up.
    guard publication.connection != nil, publication.phase == .idle else { return }
    close(&desk)
    guard !publication.wanted.isEmpty else { return }
    desk.emit(.failed(SignalingFailure(.connectionClosed, "the server hung up: \(reason)")))
    offer(&desk)
  }

  // MARK: Losses

  /// Publishes all wanted media after joining or rejoining.
  mutating func entered(_ desk: inout JanusDesk) {
    if !publication.wanted.isEmpty || publication.isDue { offer(&desk) }
  }

  /// Repeats an unanswered offer after the session was resumed.
  mutating func resume(_ desk: inout JanusDesk) {
    if publication.phase == .offered { publication.withdraw() }
    if publication.isDue { offer(&desk) }
  }

  mutating func reset(_ desk: inout JanusDesk) { close(&desk) }

  mutating func abandon(_ failure: SignalingFailure, _ desk: inout JanusDesk) {
    desk.emit(publication.finish(failure))
  }

  private mutating func close(_ desk: inout JanusDesk) {
    isPublished = false
    let connection = publication.connection
    desk.emit(publication.close())
    if let connection { desk.request(connection, .close) }
  }
}

extension LocalMediaInfo {
  /// The description of a stream, which includes whether it is active, because the server does not
  /// inform other participants about that.
  fileprivate var description: String {
    JanusDescription(extraValue: extraValue, isActive: isActive).text
  }
}
