import Crypto
import ICE
import Observer
import Peer
import RTP
import Secure
import Tape
import Wire

/// Replaces the contents of datagrams without changing their length.
///
/// Integrity tags, checksums and encryption are recomputed, so the datagrams stay valid.
final class RedactedPackets {
  private let text: RedactedText
  private let media: RedactedMedia
  private var standIns: StandIns { text.standIns }
  private var parts: Redaction.Parts { standIns.parts }
  /// The ICE passwords, and the TURN keys derived from name, realm and password.
  private let secrets: STUNSecrets
  private var associations: [UInt32: [RedactedAssociation]] = [:]
  /// Redacts data channels; it remembers each stream's protocol, since a message may span several
  /// chunks.
  private var sctp = RedactedSCTP()
  /// The keys of both sides of observed DTLS 1.3 associations.
  private var resealings: [RecordResealing] = []

  init(_ text: RedactedText, _ survey: RedactionSurvey) {
    self.text = text
    media = RedactedMedia(text, survey.payloadTypes)
    secrets = survey.secrets
    for found in survey.associations {
      guard let made = RedactedAssociation(found, text) else { continue }
      associations[found.peer, default: []].append(made)
    }
    addVersion13(survey)
    for old in survey.srtpKeys.sorted() {
      add(try? SRTPKey(parsing: old), as: try? SRTPKey(parsing: text.srtpKey(old)))
    }
    for old in survey.cryptoAttributes.sorted() {
      let keys = [old, text.crypto(old)].map { CryptoAttribute($0)?.srtpKeys ?? [] }
      for (old, new) in zip(keys[0], keys[1]) { add(old, as: new) }
    }
  }

  /// Adds the DTLS 1.3 associations that an observer saw and whose secrets are in a key log.
  private func addVersion13(_ survey: RedactionSurvey) {
    var logs = (old: NSSKeyLog(), new: NSSKeyLog())
    for log in survey.keyLogs {
      _ = logs.old.append(log.utf8)
      _ = logs.old.finish()
      _ = logs.new.append(text.value(log, key: "keylog").utf8)
      _ = logs.new.finish()
    }
    for hello in survey.hellosOfVersion13 {
      guard let random = hello.clientRandom, let suite = hello.suite.map(CipherSuite.init),
        let renewed = [UInt8](hexadecimal: standIns.word(hexadecimal(random), .keys)),
        let old = logs.old.secrets(of: random), let new = logs.new.secrets(of: renewed)
      else { continue }
      resealings += [true, false].compactMap {
        RecordResealing(suite, old: old, new: new, isClient: $0)
      }
      // The chosen profile was sent encrypted, so all profiles are tried; only the right one
      // decrypts a packet.
      for profile in RedactedAssociation.profiles {
        guard let before = old.srtpKeys(profile, suite), let after = new.srtpKeys(profile, suite),
          let protection = SRTPSuite(profile)
        else { continue }
        for (old, new) in [(before.client, after.client), (before.server, after.server)] {
          guard let made = RedactedAssociation(protection, old: old, new: new) else { continue }
          associations[0, default: []].append(made)
        }
      }
    }
  }

  /// Adds an SRTP key that a user or a description provided for an observed call.
  private func add(_ old: SRTPKey?, as new: SRTPKey?) {
    guard let old, let new, old.bytes.count == new.bytes.count else { return }
    for suite in old.suites {
      guard
        let made = RedactedAssociation(
          suite, old: old.bytes, new: new.bytes, identifier: old.identifier)
      else { continue }
      associations[0, default: []].append(made)
    }
  }

  /// Redacts a datagram; `peer` is 0 if an observer saw it.
  func datagram(_ bytes: [UInt8], of peer: UInt32, isInbound: Bool) -> [UInt8] {
    guard let first = bytes.first else { return bytes }
    if first >= 0x40, first < 0x50 { return channel(bytes, of: peer, isInbound) }
    switch DatagramClass(bytes.span.bytes) {
    case .stun: return stun(bytes, of: peer, isInbound)
    case .dtls: return dtls(bytes, of: peer, isInbound)
    case .rtp: return rtp(bytes, of: peer, isInbound, isRTCP: false)
    case .rtcp: return rtp(bytes, of: peer, isInbound, isRTCP: true)
    case _ where RedactedSCTP.isPacket(bytes):
      // A relay decrypts data channels, so its observer sees SCTP packets in the clear.
      return sctp.packet(bytes, text)
    default:
      // The protocol is unknown, so only the first byte, which classifies the datagram, is kept.
      return [first] + [UInt8](repeating: 0xaa, count: bytes.count - 1)
    }
  }

