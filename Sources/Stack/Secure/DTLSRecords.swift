import COpenSSL
import Crypto
import Wire

/// A DTLS 1.2 record (RFC 6347 section 4.1).
package struct DTLSRecord: Sendable {
  package static let alert: UInt8 = 21
  package static let applicationData: UInt8 = 23

  package var type: UInt8
  package var epoch: UInt16
  /// The sequence number: 48 bits, restarting in each epoch.
  package var sequence: UInt64
  package var fragment: [UInt8]

  /// The length of a record header in bytes.
  fileprivate static let headLength = 13

  package init(type: UInt8, epoch: UInt16, sequence: UInt64, fragment: [UInt8]) {
    self.type = type
    self.epoch = epoch
    self.sequence = sequence
    self.fragment = fragment
  }

  /// Parses the records of a datagram up to the first malformed one.
  package static func all(in datagram: [UInt8]) -> [DTLSRecord] {
    var records: [DTLSRecord] = []
    var offset = 0
    while let record = read(datagram.span.bytes, at: &offset) { records.append(record) }
    return records
  }

  /// Parses the record at an offset and moves the offset past it; nil if the record is truncated.
  package static func read(_ datagram: RawSpan, at offset: inout Int) -> DTLSRecord? {
    guard offset < datagram.byteCount else { return nil }
    var reader = ByteReader(datagram.extracting(offset..<datagram.byteCount))
    do throws(ReadError) {
      let type = try reader.uint8()
      try reader.skip(2)
      let epoch = try reader.uint16()
      let sequence = UInt64(try reader.uint16()) << 32 | UInt64(try reader.uint32())
      let fragment = try reader.array(Int(try reader.uint16()))
      offset += reader.offset
      return DTLSRecord(type: type, epoch: epoch, sequence: sequence, fragment: fragment)
    } catch {
      return nil
    }
  }

  /// Minimum length of a protected record: the tag of AES-GCM or ChaCha20-Poly1305 (RFC 5116
  /// section 5.1, RFC 7905 section 2); other suites need more.
  private static let protectedMinimum = 16

  /// Returns whether a datagram contains a protected record shorter than its tag.
  ///
  /// No real peer sends one. OpenSSL before 3.0.22 ends the association when it receives one, so
  /// anyone who can spoof an address could end a call.
  static func isCutShort(in datagram: [UInt8]) -> Bool {
    var reader = ByteReader(datagram.span.bytes)
    do throws(ReadError) {
      while reader.remaining > 0 {
        try reader.skip(3)
        let epoch = try reader.uint16()
        try reader.skip(6)
        let length = Int(try reader.uint16())
        if epoch > 0, length < protectedMinimum { return true }
        try reader.skip(length)
      }
    } catch {
      // A truncated last record is passed on; OpenSSL ignores it.
    }
    return false
  }

  /// The record as sent on the wire.
  package var bytes: [UInt8] { head(length: fragment.count) + fragment }

  fileprivate func head(length: Int) -> [UInt8] {
    numbered
      .reduce(into: [type, 0xfe, 0xfd]) { $0.append($1) }
      + [UInt8(truncatingIfNeeded: length >> 8), UInt8(truncatingIfNeeded: length)]
  }

  fileprivate var numbered: [UInt8] {
    let number = UInt64(epoch) << 48 | sequence & 0xffff_ffff_ffff
    return (0..<8).map { UInt8(truncatingIfNeeded: number >> UInt64(56 - 8 * $0)) }
  }

  /// Returns the additional authenticated data (RFC 5246 section 6.2.3.3).
  fileprivate func additional(_ length: Int) -> [UInt8] {
    numbered + [
      type, 0xfe, 0xfd, UInt8(truncatingIfNeeded: length >> 8), UInt8(truncatingIfNeeded: length),
    ]
  }
}

