/// A failure inside one of the cryptographic libraries.
package struct SecureError: Error, Hashable, Sendable {
  /// What failed, in words, with the library's code where it has one.
  package var reason: String
  package init(reason: String) { self.reason = reason }
}