  /// Redacts the datagram in a TURN ChannelData message (RFC 8656 section 12.4).
  private func channel(_ bytes: [UInt8], of peer: UInt32, _ isInbound: Bool) -> [UInt8] {
    guard bytes.count >= 4 else { return bytes }
    let length = Int(bytes[2]) << 8 | Int(bytes[3])
    let inner = Array(bytes.dropFirst(4).prefix(length))
    return Array(bytes[..<4]) + datagram(inner, of: peer, isInbound: isInbound)
      + bytes.dropFirst(4 + inner.count)
  }

  // MARK: STUN

  private func stun(_ bytes: [UInt8], of peer: UInt32, _ isInbound: Bool) -> [UInt8] {
    guard let message = try? STUNMessage(bytes) else {
      return Array(bytes.prefix(20)) + [UInt8](repeating: 0, count: max(0, bytes.count - 20))
    }
    var made = bytes
    var integrity: Range<Int>?
    var fingerprint: Range<Int>?
    for attribute in message.attributes {
      let old = Array(bytes[attribute.range])
      switch attribute.type {
      case .messageIntegrity where integrity == nil: integrity = attribute.range
      case .fingerprint: fingerprint = attribute.range
      case .data:
        made.replaceSubrange(attribute.range, with: datagram(old, of: peer, isInbound: isInbound))
      default: made.replaceSubrange(attribute.range, with: value(old, attribute.type, message))
      }
    }
    if let integrity, integrity.count == 20 {
      let key = secrets.newKey(of: message, text)
      let tag: [UInt8]
      if let key {
        // The tag is computed as if this attribute were the last one, so the length in the header
        // must not include the attributes after it (RFC 8489 section 14.5).
        var covered = Array(made[..<(integrity.lowerBound - 4)])
        let length = integrity.upperBound - STUNMessage.headerLength
        covered[2] = UInt8(truncatingIfNeeded: length >> 8)
        covered[3] = UInt8(truncatingIfNeeded: length)
        tag = hmacSHA1(key: key, covered.span.bytes)
      } else {
        tag = standIns.noise("integrity", Array(bytes[integrity]), count: 20)
      }
      made.replaceSubrange(integrity, with: tag)
    }
    if let fingerprint, fingerprint.count == 4 {
      let covered = Array(made[..<(fingerprint.lowerBound - 4)])
      let sum = crc32(covered.span.bytes) ^ 0x5354_554e
      made.replaceSubrange(
        fingerprint, with: (0..<4).map { UInt8(truncatingIfNeeded: sum >> UInt32(24 - 8 * $0)) })
    }
    return made
  }

  /// Returns a replacement for an attribute's value, with the same length.
  private func value(_ old: [UInt8], _ type: STUNAttributeType, _ message: STUNMessage) -> [UInt8] {
    func words(_ part: Redaction.Parts) -> [UInt8] {
      Array(standIns.word(String(decoding: old, as: UTF8.self), part).utf8)
    }
    let made: [UInt8]
    switch type {
    case .mappedAddress, .alternateServer, STUNAttributeType(rawValue: 0x802b),
      STUNAttributeType(rawValue: 0x802c):
      made = address(old, nil)
    case .xorMappedAddress, .xorPeerAddress, .xorRelayedAddress,
      STUNAttributeType(rawValue: 0x8020):
      made = address(old, message.transactionID)
    case .username:
      let name = String(decoding: old, as: UTF8.self)
      made = Array(
        (standIns.known(name)
          ?? name.split(separator: ":", omittingEmptySubsequences: false)
          .map { standIns.word(String($0), .keys) }.joined(separator: ":")).utf8)
    case .realm: made = Array(secrets.realm(old, text).utf8)
    case .nonce: made = words(.keys)
    case .software: made = words(.names)
    case .errorCode: made = Array(old.prefix(4)) + standInReason(Array(old.dropFirst(4)))
    case .messageIntegritySHA256, .userHash, .reservationToken:
      made =
        parts.contains(.keys)
        ? standIns.noise("attribute", old, count: old.count) : old
    default: made = type.isKnown || old.count <= 8 ? old : [UInt8](repeating: 0, count: old.count)
    }
    return made.count == old.count ? made : [UInt8](repeating: 0x78, count: old.count)
  }

