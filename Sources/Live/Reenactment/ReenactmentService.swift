import JSEP
package import Live
package import Peer
package import SDP
package import Signaling
import Stats
import Wire

/// A re-enactment to one live client, which connects directly or through a relay to its server.
package protocol Reenacting: Sendable {
  var plan: ReenactmentPlan { get }
  /// Yields when everything has been played or the client has left.
  var finished: AsyncStream<Void> { get }
  /// The current or last client's re-enactment; nil before there is a client with an agreement.
  var outcome: ReenactmentOutcome? { get async }
  /// The number of the recorded sender's later descriptions that were signaled to the client.
  var changesSent: Int { get async }
  /// The reasons why clients were refused.
  var refused: [String] { get async }
  /// Ends the call.
  func close() async
}

/// The player, the agreement and the leg of a re-enactment's client.
package struct ReenactmentOutcome: Sendable {
  package var player: ReenactmentPlayer
  package var agreement: Agreement
  /// The peer number of the leg to the client in the new take.
  package var leg: UInt32
}

/// The signaling of a re-enactment, which plays to one live client.
///
/// A client sends an offer, over `/offer` or WHEP, and receives the answer; or it receives an
/// offer, over `/mkoffer` or as the target of a call, and answers. There is only one client;
/// another may connect only after the first has been refused.
package actor ReenactmentService: CallHandling, SessionHandling, Reenacting {
  package nonisolated let finished: AsyncStream<Void>
  private nonisolated let finish: AsyncStream<Void>.Continuation
  package nonisolated let plan: ReenactmentPlan
  private nonisolated let session: Session
  private nonisolated let configuration: PeerConfiguration
  private let connectionLimit: Duration
  private let rule: RepairRule
  private let takePath: String
  /// The current or last client.
  private var client: Client?
  private var isClaimed = false
  private var refusals: [String] = []

  private struct Client {
    var id: String
    var leg: PeerConnection
    var player: ReenactmentPlayer
    var transport: String
    /// The entity tag of a WHEP session, which is the local ICE username fragment; nil for other
    /// clients.
    var entityTag: String?
    var agreement: Agreement?
    /// The last description for this client, without a transport.
    var described: SDPDocument?
    /// Whether the client has an unanswered offer.
    var hasOffer = false
    /// The number of the recorded sender's changes that were signaled to the client.
    var changes = 0
    var candidates: TrickledCandidates?
  }

  /// Whether the client whose offer is being answered supports trickled candidates.
  @TaskLocal package static var trickles = false

  /// How long a request for the next signal may wait.
  private static let waitMaximum = Interval.seconds(20)

  /// - Parameters:
  ///   - connectionLimit: the time limit for a client to connect.
  ///   - takePath: the new take's path, for lists of calls.
  package init(
    _ plan: ReenactmentPlan, in session: Session, configuration: PeerConfiguration,
    repair rule: RepairRule, connectionLimit: Duration, takePath: String
  ) {
    self.plan = plan
    self.session = session
    self.configuration = configuration
    self.rule = rule
    self.connectionLimit = connectionLimit
    self.takePath = takePath
    (finished, finish) = AsyncStream<Void>.makeStream()
  }

  package var outcome: ReenactmentOutcome? {
    guard let client, let agreement = client.agreement else { return nil }
    return ReenactmentOutcome(
      player: client.player, agreement: agreement, leg: client.leg.number)
  }

  package var changesSent: Int { client?.changes ?? 0 }

  package var refused: [String] { refusals }

  // MARK: Legs

  private func makeClient(_ transport: String, id: String? = nil) throws(CallRefusal) -> Client {
    guard !isClaimed else {
      throw CallRefusal(.busy, "the re-enactment already has a client; start another one")
    }
    isClaimed = true
    let player = ReenactmentPlayer(plan, repair: rule, clock: session.clock)
    let leg = session.makeLeg(
      label: "re-enacted \(plan.label)", role: "re-enactment", configuration: configuration,
      onState: { player.follow($0) }, forward: { packet, _ in player.receive(packet) })
    let made = Client(
      id: id ?? "client-\(BearerToken.random().text)", leg: leg, player: player,
      transport: transport)
    client = made
    watch(made)
    return made
  }

  private func watch(_ made: Client) {
    let limit = connectionLimit
    Task {
      for await _ in made.player.ended { break }
      self.end(of: made.id)
    }
    Task {
      try? await Task.sleep(for: limit)
      if !made.player.hasBegun { made.player.stop() }
    }
  }

  private func end(of id: String) {
    guard client?.id == id else { return }
    finish.yield()
  }

  /// Removes a client that was refused, so that another one can connect.
  private func abandon(_ made: Client, _ refusal: CallRefusal) async {
    refusals.append(refusal.reason)
    if client?.id == made.id { client = nil }
    isClaimed = false
    made.player.stop()
    await made.leg.close()
    await made.leg.retire()
  }

  package func close() async {
    guard let client else { return }
    client.player.stop()
    await client.leg.close()
    await client.leg.retire()
  }

  private func record(
    _ client: Client, _ type: String, _ message: String, isInbound: Bool
  ) {
    client.leg.recordSignaling(
      SignalingMessage(
        isInbound: isInbound, transport: client.transport, type: type, message: message))
  }

  private func named(_ id: String) throws(CallRefusal) -> Client {
    guard let client, client.id == id else {
      throw CallRefusal(.unknownCall, "there is no call \(id.prefix(100))")
    }
    return client
  }

  // MARK: The client offers

  private func answer(
    _ sdp: String, over transport: String, id: String? = nil
  ) async throws(CallRefusal) -> (Client, answer: SessionDescription) {
    let made = try makeClient(transport, id: id)
    do {
      record(made, "offer", sdp, isInbound: true)
      let offer = try SDPDocument(parsing: sdp)
      let agreement = try Agreement(plan, with: offer, answersOffer: false)
      made.player.play(agreement) { [leg = made.leg] in leg.send($0) }
      client?.agreement = agreement
      try await made.leg.setRemoteDescription(SessionDescription(type: .offer, sdp: sdp))
      let described = agreement.answer(to: offer, plan)
      client?.described = described
      var answer = try await made.leg.show(
        SessionDescription(type: .answer, sdp: described.text))
      var document = try SDPDocument(parsing: answer.sdp)
      made.player.settle(isDTLSClient: document.firstSetup == .active)
      if Self.trickles, !plan.candidates.isEmpty {
        client?.candidates = TrickledCandidates(
          from: &document, at: session.clock.now, plan.candidates)
        answer.sdp = document.text
      }
      record(made, "answer", answer.sdp, isInbound: false)
      return (made, answer)
    } catch {
      let refusal = CallRefusal(reenactment: error)
      await abandon(made, refusal)
      throw refusal
    }
  }

  package func begin(offer sdp: String) async throws(CallRefusal) -> CallDescription {
    let (made, answer) = try await answer(sdp, over: "http")
    return CallDescription(id: made.id, sdp: answer.sdp, type: answer.type.rawValue)
  }

  package func open(
    _ kind: SessionProtocol, offer: String
  ) async throws(CallRefusal) -> OpenedSession {
    guard kind == .whep else {
      throw CallRefusal(
        .unprocessable, "a publisher receives nothing, and a re-enactment only sends: try /whep")
    }
    let (made, answer) = try await answer(offer, over: "whep", id: BearerToken.random().text)
    let tag = (try? SDPDocument(parsing: answer.sdp))?.credentials?.usernameFragment ?? ""
    client?.entityTag = tag
    return OpenedSession(id: made.id, answer: answer.sdp, entityTag: tag)
  }

  package func apply(
    _ fragment: SDPFragment, text: String, to id: String, of kind: SessionProtocol,
    match: SessionMatch
  ) async throws(CallRefusal) -> RestartedSession? {
    let client = try named(id)
    if case .tags(let tags) = match, let tag = client.entityTag, !tags.contains(tag) {
      throw CallRefusal(.outdated, "If-Match does not match the current ICE session")
    }
    guard !fragment.candidates.isEmpty || fragment.hasEnded else {
      throw CallRefusal(
        .unprocessable, "a re-enactment does not restart ICE: open another session")
    }
    record(client, "candidate", text, isInbound: true)
    for candidate in fragment.candidates {
      try await add(
        CandidateInit(
          candidate: candidate.text, sdpMid: candidate.mid,
          usernameFragment: fragment.credentials?.usernameFragment), call: id)
    }
    if fragment.hasEnded { try await add(nil, call: id) }
    return nil
  }

  package func close(_ id: String, of kind: SessionProtocol) async throws(CallRefusal) {
    try await end(call: id)
  }

  // MARK: The client answers

  package func makeOffer() async throws(CallRefusal) -> CallDescription {
    let made = try makeClient("http")
    let (id, offer) = try await offer(made)
    return CallDescription(id: id, sdp: offer.sdp, type: offer.type.rawValue)
  }

  /// Offers the recorded sender's media to a client that is being called.
  package func offer(over transport: String) async throws(CallRefusal) -> (
    id: String, description: SessionDescription
  ) {
    try await offer(try makeClient(transport))
  }

  private func offer(_ made: Client) async throws(CallRefusal) -> (
    id: String, description: SessionDescription
  ) {
    do {
      let described = plan.offer
      client?.described = described
      client?.hasOffer = true
      let offer = try await made.leg.show(SessionDescription(type: .offer, sdp: described.text))
      record(made, "offer", offer.sdp, isInbound: false)
      return (made.id, offer)
    } catch {
      let refusal = CallRefusal(reenactment: error)
      await abandon(made, refusal)
      throw refusal
    }
  }

  package func accept(answer sdp: String, call id: String) async throws(CallRefusal) {
    let client = try named(id)
    guard client.hasOffer else { throw CallRefusal(.conflict, "the call is already answered") }
    record(client, "answer", sdp, isInbound: true)
    self.client?.hasOffer = false
    guard client.agreement == nil else {
      do {
        try await client.leg.setRemoteDescription(SessionDescription(type: .answer, sdp: sdp))
      } catch {
        throw CallRefusal(reenactment: error)
      }
      return
    }
    do {
      let document = try SDPDocument(parsing: sdp)
      let agreement = try Agreement(plan, with: document, answersOffer: true)
      self.client?.agreement = agreement
      client.player.play(agreement) { [leg = client.leg] in leg.send($0) }
      client.player.settle(isDTLSClient: document.firstSetup == .passive)
      try await client.leg.setRemoteDescription(SessionDescription(type: .answer, sdp: sdp))
    } catch {
      let refusal = CallRefusal(reenactment: error)
      await abandon(client, refusal)
      throw refusal
    }
  }

  // MARK: The rest of a call

  package func follow(offer sdp: String, call id: String) async throws(CallRefusal)
    -> CallDescription
  {
    let client = try named(id)
    guard let agreement = client.agreement, let before = client.described, !client.hasOffer else {
      throw CallRefusal(.conflict, "the call has an unanswered offer: answer that first")
    }
    record(client, "offer", sdp, isInbound: true)
    do {
      let offer = try SDPDocument(parsing: sdp)
      try await client.leg.setRemoteDescription(SessionDescription(type: .offer, sdp: sdp))
      let described = agreement.answer(
        to: offer, plan, after: client.changes, version: before.origin.nextVersion)
      self.client?.described = described
      let answer = try await client.leg.show(
        SessionDescription(type: .answer, sdp: described.text))
      record(client, "answer", answer.sdp, isInbound: false)
      return CallDescription(id: id, sdp: answer.sdp, type: answer.type.rawValue)
    } catch {
      throw CallRefusal(reenactment: error)
    }
  }

  package func makeOffer(
    call id: String, changing changes: OfferChanges
  ) async throws(CallRefusal) -> CallDescription {
    _ = try named(id)
    throw CallRefusal(
      .conflict, "the recorded sender's offers come at their recorded times: GET /next?id=ID")
  }

  // MARK: The recorded sender's later signaling

  /// Waits until a candidate or an offer of the recorded sender is due; returns `nothing` if that
  /// takes too long, and `end` once there are no more.
  package func next(call id: String) async throws(CallRefusal) -> ReenactedSignal {
    let limit = session.clock.now + Self.waitMaximum
    while true {
      let client = try named(id)
      let now = session.clock.now
      var due: Instant?
      if let candidate = self.client?.candidates?.next(at: now) {
        record(client, "candidate", candidate.candidate, isInbound: false)
        return .candidate(candidate)
      }
      if client.candidates?.isEmpty == false {
        due = client.candidates?.deadline
      } else if client.changes < plan.changes.count, !client.player.isOver {
        if !client.hasOffer, let began = client.player.began {
          due = began + plan.changes[client.changes].distance
        }
        if let due, due <= now { return .offer(try await change(client)) }
      } else {
        return .end
      }
      guard now < limit else { return .nothing }
      let pause = min(Interval.milliseconds(20), due.map { $0 - now } ?? .milliseconds(20))
      try? await Task.sleep(for: .nanoseconds(max(pause.nanoseconds, 500_000)))
      if Task.isCancelled { return .nothing }
    }
  }

  /// Creates the offer with the recorded sender's next change.
  private func change(_ client: Client) async throws(CallRefusal) -> CallDescription {
    guard let agreement = client.agreement, let before = client.described else {
      throw CallRefusal(.conflict, "the call is not answered yet")
    }
    let described = agreement.offer(
      changing: before, to: plan.changes[client.changes].states)
    self.client?.changes += 1
    self.client?.hasOffer = true
    self.client?.described = described
    do throws(PeerError) {
      let offer = try await client.leg.show(
        SessionDescription(type: .offer, sdp: described.text))
      record(client, "offer", offer.sdp, isInbound: false)
      return CallDescription(id: client.id, sdp: offer.sdp, type: offer.type.rawValue)
    } catch {
      throw CallRefusal(reenactment: error)
    }
  }

  package func add(_ candidate: CandidateInit?, call id: String) async throws(CallRefusal) {
    let client = try named(id)
    do throws(PeerError) {
      try await client.leg.addICECandidate(candidate)
    } catch {
      throw CallRefusal(reenactment: error)
    }
  }

  package func end(call id: String) async throws(CallRefusal) {
    let client = try named(id)
    record(client, "bye", "", isInbound: true)
    client.player.stop()
  }

  package func list() -> CallList {
    CallList(
      limit: 1, recording: takePath,
      calls: client.map { client in
        [
          CallList.Entry(
            id: client.id, connection: client.leg.connectionState.rawValue, take: takePath)
        ]
      } ?? [])
  }

  package func stats(call id: String?) async throws(CallRefusal) -> String {
    guard let client, id == nil || client.id == id else {
      guard let id else { return "{}" }
      throw CallRefusal(.unknownCall, "there is no call \(id.prefix(100))")
    }
    let report = (try? await client.leg.getStats()) ?? StatsReport()
    return JSONText.object([
      (client.id, .object([("stats", JSONText(report.json))]))
    ]).text
  }
}

extension CallRefusal {
  /// Converts an error into the refusal that the live client receives.
  fileprivate init(reenactment error: any Error) {
    switch error {
    case let refusal as CallRefusal: self = refusal
    case let error as SDPError:
      self.init(.badRequest, "the description cannot be read: \(error.description)")
    case let error as PeerError:
      self.init(error.name == "InvalidStateError" ? .conflict : .unprocessable, error.message)
    default: self.init(.failure, "\(error)")
    }
  }
}
