/// A failure inside one of the cryptographic libraries.
package struct SecureError: Error, Hashable, Sendable {
  /// What failed, as a sentence, with the library's error code if it has one.
  package var reason: String
  package init(reason: String) { self.reason = reason }
}
