import Peer
import SDP
package import Wire

/// A WHEP client (draft-ietf-wish-whep), presented as a room with one other participant, `stream`.
///
/// The media of `stream` is published once the server accepts the session.
package struct WHEPMachine: SessionMachine {
  package static let name = "whep"
  static let owner = "stream"

  private enum Phase: String {
    case idle, asking, offering, opening, answering, open, leaving, over
  }

  var link: SessionLink
  private var phase = Phase.idle
  private var roster = Roster()
  private(set) var connection: ConnectionID?
  private var assigned: [MediaID] = []
  /// Whether the current offer restarts ICE.
  private var isRestarting = false

  package init(_ configuration: SignalingConfiguration, entropy: Entropy) {
    link = SessionLink(configuration)
  }

  package var abilities: SignalingAbilities { [] }

  var isOver: Bool { phase == .over }

  package var deadline: Instant? { phase == .over ? nil : link.deadline }

  package var status: [(name: String, value: String)] {
    [
      ("phase", phase.rawValue), ("session", link.url ?? ""),
      ("received", String(assigned.count)), ("waiting", String(link.desk.waitingCount)),
    ]
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
    case .restartICE(let wanted):
      guard wanted == connection, phase == .open, link.canRestart else { return }
      isRestarting = true
      link.desk.request(wanted, .makeOffer(iceRestart: true))
    case .renewToken(let token): link.renew(token)
    case .updateLocal, .networkChanged: break
    default:
      guard let action = intent.action else { return }
      link.desk.emit(
        action, SignalingFailure(.notSupported, "WHEP only plays, and all that there is"))
    }
  }

  // MARK: Connection

  mutating func handle(_ report: ConnectionReport) {
    switch report {
    case .description(let description, _): handle(description)
    case .refused(let error):
      guard phase != .open else {
        return link.desk.emit(.failed(SignalingFailure(.remoteDescriptionFailed, error.message)))
      }
      end(SignalingFailure(.remoteDescriptionFailed, error.message, isCritical: true))
    case .candidate(let candidate): link.add(candidate)
    default: break
    }
  }

  private mutating func handle(_ description: SessionDescription) {
    switch (phase, description.type) {
    case (.offering, .offer):
      phase = .opening
      link.open(description.sdp)
    case (.answering, .answer): link.answer(description.sdp)
    case (.open, .offer) where isRestarting:
      isRestarting = false
      link.restart(description.sdp)
    default: break
    }
  }

  // MARK: Server

  mutating func handle(_ response: SessionResponse, _ purpose: HTTPDesk.Purpose) {
    switch purpose {
    case .options:
      phase = .offering
      link.desk.emit([.progress(.opened), .progress(.attached)])
      let servers = response.isGood ? response.iceServers : []
      let connection = link.desk.openConnection(.down, ICEServers(servers))
      self.connection = connection
      link.desk.request(connection, .makeOffer(iceRestart: false))
    case .open: opened(response)
    case .answer:
      guard response.isGood else {
        let refusal = link.refusal(response)
        return fail(.answer, refusal.reason, refusal.status)
      }
      phase = .open
    case .candidates: link.handleCandidates(response)
    case .restart:
      guard let connection, let answer = link.restarted(by: response) else {
        let refusal = link.refusal(response)
        return fail(.restart, refusal.reason, refusal.status)
      }
      link.desk.request(connection, .setRemote(answer))
    case .close: if phase == .leaving { end(nil) }
    }
  }

  private mutating func opened(_ response: SessionResponse) {
    guard phase == .opening, let connection, !link.isPutOff(by: response) else { return }
    do throws(SessionRefusal) {
      let opening = try link.opened(by: response, takesOffers: true)
      phase = opening.isCounterOffer ? .answering : .open
      join(opening.description, connection)
      link.desk.request(
        connection,
        .setRemote(
          SessionDescription(
            type: opening.isCounterOffer ? .offer : .answer, sdp: opening.description)))
      link.sendCandidates()
    } catch {
      fail(.open, error.reason, error.status)
    }
  }

  /// Reports the room as joined, with the media that the server sends according to its description.
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
    link.desk.emit(.progress(.joining))
    link.desk.emit(
      .joined(
        JoinedRoom(participant: WHIPMachine.participant, participants: roster.participants)))
    for offer in offers {
      guard let media = roster.media(owner: WHEPMachine.owner, key: offer.key) else { continue }
      assigned.append(media.id)
      link.desk.emit(.assigned(media.id, connection, mid: offer.key))
    }
  }

  mutating func fail(_ purpose: HTTPDesk.Purpose, _ reason: String, _ status: Int?) {
    switch purpose {
    case .options: end(SignalingFailure(.unreachable, reason, isCritical: true))
    case .open, .answer:
      end(SignalingFailure(.joinRefused, reason, isCritical: true, serverCode: status))
    case .candidates: link.handleCandidates(nil)
    case .restart:
      link.restartFailed()
      link.desk.emit(.failed(SignalingFailure(.pathLost, reason, serverCode: status)))
    case .close: if phase == .leaving { end(nil) }
    }
  }

  // MARK: Closing

  private mutating func leave() {
    guard phase != .leaving else { return }
    guard link.leave() else { return end(nil) }
    phase = .leaving
  }

  private mutating func end(_ failure: SignalingFailure?) {
    guard phase != .over else { return }
    // End the session on the server, if there is one.
    if phase != .leaving { link.close() }
    phase = .over
    link.desk.forget()
    for media in assigned { link.desk.emit(.unassigned(media)) }
    if let connection { link.desk.request(connection, .close) }
    if let failure { link.desk.emit(.failed(failure)) }
    link.desk.emit(
      .ended(
        RoomEnding(.disconnected, code: failure?.serverCode, message: failure?.message ?? "")))
  }
}
