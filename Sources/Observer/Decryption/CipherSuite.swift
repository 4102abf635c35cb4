import Crypto
package import Secure
import Wire

/// A cipher suite by its IANA number.
package struct CipherSuite: RawRepresentable, Hashable, Sendable {
  package var rawValue: UInt16
  package init(rawValue: UInt16) { self.rawValue = rawValue }

  /// The IANA name; nil for suites that DTLS in calls does not use.
  package var name: String? { Self.names.first { $0.0 == rawValue }?.1 }

  /// The hash function of TLS 1.3's key schedule and of TLS 1.2's pseudorandom function.
  var hash: HashFunction { name?.hasSuffix("_SHA384") ?? false ? .sha384 : .sha256 }

  /// The AEAD cipher of TLS 1.3; nil for suites of other versions.
  var cipher: AEADCipher? {
    switch rawValue {
    case 0x1301: .aes128GCM
    case 0x1302: .aes256GCM
    case 0x1303: .chaCha20Poly1305
    default: nil
    }
  }

  private static let names: [(UInt16, String)] = [
    (0x1301, "TLS_AES_128_GCM_SHA256"), (0x1302, "TLS_AES_256_GCM_SHA384"),
    (0x1303, "TLS_CHACHA20_POLY1305_SHA256"),
    (0xc02b, "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"),
    (0xc02f, "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"),
    (0xc02c, "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"),
    (0xc030, "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384"),
    (0xcca9, "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256"),
    (0xcca8, "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256"),
    (0xc009, "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA"),
    (0xc013, "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA"),
    (0xc00a, "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA"),
    (0xc014, "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA"),
    (0xc023, "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256"),
    (0xc027, "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256"),
    (0xc024, "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA384"),
    (0xc028, "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA384"),
    (0x009c, "TLS_RSA_WITH_AES_128_GCM_SHA256"), (0x009d, "TLS_RSA_WITH_AES_256_GCM_SHA384"),
    (0x009e, "TLS_DHE_RSA_WITH_AES_128_GCM_SHA256"),
    (0x009f, "TLS_DHE_RSA_WITH_AES_256_GCM_SHA384"),
    (0xccaa, "TLS_DHE_RSA_WITH_CHACHA20_POLY1305_SHA256"),
    (0x002f, "TLS_RSA_WITH_AES_128_CBC_SHA"), (0x0035, "TLS_RSA_WITH_AES_256_CBC_SHA"),
    (0x0033, "TLS_DHE_RSA_WITH_AES_128_CBC_SHA"), (0x0039, "TLS_DHE_RSA_WITH_AES_256_CBC_SHA"),
    (0xc0ac, "TLS_ECDHE_ECDSA_WITH_AES_128_CCM"), (0xc0ae, "TLS_ECDHE_ECDSA_WITH_AES_128_CCM_8"),
  ]
}

/// The part of the DTLS 1.3 key schedule that starts from logged secrets (RFC 9147 section 5.9, RFC
/// 8446 sections 7.1 and 7.3).
struct KeySchedule {
  let hash: HashFunction

  /// Applies HKDF-Expand-Label with the DTLS prefix.
  func expand(_ secret: [UInt8], _ label: String, context: [UInt8] = [], count: Int) -> [UInt8] {
    let label = Array("dtls13".utf8) + Array(label.utf8)
    let info =
      [UInt8(truncatingIfNeeded: count >> 8), UInt8(truncatingIfNeeded: count)]
      + [UInt8(label.count)] + label + [UInt8(context.count)] + context
    return hash.expand(secret, info, count: count)
  }

  /// Returns the exporter value for a label without a context (RFC 8446 section 7.5).
  func export(_ exporterSecret: [UInt8], _ label: String, count: Int) -> [UInt8] {
    let derived = expand(exporterSecret, label, context: hash.hash([]), count: hash.length)
    return expand(derived, "exporter", context: hash.hash([]), count: count)
  }
}

// MARK: - DTLSTrafficKeys

