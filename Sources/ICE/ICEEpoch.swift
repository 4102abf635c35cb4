import Wire

/// The credentials between two ICE restarts (RFC 8445 section 9).
struct ICEEpoch {
  /// Counts restarts, from 0.
  let number: UInt32
  let local: ICECredentials
  /// The own password as the key of requests that come in.
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

/// What is known of the peer within one epoch.
struct ICERemoteSide {
  /// A check that came before the peer's credentials were known.
  struct EarlyCheck {
    let local: SocketAddress
    let remote: SocketAddress
    /// The peer's username fragment as the check names it.
    let fragment: String
    var priority: UInt32
    var usesCandidate: Bool
    var count: UInt64
  }

  /// A candidate whose name is being resolved.
  struct UnresolvedName {
    let id: UInt32
    let candidate: ICECandidate
  }

  static let candidatesMaximum = 60
  static let namesMaximum = 32
  static let earlyChecksMaximum = 32

  /// Candidates that can be paired, or could but for their transport; no two with the same address.
  var candidates: [ICECandidate] = []
  /// Candidates that wait for the credentials they belong to.
  var held: [ICECandidate] = []
  var names: [UnresolvedName] = []
  var earlyChecks: [EarlyCheck] = []
  /// How many peer-reflexive candidates were learned; names their foundations.
  var reflexiveCount = 0
  var hasEnded = false
}

/// The peer's side of a restart that the own side has not made yet.
struct ICEUpcomingRemote {
  let credentials: ICECredentials
  var isLite: Bool
  var candidates: [ICECandidate] = []
  var hasEnded = false
}
