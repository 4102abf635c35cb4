import ICE
import Wire

/// The step from one ICE generation to the next: that it is wanted, which credentials an offer
/// states for it, and whether that offer was set (RFC 9429 section 5.2.1).
struct LocalRestart {
  /// The credentials that offers state until one of them is set.
  private(set) var next: ICECredentials?
  /// An ICE restart was asked for and not yet offered.
  private var isWanted = false
  private let entropy: EntropyStream

  init(_ entropy: EntropyStream) { self.entropy = entropy }

  /// Asks for a restart.
  mutating func want(_ state: ICEGatheringState) {
    // What was never offered has nothing to restart (RFC 9429 section 5.2.3.1).
    if state != .new { isWanted = true }
  }

  /// Draws new credentials for an offer when a restart is wanted.
  mutating func prepare() {
    guard isWanted, next == nil else { return }
    next = ICECredentials(from: entropy)
  }

  /// The credentials of the generation that begins when this offer is set; nil when it states none.
  mutating func begin(offered text: String) -> ICECredentials? {
    guard let next, text.contains("a=ice-ufrag:\(next.usernameFragment)") else { return nil }
    end()
    return next
  }

  /// The credentials of the generation that answers a restart of the peer.
  mutating func answer() -> ICECredentials {
    end()
    return ICECredentials(from: entropy)
  }

  /// The credentials that a restart was to replace are gone, whoever asked for it.
  private mutating func end() {
    next = nil
    isWanted = false
  }
}