/// The record keys of both endpoints of an association.
struct DTLSTrafficKeys: Sendable {
  /// An end's DTLS 1.3 keys, for the handshake and for successive epochs.
  private struct End: Sendable {
    var handshake: EpochProtection?
    var traffic: EpochProtection?
    /// The secret from which the next epoch's secret is derived (RFC 8446 section 7.2).
    var secret: [UInt8] = []
    var epoch: UInt64 = 3
  }

  private var protections: [DTLSRecordProtection?] = [nil, nil]
  private var ends = [End(), End()]
  private var schedule: KeySchedule?
  private var cipher: AEADCipher?

  /// Whether there are keys for application data.
  var isReady: Bool {
    protections[0] != nil || ends[0].traffic != nil && ends[1].traffic != nil
  }

  /// Exchanges the keys of the ends.
  mutating func swapEnds() {
    protections.reverse()
    ends.reverse()
  }

  /// Derives the keys for which the log has secrets.
  mutating func derive(_ secrets: LoggedSecrets, _ facts: DTLSFacts) {
    guard let suite = facts.cipherSuite, let serverRandom = facts.serverRandom else { return }
    let order = facts.client == 0 ? [0, 1] : [1, 0]
    guard facts.isVersion13 else {
      guard protections[0] == nil, let master = secrets[.masterSecret], let name = suite.name
      else { return }
      let all = DTLSSecrets(
        clientRandom: facts.clientRandom, serverRandom: serverRandom, masterSecret: master)
      for (end, role) in zip(order, [DTLSRole.client, .server]) {
        protections[end] = DTLSRecordProtection(all, cipherSuite: name, sender: role)
      }
      return
    }
    guard let cipher = suite.cipher else { return }
    let schedule = KeySchedule(hash: suite.hash)
    self.schedule = schedule
    self.cipher = cipher
    let labels: [(SecretLabel, SecretLabel)] = [
      (.clientHandshake, .clientTraffic), (.serverHandshake, .serverTraffic),
    ]
    for (end, (handshake, traffic)) in zip(order, labels) {
      if ends[end].handshake == nil, let secret = secrets[handshake] {
        ends[end].handshake = EpochProtection(secret, cipher, schedule)
      }
      if ends[end].traffic == nil, let secret = secrets[traffic] {
        ends[end].traffic = EpochProtection(secret, cipher, schedule)
        ends[end].secret = secret
      }
    }
  }

  /// Decrypts a record; returns nil if no key fits.
  mutating func open(_ record: DTLSFollower.Sealed, from end: Int, _ facts: DTLSFacts)
    -> (type: UInt8, text: [UInt8])?
  {
    switch record {
    case .plain(let record):
      return protections[end]?.open(record).map { (record.type, $0) }
    case .unified(let record):
      if record.epochBits == 2, let opened = ends[end].handshake?.open(record) { return opened }
      guard ends[end].traffic != nil else { return nil }
      if UInt64(record.epochBits) == ends[end].epoch & 3 {
        return ends[end].traffic?.open(record)
      }
      // The sender may have advanced to its next epoch (RFC 9147 section 8).
      guard UInt64(record.epochBits) == (ends[end].epoch + 1) & 3, let schedule, let cipher else {
        return nil
      }
      let secret = schedule.expand(
        ends[end].secret, "traffic upd", count: schedule.hash.length)
      var next = EpochProtection(secret, cipher, schedule)
      guard let opened = next.open(record) else { return nil }
      ends[end].traffic = next
      ends[end].secret = secret
      ends[end].epoch += 1
      return opened
    }
  }
}

// MARK: - UnifiedRecord

/// A DTLS 1.3 ciphertext record as in a datagram (RFC 9147 section 4).
struct UnifiedRecord: Sendable {
  /// The low two bits of the epoch.
  var epochBits: UInt8
  /// The header as on the wire, with the encrypted record number.
  var header: [UInt8]
  /// The record number's range in the header: one or two bytes.
  var number: Range<Int>
  var sealed: [UInt8]

  /// Returns whether a record with this first byte has this format.
  static func matches(_ first: UInt8) -> Bool { first & 0xe0 == 0x20 }

