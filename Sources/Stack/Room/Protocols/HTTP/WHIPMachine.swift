import Peer
import SDP
package import Wire

/// A WHIP client (RFC 9725), presented as a room without other participants, in which media can be
/// published only once.
package struct WHIPMachine: SessionMachine {
  package static let name = "whip"
  static let participant = "self"

  private enum Phase: String { case idle, asking, joined, leaving, over }

  var link: SessionLink
  private var phase = Phase.idle
  private var publication = Publication()
  private var servers = ICEServers()
  private var mediaCount: UInt32 = 0

  package init(_ configuration: SignalingConfiguration, entropy: Entropy) {
    link = SessionLink(configuration)
  }

  package var abilities: SignalingAbilities { [] }

  var isOver: Bool { phase == .over }
  var connection: ConnectionID? { publication.connection }

  package var deadline: Instant? { phase == .over ? nil : link.deadline }

  package var status: [(name: String, value: String)] {
    [
      ("phase", phase.rawValue), ("session", link.url ?? ""),
      ("waiting", String(link.desk.waitingCount)),
    ] + publication.status
  }

  package mutating func step(
    _ input: SignalingInput, at now: Instant, into outbox: inout Outbox<SignalingOutput>
  ) {
    stepSession(input, at: now, into: &outbox)
  }

  // MARK: Intents

  mutating func handle(_ intent: RoomIntent) {
    switch intent {
    case .join(let join):
      guard phase == .idle else { return }
      phase = .asking
      if !link.join(join) { end(.noEndpoint) }
    case .leave: leave()
    case .publish(let request): publish(request)
    case .unpublish(let action, let media):
      publication.remove(action, media)
      guard publication.wanted.isEmpty else {
        return link.desk.emit(
          publication.finish(SignalingFailure(.notSupported, WHIPMachine.onceReason)))
      }
      link.desk.emit(publication.finish(nil))
      closeSession()
    case .restartICE(let connection):
      guard connection == publication.connection, link.canRestart else { return }
      publication.restartICE()
      makeOffer()
    case .renewToken(let token): link.renew(token)
    case .updateLocal(let media): _ = publication.update(media)
    case .networkChanged: break
    default:
      guard let action = intent.action else { return }
      link.desk.emit(action, SignalingFailure(.notSupported, "WHIP only publishes"))
    }
  }

  private static let onceReason = "WHIP publishes everything at once, and takes it back at once"

  private mutating func publish(_ request: PublicationRequest) {
    guard phase == .idle || phase == .asking || phase == .joined, publication.isEmpty else {
      return link.desk.emit(
        request.action, SignalingFailure(.publishFailed, WHIPMachine.onceReason))
    }
    publication.add(request)
    if phase == .joined { makeOffer() }
  }

  private mutating func makeOffer() {
    publication.requestOffer(&link.desk) { [servers] in $0.openConnection(.up, servers) }
  }

  // MARK: Connection

  mutating func handle(_ report: ConnectionReport) {
    switch report {
    case .description(let description, let places) where description.type == .offer:
      guard publication.offer(places) else { return }
      if link.isOpen { link.restart(description.sdp) } else { link.open(description.sdp) }
    case .refused(let error):
      link.desk.emit(publication.fail(publication.failure(of: error)))
    case .candidate(let candidate): link.add(candidate)
    default: break
    }
  }

  // MARK: Server

  mutating func handle(_ response: SessionResponse, _ purpose: HTTPDesk.Purpose) {
    switch purpose {
    case .options:
      if response.isGood { servers = ICEServers(response.iceServers) }
      phase = .joined
      link.desk.emit([.progress(.opened), .progress(.attached), .progress(.joining)])
      link.desk.emit(.joined(JoinedRoom(participant: WHIPMachine.participant)))
      if !publication.wanted.isEmpty { makeOffer() }
    case .open: opened(response)
    case .candidates: link.handleCandidates(response)
    case .restart:
      guard let connection = publication.connection,
        let answer = link.restarted(by: response)
      else {
        let refusal = link.refusal(response)
        return link.desk.emit(
          publication.fail(SignalingFailure(.pathLost, refusal.reason, serverCode: refusal.status)))
      }
      link.desk.request(connection, .setRemote(answer))
      settle()
    case .close: if phase == .leaving { end(nil) }
    case .answer: break
    }
  }

  private mutating func opened(_ response: SessionResponse) {
    guard !link.isPutOff(by: response), let connection = publication.connection,
      publication.phase == .offered
    else { return }
    do throws(SessionRefusal) {
      let opening = try link.opened(by: response, takesOffers: false)
      link.desk.request(
        connection, .setRemote(SessionDescription(type: .answer, sdp: opening.description)))
      settle()
      link.sendCandidates()
    } catch {
      fail(.open, error.reason, error.status)
    }
  }

  private mutating func settle() {
    var count = mediaCount
    let events = publication.settle { _ in
      count += 1
      return MediaID(count)
    }
    mediaCount = count
    link.desk.emit(events)
  }

  mutating func fail(_ purpose: HTTPDesk.Purpose, _ reason: String, _ status: Int?) {
    switch purpose {
    case .options: end(SignalingFailure(.unreachable, reason, isCritical: true))
    case .open:
      link.desk.emit(
        publication.fail(SignalingFailure(.publishFailed, reason, serverCode: status)))
      closeConnection()
    case .candidates: link.handleCandidates(nil)
    case .restart:
      link.restartFailed()
      link.desk.emit(publication.fail(SignalingFailure(.pathLost, reason, serverCode: status)))
    case .close: if phase == .leaving { end(nil) }
    case .answer: break
    }
  }

  // MARK: Closing

  private mutating func closeSession() {
    link.close()
    closeConnection()
  }

  private mutating func closeConnection() {
    link.reset()
    publication.close(&link.desk)
  }

  private mutating func leave() {
    guard phase != .leaving else { return }
    guard link.leave() else { return end(nil) }
    phase = .leaving
  }

  private mutating func end(_ failure: SignalingFailure?) {
    guard phase != .over else { return }
    phase = .over
    link.desk.forget()
    link.desk.emit(publication.finish(SignalingFailure(.invalidState, "the session is over")))
    closeConnection()
    if let failure { link.desk.emit(.failed(failure)) }
    link.desk.emit(.ended(RoomEnding(.disconnected, message: failure?.message ?? "")))
  }
}
