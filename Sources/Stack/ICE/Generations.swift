import Wire

/// The credentials of both peers across ICE restarts (RFC 8445 section 9): the current credentials,
/// the previous ones until a new path works, and the peer's new ones if the peer has restarted ICE
/// before the local agent.
struct Generations {
  /// What the peer has signaled for a restart that the local agent has not made yet.
  struct Upcoming {
    let credentials: ICECredentials
    fileprivate(set) var isLite: Bool
    fileprivate(set) var candidates: [ICECandidate] = []
    fileprivate(set) var hasEnded = false
  }

  /// The result of applying the peer's credentials.
  enum CredentialUse: Equatable {
    case unusable
    /// The credentials belong to the current generation; `isNew` is false if they were already
    /// known.
    case present(isNew: Bool)
    /// The credentials are stored for a restart.
    case upcoming
  }

  private(set) var present: ICEGeneration
  /// The previous generation, whose selected pair stays in use until a restart has led to a new
  /// pair.
  private(set) var earlier: ICEGeneration?
  /// When the earlier generation is dropped; nil while its pair is in use.
  private(set) var retireAt: Instant?
  private var upcoming: Upcoming?

  init(_ local: ICECredentials) { present = ICEGeneration(number: 0, local: local) }

  // MARK: Lookup

  /// Returns the generation with this number; nil if its credentials are no longer valid.
  func generation(_ number: UInt32) -> ICEGeneration? {
    number == present.number ? present : earlier?.number == number ? earlier : nil
  }

  /// Returns the generation with a local username fragment; nil if no valid generation has it.
  func generation(ofFragment fragment: Substring) -> ICEGeneration? {
    if present.local.usernameFragment == fragment { return present }
    if let earlier, earlier.local.usernameFragment == fragment { return earlier }
    return nil
  }

  // MARK: Remote credentials

  /// Applies the peer's credentials, or stores them for the restart they announce.
  mutating func apply(_ credentials: ICECredentials, lite: Bool) -> CredentialUse {
    // RFC 8839 section 5.4 limits both to 256 characters.
    guard (1...256).contains(credentials.usernameFragment.utf8.count),
      (1...256).contains(credentials.password.utf8.count)
    else { return .unusable }
    if present.remote == nil || present.remote == credentials {
      let isNew = present.remote == nil
      present.setRemote(credentials, lite: lite)
      return .present(isNew: isNew)
    }
    if upcoming?.credentials == credentials {
      upcoming?.isLite = lite
    } else {
      upcoming = Upcoming(credentials: credentials, isLite: lite)
    }
    return .upcoming
  }

  /// Returns whether a candidate with this username fragment belongs to an announced restart.
  ///
  /// A candidate without a fragment belongs to the newest generation.
  func isUpcoming(_ fragment: String?) -> Bool {
    guard let upcoming else { return false }
    return fragment == nil || fragment == upcoming.credentials.usernameFragment
  }

  /// Stores a candidate for an announced restart; returns false if there is no such restart or it
  /// has too many candidates.
  mutating func hold(_ candidate: ICECandidate) -> Bool {
    guard let count = upcoming?.candidates.count, count < RemoteSide.candidatesMaximum else {
      return false
    }
    upcoming?.candidates.append(candidate)
    return true
  }

  /// Records the end of candidates for an announced restart; returns false if no restart is
  /// announced.
  mutating func endUpcoming() -> Bool {
    upcoming?.hasEnded = true
    return upcoming != nil
  }

  // MARK: Restarts

  /// Starts another generation.
  ///
  /// - Parameter kept: the generation of the pair that stays in use, if any.
  /// - Returns: what the peer has already announced for the new generation.
  mutating func restart(_ credentials: ICECredentials, keeping kept: UInt32?) -> Upcoming? {
    if kept == nil { earlier = nil } else if kept == present.number { earlier = present }
    present = ICEGeneration(number: present.number + 1, local: credentials)
    retireAt = nil
    defer { upcoming = nil }
    return upcoming
  }

  /// Records that a pair of the current generation is in use, so the earlier generation is kept
  /// only for a while longer.
  mutating func recordPath(at now: Instant) {
    if earlier != nil, retireAt == nil { retireAt = now + ICETiming.retirement }
  }

  /// Records that the earlier generation's pair is lost, so that nothing needs its credentials.
  mutating func losePath(at now: Instant) { retireAt = now }

  /// Drops the earlier generation once `retireAt` is reached; returns whether it was dropped.
  mutating func retire(at now: Instant) -> Bool {
    guard let due = retireAt, due <= now else { return false }
    retireAt = nil
    earlier = nil
    return true
  }
}

/// The credentials used between two ICE restarts (RFC 8445 section 9).
struct ICEGeneration {
  /// The number of restarts before this generation.
  let number: UInt32
  let local: ICECredentials
  /// The local password as the key for incoming requests.
  let localKey: [UInt8]
  private(set) var remote: ICECredentials?
  /// The peer's password as the key for outgoing requests.
  private(set) var remoteKey: [UInt8] = []
  private(set) var remoteIsLite = false

  init(number: UInt32, local: ICECredentials) {
    self.number = number
    self.local = local
    localKey = Array(local.password.utf8)
  }

  mutating func setRemote(_ credentials: ICECredentials, lite: Bool) {
    remote = credentials
    remoteKey = Array(credentials.password.utf8)
    remoteIsLite = lite
  }
}
