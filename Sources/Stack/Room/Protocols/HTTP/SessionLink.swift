import Peer
import SDP
import Wire

/// The common parts of WHIP and WHEP: the endpoint's options, the offer that opens a session, the
/// session's candidates and ICE restarts, and its end (RFC 9725 sections 4.2 to 4.6).
///
/// If the server is busy, the offer is repeated a few times, each time after the number of seconds
/// that the server states.
struct SessionLink: Sendable {
  private static let retriesMaximum = 3
  private static let retrySecondsMaximum: Int64 = 30
  private static let leaveSeconds: Int64 = 3

  var desk = HTTPDesk()
  private var access: SessionAccess
  private let token: String?
  private var session: HTTPSession?
  /// The current offer, and when it is repeated to a busy server.
  private var offer = ""
  private var retryDue: Instant?
  private var retryCount = 0
  /// Candidates found before the session was created.
  private var candidates: [CandidateInit?] = []

  init(_ configuration: SignalingConfiguration) {
    access = SessionAccess(endpoint: configuration.urls.first ?? "")
    token = configuration.options["token"]
  }

  var deadline: Instant? { earliest(desk.deadline, retryDue) }
  var url: String? { session?.url }
  var isOpen: Bool { session != nil }
  var canRestart: Bool { session?.canRestart == true }

  // MARK: Requests

  /// Requests the endpoint's options; returns false if there is no endpoint.
  mutating func join(_ join: RoomJoin) -> Bool {
    access.token = join.token ?? token
    guard !access.endpoint.isEmpty else { return false }
    desk.send(access.options, .options)
    return true
  }

  mutating func renew(_ token: String) { access.token = token }

  mutating func open(_ offer: String) {
    self.offer = offer
    retryCount = 0
    desk.send(access.open(offer: offer), .open)
  }

  /// Answers an offer from the server.
  mutating func answer(_ sdp: String) {
    guard let session else { return }
    desk.send(session.answer(sdp), .answer)
  }

  mutating func restart(_ offer: String) { session?.restart(offer, &desk) }

  mutating func restartFailed() { session?.restartFailed() }

  /// Adds a local candidate, or nil after the last one; candidates found before the session exists
  /// are kept for it.
  mutating func add(_ candidate: CandidateInit?) {
    if session == nil { candidates.append(candidate) } else { session?.add(candidate, &desk) }
  }

  /// Removes the requests that timed out; returns their failures.
  mutating func expire() -> [HTTPDesk.News] { desk.expire() }

  /// Repeats the offer if that is due.
  mutating func retry() {
    guard let due = retryDue, due <= desk.now else { return }
    retryDue = nil
    desk.send(access.open(offer: offer), .open)
  }

  // MARK: Responses

  /// Schedules the offer again if the server is busy and asks to retry within 30 seconds, at most
  /// three times; returns whether the offer is scheduled.
  mutating func isPutOff(by response: SessionResponse) -> Bool {
    guard let seconds = response.retrySeconds, retryCount < SessionLink.retriesMaximum,
      (0...SessionLink.retrySecondsMaximum).contains(seconds)
    else { return false }
    retryCount += 1
    retryDue = desk.now + .seconds(max(seconds, 1))
    return true
  }

  /// Returns the session the server created.
  /// - Parameter takesOffers: whether the server may respond with an offer of its own (WHEP only).
  mutating func opened(
    by response: SessionResponse, takesOffers: Bool
  ) throws(SessionRefusal) -> SessionResponse.Opening {
    let opening = try response.opening(takesOffers: takesOffers, hasToken: access.token != nil)
    session = HTTPSession(opening, access, local: offer)
    return opening
  }

  mutating func sendCandidates() {
    for candidate in candidates { session?.add(candidate, &desk) }
    candidates = []
  }

  /// Records whether the server accepts candidates; nil means that there was no response.
  mutating func handleCandidates(_ response: SessionResponse?) { session?.handle(response, &desk) }

  /// Returns the server's description after an ICE restart; nil if there is none.
  mutating func restarted(by response: SessionResponse) -> SessionDescription? {
    session?.restarted(response, &desk)
  }

  /// Returns the reason that a response refuses a request.
  func refusal(_ response: SessionResponse) -> SessionRefusal {
    response.refusal(hasToken: access.token != nil)
  }

  // MARK: Closing

  /// Ends the session on the server without waiting for the response.
  mutating func close() { if let session { desk.send(session.closing, .close) } }

  /// Ends the session on the server; returns false if there is none.
  mutating func leave() -> Bool {
    guard let session else { return false }
    desk.forget()
    desk.send(session.closing, .close, within: SessionLink.leaveSeconds)
    return true
  }

  /// Drops the session and everything waiting for it.
  mutating func reset() {
    session = nil
    candidates = []
    retryDue = nil
  }
}

extension SignalingFailure {
  static let noEndpoint = SignalingFailure(
    .unreachable, "no address of an endpoint is given", isCritical: true)
}

// MARK: - SessionMachine

/// A WHIP or WHEP client; the two differ only in how they handle intents, reports and responses.
protocol SessionMachine: SignalingMachine {
  var link: SessionLink { get set }
  var isOver: Bool { get }
  var connection: ConnectionID? { get }

  mutating func handle(_ intent: RoomIntent)
  mutating func handle(_ report: ConnectionReport)
  mutating func handle(_ response: SessionResponse, _ purpose: HTTPDesk.Purpose)
  /// Handles the failure of a request.
  ///
  /// - Parameter status: the response's status; nil if there was no response.
  mutating func fail(_ purpose: HTTPDesk.Purpose, _ reason: String, _ status: Int?)
}

extension SessionMachine {
  mutating func stepSession(
    _ input: SignalingInput, at now: Instant, into outbox: inout Outbox<SignalingOutput>
  ) {
    // There are no events after the end.
    guard !isOver else { return }
    link.desk.begin(at: now)
    switch input {
    case .deadline:
      for news in link.expire() where !isOver { handle(news) }
      link.retry()
    case .response(let id, let result): if let news = link.desk.handle(id, result) { handle(news) }
    case .intent(let intent): handle(intent)
    case .connection(let id, let report): if id == connection { handle(report) }
    case .transport: break
    }
    link.desk.end(into: &outbox)
  }

  private mutating func handle(_ news: HTTPDesk.News) {
    switch news {
    case .answered(let purpose, let response): handle(response, purpose)
    case .failed(let purpose, let reason): fail(purpose, reason, nil)
    }
  }
}
