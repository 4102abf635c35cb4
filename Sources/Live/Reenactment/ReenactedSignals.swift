import JSEP
import Live
package import SDP
package import Signaling
package import Wire

// Signaling of the recorded sender during the call: trickled candidates, and later descriptions
// that muted, unmuted, added or stopped media.

extension ReenactmentPlan {
  /// The state of a section in a description of the recorded sender.
  package struct SectionState: Hashable, Sendable {
    package var isStopped = false
    package var sends: Bool
    package var receives: Bool

    package init(sends: Bool, receives: Bool) {
      (self.sends, self.receives) = (sends, receives)
    }

    var isSending: Bool { sends && !isStopped }
  }

  /// A later description of the recorded sender.
  package struct Change: Hashable, Sendable {
    /// The time since the recorded receiver was connected.
    package var distance: Interval
    /// The states by section index.
    package var states: [Int: SectionState]
  }

  /// Finds each section's initial state in the recorded sender's descriptions, and the later
  /// changes.
  ///
  /// Each later offer of the recorded sender becomes an offer to the live client, and so does each
  /// of the sender's answers that changed a section's state: the recorded receiver had requested
  /// that change, and the live client will not request it.
  mutating func findChanges(_ facts: ReceiverFacts) {
    var last: [Int: SectionState]?
    for described in facts.described {
      var states = last ?? [:]
      for index in sections.indices {
        let found = described.sections.first {
          $0.mid == sections[index].mid && $0.kind == sections[index].kind
        }
        if let found {
          states[index] = found.state
        } else if last?[index] == nil {
          // A later description adds the section.
          states[index] = SectionState(sends: false, receives: false)
        } else {
          states[index]?.isStopped = true
        }
      }
      let connected = facts.connected ?? Instant(nanoseconds: .max)
      if last == nil || described.at <= connected {
        for (index, state) in states {
          sections[index].sendsFirst = state.sends && !state.isStopped
          sections[index].isTwoWay = state.receives
        }
      } else if described.isOffer || states != last {
        changes.append(Change(distance: described.at - connected, states: states))
      }
      last = states
    }
    // Media was received although no description announced it.
    for index in sections.indices where !sections[index].sendsFirst {
      guard !changes.contains(where: { $0.states[index]?.sends == true }) else { continue }
      sections[index].sendsFirst = true
      for place in changes.indices { changes[place].states[index]?.sends = true }
    }
  }

  /// Returns the state of each section after a number of changes.
  package func states(after count: Int) -> [Int: SectionState] {
    if count > 0, count <= changes.count { return changes[count - 1].states }
    let first = sections.enumerated().map { index, section in
      (index, SectionState(sends: section.sendsFirst, receives: section.isTwoWay))
    }
    return Dictionary(first) { first, _ in first }
  }
}

extension Agreement {
  /// Returns the previous description as an offer with the given states.
  package func offer(
    changing before: SDPDocument, to states: [Int: ReenactmentPlan.SectionState]
  ) -> SDPDocument {
    var sections = before.sections
    for (index, state) in states {
      guard let place = self.sections[index]?.place, sections.indices.contains(place),
        !sections[place].isRejected
      else { continue }
      if state.isStopped { sections[place].port = 0 }
      sections[place].setDirection(
        MediaDirection(
          sends: state.isSending, receives: state.receives && !state.isStopped))
    }
    return Agreement.document(
      sections, bundles: before.bundles, isMixed: before.allowsMixedExtensions,
      version: before.origin.nextVersion)
  }

  /// Returns the server's last description as an offer in which a section sends only if the
  /// recorded sender was sending in it according to `states`.
  ///
  /// Everything else is the server's: in a section that the recorded sender stopped, the offer only
  /// stops sending, because the server still has the section.
  func relayedOffer(
    changing before: SDPDocument, to states: [Int: ReenactmentPlan.SectionState]
  ) -> SDPDocument {
    var offer = before
    offer.origin.sessionVersion = String(before.origin.nextVersion)
    for (index, state) in states {
      guard let place = sections[index]?.place, offer.sections.indices.contains(place),
        !offer.sections[place].isRejected
      else { continue }
      let direction = offer.sections[place].direction ?? offer.direction ?? .sendrecv
      offer.sections[place].setDirection(
        MediaDirection(sends: state.isSending, receives: direction.receives))
    }
    return offer
  }
}

extension SDPSection {
  /// Replaces the section's direction, or adds one if there is none.
  mutating func setDirection(_ new: MediaDirection) {
    lines.removeAll { line in
      guard case .attribute(let attribute) = line else { return false }
      return MediaDirection(rawValue: attribute.name.rawValue) != nil
    }
    append(new.attributeName)
  }
}