  /// Reads the record at an offset and advances; returns nil if it is malformed or has a connection
  /// id, whose length only the ends know.
  static func read(_ bytes: RawSpan, at offset: inout Int) -> UnifiedRecord? {
    guard offset < bytes.byteCount else { return nil }
    let first = bytes.byte(at: offset)
    guard matches(first), first & 0x10 == 0 else { return nil }
    let numberLength = first & 0x08 != 0 ? 2 : 1
    let hasLength = first & 0x04 != 0
    let headerLength = 1 + numberLength + (hasLength ? 2 : 0)
    guard bytes.byteCount - offset >= headerLength else { return nil }
    let begin = offset + headerLength
    let length =
      hasLength ? Int(bytes.uint16(at: begin - 2)) : bytes.byteCount - begin
    guard length >= AEADCipher.tagLength + 1, length <= bytes.byteCount - begin else { return nil }
    let record = UnifiedRecord(
      epochBits: first & 3, header: [UInt8](bytes.extracting(offset..<begin)),
      number: 1..<1 + numberLength, sealed: [UInt8](bytes.extracting(begin..<begin + length)))
    offset = begin + length
    return record
  }
}

/// Decrypts one side's records in one epoch of DTLS 1.3.
struct EpochProtection: Sendable {
  private let cipher: AEADCipher
  private let key: [UInt8]
  private let vector: [UInt8]
  private let numberKey: [UInt8]
  /// The highest decrypted record number plus one.
  private var next: UInt64 = 0

  /// Derives the keys from a traffic secret.
  init(_ secret: [UInt8], _ cipher: AEADCipher, _ schedule: KeySchedule) {
    self.cipher = cipher
    key = schedule.expand(secret, "key", count: cipher.keyLength)
    vector = schedule.expand(secret, "iv", count: AEADCipher.nonceLength)
    numberKey = schedule.expand(secret, "sn", count: cipher.keyLength)
  }

  /// Decrypts a record; returns nil if it belongs to another epoch or is damaged.
  mutating func open(_ record: UnifiedRecord) -> (type: UInt8, text: [UInt8])? {
    guard var text = openPadded(record)?.text else { return nil }
    // The content type follows the plaintext, and zero padding may follow it (RFC 8446 section
    // 5.4).
    while text.last == 0 { text.removeLast() }
    guard let type = text.popLast() else { return nil }
    return (type, text)
  }

  /// Encrypts plaintext that includes its type and padding, under a decrypted record's number; nil
  /// if OpenSSL fails.
  func seal(_ text: [UInt8], _ opened: Opened, number range: Range<Int>) -> [UInt8]? {
    guard
      let made = cipher.seal(
        text, key: key, nonce: nonce(opened.number), additional: opened.header)
    else { return nil }
    let sealed = made.sealed + made.tag
    guard let mask = cipher.mask(key: numberKey, sample: Array(sealed.prefix(16))) else {
      return nil
    }
    var header = opened.header
    for (index, place) in range.enumerated() { header[place] ^= mask[index] }
    return header + sealed
  }

  /// A decrypted record: the header with the record number in the clear, the full record number,
  /// and the plaintext with its type and padding.
  struct Opened {
    var header: [UInt8]
    var number: UInt64
    var text: [UInt8]
  }

  private func nonce(_ number: UInt64) -> [UInt8] {
    var nonce = vector
    for index in 0..<8 {
      nonce[4 + index] ^= UInt8(truncatingIfNeeded: number >> (56 - 8 * UInt64(index)))
    }
    return nonce
  }

  mutating func openPadded(_ record: UnifiedRecord) -> Opened? {
    guard let mask = cipher.mask(key: numberKey, sample: Array(record.sealed.prefix(16))) else {
      return nil
    }
    var header = record.header
    var low: UInt64 = 0
    for (index, place) in record.number.enumerated() {
      header[place] ^= mask[index]
      low = low << 8 | UInt64(header[place])
    }
    // Picks the number nearest to the expected number (RFC 9147 section 4.2.2).
    let range: UInt64 = record.number.count == 2 ? 1 << 16 : 1 << 8
    var number = next & ~(range - 1) | low
    if number + range / 2 < next {
      number += range
    } else if number >= range, number > next + range / 2 {
      number -= range
    }
    guard
      let text = cipher.open(
        Array(record.sealed.dropLast(AEADCipher.tagLength)),
        tag: Array(record.sealed.suffix(AEADCipher.tagLength)), key: key, nonce: nonce(number),
        additional: header)
    else { return nil }
    next = max(next, number + 1)
    return Opened(header: header, number: number, text: text)
  }
}

