import Peer
import SDP
import Wire

/// The only connection to a Sora server: its offers, the local answers, and the media in each
/// section.
struct SoraMedia: Sendable {
  private struct Assignment: Hashable, Sendable {
    var media: MediaID
    var mid: String
  }

  private enum Phase: String { case idle, held, answering, agreed }

  private(set) var connection: ConnectionID?
  private var phase = Phase.idle
  /// The current answer's type: `answer`, `re-answer` or `update`.
  private var answerType = ""
  private var nextOffer: (sdp: String, type: String)?
  private var wanted: [LocalMediaInfo] = []
  private var published: [LocalMediaPlace] = []
  private var waiting: [ActionID] = []
  private var assigned: [Assignment] = []

  var status: [(name: String, value: String)] {
    [
      ("media", phase.rawValue), ("published", String(published.count)),
      ("received", String(assigned.count)),
    ]
  }

  /// Whether the first answer can still include local media.
  var isHeld: Bool { phase == .held }

  // MARK: Server offers

  /// Holds back the first offer for a while, so that local media can be added.
  mutating func hold(_ offer: SoraOffer, _ role: ConnectionRole, _ desk: inout SoraDesk) {
    let connection = desk.connect(role, offer.servers)
    self.connection = connection
    nextOffer = (offer.sdp, "answer")
    phase = .held
    if let mid = offer.videoMid, !offer.layers.isEmpty {
      desk.request(connection, .setLayers(mid: mid, offer.layers))
    }
    if role == .down || !wanted.isEmpty { release(&desk) }
  }

  /// Answers the held offer.
  mutating func release(_ desk: inout SoraDesk) {
    guard phase == .held else { return }
    phase = .agreed
    proceed(&desk)
  }

  /// Handles a further offer from the server.
  mutating func handle(offer sdp: String, answeredBy type: String, _ desk: inout SoraDesk) {
    guard connection != nil else { return }
    // Of several offers that arrive while another is being answered, only the last one is answered,
    // because it replaces the others.
    if phase == .held {
      nextOffer = (sdp, "answer")
    } else {
      nextOffer = (sdp, type)
      if phase == .agreed { proceed(&desk) }
    }
  }

  private mutating func proceed(_ desk: inout SoraDesk) {
    guard phase == .agreed, let connection, let offer = nextOffer.take() else { return }
    phase = .answering
    answerType = offer.type
    assign(offer.sdp, connection, &desk)
    desk.request(connection, .setRemote(SessionDescription(type: .offer, sdp: offer.sdp)))
  }

  /// Assigns media to sections; a section's stream is named after its sender's connection.
  private mutating func assign(
    _ sdp: String, _ connection: ConnectionID, _ desk: inout SoraDesk
  ) {
    // The connection refuses an offer that cannot be parsed.
    guard let document = try? SDPDocument(parsing: sdp) else { return }
    var offers: [(owner: String, offer: Roster.Offer)] = []
    for section in document.sections where !section.isRejected {
      guard let mid = section.mid, let kind = MediaKind(rawValue: section.kind.rawValue),
        section.direction?.sends != false, let owner = section.msids.first?.streamID,
        owner != desk.participant, owner != "-"
      else { continue }
      offers.append((owner, Roster.Offer(key: mid, kind: kind)))
    }
    for (owner, _) in offers { desk.emit(desk.roster.enter(owner, displayName: "")) }
    for owner in desk.roster.participants.map(\.id) {
      let own = offers.filter { $0.owner == owner }.map(\.offer)
      desk.emit(desk.roster.set(own, of: owner))
    }
    var now: [Assignment] = []
    for (owner, offer) in offers {
      guard let media = desk.roster.media(owner: owner, key: offer.key) else { continue }
      now.append(Assignment(media: media.id, mid: offer.key))
    }
    for old in assigned where !now.contains(old) { desk.emit(.unassigned(old.media)) }
    for new in now where !assigned.contains(new) {
      desk.emit(.assigned(new.media, connection, mid: new.mid))
    }
    assigned = now
  }

  // MARK: Local media

  mutating func publish(_ request: PublicationRequest, _ desk: inout SoraDesk) {
    guard phase == .idle || phase == .held else {
      return desk.emit(
        request.action,
        SignalingFailure(
          .publishFailed, "a Sora channel takes own media only while it is entered"))
    }
    wanted += request.media
    waiting.append(request.action)
    release(&desk)
  }

  mutating func unpublish(_ action: ActionID, _ media: [LocalMediaID], _ desk: inout SoraDesk) {
    wanted.removeAll { media.contains($0.id) }
    for place in published where media.contains(place.media) {
      desk.emit(.localUnpublished(place.media))
    }
    published.removeAll { media.contains($0.media) }
    desk.emit(action)
  }

  mutating func handle(
    _ report: ConnectionReport, of connection: ConnectionID, _ desk: inout SoraDesk
  ) {
    guard connection == self.connection else { return }
    switch report {
    case .description(let answer, let places) where phase == .answering && answer.type == .answer:
      phase = .agreed
      desk.send(.members(("type", .text(answerType)), ("sdp", .text(answer.sdp))))
      settle(places, &desk)
      proceed(&desk)
    case .refused(let error):
      guard phase == .answering else { return }
      phase = .agreed
      desk.emit(.failed(SignalingFailure(.answerFailed, error.message)))
      proceed(&desk)
    case .candidate(let candidate?):
      desk.send(.members(("type", "candidate"), ("candidate", .text(candidate.candidate))))
    default: break
    }
  }

  private mutating func settle(_ places: [LocalMediaPlace], _ desk: inout SoraDesk) {
    for place in places where !published.contains(place) {
      published.append(place)
      desk.emit(.localPublished(place.media, desk.roster.nextMedia()))
    }
    for action in waiting { desk.emit(action) }
    waiting = []
  }

  // MARK: Closing

  mutating func close(_ desk: inout SoraDesk) {
    phase = .idle
    nextOffer = nil
    for place in published { desk.emit(.localUnpublished(place.media)) }
    for assignment in assigned { desk.emit(.unassigned(assignment.media)) }
    (published, assigned) = ([], [])
    if let connection { desk.request(connection, .close) }
    connection = nil
  }

  /// Fails the requests to publish media that is not in an answer yet.
  mutating func abandon(_ reason: String, _ desk: inout SoraDesk) {
    for action in waiting { desk.emit(action, SignalingFailure(.publishFailed, reason)) }
    waiting = []
  }
}
