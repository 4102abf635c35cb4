import Peer
import SDP
import Wire

/// Local media on a connection that makes one offer at a time: the media that is wanted, the media
/// that the server has, and the actions that wait for an offer.
struct Publication: Sendable {
  enum Phase: String, Sendable {
    case idle
    /// Waiting for the connection's offer.
    case offering
    /// Waiting for the server's answer.
    case offered
  }

  private struct Published: Sendable {
    var place: LocalMediaPlace
    var id: MediaID
  }

  var connection: ConnectionID?
  private(set) var phase = Phase.idle
  private(set) var wanted: [LocalMediaInfo] = []
  /// The sections of local media in the current offer.
  private(set) var places: [LocalMediaPlace] = []
  private var published: [Published] = []
  /// The actions to complete when the server accepts or rejects the current offer; `waiting` holds
  /// the actions for the next offer.
  private var answering: [ActionID] = []
  private var waiting: [ActionID] = []
  private var isStale = false
  private var restartsICE = false

  var status: [(name: String, value: String)] {
    [("publication", phase.rawValue), ("published", String(published.count))]
  }

  var isEmpty: Bool { wanted.isEmpty && published.isEmpty }
  /// The sections of local media that the server has accepted.
  var publishedPlaces: [LocalMediaPlace] { published.map(\.place) }

  func info(of media: LocalMediaID) -> LocalMediaInfo? { wanted.first { $0.id == media } }
  func mid(of media: LocalMediaID) -> String? {
    published.first { $0.place.media == media }?.place.mid
  }
  func media(in mid: String) -> LocalMediaID? {
    published.first { $0.place.mid == mid }?.place.media
  }
  func number(of media: LocalMediaID) -> MediaID? {
    published.first { $0.place.media == media }?.id
  }

  // MARK: Wanted media

  mutating func add(_ request: PublicationRequest) {
    wanted.removeAll { known in request.media.contains { $0.id == known.id } }
    wanted += request.media
    waiting.append(request.action)
  }

  mutating func remove(_ action: ActionID, _ media: [LocalMediaID]) {
    wanted.removeAll { media.contains($0.id) }
    waiting.append(action)
  }

  /// Replaces the description of local media; returns the previous one, or nil if the media is not
  /// wanted.
  mutating func update(_ media: LocalMediaInfo) -> LocalMediaInfo? {
    guard let index = wanted.firstIndex(where: { $0.id == media.id }) else { return nil }
    defer { wanted[index] = media }
    return wanted[index]
  }

  mutating func restartICE() { restartsICE = true }

  // MARK: Offers

  /// Starts an offer; if one is in progress, another follows it.
  /// - Returns: whether to restart ICE; nil if an offer is in progress.
  mutating func begin() -> Bool? {
    guard phase == .idle else {
      isStale = true
      return nil
    }
    isStale = false
    phase = .offering
    answering += waiting
    waiting = []
    defer { restartsICE = false }
    return restartsICE
  }

  /// Records that the offer was created; returns false if no offer is expected.
  mutating func offer(_ places: [LocalMediaPlace]) -> Bool {
    guard phase == .offering else { return false }
    phase = .offered
    self.places = places
    return true
  }

  /// Records that the server accepted the offer; returns events for newly published media, for
  /// media that is no longer published, and for completed actions.
  /// - Parameter number: returns the id for new media.
  mutating func settle(_ number: (LocalMediaPlace) -> MediaID) -> [SignalingEvent] {
    guard phase == .offered else { return [] }
    phase = .idle
    let gone = published.filter { !places.contains($0.place) }
    published.removeAll { !places.contains($0.place) }
    var events = gone.map { SignalingEvent.localUnpublished($0.place.media) }
    for place in places where !published.contains(where: { $0.place == place }) {
      let id = number(place)
      published.append(Published(place: place, id: id))
      events.append(.localPublished(place.media, id))
    }
    events += answering.map { .result($0, nil) }
    answering = []
    return events
  }

  /// Records that the offer failed; the media it would have published is not retried.
  mutating func fail(_ failure: SignalingFailure) -> [SignalingEvent] {
    guard phase != .idle else { return [] }
    phase = .idle
    wanted.removeAll { media in !published.contains { $0.place.media == media.id } }
    defer { answering = [] }
    return answering.isEmpty ? [.failed(failure)] : answering.map { .result($0, failure) }
  }

  /// Whether another offer should follow.
  var isDue: Bool { phase == .idle && (isStale || !waiting.isEmpty || restartsICE) }

