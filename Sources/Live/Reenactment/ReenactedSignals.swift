import JSEP
import Live
package import SDP
package import Signaling
package import Wire

// What the recorded sender signaled while the call ran: candidates, and later descriptions by which
// it muted, unmuted, added or stopped media.

extension ReenactmentPlan {
  /// What the recorded sender said of a section.
  package struct SectionState: Hashable, Sendable {
    package var isStopped = false
    package var sends: Bool
    package var receives: Bool

    package init(sends: Bool, receives: Bool) {
      (self.sends, self.receives) = (sends, receives)
    }
  }

  /// A later description of the recorded sender.
  package struct Change: Hashable, Sendable {
    /// When it came.
    package var distance: Interval
    /// By the index of the section.
    package var states: [Int: SectionState]
  }

  /// Finds what the recorded sender described first, and what it changed later.
  ///
  /// Each of its later offers is one to the live client as well, and so is an answer by which what
  /// it sends changed: the recorded receiver had asked for that, and the client does not.
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
          // It is added by a later description.
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
    // Media came that no description announced.
    for index in sections.indices where !sections[index].sendsFirst {
      guard !changes.contains(where: { $0.states[index]?.sends == true }) else { continue }
      sections[index].sendsFirst = true
      for place in changes.indices { changes[place].states[index]?.sends = true }
    }
  }

  /// What the recorded sender said of each section once so many changes were made.
  package func states(after count: Int) -> [Int: SectionState] {
    if count > 0, count <= changes.count { return changes[count - 1].states }
    let first = sections.enumerated().map { index, section in
      (index, SectionState(sends: section.sendsFirst, receives: section.isTwoWay))
    }
    return Dictionary(first) { first, _ in first }
  }
}

extension Agreement {
  /// The offer by which the recorded sender changes what was described before.
  package func offer(
    changing before: SDPDocument, to states: [Int: ReenactmentPlan.SectionState]
  ) -> SDPDocument {
    var sections = before.sections
    for (index, state) in states {
      guard let place = self.sections[index]?.place, sections.indices.contains(place),
        !sections[place].isRejected
      else { continue }
      if state.isStopped { sections[place].port = 0 }
      let direction = MediaDirection(
        sends: state.sends && !state.isStopped, receives: state.receives && !state.isStopped)
      sections[place].lines = sections[place].lines.map { line in
        guard case .attribute(let attribute) = line,
          MediaDirection(rawValue: attribute.name.rawValue) != nil
        else { return line }
        return SDPLine(direction.attributeName)
      }
    }
    return Agreement.document(
      sections, bundles: before.bundles, isMixed: before.allowsMixedExtensions,
      version: before.origin.nextVersion)
  }
}

extension Origin {
  /// The version of the next description (RFC 8866 section 5.2).
  var nextVersion: UInt64 { (UInt64(sessionVersion) ?? 2) &+ 1 }
}

// MARK: - TrickledCandidates

/// The candidates of a leg that are not in its description, and when each of them is due.
struct TrickledCandidates: Sendable {
  private var waiting: [(due: Instant, candidate: CandidateInit)] = []

  /// Takes the candidates out of a description.
  ///
  /// There are others than in the recorded call: each has the time of the recorded one in its
  /// place, and those beyond them that of the last.
  ///
  /// - Parameter distances: when the recorded candidates came after their description.
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

/// What comes next from the recorded sender.
package enum ReenactedSignal: Sendable {
  case candidate(CandidateInit)
  /// An offer, which the client answers as it answers other offers.
  case offer(CallDescription)
  /// Nothing yet: ask again.
  case nothing
  /// Nothing any more.
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

/// The HTTP interface of a re-enactment: that of `SignalingRoutes`, and what the recorded sender
/// signals later.
///
///     POST   /offer?trickle  as /offer; the candidates come over /next at their times
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

  /// Responds to a request.
  package func respond(to request: HTTPRequest) async -> HTTPResponse {
    guard request.path == "/next", request.method == "GET" else {
      let trickles = request.query("trickle") != nil
      return await ReenactmentService.$trickles.withValue(trickles) {
        await routes.respond(to: request)
      }
    }
    do throws(CallRefusal) {
      guard let id = request.query("id") else {
        throw CallRefusal(.badRequest, "/next wants the id of the call, as in /next?id=ID")
      }
      return try await service.next(call: id).response
    } catch {
      let statuses: [CallRefusal.Kind: Int] = [.badRequest: 400, .unknownCall: 404, .conflict: 409]
      return .refusal(statuses[error.kind] ?? 500, error.reason)
    }
  }
}
