/// What an agent refused or passed over, and why.
package struct ICECounters: Hashable, Sendable {
  /// Datagrams that are no STUN message, or whose FINGERPRINT is wrong.
  package var malformed: UInt64 = 0
  /// Datagrams on a socket that is not, or no longer, the agent's.
  package var unknownSocket: UInt64 = 0
  /// Requests without USERNAME or MESSAGE-INTEGRITY.
  package var unauthenticated: UInt64 = 0
  /// Requests for a username fragment that is not the own one.
  package var unknownUsername: UInt64 = 0
  /// Requests and candidates of a remote username fragment other than the signaled one.
  package var foreignFragment: UInt64 = 0
  /// Requests and responses whose MESSAGE-INTEGRITY is wrong.
  package var badIntegrity: UInt64 = 0
  /// Requests and responses with an attribute that must be known and is not.
  package var notUnderstood: UInt64 = 0
  /// Messages of another method or class than the agent uses.
  package var unexpected: UInt64 = 0
  /// Responses to no request that is remembered.
  package var unmatchedResponses: UInt64 = 0
  /// Responses from elsewhere than the request went (RFC 8445 section 7.2.5.2.1).
  package var asymmetricResponses: UInt64 = 0
  /// Error responses, role conflicts included.
  package var errorResponses: UInt64 = 0
  /// Role conflicts that this agent saw in requests (RFC 8445 section 7.3.1.1).
  package var roleConflicts: UInt64 = 0
  /// Candidates and credentials that cannot be used: other component, no port, wrong lengths.
  package var unusable: UInt64 = 0
  /// Candidates that were known already.
  package var duplicates: UInt64 = 0
  /// Candidates, pairs and early checks beyond the limits.
  package var overflows: UInt64 = 0
  /// Sends that the system refused.
  package var sendFailures: UInt64 = 0

  package init() {}
}
