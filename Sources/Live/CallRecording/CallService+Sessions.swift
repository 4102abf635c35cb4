import JSEP
import Live
import Peer
package import SDP
package import Signaling
import Tape

/// The signaling state of a WHIP or WHEP session.
struct SessionExchange {
  var kind: SessionProtocol
  /// The client's offer as it would read after the last ICE restart.
  var offer: SDPDocument
  /// The current ICE session's entity tag: the local username fragment, which every restart
  /// changes.
  var entityTag: String
  var isRestarting = false
}

// WHIP (RFC 9725) and WHEP (draft-ietf-wish-whep): every publisher and player is recorded.
extension CallService: SessionHandling {
  package func open(_ kind: SessionProtocol, offer text: String) async throws(CallRefusal)
    -> OpenedSession
  {
    let offer = try SDPDocument(offered: text, to: kind)
    let call = try makeCall(
      role: "\(kind.rawValue) server", transport: kind.rawValue, id: BearerToken.random().text)
    do {
      let answer = try await call.peer.answer(SessionDescription(type: .offer, sdp: text), kind)
      let tag = try SDPDocument(parsing: answer.sdp).credentials?.usernameFragment
      guard let tag else { throw CallRefusal(.unprocessable, "no m-section can be accepted") }
      setExchange(SessionExchange(kind: kind, offer: offer, entityTag: tag), of: call.id)
      return OpenedSession(id: call.id, answer: answer.sdp, entityTag: tag)
    } catch {
      await end(call.id, isRefused: true)
      throw CallRefusal(session: error)
    }
  }

  package func apply(
    _ fragment: SDPFragment, text: String, to id: String, of kind: SessionProtocol,
    match: SessionMatch
  ) async throws(CallRefusal) -> RestartedSession? {
    let (call, exchange) = try session(id, kind)
    let given = fragment.credentials
    let restarts = given != nil && given != exchange.offer.credentials
    switch match {
    case .any: break
    case .tags(let tags):
      guard tags.contains(exchange.entityTag) else {
        throw CallRefusal(.outdated, "If-Match does not match the current ICE session")
      }
    case .none:
      // Candidates that name their ICE session do not need `If-Match`.
      guard given != nil, !restarts else {
        throw CallRefusal(.unconditional, "the request needs If-Match with the session's ETag")
      }
    }
    if restarts { return try await restart(call, exchange, fragment, text) }
    guard !fragment.candidates.isEmpty || fragment.hasEnded else {
      throw CallRefusal(.unprocessable, "the fragment has neither candidates nor ICE parameters")
    }
    call.peer.record(CallPeer.candidateType, text, isInbound: true)
    do {
      try await call.peer.addCandidates(of: fragment)
    } catch {
      throw CallRefusal(session: error)
    }
    return nil
  }

  package func close(_ id: String, of kind: SessionProtocol) async throws(CallRefusal) {
    let (call, _) = try session(id, kind)
    call.peer.record(CallPeer.byeType, "", isInbound: true)
    await end(id)
  }

  private func restart(
    _ call: Call, _ exchange: SessionExchange, _ fragment: SDPFragment, _ text: String
  ) async throws(CallRefusal) -> RestartedSession {
    guard !exchange.isRestarting else {
      throw CallRefusal(.conflict, "an ICE restart of the session is already under way")
    }
    guard let offer = exchange.offer.restarted(by: fragment) else {
      throw CallRefusal(.unprocessable, "the fragment has no ICE parameters")
    }
    update(call.id) { $0.isRestarting = true }
    defer { update(call.id) { $0.isRestarting = false } }
    call.peer.record(CallPeer.restartType, text, isInbound: true)
    do {
      let answer = try await call.peer.followRestart(
        SessionDescription(type: .offer, sdp: offer.text))
      let tag = answer.credentials?.usernameFragment ?? exchange.entityTag
      call.peer.record(CallPeer.restartType, answer.text, isInbound: false)
      update(call.id) { state in
        state.offer = offer
        state.entityTag = tag
      }
      return RestartedSession(fragment: answer.text, entityTag: tag)
    } catch {
      throw CallRefusal(session: error)
    }
  }

