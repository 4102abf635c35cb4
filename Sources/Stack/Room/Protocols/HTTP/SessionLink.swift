import Peer
import SDP
import Wire

/// The common part of WHIP and WHEP: the options of the endpoint, the offer that opens a session,
/// candidates and ICE restarts of that session, and its end (RFC 9725 sections 4.2 to 4.6).
///
/// A server that is busy is asked again, a few times, after as many seconds as it says.
struct SessionLink: Sendable {
  private static let retriesMaximum = 3
  private static let retrySecondsMaximum: Int64 = 30
  private static let leaveSeconds: Int64 = 3

  var desk = HTTPDesk()
  private var access: SessionAccess
  private let token: String?
  private var session: HTTPSession?
  /// The current offer, and when it is sent again to a busy server.
  private var offer = ""
  private var retryDue: Instant?
  private var retryCount = 0
  /// Candidates from before the session was created.
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

  /// Asks the endpoint for its options; false if no endpoint is given.
  mutating func join(_ join: RoomJoin) -> Bool {
    access.token = join.token ?? token
    guard !access.endpoint.isEmpty else { return false }
    desk.send(access.options, .options)
    return true
  }

  mutating func renew(_ token: String) { access.token = token }

  /// Opens a session with an offer.
  mutating func open(_ offer: String) {
    self.offer = offer
    retryCount = 0
    desk.send(access.open(offer: offer), .open)
  }

  /// Sends the answer to an offer of the server.
  mutating func answer(_ sdp: String) {
    guard let session else { return }
    desk.send(session.answer(sdp), .answer)
  }

  mutating func restart(_ offer: String) { session?.restart(offer, &desk) }

  mutating func restartFailed() { session?.restartFailed() }

  /// Adds a local candidate, which waits for the session; nil means there are no more.
  mutating func add(_ candidate: CandidateInit?) {
    if session == nil { candidates.append(candidate) } else { session?.add(candidate, &desk) }
  }

  /// Returns the requests that were not answered in time.
  mutating func expire() -> [HTTPDesk.News] { desk.expire() }

  /// Sends an offer once more if that is due.
  mutating func retry() {
    guard let due = retryDue, due <= desk.now else { return }
    retryDue = nil
    desk.send(access.open(offer: offer), .open)
  }

  // MARK: Responses

  /// Whether the server was busy and will be asked again.
  mutating func isPutOff(by response: SessionResponse) -> Bool {
    guard let seconds = response.retrySeconds, retryCount < SessionLink.retriesMaximum,
      (0...SessionLink.retrySecondsMaximum).contains(seconds)
    else { return false }
    retryCount += 1
    retryDue = desk.now + .seconds(max(seconds, 1))
    return true
  }

  /// Returns the session that the server created.
  /// - Parameter takesOffers: whether the server may offer instead (WHEP only).
  mutating func opened(
    by response: SessionResponse, takesOffers: Bool
  ) throws(SessionRefusal) -> SessionResponse.Opening {
    let opening = try response.opening(takesOffers: takesOffers, hasToken: access.token != nil)
    session = HTTPSession(opening, access, local: offer)
    return opening
  }

  /// Sends the candidates that waited for the session.
  mutating func sendCandidates() {
    for candidate in candidates { session?.add(candidate, &desk) }
    candidates = []
  }

  /// Records whether the server accepts candidates; nil if it did not answer.
  mutating func handleCandidates(_ response: SessionResponse?) { session?.handle(response, &desk) }

  /// Returns the server's description after a restart; nil if it has none.
  mutating func restarted(by response: SessionResponse) -> SessionDescription? {
    session?.restarted(response, &desk)
  }

  /// Why a response refuses what was asked.
  func refusal(_ response: SessionResponse) -> SessionRefusal {
    response.refusal(hasToken: access.token != nil)
  }

  // MARK: The end

  /// Ends the session on the server without waiting for its answer.
  mutating func close() { if let session { desk.send(session.closing, .close) } }

  /// Ends the session on the server; false if there is none.
  mutating func leave() -> Bool {
    guard let session else { return false }
    desk.forget()
    desk.send(session.closing, .close, within: SessionLink.leaveSeconds)
    return true
  }

  /// Forgets the session, and what waited for it.
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
