import Wire

/// What an association draws when it starts.
struct AssociationIdentity {
  /// The key of the digests of its cookies.
  var cookieKey: CookieKey
  /// The tag that packets to it carry (RFC 9260 section 5.3.1).
  var tag: UInt32
  /// The number of its first chunk of data.
  var firstNumber: UInt32

  /// Draws an identity.
  init(_ entropy: EntropyStream) {
    cookieKey = CookieKey(entropy)
    tag = Self.newTag(entropy)
    firstNumber = entropy.integer(UInt32.self)
  }

  /// Creates an identity of its parts.
  init(cookieKey: CookieKey, tag: UInt32, firstNumber: UInt32) {
    self.cookieKey = cookieKey
    self.tag = tag
    self.firstNumber = firstNumber
  }

  /// Draws a tag, which is never zero.
  static func newTag(_ entropy: EntropyStream) -> UInt32 { max(1, entropy.integer(UInt32.self)) }
}