  private func session(_ id: String, _ kind: SessionProtocol) throws(CallRefusal) -> (
    Call, SessionExchange
  ) {
    guard let call = try? call(id), let exchange = call.exchange, exchange.kind == kind else {
      throw CallRefusal(.unknownCall, "there is no such \(kind.rawValue) session")
    }
    return (call, exchange)
  }

  private func update(_ id: String, _ change: (inout SessionExchange) -> Void) {
    guard var exchange = (try? call(id))?.exchange else { return }
    change(&exchange)
    setExchange(exchange, of: id)
  }
}

extension SDPDocument {
  /// Parses a client's offer, and refuses it if it does not fit the endpoint.
  fileprivate init(offered text: String, to kind: SessionProtocol) throws(CallRefusal) {
    do throws(SDPError) {
      try self.init(parsing: text)
    } catch {
      throw CallRefusal(.badRequest, "the offer cannot be read: \(error.description)")
    }
    let session = direction
    let suits = sections.contains { section in
      let direction = section.direction ?? session ?? .sendrecv
      return !section.isRejected && (kind == .whip ? direction.sends : direction.receives)
    }
    guard suits else {
      throw CallRefusal(
        .unprocessable,
        kind == .whip
          ? "the offer sends nothing, and a WHIP endpoint only receives; try /whep"
          : "the offer receives nothing, and a WHEP endpoint only sends; try /whip")
    }
  }
}

extension CallRefusal {
  /// Creates the refusal that reports a failed peer-connection call to a WHIP or WHEP client.
  init(session error: any Error) {
    if let refusal = error as? CallRefusal {
      self = refusal
      return
    }
    self.init(error)
    if kind == .badRequest { kind = .unprocessable }
  }
}

// MARK: - CallTally

/// Counts a recorder's calls for its summary.
struct CallTally {
  /// The number of calls after which free memory is returned to the system, even while other calls
  /// are running.
  private static let callsPerTrim = 100

  private var report = RecordingReport()
  private var endedCount = 0
  /// The peers of ended calls in the shared take.
  private var peers: [RecordingReport.Peer] = []
  /// A description of the media that the last ended call sent and received.
  private var lastMedia = "there was no call"
  private var failure: String?

  /// Whether another `callsPerTrim` calls have ended.
  var isTrimDue: Bool { endedCount.isMultiple(of: CallTally.callsPerTrim) }

  /// The shared take's peers and media summary.
  var shared: (peers: [RecordingReport.Peer], media: String) {
    (peers, endedCount > 1 ? "\(endedCount) calls" : lastMedia)
  }

  /// Mentions the number of room participants in the summary if there were no calls.
  mutating func record(guests: Int) {
    guard endedCount == 0 else { return }
    lastMedia = "\(guests) \(guests == 1 ? "participant" : "participants") in rooms"
  }

  /// Adds an ended call's peer and media to the shared take's summary.
  mutating func record(_ peer: RecordingReport.Peer, media: String) {
    // A recorder that runs for weeks lists only its first peers; the take contains all of them.
    if peers.count < RecordingReport.takesMaximum { peers.append(peer) }
    lastMedia = media
  }

  mutating func countEnd() { endedCount += 1 }

  /// Adds a completed take.
  mutating func add(_ summary: TakeSummary, _ peers: [RecordingReport.Peer], media: String) {
    report.add(summary, peers, media: media)
  }

  /// Records that completing a take failed; only the last failure is reported.
  mutating func fail(_ error: any Error) {
    failure = "\(error)"
  }

  /// Returns the report, or throws the last failure.
  func conclude() throws(TapeError) -> RecordingReport {
    if let failure { throw TapeError(path: "", place: "", reason: failure, kind: .failed) }
    return report
  }
}