extension Origin {
  /// The session version for the next description (RFC 8866 section 5.2).
  var nextVersion: UInt64 { (UInt64(sessionVersion) ?? 2) &+ 1 }
}

// MARK: - TrickledCandidates

/// A leg's candidates that are signaled after its description, with their due times.
struct TrickledCandidates: Sendable {
  private var waiting: [(due: Instant, candidate: CandidateInit)] = []

  /// Removes the candidates from a description, and schedules them with the recorded delays.
  ///
  /// Their number may differ from the recorded call: the n-th candidate is due after the n-th
  /// recorded delay, and any further ones after the last delay.
  ///
  /// - Parameter distances: the recorded candidates' delays after their description; not empty.
  init(from document: inout SDPDocument, at now: Instant, _ distances: [Interval]) {
    var known: Set<String> = []
    for place in document.sections.indices {
      let section = document.sections[place]
      for text in section.candidates where known.insert(text).inserted {
        let distance = distances[min(known.count, distances.count) - 1]
        waiting.append(
          (
            now + distance,
            CandidateInit(
              candidate: text, sdpMid: section.mid, sdpMLineIndex: place,
              usernameFragment: section.iceUsernameFragment)
          ))
      }
      document.sections[place].lines.removeAll { line in
        guard case .attribute(let attribute) = line else { return false }
        return attribute.name == .candidate || attribute.name == .endOfCandidates
      }
    }
  }

  var isEmpty: Bool { waiting.isEmpty }
  var deadline: Instant? { waiting.first?.due }

  /// Removes and returns the next candidate if it is due.
  mutating func next(at now: Instant) -> CandidateInit? {
    guard let first = waiting.first, first.due <= now else { return nil }
    waiting.removeFirst()
    return first.candidate
  }
}

// MARK: - ReenactmentRoutes

/// The response to a client that waits for the recorded sender's next signaling.
package enum ReenactedSignal: Sendable {
  case candidate(CandidateInit)
  /// An offer, which the client answers over `/answer`.
  case offer(CallDescription)
  /// Nothing yet; the client asks again.
  case nothing
  /// No more signaling.
  case end

  fileprivate var response: HTTPResponse {
    switch self {
    case .candidate(let candidate):
      HTTPResponse(
        json: JSONText.object([
          ("type", .text("candidate")), ("candidate", .text(candidate.candidate)),
          ("sdpMid", candidate.sdpMid.map { .text($0) }),
          ("sdpMLineIndex", candidate.sdpMLineIndex.map { .integer(Int64($0)) }),
        ]).text)
    case .offer(let offer):
      HTTPResponse(
        json: JSONText.object([
          ("type", .text("offer")), ("id", .text(offer.id)), ("sdp", .text(offer.sdp)),
        ]).text)
    case .nothing: HTTPResponse(status: 204)
    case .end: HTTPResponse(json: JSONText.object([("type", .text("end"))]).text)
    }
  }
}

/// The HTTP interface of a re-enactment: `SignalingRoutes`, and the recorded sender's later
/// signaling.
///
///     POST   /offer?trickle  as /offer, but /next returns the candidates at their times
///     GET    /next?id=ID     waits for {type: "candidate", candidate, sdpMid, ...},
///                            {type: "offer", id, sdp}, to be answered to /answer,
///                            or {type: "end"}; 204 means to ask again
package struct ReenactmentRoutes: Sendable {
  private let service: ReenactmentService
  private let routes: SignalingRoutes

  package init(_ service: ReenactmentService) {
    self.service = service
    routes = SignalingRoutes(
      calls: service, page: WatchPage.html(service.plan),
      sessions: SessionRoutes(sessions: service))
  }

  package func respond(to request: HTTPRequest) async -> HTTPResponse {
    guard request.path == "/next", request.method == "GET" else {
      let trickles = request.query("trickle") != nil
      return await ReenactmentService.$trickles.withValue(trickles) {
        await routes.respond(to: request)
      }
    }
    do throws(CallRefusal) {
      guard let id = request.query("id") else {
        throw CallRefusal(.badRequest, "/next needs the id of the call, as in /next?id=ID")
      }
      return try await service.next(call: id).response
    } catch {
      let statuses: [CallRefusal.Kind: Int] = [.badRequest: 400, .unknownCall: 404, .conflict: 409]
      return .refusal(statuses[error.kind] ?? 500, error.reason)
    }
  }
}