  private func standInReason(_ reason: [UInt8]) -> [UInt8] {
    Array(standIns.word(String(decoding: reason, as: UTF8.self), .names).utf8)
  }

  private func address(_ old: [UInt8], _ transaction: STUNTransactionID?) -> [UInt8] {
    guard let end = SocketAddress(stun: old.span.bytes, maskedBy: transaction) else { return old }
    let new = standIns.address(end)
    guard new != end, new.ip.isIPv4 == end.ip.isIPv4 else { return old }
    // The address and its stand-in are XORed with the same mask, so they differ in the same bits
    // with and without the mask.
    let change = zip(end.ip.bytes, new.ip.bytes).map { $0 ^ $1 }
    return Array(old.prefix(4)) + zip(old.dropFirst(4), change).map { $0 ^ $1 }
  }

  // MARK: DTLS

  private func dtls(_ bytes: [UInt8], of peer: UInt32, _ isInbound: Bool) -> [UInt8] {
    var made: [UInt8] = []
    var offset = 0
    // An encrypted record of DTLS 1.3 has a header of another form (RFC 9147 section 4).
    while offset < bytes.count {
      if bytes[offset] & 0xe0 == 0x20 {
        guard peer == 0, let made13 = resealed(bytes, at: &offset) else { break }
        made += made13
        continue
      }
      guard let record = DTLSRecord.read(bytes.span.bytes, at: &offset) else { break }
      let before = made.count
      var copy = record
      if record.epoch > 0 {
        copy = sealed(record, of: peer, isInbound)
      } else if parts.contains(.keys), record.type == 22 {
        copy.fragment = HandshakeText.replaced(record.fragment, standIns)
      }
      made += copy.bytes
      // The record keeps its own version, since a first ClientHello may have the version of DTLS
      // 1.0.
      if before + 2 < made.count { made[before + 1] = bytes[before + 1] }
      if before + 2 < made.count { made[before + 2] = bytes[before + 2] }
    }
    let rest = Array(bytes.dropFirst(made.count))
    guard !rest.isEmpty, !parts.isDisjoint(with: [.keys, .names, .messages]) else {
      return made + rest
    }
    // The header of an unreadable DTLS 1.3 record is kept, including the lowest bits of the
    // record's number.
    return made + rest.prefix(5)
      + standIns.noise("record", rest, count: max(0, rest.count - 5))
  }

  /// Returns the DTLS 1.3 record at an offset with its contents and keys replaced; nil if no key
  /// decrypts it.
  private func resealed(_ bytes: [UInt8], at offset: inout Int) -> [UInt8]? {
    for place in resealings.indices {
      let made = resealings[place].rewritten(bytes, at: &offset) { type, contents in
        switch type {
        case 22 where parts.contains(.keys):
          HandshakeText.replaced(contents, standIns, isVersion13: true)
        case DTLSRecord.applicationData: sctp.packet(contents, text)
        default: contents
        }
      }
      if let made { return made }
    }
    return nil
  }

  /// Returns the directions whose keys may decrypt a packet; an observed packet may be from either
  /// peer.
  private func directions(_ isInbound: Bool, of peer: UInt32) -> [Bool] {
    peer == 0 ? [true, false] : [isInbound]
  }

  private func sealed(_ record: DTLSRecord, of peer: UInt32, _ isInbound: Bool) -> DTLSRecord {
    guard parts != .addresses else { return record }
    for association in associations[peer] ?? [] {
      for isInbound in directions(isInbound, of: peer) {
        guard let plain = association.open(record, isInbound: isInbound) else { continue }
        let new =
          record.type == DTLSRecord.applicationData ? sctp.packet(plain, text) : plain
        if let sealed = association.seal(new, like: record, isInbound: isInbound) {
          return sealed
        }
      }
    }
    guard !parts.isDisjoint(with: [.keys, .names, .messages]) else { return record }
    var copy = record
    copy.fragment = standIns.noise("record", record.fragment, count: record.fragment.count)
    return copy
  }

