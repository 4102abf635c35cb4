import Crypto

/// The secrets from which all keys of a DTLS 1.2 association are derived (RFC 5246 sections 6.3 and
/// 8.1).
///
/// A take stores them, as key logs do, so that its packets can be decrypted if another OpenSSL
/// negotiates other keys.
package struct DTLSSecrets: Hashable, Sendable {
  package var clientRandom: [UInt8]
  package var serverRandom: [UInt8]
  package var masterSecret: [UInt8]

  package init(clientRandom: [UInt8], serverRandom: [UInt8], masterSecret: [UInt8]) {
    self.clientRandom = clientRandom
    self.serverRandom = serverRandom
    self.masterSecret = masterSecret
  }

  /// The SRTP keys and salts of both directions (RFC 5764 section 4.2); nil if the profile is not
  /// supported.
  package func srtpKeys(_ profile: SRTPProfile, cipherSuite: String, role: DTLSRole)
    -> (send: [UInt8], receive: [UInt8])?
  {
    guard let count = profile.keyingMaterialLength else { return nil }
    // An exporter without a context (RFC 5705 section 4).
    let material = expanded(
      "EXTRACTOR-dtls_srtp", clientRandom + serverRandom, count: count, cipherSuite)
    return profile.keys(in: material, role: role)
  }

  /// The record protection keys of client and server, in the order of the key block.
  func keyBlock(count: Int, cipherSuite: String) -> [UInt8] {
    expanded("key expansion", serverRandom + clientRandom, count: count, cipherSuite)
  }

  /// The pseudorandom function of TLS 1.2 (RFC 5246 section 5) with the hash of the cipher suite.
  private func expanded(_ label: String, _ seed: [UInt8], count: Int, _ cipherSuite: String)
    -> [UInt8]
  {
    let hash = cipherSuite.hasSuffix("_SHA384") ? HashFunction.sha384 : .sha256
    let seed = Array(label.utf8) + seed
    var chained = seed
    var material: [UInt8] = []
    while material.count < count {
      chained = hash.hmac(key: masterSecret, chained)
      material += hash.hmac(key: masterSecret, chained + seed)
    }
    return Array(material.prefix(count))
  }
}

extension SRTPProfile {
  /// The total length of keys and salts of both directions; nil if the profile is not supported.
  package var keyingMaterialLength: Int? {
    guard let keyLength, let saltLength else { return nil }
    return 2 * (keyLength + saltLength)
  }

  /// Splits exported bytes into a key with its salt for each direction.
  package func keys(in material: [UInt8], role: DTLSRole) -> (send: [UInt8], receive: [UInt8])? {
    guard let length = keyLength, let salt = saltLength, material.count == 2 * (length + salt)
    else { return nil }
    // Order: client key, server key, client salt, server salt (RFC 5764 section 4.2).
    let client = material[..<length] + material[(2 * length)..<(2 * length + salt)]
    let server = material[length..<(2 * length)] + material[(2 * length + salt)...]
    return role == .client ? (Array(client), Array(server)) : (Array(server), Array(client))
  }
}
