package import Wire

/// The settings of an agent.
package struct ICESettings: Hashable, Sendable {
  package var servers: [ICEServer]
  /// Whether nothing but TURN servers is spoken to (W3C iceTransportPolicy `relay`).
  package var relayOnly: Bool
  /// Whether host candidates over UDP are gathered; otherwise servers are not used either.
  package var usesUDP: Bool
  /// Whether TCP candidates are gathered (RFC 6544).
  package var usesTCP: Bool
  /// Whether names stand for the local addresses in candidates
  /// (draft-ietf-mmusic-mdns-ice-candidates section 3.1.1).
  package var hidesAddresses: Bool
  /// The silence after which the path counts as disconnected; nil: 7 s.
  package var silence: Interval?
  /// Whether checks await responses for several seconds, however many follow them (RFC 8445 section
  /// 7.3.1.4: a check that another replaces may still be answered).
  package var awaitsSlowPaths: Bool

  package init(
    servers: [ICEServer] = [], relayOnly: Bool = false, usesUDP: Bool = true, usesTCP: Bool = false,
    hidesAddresses: Bool = false, silence: Interval? = nil, awaitsSlowPaths: Bool = true
  ) {
    self.servers = servers
    self.relayOnly = relayOnly
    self.usesUDP = usesUDP
    self.usesTCP = usesTCP
    self.hidesAddresses = hidesAddresses
    self.silence = silence
    self.awaitsSlowPaths = awaitsSlowPaths
  }
}

// MARK: - ICETiming

/// The intervals that an agent works with.
enum ICETiming {
  /// Between two new checks of a small checklist, and of a large one (Ta, RFC 8445 section 14.2).
  static let paceSmall = Interval.milliseconds(20)
  static let paceLarge = Interval.milliseconds(50)
  /// Up to how many pairs a checklist is small.
  static let smallChecklist = 12

  /// How long each request of a round waits for a response; the round fails after the last wait.
  ///
  /// The first waits are shorter than the 500 ms of RFC 8445 section 14.3, as in other stacks,
  /// because every request is a separate transaction: an early retry costs one datagram and
  /// confuses no measurement. With 30 % loss in both directions this still connects within 2 s. The
  /// last waits are long, for a peer whose user is slow to answer.
  static let checkWaits: [Interval] = {
    let milliseconds: [Int64] =
      [50, 100, 100, 100, 100, 100] + [Int64](repeating: 150, count: 10)
      + [250, 250, 250, 250, 500, 500, 500, 500, 1000, 1000, 1000, 1000, 1000, 2000, 2000]
    return milliseconds.map { Interval.milliseconds($0) }
  }()

  /// How long higher pairs may stay open before a lower one that works is nominated.
  static let nominationPatience = Interval.milliseconds(100)
  static let nominationPatienceMaximum = Interval.seconds(1)
  /// How long a nomination lasts at least before a much better pair may replace it.
  static let nominationHold = Interval.seconds(2)
  /// For how long after the peer chose a pair a lower one does not replace it at once.
  static let choiceHold = Interval.seconds(1)

  /// The bounds between two consent checks (RFC 7675 section 5.1: 5 s, 20 % either way).
  static let consentIntervalMinimum = Interval.seconds(4)
  static let consentIntervalSpread = Interval.seconds(2)
  /// The interval of checks during silence.
  static let probeInterval = Interval.milliseconds(500)
  /// Without consent for so long, nothing may be sent any more (RFC 7675 section 5.1).
  static let consentLifetime = Interval.seconds(30)
  /// Not hearing the peer for so long means disconnected; one second above the longest pause
  /// between two consent checks.
  static let silence = Interval.seconds(7)
  /// How long a silent pair may take to recover before another working one replaces it.
  static let silenceGrace = Interval.seconds(1)

  /// How long checks may continue without any success.
  static let checkingPatience = Interval.seconds(30)
  /// How long the old path stays open after a restart led to a new one.
  static let retirement = Interval.seconds(5)

  /// How long connecting to a TURN server may take.
  static let connectWait = Interval.milliseconds(9500)
  /// How long the names of STUN servers are waited for.
  static let nameWait = Interval.milliseconds(9500)
  /// Between two indications that keep a mapping alive (RFC 8445 section 11).
  static let keepAlive = Interval.seconds(15)
}

/// The numbers of requests to the system for sockets, connections and names.
///
/// Agents of one peer have different numbers, unless one made millions of them.
struct RequestNumbers {
  private static let ordinalShift: UInt32 = 24

  /// The number that was given last.
  private(set) var last: UInt32

  /// Begins with the numbers of one agent of a peer.
  init(ordinal: Int) { last = UInt32(truncatingIfNeeded: ordinal) << Self.ordinalShift }

  /// The lowest byte of the ordinal of the agent that gave a number.
  static func ordinal(of number: UInt32) -> Int { Int(number >> ordinalShift) }

  /// The next number.
  mutating func next() -> UInt32 {
    last &+= 1
    return last
  }
}

// MARK: - ICECounters

/// Counters of inputs that an agent refused or ignored, by reason.
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

  /// The counted events; the names are those of the counters.
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

// MARK: - ICESnapshot

/// The state of an agent at an instant, as plain data for a debugger.
package struct ICESnapshot: Sendable {
  /// A candidate pair with the state of its checks.
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
  /// The state of the agent.
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
