/// Owns how requests prove who makes them: the long-term credentials, and what the server wants
/// them to be used with (RFC 8489 section 9.2).
struct ServerAuthentication {
  private let credentials: TURNCredentials
  private var realm: String?
  private var nonce: [UInt8] = []
  private var key: [UInt8]?

  init(_ credentials: TURNCredentials) { self.credentials = credentials }

  /// Completes a request, with credentials once the server has asked for them.
  func finish(_ request: consuming STUNWriter) -> [UInt8] {
    var writer = request
    if key != nil, let realm {
      writer.username(credentials.username)
      writer.attribute(.realm, Array(realm.utf8))
      writer.attribute(.nonce, nonce)
    }
    return writer.finish(key: key)
  }

  /// Whether a response is the server's: a success must prove that it knows the password; an error
  /// that is wrong about it is not believed either (RFC 8489 section 9.2.5).
  func accepts(_ response: STUNMessage) -> Bool {
    guard let key, response.hasIntegrity || response.messageClass == .success else { return true }
    return response.verifiesIntegrity(key: key)
  }

  /// Applies what an error says that a request has to be repeated with; false when it says nothing
  /// new.
  ///
  /// The first 401 tells the realm; a further one with the same realm is the server's last word.
  mutating func learn(_ error: UInt16, _ message: STUNMessage) -> Bool {
    switch error {
    case 401 where message.realm != nil && message.realm != realm: break
    case 438 where message.nonce != nil: break
    default: return false
    }
    if let told = message.realm, told != realm {
      realm = told
      key = stunLongTermKey(
        username: credentials.username, realm: told, password: credentials.password)
    }
    if let told = message.nonce { nonce = told }
    return true
  }
}
