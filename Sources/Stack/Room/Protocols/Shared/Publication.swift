import SDP

/// Local media on a connection with local offers, one after the other: what is wanted, what the
/// server has, and which actions wait for which offer.
struct Publication: Sendable {
  enum Phase: String, Sendable {
    case idle
    /// The connection creates an offer.
    case offering
    /// The offer was sent.
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
  /// The actions that the current offer answers, and those for the next one.
  private var answering: [ActionID] = []
  private var waiting: [ActionID] = []
  private var isStale = false
  private var restartsICE = false

  var status: [(name: String, value: String)] {
    [("publication", phase.rawValue), ("published", String(published.count))]
  }

  var isEmpty: Bool { wanted.isEmpty && published.isEmpty }
  /// The sections of the local media that the server has.
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

  /// Replaces the description of local media; returns the previous one, or nil if it is not wanted.
  mutating func update(_ media: LocalMediaInfo) -> LocalMediaInfo? {
    guard let index = wanted.firstIndex(where: { $0.id == media.id }) else { return nil }
    defer { wanted[index] = media }
    return wanted[index]
  }

  mutating func restartICE() { restartsICE = true }

  // MARK: An offer and its answer

  /// Starts an offer; nil if one is under way, after which another one follows.
  /// - Returns: whether to restart ICE.
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

  /// Records that the offer was created; false if none is expected.
  mutating func offer(_ places: [LocalMediaPlace]) -> Bool {
    guard phase == .offering else { return false }
    phase = .offered
    self.places = places
    return true
  }

  /// Records that the server accepted the offer; returns what is published now and what no longer
  /// is.
  /// - Parameter number: returns the number of new media.
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

  /// Records that the offer failed; what it would have published is not retried.
  mutating func fail(_ failure: SignalingFailure) -> [SignalingEvent] {
    guard phase != .idle else { return [] }
    phase = .idle
    wanted.removeAll { media in !published.contains { $0.place.media == media.id } }
    defer { answering = [] }
    return answering.isEmpty ? [.failed(failure)] : answering.map { .result($0, failure) }
  }

  /// Whether another offer should follow.
  var isDue: Bool { phase == .idle && (isStale || !waiting.isEmpty || restartsICE) }

  /// Answers all waiting actions without an offer.
  mutating func finish(_ failure: SignalingFailure?) -> [SignalingEvent] {
    defer { (answering, waiting) = ([], []) }
    return (answering + waiting).map { .result($0, failure) }
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

  /// Records that the connection is gone; what is wanted is kept.
  mutating func close() -> [SignalingEvent] {
    withdraw()
    defer { (published, places, connection) = ([], [], nil) }
    return published.map { .localUnpublished($0.place.media) }
  }
}
