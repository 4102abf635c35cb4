public import SDP

/// A call's session description, and the call's identifier for later requests.
public struct CallDescription: Hashable, Sendable, Codable {
  /// The call's identifier.
  public var id: String
  /// The description's text.
  public var sdp: String
  /// The description's type, `offer` or `answer`.
  public var type: String

  /// Creates a description with the identifier of its call.
  public init(id: String, sdp: String, type: String) {
    self.id = id
    self.sdp = sdp
    self.type = type
  }
}

/// A refused request about a call.
public struct CallRefusal: Error, Hashable, Sendable, CustomStringConvertible {
  /// Why a request is refused, and which status the response has.
  public enum Kind: Hashable, Sendable {
    /// The request is malformed or its description is not acceptable: status 400.
    case badRequest
    /// The request is well-formed, but its description or fragment is unusable: status 422.
    case unprocessable
    /// There is no such call: status 404.
    case unknownCall
    /// The call's state does not allow the request: status 409.
    case conflict
    /// The request names an ICE session other than the current one: status 412.
    case outdated
    /// The request does not state its ICE session: status 428.
    case unconditional
    /// No further call is possible at the moment: status 503.
    case busy
    /// The server failed: status 500.
    case failure
  }

  /// The kind of refusal, which determines the status.
  public var kind: Kind
  /// The reason in one sentence.
  public var reason: String

  /// Creates a refusal with its reason in one sentence.
  public init(_ kind: Kind, _ reason: String) {
    self.kind = kind
    self.reason = reason
  }

  /// The same as `reason`.
  public var description: String { reason }
}

/// Changes that a local offer makes in a running call.
public struct OfferChanges: Hashable, Sendable {
  /// Whether to restart ICE, with new credentials and candidates.
  public var restartsICE: Bool
  /// The kinds of media to add: `audio` or `video`, once per track.
  public var additions: [String]
  /// The MIDs of m-sections to stop.
  public var stops: [String]
  /// New directions by MID, as in SDP.
  public var directions: [String: String]

  /// Creates a list of changes; an empty list offers again what was negotiated.
  public init(
    restartsICE: Bool = false, additions: [String] = [], stops: [String] = [],
    directions: [String: String] = [:]
  ) {
    self.restartsICE = restartsICE
    self.additions = additions
    self.stops = stops
    self.directions = directions
  }
}

/// The running calls, oldest first.
public struct CallList: Hashable, Sendable, Codable {
  /// A running call.
  public struct Entry: Hashable, Sendable, Codable {
    /// The call's identifier.
    public var id: String
    /// The call's W3C connectionState.
    public var connection: String
    /// The file that records the call.
    public var take: String

    /// Creates an entry for a running call.
    public init(id: String, connection: String, take: String) {
      self.id = id
      self.connection = connection
      self.take = take
    }
  }

  /// The maximum number of simultaneous calls.
  public var limit: Int
  /// The name of the recording's file or folder; nil if it is withheld.
  public var recording: String?
  /// The running calls, oldest first.
  public var calls: [Entry]

  /// Creates a list; without `recording`, the recording's name is withheld.
  public init(limit: Int, recording: String? = nil, calls: [Entry]) {
    self.limit = limit
    self.recording = recording
    self.calls = calls
  }
}

/// The interface between signaling and the code that runs the calls, independent of HTTP.
public protocol CallHandling: Sendable {
  /// Starts a call with the peer's offer and returns the answer.
  func begin(offer sdp: String) async throws(CallRefusal) -> CallDescription
  /// Handles another offer from the peer in a running call, and returns the answer.
  func follow(offer sdp: String, call id: String) async throws(CallRefusal) -> CallDescription
  /// Starts a call with a local offer.
  func makeOffer() async throws(CallRefusal) -> CallDescription
  /// Creates another local offer in a running call.
  func makeOffer(call id: String, changing changes: OfferChanges) async throws(CallRefusal)
    -> CallDescription
  /// Completes a local offer with the peer's answer.
  func accept(answer sdp: String, call id: String) async throws(CallRefusal)
  /// Adds a remote candidate; nil means there are no more.
  func add(_ candidate: CandidateInit?, call id: String) async throws(CallRefusal)
  /// Ends a call, and completes its take if no other call shares it.
  func end(call id: String) async throws(CallRefusal)
  /// Returns the running calls and their limit.
  func list() async -> CallList
  /// Returns the statistics of one call, or of all calls, as JSON.
  func stats(call id: String?) async throws(CallRefusal) -> String
  /// Returns the HTML page for the take of a current or past call.
  func page(call id: String) async throws(CallRefusal) -> String
}

extension CallHandling {
  /// Refuses the request, because there are no takes.
  public func page(call id: String) async throws(CallRefusal) -> String {
    throw CallRefusal(.unknownCall, "there is no take of call \(id.prefix(100))")
  }
}

// MARK: - SessionHandling

/// A session's signaling protocol.
public enum SessionProtocol: String, Hashable, Sendable, CaseIterable {
  /// The client publishes (RFC 9725).
  case whip
  /// The client plays (draft-ietf-wish-whep).
  case whep

  /// The endpoint's path.
  public var path: String { "/" + rawValue }
}

/// A session created by an offer.
package struct OpenedSession: Hashable, Sendable {
  /// The session's identifier; random, because knowing it is enough to end the session.
  package var id: String
  package var answer: String
  /// The ICE session's entity tag, without quotes (RFC 9725 section 4.3.1).
  package var entityTag: String

  package init(id: String, answer: String, entityTag: String) {
    self.id = id
    self.answer = answer
    self.entityTag = entityTag
  }
}

/// The response to a fragment that restarts ICE.
package struct RestartedSession: Hashable, Sendable {
  /// The local ICE parameters and candidates.
  package var fragment: String
  /// The new ICE session's entity tag, without quotes.
  package var entityTag: String

  package init(fragment: String, entityTag: String) {
    self.fragment = fragment
    self.entityTag = entityTag
  }
}

/// The ICE sessions that a request applies to, from its `If-Match` field (RFC 9110 section 13.1.1).
package enum SessionMatch: Hashable, Sendable {
  /// The request has no `If-Match` field.
  case none
  /// The field is `*`.
  case any
  /// The field lists these entity tags, here without quotes.
  case tags([String])
}

/// The interface between WHIP and WHEP and the code that runs the calls, independent of HTTP.
package protocol SessionHandling: Sendable {
  /// Creates a session with the client's offer.
  func open(_ protocol: SessionProtocol, offer: String) async throws(CallRefusal) -> OpenedSession
  /// Adds the client's candidates, or restarts ICE if the fragment has new parameters.
  /// - Parameters:
  ///   - fragment: the fragment, parsed.
  ///   - text: the fragment as received, for the take.
  /// - Returns: the answer to a restart; nil if the fragment only has candidates.
  func apply(
    _ fragment: SDPFragment, text: String, to id: String, of protocol: SessionProtocol,
    match: SessionMatch
  ) async throws(CallRefusal) -> RestartedSession?
  func close(_ id: String, of protocol: SessionProtocol) async throws(CallRefusal)
}
