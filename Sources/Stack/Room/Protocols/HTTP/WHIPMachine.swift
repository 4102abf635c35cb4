import Peer
import SDP
package import Wire

/// A WHIP client (RFC 9725) as a room with nobody else in it; it publishes once.
package struct WHIPMachine: SignalingMachine {
  package static let name = "whip"
  static let participant = "self"
  static let retriesMaximum = 3
  static let retrySecondsMaximum: Int64 = 30
  static let leaveSeconds: Int64 = 3

  private enum Phase: String { case idle, asking, joined, leaving, over }

  private var desk = HTTPDesk()
  private var access: SessionAccess
  private let token: String?
  private var phase = Phase.idle
  private var publication = Publication()
  private var session: HTTPSession?
  private var servers = ICEServers()
  /// The current offer, and when it is sent again to a busy server.
  private var offer = ""
  private var retryDue: Instant?
  private var retryCount = 0
  private var mediaCount: UInt32 = 0
  /// Candidates from before the session was created.
  private var candidates: [CandidateInit?] = []

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
      ("waiting", String(desk.waitingCount)),
    ] + publication.status
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
    case .connection(let id, let report): if id == publication.connection { handle(report) }
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
    case .publish(let request): publish(request)
    case .unpublish(let action, let media):
      publication.remove(action, media)
      guard publication.wanted.isEmpty else {
        return desk.emit(
          publication.finish(SignalingFailure(.notSupported, WHIPMachine.onceReason)))
      }
      desk.emit(publication.finish(nil))
      closeSession()
    case .restartICE(let connection):
      guard connection == publication.connection, session?.canRestart == true else { return }
      publication.restartICE()
      makeOffer()
    case .renewToken(let token): access.token = token
    case .updateLocal(let media): _ = publication.update(media)
    case .networkChanged: break
    default:
      guard let action = intent.action else { return }
      desk.emit(action, SignalingFailure(.notSupported, "WHIP only publishes"))
    }
  }

  private static let onceReason = "WHIP publishes everything at once, and takes it back at once"

  private mutating func publish(_ request: PublicationRequest) {
    guard phase == .idle || phase == .asking || phase == .joined, publication.isEmpty else {
      return desk.emit(
        request.action, SignalingFailure(.publishFailed, WHIPMachine.onceReason))
    }
    publication.add(request)
    if phase == .joined { makeOffer() }
  }

  private mutating func makeOffer() {
    guard let restartsICE = publication.begin() else { return }
    let connection = publication.connection ?? desk.connect(.up, servers)
    publication.connection = connection
    desk.request(connection, .makeOffer(iceRestart: restartsICE))
  }

  // MARK: What the connection tells

  private mutating func handle(_ report: ConnectionReport) {
    switch report {
    case .description(let description, let places) where description.type == .offer:
      guard publication.offer(places) else { return }
      if session != nil {
        session?.restart(description.sdp, &desk)
      } else {
        offer = description.sdp
        retryCount = 0
        desk.send(access.open(offer: offer), .open)
      }
    case .refused(let error):
      let code: RoomErrorCode =
        publication.phase == .offering ? .offerFailed : .remoteDescriptionFailed
      desk.emit(publication.fail(SignalingFailure(code, error.message)))
    case .candidate(let candidate):
      guard session != nil else {
        candidates.append(candidate)
        return
      }
      session?.add(candidate, &desk)
    default: break
    }
  }

  // MARK: What the server answers

  private mutating func handle(_ news: HTTPDesk.News) {
    switch news {
    case .answered(let purpose, let response): handle(response, purpose)
    case .failed(let purpose, let reason): fail(purpose, reason)
    }
  }

  private mutating func handle(_ response: SessionResponse, _ purpose: HTTPDesk.Purpose) {
    switch purpose {
    case .options:
      if response.isGood { servers = ICEServers(response.iceServers) }
      phase = .joined
      desk.emit([.progress(.opened), .progress(.attached), .progress(.joining)])
      desk.emit(.joined(JoinedRoom(participant: WHIPMachine.participant)))
      if !publication.wanted.isEmpty { makeOffer() }
    case .open: opened(response)
    case .candidates: session?.handle(response, &desk)
    case .restart:
      guard let connection = publication.connection,
        let answer = session?.restarted(response, &desk)
      else {
        let refusal = response.refusal(hasToken: access.token != nil)
        return desk.emit(
          publication.fail(SignalingFailure(.pathLost, refusal.reason, serverCode: refusal.status)))
      }
      desk.request(connection, .setRemote(answer))
      settle()
    case .close: if phase == .leaving { end(nil) }
    case .answer: break
    }
  }

  private mutating func opened(_ response: SessionResponse) {
    if let seconds = response.retrySeconds, retryCount < WHIPMachine.retriesMaximum,
      (0...WHIPMachine.retrySecondsMaximum).contains(seconds)
    {
      retryCount += 1
      retryDue = desk.now + .seconds(max(seconds, 1))
      return
    }
    guard let connection = publication.connection, publication.phase == .offered else { return }
    do throws(SessionRefusal) {
      let opening = try response.opening(takesOffers: false, hasToken: access.token != nil)
      session = HTTPSession(opening, access, local: offer)
      desk.request(
        connection, .setRemote(SessionDescription(type: .answer, sdp: opening.description)))
      settle()
      for candidate in candidates { session?.add(candidate, &desk) }
      candidates = []
    } catch {
      desk.emit(
        publication.fail(SignalingFailure(.publishFailed, error.reason, serverCode: error.status)))
      closeConnection()
    }
  }

  private mutating func settle() {
    var count = mediaCount
    let events = publication.settle { _ in
      count += 1
      return MediaID(count)
    }
    mediaCount = count
    desk.emit(events)
  }

  private mutating func fail(_ purpose: HTTPDesk.Purpose, _ reason: String) {
    switch purpose {
    case .options: end(SignalingFailure(.unreachable, reason, isCritical: true))
    case .open:
      desk.emit(publication.fail(SignalingFailure(.publishFailed, reason)))
      closeConnection()
    case .candidates: session?.handle(nil, &desk)
    case .restart:
      session?.restartFailed()
      desk.emit(publication.fail(SignalingFailure(.pathLost, reason)))
    case .close: if phase == .leaving { end(nil) }
    case .answer: break
    }
  }

  // MARK: The end

  private mutating func closeSession() {
    if let session { desk.send(session.closing, .close) }
    closeConnection()
  }

  private mutating func closeConnection() {
    session = nil
    candidates = []
    retryDue = nil
    let connection = publication.connection
    desk.emit(publication.close())
    if let connection { desk.request(connection, .close) }
  }

  private mutating func leave() {
    guard phase != .leaving else { return }
    guard let session else { return end(nil) }
    phase = .leaving
    desk.forget()
    desk.send(session.closing, .close, within: WHIPMachine.leaveSeconds)
  }

  private mutating func end(_ failure: SignalingFailure?) {
    guard phase != .over else { return }
    phase = .over
    desk.forget()
    desk.emit(publication.finish(SignalingFailure(.invalidState, "the session is over")))
    closeConnection()
    if let failure { desk.emit(.failed(failure)) }
    desk.emit(.ended(RoomEnding(.disconnected, message: failure?.message ?? "")))
  }
}
