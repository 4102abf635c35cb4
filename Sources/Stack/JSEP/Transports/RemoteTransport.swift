package import Wire

/// The peer's side of a transport, from its description.
package struct RemoteTransport: Hashable, Sendable {
  /// The number of the transport, as on the local side.
  package var number: Int
  package var usernameFragment: String
  package var password: String
  package var isLite: Bool
  package var fingerprints: [CertificateFingerprint]
  /// Whether this side is the DTLS client; nil until an answer decides.
  package var localIsDTLSClient: Bool?
  /// The candidates in the description, each as the text after `a=`.
  package var candidates: [String]
  package var endOfCandidates: Bool

  package init(
    number: Int = 0, usernameFragment: String, password: String, isLite: Bool,
    fingerprints: [CertificateFingerprint], localIsDTLSClient: Bool?,
    candidates: [String], endOfCandidates: Bool
  ) {
    self.number = number
    self.usernameFragment = usernameFragment
    self.password = password
    self.isLite = isLite
    self.fingerprints = fingerprints
    self.localIsDTLSClient = localIsDTLSClient
    self.candidates = candidates
    self.endOfCandidates = endOfCandidates
  }
}
