import JSEP

/// The ICE generation and the known candidates in the peer's descriptions.
struct PeerParameters {
  /// How parameters compare with the previous ones.
  enum Change: Equatable {
    /// There are none, or the credentials are unchanged.
    case sameGeneration
    /// They are the first credentials, or those for the local generation.
    case credentials
    /// The peer restarted ICE, which this side has to answer (RFC 8445 section 9).
    case restart
  }

  /// The most candidates remembered; further signaled ones are refused.
  private static let candidatesMaximum = 200

  private(set) var described: RemoteTransport?
  /// The peer's current ICE username fragment.
  private(set) var usernameFragment: String?
  private var candidates: [String] = []

  /// Applies a description's parameters; nil if it was rolled back.
  mutating func apply(_ parameters: RemoteTransport?, answersLocalOffer: Bool) -> Change {
    described = parameters
    guard let new = parameters?.usernameFragment, new != usernameFragment else {
      return .sameGeneration
    }
    let isRestart = usernameFragment != nil && !answersLocalOffer
    if isRestart { restart() }
    usernameFragment = new
    return isRestart ? .restart : .credentials
  }

  /// Records a candidate in a description; false if it is known.
  mutating func describe(_ line: String) -> Bool {
    guard !candidates.contains(line) else { return false }
    candidates.append(line)
    return true
  }

  /// Records a trickled candidate; false if there are too many.
  mutating func signal(_ line: String) -> Bool {
    guard candidates.count < Self.candidatesMaximum else { return false }
    candidates.append(line)
    return true
  }

  /// Forgets a withdrawn candidate, so that it can be added again.
  mutating func forget(_ line: String) { candidates.removeAll { $0 == line } }

  /// Forgets a former generation.
  mutating func restart() {
    usernameFragment = nil
    candidates = []
  }
}