/// Opens and seals the records sent by one side of an association, using its logged secrets.
package struct DTLSRecordProtection {
  private let cipher: AEADCipher
  private let key: [UInt8]
  private let salt: [UInt8]
  /// Whether records contain eight bytes of the nonce (RFC 5288 section 3); otherwise the complete
  /// nonce is derived from the record number (RFC 7905 section 2).
  private var isExplicit: Bool { salt.count == 4 }

  /// Derives one side's keys; nil if the cipher suite is not AEAD.
  package init?(_ secrets: DTLSSecrets, cipherSuite: String, sender: DTLSRole) {
    let saltLength: Int
    if cipherSuite.contains("AES_128_GCM") {
      (cipher, saltLength) = (.aes128GCM, 4)
    } else if cipherSuite.contains("AES_256_GCM") {
      (cipher, saltLength) = (.aes256GCM, 4)
    } else if cipherSuite.contains("CHACHA20_POLY1305") {
      (cipher, saltLength) = (.chaCha20Poly1305, 12)
    } else {
      return nil
    }
    let keyLength = cipher.keyLength
    let block = secrets.keyBlock(count: 2 * (keyLength + saltLength), cipherSuite: cipherSuite)
    guard block.count == 2 * (keyLength + saltLength) else { return nil }
    let place = sender == .client ? 0 : 1
    key = Array(block[place * keyLength..<(place + 1) * keyLength])
    let salts = block[(2 * keyLength)...]
    salt = Array(salts.dropFirst(place * saltLength).prefix(saltLength))
  }

  /// Returns a record's plaintext; nil if the record is damaged or was not sent by this side.
  package func open(_ record: DTLSRecord) -> [UInt8]? {
    let prefix = isExplicit ? 8 : 0
    let length = record.fragment.count - prefix - AEADCipher.tagLength
    guard length >= 0 else { return nil }
    return cipher.open(
      Array(record.fragment[prefix..<prefix + length]),
      tag: Array(record.fragment.suffix(AEADCipher.tagLength)), key: key,
      nonce: nonce(record, Array(record.fragment.prefix(prefix))),
      additional: record.additional(length))
  }

  /// Seals a plaintext with the number and nonce of `record`; nil if the record lacks a nonce or
  /// OpenSSL fails.
  package func seal(_ text: [UInt8], like record: DTLSRecord) -> DTLSRecord? {
    let prefix = isExplicit ? Array(record.fragment.prefix(8)) : []
    guard prefix.count == (isExplicit ? 8 : 0) else { return nil }
    guard
      let made = cipher.seal(
        text, key: key, nonce: nonce(record, prefix), additional: record.additional(text.count))
    else { return nil }
    var copy = record
    copy.fragment = prefix + made.sealed + made.tag
    return copy
  }

  private func nonce(_ record: DTLSRecord, _ prefix: [UInt8]) -> [UInt8] {
    guard !isExplicit else { return salt + prefix }
    return zip(salt, [0, 0, 0, 0] + record.numbered).map { $0 ^ $1 }
  }
}

// MARK: - DTLSSecrets

/// The secrets from which all keys of a DTLS 1.2 association are derived (RFC 5246 sections 6.3 and
/// 8.1).
///
/// A take stores them, as key logs do, so that its packets can be decrypted even if another OpenSSL
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

  /// Returns the SRTP keys and salts for both directions (RFC 5764 section 4.2); nil if the profile
  /// is not supported.
  package func srtpKeys(_ profile: SRTPProfile, cipherSuite: String, role: DTLSRole)
    -> (send: [UInt8], receive: [UInt8])?
  {
    guard let count = profile.keyingMaterialLength else { return nil }
    // An exporter without a context (RFC 5705 section 4).
    let material = expanded(
      "EXTRACTOR-dtls_srtp", clientRandom + serverRandom, count: count, cipherSuite)
    return profile.keys(in: material, role: role)
  }

  /// Returns the record protection keys of client and server, in key block order.
  func keyBlock(count: Int, cipherSuite: String) -> [UInt8] {
    expanded("key expansion", serverRandom + clientRandom, count: count, cipherSuite)
  }

  /// Computes TLS 1.2's pseudorandom function (RFC 5246 section 5) with the cipher suite's hash.
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
  /// The total length of keys and salts for both directions; nil if the profile is not supported.
  package var keyingMaterialLength: Int? {
    guard let keyLength, let saltLength else { return nil }
    return 2 * (keyLength + saltLength)
  }

  /// Splits exported bytes into one key with its salt per direction; nil if their number is wrong.
  package func keys(in material: [UInt8], role: DTLSRole) -> (send: [UInt8], receive: [UInt8])? {
    guard let length = keyLength, let salt = saltLength, material.count == 2 * (length + salt)
    else { return nil }
    // Order: client key, server key, client salt, server salt (RFC 5764 section 4.2).
    let client = material[..<length] + material[(2 * length)..<(2 * length + salt)]
    let server = material[length..<(2 * length)] + material[(2 * length + salt)...]
    return role == .client ? (Array(client), Array(server)) : (Array(server), Array(client))
  }
}

// MARK: - AEADCipher

/// An authenticated cipher with 16-byte tags (RFC 5116, RFC 7905).
package enum AEADCipher: Hashable, Sendable {
  case aes128GCM, aes256GCM, chaCha20Poly1305

  package static let tagLength = 16
  /// Nonce length in bytes.
  package static let nonceLength = 12

  /// Key length in bytes.
  package var keyLength: Int { self == .aes128GCM ? 16 : 32 }

  private var method: OpaquePointer? {
    switch self {
    case .aes128GCM: EVP_aes_128_gcm()
    case .aes256GCM: EVP_aes_256_gcm()
    case .chaCha20Poly1305: EVP_chacha20_poly1305()
    }
  }

  /// Returns the plaintext; nil if the tag or a length is wrong.
  package func open(
    _ sealed: [UInt8], tag: [UInt8], key: [UInt8], nonce: [UInt8], additional: [UInt8]
  ) -> [UInt8]? {
    var tag = tag
    return crypt(sealed, key, nonce, additional, tag: &tag, seals: false)
  }

  /// Returns the ciphertext and its tag; nil if a length is wrong or OpenSSL fails.
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

  /// Returns the 16 bytes that mask record numbers (RFC 9147 section 4.2.3): AES of a 16-byte
  /// sample, or ChaCha20 with the sample as counter and nonce; nil if a length is wrong or OpenSSL
  /// fails.
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