// MARK: - RecordResealing

/// Decrypts one side's DTLS 1.3 records, and encrypts them again under other secrets, with other
/// contents.
package struct RecordResealing: Sendable {
  private struct Epoch: Sendable {
    var number: UInt64
    /// The secrets from which the next epoch's secrets are derived.
    var secrets: (old: [UInt8], new: [UInt8])
    var old: EpochProtection
    var new: EpochProtection
  }

  private let schedule: KeySchedule
  private let cipher: AEADCipher
  private var epochs: [Epoch] = []
  private static let epochsMaximum = 16

  /// Derives the keys from logged secrets; nil if the suite does not belong to TLS 1.3, or if the
  /// logs have no secrets of this side.
  package init?(
    _ suite: CipherSuite, old: LoggedSecrets, new: LoggedSecrets, isClient: Bool
  ) {
    guard let cipher = suite.cipher else { return nil }
    (self.cipher, schedule) = (cipher, KeySchedule(hash: suite.hash))
    let labels: [SecretLabel] =
      isClient ? [.clientHandshake, .clientTraffic] : [.serverHandshake, .serverTraffic]
    for (number, label) in zip(UInt64(2)..., labels) {
      guard let before = old[label], let after = new[label] else { continue }
      epochs.append(epoch(number, before, after))
    }
    guard !epochs.isEmpty else { return nil }
  }

  private func epoch(_ number: UInt64, _ old: [UInt8], _ new: [UInt8]) -> Epoch {
    Epoch(
      number: number, secrets: (old, new), old: EpochProtection(old, cipher, schedule),
      new: EpochProtection(new, cipher, schedule))
  }

  /// Returns the record at an offset with other contents, and advances; nil if no key opens it.
  ///
  /// - Parameter change: receives the content type and the contents, and returns the same number of
  ///   bytes.
  package mutating func rewritten(
    _ bytes: [UInt8], at offset: inout Int,
    _ change: (_ type: UInt8, _ contents: [UInt8]) -> [UInt8]
  ) -> [UInt8]? {
    var end = offset
    guard let record = UnifiedRecord.read(bytes.span.bytes, at: &end) else { return nil }
    if let last = epochs.last, last.number >= 3, epochs.count < Self.epochsMaximum,
      UInt64(record.epochBits) == (last.number + 1) & 3
    {
      // The sender may have advanced to its next epoch (RFC 9147 section 8).
      let (old, new) = last.secrets
      let secrets = [old, new].map {
        schedule.expand($0, "traffic upd", count: schedule.hash.length)
      }
      epochs.append(epoch(last.number + 1, secrets[0], secrets[1]))
    }
    for place in epochs.indices.reversed()
    where UInt64(record.epochBits) == epochs[place].number & 3 {
      guard var opened = epochs[place].old.openPadded(record) else { continue }
      guard let end = opened.text.lastIndex(where: { $0 != 0 }) else { return nil }
      let contents = Array(opened.text[..<end])
      let changed = change(opened.text[end], contents)
      guard changed.count == contents.count else { return nil }
      opened.text.replaceSubrange(..<end, with: changed)
      guard let made = epochs[place].new.seal(opened.text, opened, number: record.number) else {
        return nil
      }
      offset += made.count
      return made
    }
    return nil
  }
}

extension LoggedSecrets {
  /// Returns a DTLS 1.3 association's SRTP keys with salts, for both sides (RFC 5764 section 4.2);
  /// nil if the profile is not supported or a secret is missing.
  package func srtpKeys(
    _ profile: SRTPProfile, _ suite: CipherSuite
  ) -> (client: [UInt8], server: [UInt8])? {
    guard let secret = self[.exporter], let count = profile.keyingMaterialLength else { return nil }
    let material = KeySchedule(hash: suite.hash).export(
      secret, "EXTRACTOR-dtls_srtp", count: count)
    return profile.keys(in: material, role: .client).map { ($0.send, $0.receive) }
  }
}
