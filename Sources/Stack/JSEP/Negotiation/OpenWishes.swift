/// Requests of the application that need another exchange and belong to no transceiver.
struct OpenWishes {
  /// Whether data channels were requested and not rejected since.
  private(set) var hasData = false
  /// The local username fragments that an ICE restart has to replace (W3C
  /// [[LocalIceCredentialsToReplace]]).
  private var fragments: [String] = []

  /// Whether an ICE restart is requested.
  var hasRestart: Bool { !fragments.isEmpty }

  mutating func wantData() { hasData = true }

  /// Records that the peer rejected data channels; opening another one requests them again.
  mutating func dropData() { hasData = false }

  /// Requests credentials other than these.
  mutating func wantRestart(of fragments: [String]) { self.fragments = fragments }

  /// Records the credentials that an exchange left in use.
  mutating func recordAgreed(_ present: [String]) {
    if !fragments.contains(where: present.contains) { fragments = [] }
  }
}
