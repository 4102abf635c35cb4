package import SDP

/// The signaling protocol of a session.
public enum SessionProtocol: String, Hashable, Sendable, CaseIterable {
  /// The client publishes (RFC 9725).
  case whip
  /// The client plays (draft-ietf-wish-whep).
  case whep

  /// The path of the endpoint.
  public var path: String { "/" + rawValue }
}

/// A session created by an offer.
package struct OpenedSession: Hashable, Sendable {
  /// The session's identifier; it is random, because knowing it is enough to end the session.
  package var id: String
  /// The text of the answer.
  package var answer: String
  /// The entity tag of the ICE session, without quotes (RFC 9725 section 4.3.1).
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
  /// The entity tag of the new ICE session, without quotes.
  package var entityTag: String

  package init(fragment: String, entityTag: String) {
    self.fragment = fragment
    self.entityTag = entityTag
  }
}

/// The ICE sessions that a request applies to: its `If-Match` field (RFC 9110 section 13.1.1).
package enum SessionMatch: Hashable, Sendable {
  /// There is no such field.
  case none
  /// Any: `*`.
  case any
  /// One of these entity tags, without quotes.
  case tags([String])
}

/// The interface between WHIP and WHEP and whoever runs the calls, independent of HTTP.
package protocol SessionHandling: Sendable {
  /// Creates a session with the client's offer.
  func open(_ protocol: SessionProtocol, offer: String) async throws(CallRefusal) -> OpenedSession
  /// Adds the client's candidates, or restarts ICE if the fragment has new parameters.
  /// - Parameters:
  ///   - fragment: the fragment, parsed.
  ///   - text: the fragment as received, for the take.
  /// - Returns: nil if the fragment only has candidates.
  func apply(
    _ fragment: SDPFragment, text: String, to id: String, of protocol: SessionProtocol,
    match: SessionMatch
  ) async throws(CallRefusal) -> RestartedSession?
  /// Ends a session.
  func close(_ id: String, of protocol: SessionProtocol) async throws(CallRefusal)
}
