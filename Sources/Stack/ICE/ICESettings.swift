package import Wire

/// The settings of an ICE agent: its servers, what it gathers, and how long it waits for the peer.
package struct ICESettings: Hashable, Sendable {
  package var servers: [ICEServer]
  /// Whether only relayed candidates are used (W3C iceTransportPolicy `relay`).
  package var relayOnly: Bool
  /// Whether host candidates over UDP are gathered; if not, servers are not used either.
  package var usesUDP: Bool
  /// Whether TCP candidates are gathered (RFC 6544).
  package var usesTCP: Bool
  /// Whether candidates show names instead of local addresses
  /// (draft-ietf-mmusic-mdns-ice-candidates section 3.1.1).
  package var hidesAddresses: Bool
  /// The silence after which the path counts as disconnected; nil means 7 s.
  package var silence: Interval?
  /// Whether a pair keeps up to 128 unanswered checks instead of 16, so that responses are accepted
  /// even after several seconds (RFC 8445 section 7.3.1.4).
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

/// Intervals and time limits of checks, nomination, consent and gathering.
enum ICETiming {
  /// The time between two new checks in a small checklist, and in a large one (Ta, RFC 8445
  /// section 14.2).
  static let paceSmall = Interval.milliseconds(20)
  static let paceLarge = Interval.milliseconds(50)
  /// The maximum number of pairs in a small checklist.
  static let smallChecklist = 12

  /// The time that each request in a round waits for a response; the round fails after the last
  /// wait.
  ///
  /// The first waits are shorter than the 500 ms of RFC 8445 section 14.3, as in other stacks,
  /// because every request is a transaction of its own: an early retry costs one datagram and does
  /// not distort the measured round trip. With 30 % loss in both directions this still connects
  /// within 2 s. The last waits are long, for a peer whose user is slow to answer.
  static let checkWaits: [Interval] = {
    let milliseconds: [Int64] =
      [50, 100, 100, 100, 100, 100] + [Int64](repeating: 150, count: 10)
      + [250, 250, 250, 250, 500, 500, 500, 500, 1000, 1000, 1000, 1000, 1000, 2000, 2000]
    return milliseconds.map { Interval.milliseconds($0) }
  }()

  /// The time for which a working pair waits for undecided pairs of higher priority before it is
  /// nominated.
  static let nominationPatience = Interval.milliseconds(100)
  static let nominationPatienceMaximum = Interval.seconds(1)
  /// The shortest time before a much better pair may replace a nominated pair.
  static let nominationHold = Interval.seconds(2)
  /// The time for which a pair that the peer nominated cannot be replaced by a single nomination of
  /// a lower-priority pair.
  static let choiceHold = Interval.seconds(1)

  /// The shortest time between two consent checks, and the range of the random addition (RFC 7675
  /// section 5.1: 5 s, 20 % either way).
  static let consentIntervalMinimum = Interval.seconds(4)
  static let consentIntervalSpread = Interval.seconds(2)
  /// The time between two checks during silence.
  static let probeInterval = Interval.milliseconds(500)
  /// The time for which sending may continue without consent (RFC 7675 section 5.1).
  static let consentLifetime = Interval.seconds(30)
  /// The silence that means disconnected: one second above the longest time between two consent
  /// checks.
  static let silence = Interval.seconds(7)
  /// The time that a silent pair may take to recover before another working pair replaces it.
  static let silenceGrace = Interval.seconds(1)

  /// The time for which checks may continue without any success.
  static let checkingPatience = Interval.seconds(30)
  /// The time for which the old path stays open after a restart led to a new one.
  static let retirement = Interval.seconds(5)

  /// The time limit for connecting to a TURN server or a peer.
  static let connectWait = Interval.milliseconds(9500)
  /// The time limit for resolving the names of servers.
  static let nameWait = Interval.milliseconds(9500)
  /// The time between two indications that keep a mapping alive (RFC 8445 section 11).
  static let keepAlive = Interval.seconds(15)
}

/// The ids of requests to the system for sockets, connections and names.
///
/// Agents of one peer use different ids, up to 16 million per agent.
struct RequestNumbers {
  private static let ordinalShift: UInt32 = 24

  /// The last id issued.
  private(set) var last: UInt32

  /// Starts the numbering for the agent with this ordinal among its peer's agents.
  init(ordinal: Int) { last = UInt32(truncatingIfNeeded: ordinal) << Self.ordinalShift }

  /// Returns the ordinal, modulo 256, of the agent that issued an id.
  static func ordinal(of number: UInt32) -> Int { Int(number >> ordinalShift) }

  mutating func next() -> UInt32 {
    last &+= 1
    return last
  }
}

// MARK: - ICECounters

/// Counters of inputs that an agent refused or ignored, by reason.
package struct ICECounters: Hashable, Sendable {
  /// Datagrams that are not STUN messages or have a wrong FINGERPRINT.
  package private(set) var malformed: UInt64 = 0
  /// Datagrams on a socket that the agent does not own, or no longer owns.
  package private(set) var unknownSocket: UInt64 = 0
  /// Requests without USERNAME or MESSAGE-INTEGRITY.
  package private(set) var unauthenticated: UInt64 = 0
  /// Requests for a username fragment other than the local one.
  package private(set) var unknownUsername: UInt64 = 0
  /// Requests and candidates with a remote username fragment other than the signaled one.
  package private(set) var foreignFragment: UInt64 = 0
  /// Requests and responses with a wrong MESSAGE-INTEGRITY.
  package private(set) var badIntegrity: UInt64 = 0
  /// Requests and responses with an unknown comprehension-required attribute.
  package private(set) var notUnderstood: UInt64 = 0
  /// Messages with a method other than Binding.
  package private(set) var unexpected: UInt64 = 0
  /// Responses that match no outstanding request.
  package private(set) var unmatchedResponses: UInt64 = 0
  /// Responses from an address other than the one the request was sent to (RFC 8445 section
  /// 7.2.5.2.1).
  package private(set) var asymmetricResponses: UInt64 = 0
  /// Error responses, including role conflicts, and servers' responses without a usable address.
  package private(set) var errorResponses: UInt64 = 0
  /// Role conflicts found in the peer's requests (RFC 8445 section 7.3.1.1).
  package private(set) var roleConflicts: UInt64 = 0
  /// Unusable candidates and credentials: a component other than 1, no address or port, or a wrong
  /// length.
  package private(set) var unusable: UInt64 = 0
  /// Candidates already known.
  package private(set) var duplicates: UInt64 = 0
  /// Sockets, connections, relays, candidates, pairs and early checks for which there was no room.
  package private(set) var overflows: UInt64 = 0
  /// Sends that the system refused.
  package private(set) var sendFailures: UInt64 = 0

  package init() {}

  /// The counted events, named like the counters.
  enum Kind {
    case malformed, unknownSocket, unauthenticated, unknownUsername, foreignFragment, badIntegrity
    case notUnderstood, unexpected, unmatchedResponses, asymmetricResponses, errorResponses
    case roleConflicts, unusable, duplicates, overflows, sendFailures
  }

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

/// An agent's state at an instant, as plain data for a debugger.
package struct ICESnapshot: Sendable {
  /// A candidate pair and the state of its checks.
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
  /// The agent's current state, for a debugger.
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
