package import Wire

/// The state of an agent at an instant, as plain data for a debugger.
package struct ICESnapshot: Sendable {
  /// A candidate pair with what is under way on it.
  package struct Pair: Sendable {
    package var id: UInt32
    package var local: String
    package var remote: String
    package var state: String
    package var isNominated: Bool
    package var isSelected: Bool
    package var priority: UInt64
    package var requestsSent: UInt64
    package var requestsReceived: UInt64
    package var responsesSent: UInt64
    package var responsesReceived: UInt64
    package var consentRequestsSent: UInt64
    /// Requests that may still be answered.
    package var unanswered: Int
    package var nextAttempt: Instant?
    /// When anything valid was last received, and when the peer last consented (RFC 7675).
    package var receivedAt: Instant?
    package var consentedAt: Instant?
    package var roundTrip: Interval?
  }

  package var role: String
  package var connectionState: String
  package var gatheringState: String
  package var localUsernameFragment: String
  package var remoteUsernameFragment: String?
  package var localCandidates: [String]
  package var remoteCandidates: [String]
  package var remoteHasEnded: Bool
  package var pairs: [Pair]
  package var nextConsentAt: Instant?
  package var deadline: Instant?
  package var counters: ICECounters
}

extension ICEAgent {
  /// The agent as it stands.
  package var snapshot: ICESnapshot {
    ICESnapshot(
      role: role.rawValue, connectionState: connectionState.rawValue,
      gatheringState: gatheringState.rawValue,
      localUsernameFragment: localCredentials.usernameFragment,
      remoteUsernameFragment: generations.present.remote?.usernameFragment,
      localCandidates: localCandidates.map(\.description),
      remoteCandidates: remoteSide.candidates.map(\.description),
      remoteHasEnded: remoteSide.hasEnded,
      pairs: checklist.pairs.map { pair in
        ICESnapshot.Pair(
          id: pair.id, local: "\(pair.base) (\(pair.local.kind.rawValue))",
          remote: "\(pair.target) (\(pair.remote.kind.rawValue))", state: pair.state.rawValue,
          isNominated: pair.nomination.isNominated, isSelected: pair.id == consent.pairID,
          priority: pair.priority, requestsSent: pair.traffic.requestsSent,
          requestsReceived: pair.traffic.requestsReceived,
          responsesSent: pair.traffic.responsesSent,
          responsesReceived: pair.traffic.responsesReceived,
          consentRequestsSent: pair.traffic.consentRequestsSent,
          unanswered: pair.round.checks.count,
          nextAttempt: pair.round.nextAttempt, receivedAt: pair.traffic.receivedAt,
          consentedAt: pair.traffic.consentedAt,
          roundTrip: pair.traffic.roundTrip)
      },
      nextConsentAt: consent.nextCheckAt, deadline: deadline, counters: counters)
  }
}