  /// Answers all actions, both for the current offer and for the next one.
  mutating func finish(_ failure: SignalingFailure?) -> [SignalingEvent] {
    defer { (answering, waiting) = ([], []) }
    return (answering + waiting).map { .result($0, failure) }
  }

  // MARK: Connection

  /// Requests an offer, on a new connection if there is no connection yet.
  /// - Parameter connect: opens a connection.
  mutating func requestOffer<Desk: SignalingDesk>(
    _ desk: inout Desk, connect: (inout Desk) -> ConnectionID
  ) {
    guard let restartsICE = begin() else { return }
    let connection = self.connection ?? connect(&desk)
    self.connection = connection
    desk.request(connection, .makeOffer(iceRestart: restartsICE))
  }

  /// Returns the failure of a connection that refused a description.
  func failure(of error: PeerError) -> SignalingFailure {
    SignalingFailure(phase == .offering ? .offerFailed : .remoteDescriptionFailed, error.message)
  }

  /// Forgets the connection and closes it; wanted media is kept.
  mutating func close(_ desk: inout some SignalingDesk) {
    let connection = self.connection
    desk.emit(forget())
    if let connection { desk.request(connection, .close) }
  }

  // MARK: Losses

  /// Withdraws an unanswered offer; its actions wait for the next one.
  mutating func withdraw() {
    guard phase != .idle else { return }
    phase = .idle
    isStale = true
    waiting = answering + waiting
    answering = []
  }

  /// Records that the connection is gone; wanted media is kept.
  mutating func forget() -> [SignalingEvent] {
    withdraw()
    defer { (published, places, connection) = ([], [], nil) }
    return published.map { .localUnpublished($0.place.media) }
  }
}

// MARK: - Publisher

/// A room protocol's sending side, whose connection carries only local media.
protocol Publisher: Sendable {
  associatedtype Desk: PublishingDesk

  var publication: Publication { get set }
  /// Whether the server has local media.
  var isPublished: Bool { get set }

  func send(
    _ offer: SessionDescription, _ places: [LocalMediaPlace], _ desk: inout Desk)
  func send(_ candidate: CandidateInit?, _ desk: inout Desk)
  /// Asks the server to end the publication.
  func askStop(_ desk: inout Desk)
  mutating func close(_ desk: inout Desk)
}

extension Publisher {
  var status: [(name: String, value: String)] { publication.status }

  mutating func publish(_ request: PublicationRequest, _ desk: inout Desk) {
    publication.add(request)
    offer(&desk)
  }

  mutating func unpublish(_ action: ActionID, _ media: [LocalMediaID], _ desk: inout Desk) {
    publication.remove(action, media)
    offer(&desk)
  }

  mutating func restart(_ connection: ConnectionID, _ desk: inout Desk) {
    guard connection == publication.connection else { return }
    publication.restartICE()
    offer(&desk)
  }

  /// Offers the wanted media, or ends the publication if there is none.
  mutating func offer(_ desk: inout Desk) {
    guard desk.isEntered else { return }
    guard publication.wanted.isEmpty, publication.phase == .idle else {
      return publication.requestOffer(&desk) { $0.connect(.up) }
    }
    if isPublished { askStop(&desk) } else { stopped(nil, &desk) }
  }

  mutating func handle(
    _ report: ConnectionReport, of connection: ConnectionID, _ desk: inout Desk
  ) {
    guard connection == publication.connection else { return }
    switch report {
    case .description(let offer, let places) where offer.type == .offer:
      if publication.offer(places) { send(offer, places, &desk) }
    case .refused(let error): fail(publication.failure(of: error), &desk)
    case .candidate(let candidate): send(candidate, &desk)
    default: break
    }
  }

  mutating func handle(_ candidate: CandidateInit?, _ desk: inout Desk) {
    if let connection = publication.connection {
      desk.request(connection, .addCandidate(candidate))
    }
  }

  mutating func fail(_ failure: SignalingFailure, _ desk: inout Desk) {
    guard publication.phase != .idle else { return }
    desk.emit(publication.fail(failure))
    if publication.isEmpty { close(&desk) }
    if publication.isDue { offer(&desk) }
  }

  /// Handles the end of the publication; the failure is nil if the server agreed or had no local
  /// media.
  mutating func stopped(_ failure: SignalingFailure?, _ desk: inout Desk) {
    desk.emit(publication.finish(failure))
    close(&desk)
  }

  /// Fails all actions because the room has ended.
  mutating func abandon(_ failure: SignalingFailure, _ desk: inout Desk) {
    desk.emit(publication.finish(failure))
  }
}
