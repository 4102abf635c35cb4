import Peer
import SDP
import Wire

/// The state that WHIP and WHEP share: unanswered requests and outputs.
struct HTTPDesk: SignalingDesk {
  enum Purpose: Hashable, Sendable {
    case options, open, answer, candidates, restart, close
  }

  private struct Waiting: Sendable {
    var id: RequestID
    var purpose: Purpose
    var request: SessionRequest
    var due: Instant
  }

  /// A request's result.
  enum News: Hashable, Sendable {
    case answered(Purpose, SessionResponse)
    case failed(Purpose, String)
  }

  static let answerSeconds: Int64 = 15

  var step = SignalingStep()
  private var waiting: [Waiting] = []
  private var requestCount: UInt32 = 0

  var deadline: Instant? { waiting.map(\.due).min() }
  var waitingCount: Int { waiting.count }

  func isWaiting(for purpose: Purpose) -> Bool { waiting.contains { $0.purpose == purpose } }

  mutating func send(
    _ request: SessionRequest, _ purpose: Purpose, within seconds: Int64 = answerSeconds
  ) {
    requestCount += 1
    let id = RequestID(requestCount)
    waiting.append(
      Waiting(id: id, purpose: purpose, request: request, due: now + .seconds(seconds)))
    step.outputs.append(.request(id, request.http))
  }

  /// Returns a response's result; nil for a redirect or if no request is waiting for it.
  mutating func handle(_ id: RequestID, _ result: HTTPResult) -> News? {
    guard let index = waiting.firstIndex(where: { $0.id == id }) else { return nil }
    let request = waiting.remove(at: index)
    switch result {
    case .failed(let reason): return .failed(request.purpose, reason)
    case .answered(let status, let fields, let body):
      switch request.request.follow(status: status, fields: fields, body: body) {
      case .again(let next):
        send(next, request.purpose)
        return nil
      case .answered(let response): return .answered(request.purpose, response)
      case .failed(let reason): return .failed(request.purpose, reason)
      }
    }
  }

  /// Removes the requests that timed out; returns their failures.
  mutating func expire() -> [News] {
    let now = now
    let late = waiting.filter { $0.due <= now }
    waiting.removeAll { $0.due <= now }
    return late.map { .failed($0.purpose, "\($0.request.url): no answer in time") }
  }

  mutating func forget() { waiting = [] }
}

// MARK: - HTTPSession

/// A session that the server created (`201 Created`): sends candidates, one request at a time, and
/// restarts ICE.
struct HTTPSession: Sendable {
  let url: String
  private let access: SessionAccess
  private var entityTag: String?
  /// The local and remote descriptions from opening the session, or from the last ICE restart.
  private var local: SDPDocument?
  private var remote: SDPDocument?
  private var trickles = true
  private var candidates: [String] = []
  private var hasEnded = false
  private var isRestarting = false

  init(_ opening: SessionResponse.Opening, _ access: SessionAccess, local: String) {
    url = opening.session
    entityTag = opening.entityTag
    self.access = access
    self.local = try? SDPDocument(parsing: local)
    remote = try? SDPDocument(parsing: opening.description)
  }

  /// Whether the server supports restarts and none is in progress.
  var canRestart: Bool { entityTag != nil && !isRestarting }

  /// Adds a local candidate; nil after the last one.
  mutating func add(_ candidate: CandidateInit?, _ desk: inout HTTPDesk) {
    if let candidate { candidates.append(candidate.candidate) } else { hasEnded = true }
    report(&desk)
  }

  private mutating func report(_ desk: inout HTTPDesk) {
    guard trickles, !isRestarting, !candidates.isEmpty || hasEnded, let local,
      !desk.isWaiting(for: .candidates)
    else { return }
    let fragment = local.fragment(candidates: candidates, hasEnded: hasEnded)
    candidates = []
    hasEnded = false
    desk.send(access.patch(fragment.text, session: url, match: entityTag), .candidates)
  }

  /// Records that candidates were delivered, or that the server does not accept them.
  mutating func handle(_ response: SessionResponse?, _ desk: inout HTTPDesk) {
    if response?.refusesCandidates == true { trickles = false }
    report(&desk)
  }

  /// Requests an ICE restart with the ICE parameters of an offer.
  mutating func restart(_ offer: String, _ desk: inout HTTPDesk) {
    guard let document = try? SDPDocument(parsing: offer) else { return }
    isRestarting = true
    local = document
    candidates = []
    hasEnded = false
    let fragment = document.fragment(candidates: [], hasEnded: false)
    desk.send(access.patch(fragment.text, session: url, match: "*"), .restart)
  }

  /// Returns the server's description with the ICE parameters from its restart response; nil if the
  /// response has none.
  mutating func restarted(_ response: SessionResponse, _ desk: inout HTTPDesk)
    -> SessionDescription?
  {
    isRestarting = false
    guard let text = try? response.restart(hasToken: access.token != nil),
      let fragment = try? SDPFragment(parsing: text),
      let answer = remote?.restarted(by: fragment)
    else { return nil }
    entityTag = response.entityTag ?? entityTag
    remote = answer
    report(&desk)
    return SessionDescription(type: .answer, sdp: answer.text)
  }

  mutating func restartFailed() { isRestarting = false }

  var closing: SessionRequest { access.close(session: url) }
  func answer(_ sdp: String) -> SessionRequest { access.answer(sdp, session: url) }
}
