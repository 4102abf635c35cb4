import Crypto

/// The key of long-term credentials: a hash over name, realm and password (RFC 8489 section 9.2.2).
///
/// The name, realm and password are taken as they are; what OpaqueString preparation (RFC 8265)
/// changes beyond ASCII is left to whoever gives them.
package func stunLongTermKey(username: String, realm: String, password: String) -> [UInt8] {
  md5(Array("\(username):\(realm):\(password)".utf8))
}
