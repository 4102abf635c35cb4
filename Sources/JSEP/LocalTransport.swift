package import Wire

/// The own side of the transport, as descriptions must state it.
package struct LocalTransport: Hashable, Sendable {
  package var usernameFragment: String
  package var password: String
  /// Hash name and value of the certificate's fingerprint.
  package var fingerprintAlgorithm: String
  package var fingerprint: String
  /// The candidates gathered so far, each as the text after `a=` (`candidate:...`).
  package var candidates: [String]
  package var gatheringIsComplete: Bool
  /// The default destination for `c=` and `m=` once a candidate is known.
  package var defaultAddress: SocketAddress?

  package init(
    usernameFragment: String, password: String, fingerprintAlgorithm: String, fingerprint: String,
    candidates: [String] = [], gatheringIsComplete: Bool = false,
    defaultAddress: SocketAddress? = nil
  ) {
    self.usernameFragment = usernameFragment
    self.password = password
    self.fingerprintAlgorithm = fingerprintAlgorithm
    self.fingerprint = fingerprint
    self.candidates = candidates
    self.gatheringIsComplete = gatheringIsComplete
    self.defaultAddress = defaultAddress
  }
}
