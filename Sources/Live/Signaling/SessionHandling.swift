package import SDP

/// Which of the two standard ways of signaling over HTTP a session came by.
public enum SessionProtocol: String, Hashable, Sendable, CaseIterable {
  /// The client publishes (RFC 9725).
  case whip
  /// The client plays (draft-ietf-wish-whep).
  case whep

  /// The path of the endpoint.
  public var path: String { "/" + rawValue }
}

/// A session that an offer has begun.
package struct OpenedSession: Hashable, Sendable {
  /// Names the session; nobody can guess it, because it is all that a client needs to end it.
  package var id: String
  /// The answer's text.
  package var answer: String
  /// Names the ICE session, without quotes (RFC 9725 section 4.3.1).
  package var entityTag: String

  package init(id: String, answer: String, entityTag: String) {
    self.id = id
    self.answer = answer
    self.entityTag = entityTag
  }
}

/// What a session answers to a fragment that restarts ICE.
package struct RestartedSession: Hashable, Sendable {
  /// The own ICE parameters and candidates.
  package var fragment: String
  /// Names the new ICE session, without quotes.
  package var entityTag: String

  package init(fragment: String, entityTag: String) {
    self.fragment = fragment
    self.entityTag = entityTag
  }
}

/// Which ICE sessions a request is about: its `If-Match` field (RFC 9110 section 13.1.1).
package enum SessionMatch: Hashable, Sendable {
  /// There is no such field.
  case none
  /// Whatever there is: `*`.
  case any
  /// One of these entity tags, without quotes.
  case tags([String])
}

/// What WHIP and WHEP ask of whoever runs the calls; knows nothing of HTTP.
package protocol SessionHandling: Sendable {
  /// Begins a session with the client's offer.
  func open(_ protocol: SessionProtocol, offer: String) async throws(CallRefusal) -> OpenedSession
  /// Handles candidates of the client, or restarts ICE when the fragment has new parameters.
  /// - Parameters:
  ///   - fragment: the fragment, parsed.
  ///   - text: the fragment as received, for the take.
  /// - Returns: nil when the fragment has only brought candidates.
  func apply(
    _ fragment: SDPFragment, text: String, to id: String, of protocol: SessionProtocol,
    match: SessionMatch
  ) async throws(CallRefusal) -> RestartedSession?
  /// Ends a session.
  func close(_ id: String, of protocol: SessionProtocol) async throws(CallRefusal)
}
