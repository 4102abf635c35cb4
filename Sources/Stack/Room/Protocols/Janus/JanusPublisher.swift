import Peer
import SDP
import Wire

/// Local media in a videoroom: its connection and what has been published.
struct JanusPublisher: Publisher {
  private let options: [String: String]
  var publication = Publication()
  var isPublished = false

  init(options: [String: String]) { self.options = options }

  func media(in mid: String) -> LocalMediaID? { publication.media(in: mid) }

  // MARK: Intents

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

  func askStop(_ desk: inout JanusDesk) {
    desk.ask(.unpublish, .members(("request", "unpublish")))
  }

  func send(
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

  func send(_ candidate: CandidateInit?, _ desk: inout JanusDesk) {
    desk.trickle(candidate, to: .main)
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
      stopped(SignalingFailure(.unpublishFailed, janus: code, reason), &desk)
    case (.unpublish, .data): stopped(nil, &desk)
    case (.configure, .failed(let code, let reason)):
      desk.emit(.failed(SignalingFailure(.updateFailed, janus: code, reason)))
    default: break
    }
  }

  private mutating func settle(_ desk: inout JanusDesk) {
    let known = publication.publishedPlaces
    desk.emit(publication.settle { _ in desk.roster.nextMedia() })
    for place in publication.publishedPlaces where !known.contains(place) {
      // The server forwards published media until it is asked to stop.
      guard let media = publication.info(of: place.media), !media.isActive else { continue }
      configure(media, switches: true, describes: false, &desk)
    }
    if publication.isDue { offer(&desk) }
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

  /// Repeats an unanswered offer after the session has been resumed.
  mutating func resume(_ desk: inout JanusDesk) {
    if publication.phase == .offered { publication.withdraw() }
    if publication.isDue { offer(&desk) }
  }

  mutating func close(_ desk: inout JanusDesk) {
    isPublished = false
    publication.close(&desk)
  }
}

extension LocalMediaInfo {
  /// The description of a stream; it states whether the stream is active, because the server has no
  /// other way to inform the other participants.
  fileprivate var description: String {
    JanusDescription(extraValue: extraValue, isActive: isActive).text
  }
}
