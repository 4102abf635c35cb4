import JSEP

/// What the peer's descriptions say of its side: which generation of ICE it is in, and which of its
/// candidates are known.
struct PeerParameters {
  /// What parameters are, compared with those before.
  enum Taking: Equatable {
    /// There are none, or they have the credentials of those before.
    case sameGeneration
    /// They have the first credentials, or those that belong to the own generation.
    case credentials
    /// The peer restarted ICE, which this side has to answer (RFC 8445 section 9).
    case restart
  }

  /// How many candidates are told apart; further ones that are signaled are refused.
  private static let candidatesMaximum = 200

  private(set) var described: RemoteTransport?
  /// The peer's present generation of ICE credentials.
  private(set) var usernameFragment: String?
  private var candidates: [String] = []

  /// Handles the parameters of a description; nil when it was taken back.
  mutating func take(_ parameters: RemoteTransport?, answersOwnOffer: Bool) -> Taking {
    described = parameters
    guard let new = parameters?.usernameFragment, new != usernameFragment else {
      return .sameGeneration
    }
    let isRestart = usernameFragment != nil && !answersOwnOffer
    if isRestart { restart() }
    usernameFragment = new
    return isRestart ? .restart : .credentials
  }

  /// Records a candidate of a description; false when it is known.
  mutating func describe(_ line: String) -> Bool {
    guard !candidates.contains(line) else { return false }
    candidates.append(line)
    return true
  }

  /// Records a candidate that was signaled by itself; false when there are too many.
  mutating func signal(_ line: String) -> Bool {
    guard candidates.count < Self.candidatesMaximum else { return false }
    candidates.append(line)
    return true
  }

  /// Forgets a candidate that the peer took back, so that it may come again.
  mutating func forget(_ line: String) { candidates.removeAll { $0 == line } }

  /// Forgets a generation that is over.
  mutating func restart() {
    usernameFragment = nil
    candidates = []
  }
}
