import Peer
import SDP
package import Wire

/// A WHEP client (draft-ietf-wish-whep) as a room with one other participant, `stream`, whose media
/// is present as soon as the server accepts.
package struct WHEPMachine: SignalingMachine {
  package static let name = "whep"
  static let owner = "stream"

  private enum Phase: String {
    case idle, asking, offering, opening, answering, open, leaving, over
  }

  private var desk = HTTPDesk()
  private var access: SessionAccess
  private let token: String?
  private var phase = Phase.idle
  private var roster = Roster()
  private var connection: ConnectionID?
  private var session: HTTPSession?
  private var offer = ""
  private var retryDue: Instant?
  private var retryCount = 0
  private var assigned: [MediaID] = []
  private var candidates: [CandidateInit?] = []
  /// Whether the current offer restarts ICE.
  private var isRestarting = false

  package init(_ configuration: SignalingConfiguration, entropy: Entropy) {
    access = SessionAccess(endpoint: configuration.urls.first ?? "")
    token = configuration.options["token"]
  }

  package var abilities: SignalingAbilities { [] }

  package var deadline: Instant? {
    phase == .over ? nil : earliest(desk.deadline, retryDue)
  }

  package var status: [(name: String, value: String)] {
    [
      ("phase", phase.rawValue), ("session", session?.url ?? ""),
      ("received", String(assigned.count)), ("waiting", String(desk.waitingCount)),
    ]
  }

  package mutating func step(
    _ input: SignalingInput, at now: Instant, into outbox: inout Outbox<SignalingOutput>
  ) {
    // There are no events after the end.
    guard phase != .over else { return }
    desk.begin(at: now)
    switch input {
    case .deadline: pass()
    case .response(let id, let result): if let news = desk.handle(id, result) { handle(news) }
    case .intent(let intent): handle(intent)
    case .connection(let id, let report): if id == connection { handle(report) }
    case .transport: break
    }
    desk.end(into: &outbox)
  }

  private mutating func pass() {
    for news in desk.expire() where phase != .over { handle(news) }
    if let due = retryDue, due <= desk.now {
      retryDue = nil
      desk.send(access.open(offer: offer), .open)
    }
  }

  // MARK: What the room wants

  private mutating func handle(_ intent: RoomIntent) {
    switch intent {
    case .join(let join):
      guard phase == .idle else { return }
      phase = .asking
      access.token = join.token ?? token
      guard !access.endpoint.isEmpty else {
        return end(
          SignalingFailure(.unreachable, "no address of an endpoint is given", isCritical: true))
      }
      desk.send(access.options, .options)
    case .leave: leave()
    case .restartICE(let wanted):
      guard wanted == connection, phase == .open, session?.canRestart == true else { return }
      isRestarting = true
      desk.request(wanted, .makeOffer(iceRestart: true))
    case .renewToken(let token): access.token = token
    case .updateLocal, .networkChanged: break
    default:
      guard let action = intent.action else { return }
      desk.emit(action, SignalingFailure(.notSupported, "WHEP only plays, and all that there is"))
    }
  }

  // MARK: What the connection tells

  private mutating func handle(_ report: ConnectionReport) {
    switch report {
    case .description(let description, _): handle(description)
    case .refused(let error):
      guard phase != .open else {
        return desk.emit(.failed(SignalingFailure(.remoteDescriptionFailed, error.message)))
      }
      end(SignalingFailure(.remoteDescriptionFailed, error.message, isCritical: true))
    case .candidate(let candidate):
      guard session != nil else {
        candidates.append(candidate)
        return
      }
      session?.add(candidate, &desk)
    default: break
    }
  }

  private mutating func handle(_ description: SessionDescription) {
    switch (phase, description.type) {
    case (.offering, .offer):
      phase = .opening
      offer = description.sdp
      desk.send(access.open(offer: offer), .open)
    case (.answering, .answer):
      guard let session else { return }
      desk.send(session.answer(description.sdp), .answer)
    case (.open, .offer) where isRestarting:
      isRestarting = false
      session?.restart(description.sdp, &desk)
    default: break
    }
  }

  // MARK: What the server answers

  private mutating func handle(_ news: HTTPDesk.News) {
    switch news {
    case .answered(let purpose, let response): handle(response, purpose)
    case .failed(let purpose, let reason): fail(purpose, reason, nil)
    }
  }

  private mutating func handle(_ response: SessionResponse, _ purpose: HTTPDesk.Purpose) {
    switch purpose {
    case .options:
      phase = .offering
      desk.emit([.progress(.opened), .progress(.attached)])
      let servers = response.isGood ? response.iceServers : []
      let connection = desk.connect(.down, ICEServers(servers))
      self.connection = connection
      desk.request(connection, .makeOffer(iceRestart: false))
    case .open: opened(response)
    case .answer:
      guard response.isGood else {
        let refusal = response.refusal(hasToken: access.token != nil)
        return fail(.answer, refusal.reason, refusal.status)
      }
      phase = .open
    case .candidates: session?.handle(response, &desk)
    case .restart:
      guard let connection, let answer = session?.restarted(response, &desk) else {
        let refusal = response.refusal(hasToken: access.token != nil)
        return fail(.restart, refusal.reason, refusal.status)
      }
      desk.request(connection, .setRemote(answer))
    case .close: if phase == .leaving { end(nil) }
    }
  }

  private mutating func opened(_ response: SessionResponse) {
    guard phase == .opening, let connection else { return }
    if let seconds = response.retrySeconds, retryCount < WHIPMachine.retriesMaximum,
      (0...WHIPMachine.retrySecondsMaximum).contains(seconds)
    {
      retryCount += 1
      retryDue = desk.now + .seconds(max(seconds, 1))
      return
    }
    do throws(SessionRefusal) {
      let opening = try response.opening(takesOffers: true, hasToken: access.token != nil)
      session = HTTPSession(opening, access, local: offer)
      phase = opening.isCounterOffer ? .answering : .open
      join(opening.description, connection)
      desk.request(
        connection,
        .setRemote(
          SessionDescription(
            type: opening.isCounterOffer ? .offer : .answer, sdp: opening.description)))
      for candidate in candidates { session?.add(candidate, &desk) }
      candidates = []
    } catch {
      fail(.open, error.reason, error.status)
    }
  }

  /// Joins the room described by the server's description.
  private mutating func join(_ sdp: String, _ connection: ConnectionID) {
    _ = roster.enter(WHEPMachine.owner, displayName: WHEPMachine.owner)
    let document = try? SDPDocument(parsing: sdp)
    let offers = (document?.sections ?? []).compactMap { section -> Roster.Offer? in
      guard let mid = section.mid, !section.isRejected, section.direction?.sends != false,
        let kind = MediaKind(rawValue: section.kind.rawValue)
      else { return nil }
      return Roster.Offer(key: mid, kind: kind)
    }
    _ = roster.set(offers, of: WHEPMachine.owner)
    desk.emit(.progress(.joining))
    desk.emit(
      .joined(
        JoinedRoom(participant: WHIPMachine.participant, participants: roster.participants)))
    for offer in offers {
      guard let media = roster.media(owner: WHEPMachine.owner, key: offer.key) else { continue }
      assigned.append(media.id)
      desk.emit(.assigned(media.id, connection, mid: offer.key))
    }
  }

  private mutating func fail(_ purpose: HTTPDesk.Purpose, _ reason: String, _ status: Int?) {
    switch purpose {
    case .options: end(SignalingFailure(.unreachable, reason, isCritical: true))
    case .open, .answer:
      end(SignalingFailure(.joinRefused, reason, isCritical: true, serverCode: status))
    case .candidates: session?.handle(nil, &desk)
    case .restart:
      session?.restartFailed()
      desk.emit(.failed(SignalingFailure(.pathLost, reason, serverCode: status)))
    case .close: if phase == .leaving { end(nil) }
    }
  }

  // MARK: The end

  private mutating func leave() {
    guard phase != .leaving else { return }
    guard let session else { return end(nil) }
    phase = .leaving
    desk.forget()
    desk.send(session.closing, .close, within: WHIPMachine.leaveSeconds)
  }

  private mutating func end(_ failure: SignalingFailure?) {
    guard phase != .over else { return }
    // End the server's session, if there is one.
    if phase != .leaving, let session { desk.send(session.closing, .close) }
    phase = .over
    desk.forget()
    for media in assigned { desk.emit(.unassigned(media)) }
    if let connection { desk.request(connection, .close) }
    if let failure { desk.emit(.failed(failure)) }
    desk.emit(
      .ended(
        RoomEnding(.disconnected, code: failure?.serverCode, message: failure?.message ?? "")))
  }
}