  // MARK: RTP

  private func rtp(
    _ bytes: [UInt8], of peer: UInt32, _ isInbound: Bool, isRTCP: Bool
  ) -> [UInt8] {
    guard !parts.isDisjoint(with: [.media, .keys, .names, .messages]) else { return bytes }
    let known = associations[peer] ?? []
    for isInbound in directions(isInbound, of: peer) {
      for association in known {
        if let made = association.recent(bytes, isInbound: isInbound) { return made }
      }
      for association in known {
        guard let clear = association.opened(bytes, isInbound: isInbound, isRTCP: isRTCP) else {
          continue
        }
        let new = isRTCP ? media.rtcp(clear) : media.rtp(clear, of: peer)
        guard
          let made = association.protected(new, isInbound: isInbound, isRTCP: isRTCP),
          made.count == bytes.count
        else { break }
        association.remember(bytes, made, isInbound: isInbound)
        return made
      }
    }
    guard known.isEmpty else { return hidden(bytes, isRTCP: isRTCP) }
    guard isRTCP else { return media.rtp(bytes, of: peer) }
    return RedactedMedia.isClearRTCP(bytes) ? media.rtcp(bytes) : hidden(bytes, isRTCP: true)
  }

  /// Redacts an encrypted packet that no key decrypts: noise replaces everything after its header.
  private func hidden(_ bytes: [UInt8], isRTCP: Bool) -> [UInt8] {
    var head = 8
    if !isRTCP {
      let header = try? RTPHeader(parsing: bytes.span.bytes, isProtected: true)
      head = header?.payload.lowerBound ?? 12
    }
    guard bytes.count > head else { return bytes }
    return Array(bytes[..<head])
      + standIns.noise("protected", bytes, count: bytes.count - head)
  }
}

// MARK: - RedactedAssociation

/// The keys of a DTLS association, and the keys that replace them.
final class RedactedAssociation {
  private let records: [(old: DTLSRecordProtection, new: DTLSRecordProtection)?]
  private let packets: [SRTPReprotection?]
  /// Recent packets and their redacted bytes, so that duplicated packets stay equal.
  private var recentPackets: [[UInt8]: [UInt8]] = [:]
  private var recentOrder: [[UInt8]] = []
  private static let recentMaximum = 1_024

  /// - Parameter found: the association as the survey found it in the take.
  init?(_ found: RedactionSurvey.Association, _ text: RedactedText) {
    guard let role = DTLSRole(rawValue: found.role) else { return nil }
    let old = found.secrets
    func renewed(_ bytes: [UInt8]) -> [UInt8] {
      [UInt8](hexadecimal: text.standIns.word(hexadecimal(bytes), .keys)) ?? bytes
    }
    let new = DTLSSecrets(
      clientRandom: renewed(old.clientRandom), serverRandom: renewed(old.serverRandom),
      masterSecret: renewed(old.masterSecret))
    let other = role == .client ? DTLSRole.server : .client
    // The first element is for received records, the second for sent records.
    records = [other, role].map { sender in
      guard let before = DTLSRecordProtection(old, cipherSuite: found.cipherSuite, sender: sender),
        let after = DTLSRecordProtection(new, cipherSuite: found.cipherSuite, sender: sender)
      else { return nil }
      return (before, after)
    }
    guard let profile = SRTPProtection(rawValue: found.profile)?.profile,
      let suite = SRTPSuite(profile),
      let before = old.srtpKeys(profile, cipherSuite: found.cipherSuite, role: role),
      let after = new.srtpKeys(profile, cipherSuite: found.cipherSuite, role: role)
    else {
      packets = [nil, nil]
      return
    }
    packets = [
      try? SRTPReprotection(suite, old: before.receive, new: after.receive),
      try? SRTPReprotection(suite, old: before.send, new: after.send),
    ]
  }

  static let profiles: [SRTPProfile] = [
    .aes128CMSHA1_80, .aes128CMSHA1_32, .aeadAES128GCM, .aeadAES256GCM, .nullSHA1_80, .nullSHA1_32,
  ]

