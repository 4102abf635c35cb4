import Peer
import SDP
import Wire

/// A session at a server, from its `201 Created` on: candidates one request after the other, and
/// restarts of ICE.
struct HTTPSession: Sendable {
  let url: String
  private let access: SessionAccess
  private var entityTag: String?
  /// The local description, and the server's as it would read after the last restart.
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

  /// Whether the server can be asked for a restart.
  var canRestart: Bool { entityTag != nil && !isRestarting }

  /// A candidate of this side; nil: there are no more.
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

  /// The candidates are told, or the server wants none.
  mutating func handle(_ response: SessionResponse?, _ desk: inout HTTPDesk) {
    if response?.refusesCandidates == true { trickles = false }
    report(&desk)
  }

  /// Asks for a restart with the parameters of an offer.
  mutating func restart(_ offer: String, _ desk: inout HTTPDesk) {
    guard let document = try? SDPDocument(parsing: offer) else { return }
    isRestarting = true
    local = document
    candidates = []
    hasEnded = false
    let fragment = document.fragment(candidates: [], hasEnded: false)
    desk.send(access.patch(fragment.text, session: url, match: "*"), .restart)
  }

  /// The server's answer to a restart: its description with the new parameters; nil when there are
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
