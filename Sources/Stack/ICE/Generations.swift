import Wire

/// The credentials of both sides across ICE restarts (RFC 8445 section 9): the current ones, the
/// previous ones until a new path works, and those that the peer sent for a restart that this side
/// has not made yet.
struct Generations {
  /// The peer's side of a restart that the local side has not made yet.
  struct Upcoming {
    let credentials: ICECredentials
    fileprivate(set) var isLite: Bool
    fileprivate(set) var candidates: [ICECandidate] = []
    fileprivate(set) var hasEnded = false
  }

  /// The generation that credentials of the peer belong to.
  enum CredentialUse: Equatable {
    case unusable
    /// Those of the current generation, and whether it had none.
    case present(isNew: Bool)
    /// They are kept for a restart.
    case upcoming
  }

  private(set) var present: ICEGeneration
  /// The generation of the selected pair, when a restart has not led to a new one yet.
  private(set) var earlier: ICEGeneration?
  /// When the rest of the earlier generation is dropped.
  private(set) var retireAt: Instant?
  private var upcoming: Upcoming?

  init(_ local: ICECredentials) { present = ICEGeneration(number: 0, local: local) }

  // MARK: Finding

  /// The generation with a number, while its credentials count.
  func generation(_ number: UInt32) -> ICEGeneration? {
    number == present.number ? present : earlier?.number == number ? earlier : nil
  }

  /// The generation that has a local username fragment.
  func generation(ofFragment fragment: Substring) -> ICEGeneration? {
    if present.local.usernameFragment == fragment { return present }
    if let earlier, earlier.local.usernameFragment == fragment { return earlier }
    return nil
  }

  // MARK: The peer's side

  /// Applies the peer's credentials, or holds them for the restart that they announce.
  mutating func apply(_ credentials: ICECredentials, lite: Bool) -> CredentialUse {
    // RFC 8839 section 5.4 ends both at 256 characters.
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

  /// Whether a candidate belongs to an announced restart, for which it is stored; without a
  /// fragment it belongs to the newest generation.
  func isUpcoming(_ fragment: String?) -> Bool {
    guard let upcoming else { return false }
    return fragment == nil || fragment == upcoming.credentials.usernameFragment
  }

  /// Stores a candidate for an announced restart; false when there are too many.
  mutating func hold(_ candidate: ICECandidate) -> Bool {
    guard let count = upcoming?.candidates.count, count < RemoteSide.candidatesMaximum else {
      return false
    }
    upcoming?.candidates.append(candidate)
    return true
  }

  /// Records the end of candidates of an announced restart; false when there is none.
  mutating func endUpcoming() -> Bool {
    upcoming?.hasEnded = true
    return upcoming != nil
  }

  // MARK: Restarts

  /// Begins another generation.
  ///
  /// - Parameter kept: the generation of the pair that stays in use, if there is one.
  /// - Returns: what the peer has announced for it.
  mutating func restart(_ credentials: ICECredentials, keeping kept: UInt32?) -> Upcoming? {
    if kept == nil { earlier = nil } else if kept == present.number { earlier = present }
    present = ICEGeneration(number: present.number + 1, local: credentials)
    retireAt = nil
    defer { upcoming = nil }
    return upcoming
  }

  /// Records that a pair of the current generation is in use: the earlier one is kept for a while.
  mutating func recordPath(at now: Instant) {
    if earlier != nil, retireAt == nil { retireAt = now + ICETiming.retirement }
  }

  /// Records that the pair of the earlier generation is lost.
  mutating func losePath(at now: Instant) { retireAt = now }

  /// Whether the earlier generation is to be given up now; true once.
  mutating func retire(at now: Instant) -> Bool {
    guard let due = retireAt, due <= now else { return false }
    retireAt = nil
    earlier = nil
    return true
  }
}

/// The credentials between two ICE restarts (RFC 8445 section 9).
struct ICEGeneration {
  /// Counts restarts, from 0.
  let number: UInt32
  let local: ICECredentials
  /// The local password as the key of requests that come in.
  let localKey: [UInt8]
  private(set) var remote: ICECredentials?
  /// The peer's password as the key of requests that go out.
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
