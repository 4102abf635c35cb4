import Peer
import SDP
import Wire

/// Local media in a videoroom: its connection, and what of it was published.
struct JanusPublisher: Sendable {
  private let options: [String: String]
  private var own = Publication()
  private var isPublished = false

  init(options: [String: String]) { self.options = options }

  var status: [(name: String, value: String)] { own.status }

  func media(in mid: String) -> LocalMediaID? { own.media(in: mid) }

  // MARK: What the room wants

  mutating func publish(_ request: PublicationRequest, _ desk: inout JanusDesk) {
    own.add(request)
    offer(&desk)
  }

  mutating func unpublish(_ action: ActionID, _ media: [LocalMediaID], _ desk: inout JanusDesk) {
    own.remove(action, media)
    offer(&desk)
  }

  mutating func update(_ media: LocalMediaInfo, _ desk: inout JanusDesk) {
    guard let before = own.update(media), own.mid(of: media.id) != nil else { return }
    configure(
      media, switches: before.isActive != media.isActive,
      describes: before.description != media.description, &desk)
  }

  private func configure(
    _ media: LocalMediaInfo, switches: Bool, describes: Bool, _ desk: inout JanusDesk
  ) {
    guard switches || describes else { return }
    guard let mid = own.mid(of: media.id).map({ JSONValue.text($0) }) else { return }
    let stream = JSONValue.members(("mid", mid), ("send", .flag(media.isActive)))
    let description = JSONValue.members(("mid", mid), ("description", .text(media.description)))
    desk.ask(
      .configure(nil, .localMedia),
      .members(
        ("request", "configure"), ("streams", switches ? .list([stream]) : nil),
        ("descriptions", describes ? .list([description]) : nil)))
  }

  mutating func restart(_ connection: ConnectionID, _ desk: inout JanusDesk) {
    guard connection == own.connection else { return }
    own.restartICE()
    offer(&desk)
  }

  private mutating func offer(_ desk: inout JanusDesk) {
    guard desk.isEntered else { return }
    if own.wanted.isEmpty, own.phase == .idle { return stop(&desk) }
    guard let restartsICE = own.begin() else { return }
    let connection = own.connection ?? desk.connect(.up)
    own.connection = connection
    desk.request(connection, .makeOffer(iceRestart: restartsICE))
  }

  /// Takes everything back.
  private mutating func stop(_ desk: inout JanusDesk) {
    if isPublished {
      desk.ask(.unpublish, .members(("request", "unpublish")))
    } else {
      desk.tell(own.finish(nil))
      close(&desk)
    }
  }

  // MARK: What the connection tells

  mutating func take(
    _ report: ConnectionReport, of connection: ConnectionID, _ desk: inout JanusDesk
  ) {
    guard connection == own.connection else { return }
    switch report {
    case .description(let offer, let places) where offer.type == .offer:
      if own.offer(places) { send(offer, places, &desk) }
    case .refused(let error):
      let code: RoomErrorCode =
        own.phase == .offering ? .offerFailed : .remoteDescriptionFailed
      fail(SignalingFailure(code, error.message), &desk)
    case .candidate(let candidate): desk.trickle(candidate, to: .main)
    default: break
    }
  }

  private func send(
    _ offer: SessionDescription, _ places: [LocalMediaPlace], _ desk: inout JanusDesk
  ) {
    let descriptions = places.compactMap { place in
      own.info(of: place.media).map {
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

  // MARK: What the server tells

  mutating func take(_ reply: JanusReply, to ask: JanusAsk, _ desk: inout JanusDesk) {
    switch (ask, reply) {
    case (.publish, .data(_, let answer)):
      guard own.phase == .offered else { return }
      guard let answer, let connection = own.connection else {
        return fail(SignalingFailure(.publishFailed, "the server gave no answer"), &desk)
      }
      isPublished = true
      desk.request(connection, .setRemote(answer))
      settle(&desk)
    case (.publish, .failed(let code, let reason)):
      fail(SignalingFailure(.publishFailed, janus: code, reason), &desk)
    case (.unpublish, .failed(let code, let reason)):
      desk.tell(own.finish(SignalingFailure(.unpublishFailed, janus: code, reason)))
      close(&desk)
    case (.unpublish, .data):
      desk.tell(own.finish(nil))
      close(&desk)
    case (.configure, .failed(let code, let reason)):
      desk.tell(.failed(SignalingFailure(.updateFailed, janus: code, reason)))
    default: break
    }
  }

  private mutating func settle(_ desk: inout JanusDesk) {
    let known = own.publishedPlaces
    desk.tell(own.settle { _ in desk.roster.nextMedia() })
    for place in own.publishedPlaces where !known.contains(place) {
      // What is published is sent until the server hears otherwise.
      guard let media = own.info(of: place.media), !media.isActive else { continue }
      configure(media, switches: true, describes: false, &desk)
    }
    if own.isDue { offer(&desk) }
  }

  private mutating func fail(_ failure: SignalingFailure, _ desk: inout JanusDesk) {
    guard own.phase != .idle else { return }
    desk.tell(own.fail(failure))
    if own.isEmpty { close(&desk) }
    if own.isDue { offer(&desk) }
  }

  mutating func take(_ candidate: CandidateInit?, _ desk: inout JanusDesk) {
    if let connection = own.connection { desk.request(connection, .addCandidate(candidate)) }
  }

  /// The server has given the media path up; it is published anew over another connection.
  mutating func hangUp(_ reason: String, _ desk: inout JanusDesk) {
    // What is still being agreed on is not what was hung up.
    guard own.connection != nil, own.phase == .idle else { return }
    close(&desk)
    guard !own.wanted.isEmpty else { return }
    desk.tell(.failed(SignalingFailure(.connectionClosed, "the server hung up: \(reason)")))
    offer(&desk)
  }

  // MARK: Losses

  /// The room is entered, maybe again: what is wanted is published.
  mutating func entered(_ desk: inout JanusDesk) {
    if !own.wanted.isEmpty || own.isDue { offer(&desk) }
  }

  /// The session is there again: an offer that nobody answered is made anew.
  mutating func resume(_ desk: inout JanusDesk) {
    if own.phase == .offered { own.withdraw() }
    if own.isDue { offer(&desk) }
  }

  mutating func reset(_ desk: inout JanusDesk) { close(&desk) }

  mutating func giveUp(_ failure: SignalingFailure, _ desk: inout JanusDesk) {
    desk.tell(own.finish(failure))
  }

  private mutating func close(_ desk: inout JanusDesk) {
    isPublished = false
    let connection = own.connection
    desk.tell(own.close())
    if let connection { desk.request(connection, .close) }
  }
}

extension LocalMediaInfo {
  /// What others read of a stream: the server does not tell them that it is switched off.
  fileprivate var description: String {
    JanusDescription(extraValue: extraValue, isActive: isActive).text
  }
}
