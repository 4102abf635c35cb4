import COpenSSL

/// An authenticated cipher with tags of 16 bytes (RFC 5116, RFC 7905).
package enum AEADCipher: Hashable, Sendable {
  case aes128GCM, aes256GCM, chaCha20Poly1305

  package static let tagLength = 16
  /// The length of a nonce in bytes.
  package static let nonceLength = 12

  /// The length of a key in bytes.
  package var keyLength: Int { self == .aes128GCM ? 16 : 32 }

  private var method: OpaquePointer? {
    switch self {
    case .aes128GCM: EVP_aes_128_gcm()
    case .aes256GCM: EVP_aes_256_gcm()
    case .chaCha20Poly1305: EVP_chacha20_poly1305()
    }
  }

  /// Returns the plaintext; nil if the tag is wrong.
  package func open(
    _ sealed: [UInt8], tag: [UInt8], key: [UInt8], nonce: [UInt8], additional: [UInt8]
  ) -> [UInt8]? {
    var tag = tag
    return crypt(sealed, key, nonce, additional, tag: &tag, seals: false)
  }

  /// Returns the ciphertext and its tag.
  package func seal(
    _ text: [UInt8], key: [UInt8], nonce: [UInt8], additional: [UInt8]
  ) -> (sealed: [UInt8], tag: [UInt8])? {
    var tag = [UInt8](repeating: 0, count: Self.tagLength)
    return crypt(text, key, nonce, additional, tag: &tag, seals: true).map { ($0, tag) }
  }

  private func crypt(
    _ text: [UInt8], _ key: [UInt8], _ nonce: [UInt8], _ additional: [UInt8], tag: inout [UInt8],
    seals: Bool
  ) -> [UInt8]? {
    guard key.count == keyLength, nonce.count == Self.nonceLength, tag.count == Self.tagLength
    else { return nil }
    let context = EVP_CIPHER_CTX_new()
    defer { EVP_CIPHER_CTX_free(context) }
    let count = Int32(Self.tagLength)
    var length: Int32 = 0
    guard EVP_CipherInit_ex(context, method, nil, key, nonce, seals ? 1 : 0) == 1,
      EVP_CipherUpdate(context, nil, &length, additional, Int32(additional.count)) == 1,
      seals || EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, count, &tag) == 1
    else { return nil }
    var result = [UInt8](repeating: 0, count: text.count + Self.tagLength)
    guard EVP_CipherUpdate(context, &result, &length, text, Int32(text.count)) == 1 else {
      return nil
    }
    var rest = [UInt8](repeating: 0, count: 32)
    guard EVP_CipherFinal_ex(context, &rest, &length) == 1 else { return nil }
    if seals, EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, count, &tag) != 1 { return nil }
    return Array(result.prefix(text.count))
  }

  /// At least five bytes that encrypt record numbers (RFC 9147 section 4.2.3): AES of a 16-byte
  /// sample, or ChaCha20 with the sample as counter and nonce.
  package func mask(key: [UInt8], sample: [UInt8]) -> [UInt8]? {
    guard key.count == keyLength, sample.count == 16 else { return nil }
    let context = EVP_CIPHER_CTX_new()
    defer { EVP_CIPHER_CTX_free(context) }
    let (method, vector, text): (OpaquePointer?, [UInt8]?, [UInt8]) =
      switch self {
      case .aes128GCM: (EVP_aes_128_ecb(), nil, sample)
      case .aes256GCM: (EVP_aes_256_ecb(), nil, sample)
      case .chaCha20Poly1305: (EVP_chacha20(), sample, [UInt8](repeating: 0, count: 16))
      }
    guard EVP_EncryptInit_ex(context, method, nil, key, vector) == 1 else { return nil }
    EVP_CIPHER_CTX_set_padding(context, 0)
    var result = [UInt8](repeating: 0, count: 32)
    var length: Int32 = 0
    guard EVP_EncryptUpdate(context, &result, &length, text, Int32(text.count)) == 1, length == 16
    else { return nil }
    return Array(result.prefix(16))
  }
}
