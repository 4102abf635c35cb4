import COpenSSL
package import Wire

/// The GMAC of messages with AES-128 and a key and nonce of zeros (NIST SP 800-38D), 16 bytes.
///
/// With a key that everyone knows it is no protection against forgery. It is a digest that common
/// processors make at several gigabytes a second and that every crypto library can make again.
package struct GMAC: ~Copyable {
  private let context: OpaquePointer?

  /// How many bytes a tag has.
  package static let length = 16
  private static let nonceLength = 12

  /// Prepares the key.
  package init() {
    context = EVP_CIPHER_CTX_new()
    let zeros = [UInt8](repeating: 0, count: GMAC.length)
    EVP_EncryptInit_ex(context, EVP_aes_128_gcm(), nil, zeros, nil)
  }

  deinit { EVP_CIPHER_CTX_free(context) }

  /// The tag of one message.
  package mutating func tag(_ message: RawSpan) -> [UInt8] {
    let nonce: [12 of UInt8] = .init(repeating: 0)
    var tag = [UInt8](repeating: 0, count: GMAC.length)
    var length: Int32 = 0
    _ = nonce.span.withUnsafeBufferPointer {
      EVP_EncryptInit_ex(context, nil, nil, nil, $0.baseAddress)
    }
    // The library counts in 32 bits.
    var rest = message
    while rest.byteCount > 0 {
      let part = rest.extracting(first: min(rest.byteCount, 1 << 30))
      _ = part.withUnsafeBytes { bytes in
        EVP_EncryptUpdate(
          context, nil, &length, bytes.bindMemory(to: UInt8.self).baseAddress, Int32(bytes.count))
      }
      rest = rest.extracting(droppingFirst: part.byteCount)
    }
    tag.withUnsafeMutableBytes { tag in
      _ = EVP_EncryptFinal_ex(context, nil, &length)
      _ = EVP_CIPHER_CTX_ctrl(
        context, EVP_CTRL_AEAD_GET_TAG, Int32(tag.count), tag.baseAddress)
    }
    return tag
  }
}
