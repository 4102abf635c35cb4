import Wire

/// A record of DTLS 1.2 (RFC 6347 section 4.1).
package struct DTLSRecord: Sendable {
  package static let alert: UInt8 = 21
  package static let applicationData: UInt8 = 23

  package var type: UInt8
  package var epoch: UInt16
  /// 48 bits, restarting in each epoch.
  package var sequence: UInt64
  package var fragment: [UInt8]

  /// The length of the record header in bytes.
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

  /// Parses the record at an offset and advances it; nil if the record is truncated.
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

  /// The minimum length of a protected record: the tag of AES-GCM or ChaCha20-Poly1305 (RFC 5116
  /// section 5.1, RFC 7905 section 2); other suites need more.
  private static let protectedMinimum = 16

  /// Whether a datagram contains a protected record shorter than its tag.
  ///
  /// No peer sends one. OpenSSL before 3.0.22 ends the association on it, so anybody who can forge
  /// an address could end a call.
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

  /// The record as on the wire.
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

  /// The additional authenticated data (RFC 5246 section 6.2.3.3).
  fileprivate func additional(_ length: Int) -> [UInt8] {
    numbered + [
      type, 0xfe, 0xfd, UInt8(truncatingIfNeeded: length >> 8), UInt8(truncatingIfNeeded: length),
    ]
  }
}

/// Opens and seals the records of one side of an association with its logged secrets.
package struct DTLSRecordProtection {
  private let cipher: AEADCipher
  private let key: [UInt8]
  private let salt: [UInt8]
  /// Whether records carry eight bytes of the nonce (RFC 5288 section 3), rather than deriving all
  /// of it from the record number (RFC 7905 section 2).
  private var isExplicit: Bool { salt.count == 4 }

  /// Derives the keys of a side; nil if the cipher suite is not AEAD.
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

  /// Returns the plaintext of a record; nil if it is not this side's, or damaged.
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

  /// Seals a plaintext with the number and nonce of another record.
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
