/// Counters of what an agent refused or ignored, by reason.
package struct ICECounters: Hashable, Sendable {
  /// Datagrams that are no STUN message, or whose FINGERPRINT is wrong.
  package private(set) var malformed: UInt64 = 0
  /// Datagrams on a socket that is not, or no longer, the agent's.
  package private(set) var unknownSocket: UInt64 = 0
  /// Requests without USERNAME or MESSAGE-INTEGRITY.
  package private(set) var unauthenticated: UInt64 = 0
  /// Requests for a username fragment that is not the local one.
  package private(set) var unknownUsername: UInt64 = 0
  /// Requests and candidates of a remote username fragment other than the signaled one.
  package private(set) var foreignFragment: UInt64 = 0
  /// Requests and responses whose MESSAGE-INTEGRITY is wrong.
  package private(set) var badIntegrity: UInt64 = 0
  /// Requests and responses with an attribute that must be known and is not.
  package private(set) var notUnderstood: UInt64 = 0
  /// Messages of a method or class that the agent does not use.
  package private(set) var unexpected: UInt64 = 0
  /// Responses to no known request.
  package private(set) var unmatchedResponses: UInt64 = 0
  /// Responses from elsewhere than the request went (RFC 8445 section 7.2.5.2.1).
  package private(set) var asymmetricResponses: UInt64 = 0
  /// Error responses, role conflicts included.
  package private(set) var errorResponses: UInt64 = 0
  /// Role conflicts that this agent saw in requests (RFC 8445 section 7.3.1.1).
  package private(set) var roleConflicts: UInt64 = 0
  /// Candidates and credentials that cannot be used: other component, no port, wrong lengths.
  package private(set) var unusable: UInt64 = 0
  /// Candidates that were known already.
  package private(set) var duplicates: UInt64 = 0
  /// Candidates, pairs and early checks beyond the limits.
  package private(set) var overflows: UInt64 = 0
  /// Sends that the system refused.
  package private(set) var sendFailures: UInt64 = 0

  package init() {}

  /// What is counted; the names are those of the counters.
  enum Kind {
    case malformed, unknownSocket, unauthenticated, unknownUsername, foreignFragment, badIntegrity
    case notUnderstood, unexpected, unmatchedResponses, asymmetricResponses, errorResponses
    case roleConflicts, unusable, duplicates, overflows, sendFailures
  }

  /// Counts an event.
  mutating func count(_ kind: Kind, _ number: UInt64 = 1) {
    switch kind {
    case .malformed: malformed += number
    case .unknownSocket: unknownSocket += number
    case .unauthenticated: unauthenticated += number
    case .unknownUsername: unknownUsername += number
    case .foreignFragment: foreignFragment += number
    case .badIntegrity: badIntegrity += number
    case .notUnderstood: notUnderstood += number
    case .unexpected: unexpected += number
    case .unmatchedResponses: unmatchedResponses += number
    case .asymmetricResponses: asymmetricResponses += number
    case .errorResponses: errorResponses += number
    case .roleConflicts: roleConflicts += number
    case .unusable: unusable += number
    case .duplicates: duplicates += number
    case .overflows: overflows += number
    case .sendFailures: sendFailures += number
    }
  }
}
