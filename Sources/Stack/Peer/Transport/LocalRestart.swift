import ICE
import Wire

/// An ICE restart: whether it is requested, which credentials offers state for it, and whether such
/// an offer was set (RFC 9429 section 5.2.1).
struct LocalRestart {
  /// The credentials that offers state until one of them is set.
  private(set) var next: ICECredentials?
  /// Whether an ICE restart was requested and not offered yet.
  private var isWanted = false
  private let entropy: EntropyStream

  init(_ entropy: EntropyStream) { self.entropy = entropy }

  /// Requests a restart.
  mutating func want(_ state: ICEGatheringState) {
    // Before the first offer there is nothing to restart (RFC 9429 section 5.2.3.1).
    if state != .new { isWanted = true }
  }

  /// Draws new credentials for an offer if a restart is requested.
  mutating func prepare() {
    guard isWanted, next == nil else { return }
    next = ICECredentials(from: entropy)
  }

  /// The credentials of the generation that this offer starts; nil if it starts none.
  mutating func begin(offered text: String) -> ICECredentials? {
    guard let next, text.contains("a=ice-ufrag:\(next.usernameFragment)") else { return nil }
    end()
    return next
  }

  /// The credentials for answering a restart of the peer.
  mutating func answer() -> ICECredentials {
    end()
    return ICECredentials(from: entropy)
  }

  /// Records that the credentials to be replaced are gone.
  private mutating func end() {
    next = nil
    isWanted = false
  }
}
