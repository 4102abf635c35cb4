import SDP

/// Local media on a connection whose offers this side makes, one after the other: what is wanted,
/// what the server has, and who waits for which offer.
struct Publication: Sendable {
  enum Phase: String, Sendable {
    case idle
    /// The connection makes an offer.
    case offering
    /// The offer is at the server.
    case offered
  }

  private struct Published: Sendable {
    var place: LocalMediaPlace
    var id: MediaID
  }

  var connection: ConnectionID?
  private(set) var phase = Phase.idle
  private(set) var wanted: [LocalMediaInfo] = []
  /// Where local media is in the offer under way.
  private(set) var places: [LocalMediaPlace] = []
  private var published: [Published] = []
  /// What the offer under way answers, and what the next one will.
  private var answering: [ActionID] = []
  private var waiting: [ActionID] = []
  private var isStale = false
  private var restartsICE = false

  var status: [(name: String, value: String)] {
    [("publication", phase.rawValue), ("published", String(published.count))]
  }

  var isEmpty: Bool { wanted.isEmpty && published.isEmpty }
  /// Where local media is that the server has.
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

  // MARK: What is wanted

  mutating func add(_ request: PublicationRequest) {
    wanted.removeAll { known in request.media.contains { $0.id == known.id } }
    wanted += request.media
    waiting.append(request.action)
  }

  mutating func remove(_ action: ActionID, _ media: [LocalMediaID]) {
    wanted.removeAll { media.contains($0.id) }
    waiting.append(action)
  }

  /// Local media has changed; returns what it was, nil for media that nobody wants.
  mutating func update(_ media: LocalMediaInfo) -> LocalMediaInfo? {
    guard let index = wanted.firstIndex(where: { $0.id == media.id }) else { return nil }
    defer { wanted[index] = media }
    return wanted[index]
  }

  mutating func restartICE() { restartsICE = true }

  // MARK: An offer and its answer

  /// Begins an offer; nil when one is under way, after which another one follows.
  ///
  /// - Returns: whether ICE is to begin anew.
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

  /// The offer is made; false when nobody waits for one.
  mutating func offer(_ places: [LocalMediaPlace]) -> Bool {
    guard phase == .offering else { return false }
    phase = .offered
    self.places = places
    return true
  }

  /// The server has taken the offer: tells what is published now, and what is no longer.
  ///
  /// - Parameter number: numbers media that is new.
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

  /// The offer came to nothing: what it would have published is not tried again.
  mutating func fail(_ failure: SignalingFailure) -> [SignalingEvent] {
    guard phase != .idle else { return [] }
    phase = .idle
    wanted.removeAll { media in !published.contains { $0.place.media == media.id } }
    defer { answering = [] }
    return answering.isEmpty ? [.failed(failure)] : answering.map { .result($0, failure) }
  }

  /// Whether another offer is to follow.
  var isDue: Bool { phase == .idle && (isStale || !waiting.isEmpty || restartsICE) }

  /// Answers everything that waits, without an offer.
  mutating func finish(_ failure: SignalingFailure?) -> [SignalingEvent] {
    defer { (answering, waiting) = ([], []) }
    return (answering + waiting).map { .result($0, failure) }
  }

  // MARK: Losses

  /// An offer that nobody answered is forgotten; what it was for waits for the next.
  mutating func withdraw() {
    guard phase != .idle else { return }
    phase = .idle
    isStale = true
    waiting = answering + waiting
    answering = []
  }

  /// The connection is gone; what is wanted is kept.
  mutating func close() -> [SignalingEvent] {
    withdraw()
    defer { (published, places, connection) = ([], [], nil) }
    return published.map { .localUnpublished($0.place.media) }
  }
}
