package import Wire

/// The local side of a transport, as descriptions state it.
package struct LocalTransport: Hashable, Sendable {
  /// Identifies the transport in this peer; never reused.
  package var number: Int
  package var usernameFragment: String
  package var password: String
  /// The fingerprint of every certificate.
  package var fingerprints: [CertificateFingerprint]
  /// The candidates gathered so far, each as the text after `a=` (`candidate:...`).
  package var candidates: [String]
  package var gatheringIsComplete: Bool
  /// The default destination for `c=` and `m=`, once a candidate is known.
  package var defaultAddress: SocketAddress?
  /// The ICE options beyond the basics (RFC 9429 section 5.2.1).
  var iceOptions = ["trickle", "ice2"]

  package init(
    number: Int = 0, usernameFragment: String, password: String,
    fingerprints: [CertificateFingerprint],
    candidates: [String] = [], gatheringIsComplete: Bool = false,
    defaultAddress: SocketAddress? = nil
  ) {
    self.number = number
    self.usernameFragment = usernameFragment
    self.password = password
    self.fingerprints = fingerprints
    self.candidates = candidates
    self.gatheringIsComplete = gatheringIsComplete
    self.defaultAddress = defaultAddress
  }
}
