/// Owns what applications asked for that only another exchange brings, and that no transceiver
/// stands for.
struct OpenWishes {
  /// Whether data channels were asked for, and not refused since.
  private(set) var hasData = false
  /// The username fragments of the local descriptions that an ICE restart is to replace (W3C
  /// [[LocalIceCredentialsToReplace]]).
  private var fragments: [String] = []

  /// Whether an ICE restart is wanted.
  var hasRestart: Bool { !fragments.isEmpty }

  mutating func wantData() { hasData = true }

  /// Records that the peer takes no data channels; whoever opens another one asks again.
  mutating func dropData() { hasData = false }

  /// Asks for other credentials than these.
  mutating func wantRestart(of fragments: [String]) { self.fragments = fragments }

  /// Records the credentials that an exchange left in place.
  mutating func noteAgreed(_ present: [String]) {
    if !fragments.contains(where: present.contains) { fragments = [] }
  }
}