  /// Creates an association from a single SRTP key, which protects one direction.
  ///
  /// - Parameter identifier: the key's identifier in each packet (MKI); empty if packets have none.
  init?(_ suite: SRTPSuite, old: [UInt8], new: [UInt8], identifier: [UInt8] = []) {
    guard
      let made = try? SRTPReprotection(suite, old: old, new: new, identifier: identifier)
    else { return nil }
    records = [nil, nil]
    packets = [made, nil]
  }

  func open(_ record: DTLSRecord, isInbound: Bool) -> [UInt8]? {
    records[isInbound ? 0 : 1]?.old.open(record)
  }

  func seal(_ plain: [UInt8], like record: DTLSRecord, isInbound: Bool) -> DTLSRecord? {
    records[isInbound ? 0 : 1]?.new.seal(plain, like: record)
  }

  func opened(_ packet: [UInt8], isInbound: Bool, isRTCP: Bool) -> [UInt8]? {
    guard let pair = packets[isInbound ? 0 : 1] else { return nil }
    var clear = packet
    do throws(SRTPContext.Refusal) {
      try pair.open(&clear, isRTCP: isRTCP)
    } catch {
      return nil
    }
    return clear
  }

  func protected(_ clear: [UInt8], isInbound: Bool, isRTCP: Bool) -> [UInt8]? {
    guard let pair = packets[isInbound ? 0 : 1] else { return nil }
    var packet = clear
    do throws(SRTPContext.Refusal) {
      try pair.protect(&packet, isRTCP: isRTCP)
    } catch {
      return nil
    }
    return packet
  }

  func recent(_ packet: [UInt8], isInbound: Bool) -> [UInt8]? {
    recentPackets[(isInbound ? [1] : [0]) + packet]
  }

  func remember(_ old: [UInt8], _ new: [UInt8], isInbound: Bool) {
    let key = (isInbound ? [1] : [0]) + old
    if recentOrder.count >= Self.recentMaximum * 2 {
      for old in recentOrder[..<Self.recentMaximum] { recentPackets[old] = nil }
      recentOrder.removeFirst(Self.recentMaximum)
    }
    recentOrder.append(key)
    recentPackets[key] = new
  }
}

// MARK: - STUNSecrets

/// Passwords that authenticate STUN and TURN messages.
final class STUNSecrets {
  /// The ICE passwords (RFC 8489 section 9.1); the password that matched last is tried first.
  private var passwords: [String] = []
  /// The TURN names and passwords, and the realms of TURN servers (RFC 8489 section 9.2).
  private var accounts: [(name: String, password: String)] = []
  private var realms: [String] = []
  private var longTerm: [(old: [UInt8], new: [UInt8])] = []

  private static let maximum = 1_000

  func add(password: String) {
    guard !passwords.contains(password), passwords.count < Self.maximum else { return }
    passwords.append(password)
  }

  func add(name: String, password: String) {
    guard !accounts.contains(where: { $0 == (name, password) }), accounts.count < Self.maximum
    else { return }
    accounts.append((name, password))
  }

  /// Returns the key for the redacted message's integrity; nil if no known password fits the
  /// original.
  func newKey(of message: STUNMessage, _ text: RedactedText) -> [UInt8]? {
    if let index = passwords.firstIndex(where: {
      message.verifiesIntegrity(key: Array($0.utf8))
    }) {
      let password = passwords.remove(at: index)
      passwords.insert(password, at: 0)
      return Array(text.standIns.word(password, .keys).utf8)
    }
    return longTerm.first { message.verifiesIntegrity(key: $0.old) }?.new
  }

  /// Returns a replacement for a realm, which usually is a host name.
  func realm(_ old: [UInt8], _ text: RedactedText) -> String {
    let name = String(decoding: old, as: UTF8.self)
    let host = text.host(name)
    let new = host.utf8.count == old.count ? host : text.standIns.word(name, .addresses)
    if !realms.contains(name), realms.count < Self.maximum {
      realms.append(name)
      for account in accounts {
        longTerm.append(
          (
            stunLongTermKey(username: account.name, realm: name, password: account.password),
            stunLongTermKey(
              username: text.standIns.word(account.name, .keys), realm: new,
              password: text.standIns.word(account.password, .keys))
          ))
      }
    }
    return new
  }
}
