/// The peer's side of a transport, read from its description.
package struct RemoteTransport: Hashable, Sendable {
  /// The number of the own side.
  package var number: Int
  package var usernameFragment: String
  package var password: String
  package var isLite: Bool
  /// Hash name and value of every fingerprint offered.
  package var fingerprints: [(algorithm: String, value: String)]
  /// Whether this side is the DTLS client; nil until an answer settles it.
  package var localIsDTLSClient: Bool?
  /// The candidates in the description, each as the text after `a=`.
  package var candidates: [String]
  package var endOfCandidates: Bool

  package init(
    number: Int = 0, usernameFragment: String, password: String, isLite: Bool,
    fingerprints: [(algorithm: String, value: String)], localIsDTLSClient: Bool?,
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

  package static func == (left: Self, right: Self) -> Bool {
    left.number == right.number && left.usernameFragment == right.usernameFragment
      && left.password == right.password && left.isLite == right.isLite
      && left.localIsDTLSClient == right.localIsDTLSClient
      && left.candidates == right.candidates && left.endOfCandidates == right.endOfCandidates
      && left.fingerprints.elementsEqual(right.fingerprints, by: ==)
  }

  package func hash(into hasher: inout Hasher) { hasher.combine(usernameFragment) }
}
