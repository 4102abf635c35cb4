import Peer
import SDP
import Wire

/// A session on a server, after its `201 Created`: candidates, one request after the other, and ICE
/// restarts.
struct HTTPSession: Sendable {
  let url: String
  private let access: SessionAccess
  private var entityTag: String?
  /// The local description, and the server's as of the last restart.
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

  /// Whether the server supports restarts.
  var canRestart: Bool { entityTag != nil && !isRestarting }

  /// Adds a local candidate; nil means there are no more.
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

  /// Requests a restart with the parameters of an offer.
  mutating func restart(_ offer: String, _ desk: inout HTTPDesk) {
    guard let document = try? SDPDocument(parsing: offer) else { return }
    isRestarting = true
    local = document
    candidates = []
    hasEnded = false
    let fragment = document.fragment(candidates: [], hasEnded: false)
    desk.send(access.patch(fragment.text, session: url, match: "*"), .restart)
  }

  /// Returns the server's description with the parameters of its answer to a restart; nil if it has
  /// none.
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
