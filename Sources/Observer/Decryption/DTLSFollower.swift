import Crypto
package import Secure
package import Wire

/// What is known of a DTLS association that others have.
package struct DTLSFacts: Hashable, Sendable {
  /// Which of the two ends is the client: 0 or 1.
  package var client: Int
  package var clientRandom: [UInt8]
  package var serverRandom: [UInt8]?
  /// As on the wire: 0xFEFD for 1.2, 0xFEFC for 1.3.
  package var version: UInt16?
  package var cipherSuite: CipherSuite?
  /// What the client offers, in its order.
  package var offeredProfiles: [SRTPProfile] = []
  /// What the server chose; nil as long as that was not seen.
  package var profile: SRTPProfile?
  /// Whether the message that tells the profile was seen, with a choice or without.
  package var profileIsKnown = false
  package var usesExtendedMasterSecret = false
  /// The sha-256 of each end's certificate, where it was seen.
  package var fingerprints: [CertificateFingerprint?] = [nil, nil]

  /// Whether this is DTLS 1.3.
  package var isVersion13: Bool { version == 0xfefc }
  /// The random value of the client in hexadecimal, by which key logs name the association.
  package var name: String { hexadecimal(clientRandom) }
}

/// Follows a DTLS association from the datagrams of both ends, as far as they and a key log tell.
///
/// It needs neither certificate nor private key, and changes nothing. Versions are 1.0 to 1.3; in
/// 1.3 (RFC 9147) most of the handshake is protected and is read with the secrets of the log.
/// Datagrams may be lost, repeated and reordered.
package struct DTLSFollower: Sendable {
  /// What a datagram told.
  package enum Event: Hashable, Sendable {
    /// An association began, or more is known of it.
    case facts(DTLSFacts)
    /// Both ends are done with the handshake.
    case connected
    /// SRTP can be opened now: the key with its salt of each end.
    case srtpKeys(SRTPProfile, [[UInt8]])
    /// What an end sent: an SCTP packet.
    case data(from: Int, [UInt8])
    /// An alert of an end, with the number of its description; nil while it is encrypted.
    case alert(from: Int, description: UInt8?)
  }

  enum ContentType {
    static let changeCipherSpec: UInt8 = 20
    static let alert: UInt8 = 21
    static let handshake: UInt8 = 22
    static let applicationData: UInt8 = 23
  }

  /// How many protected records wait for their keys, and how many bytes of them.
  private static let waitingMaximum = 512
  private static let waitingBytesMaximum = 1 << 20

  package private(set) var facts: DTLSFacts?
  private var assemblers = [HandshakeAssembler(), HandshakeAssembler()]
  var keys = DTLSTrafficKeys()
  private var isFinished = [false, false]
  private var isConnected = false
  private var gaveSRTPKeys = false
  /// Messages that came before the ClientHello.
  private var early: [(from: Int, message: HandshakeMessage)] = []
  private static let earlyMaximum = 16
  private var waiting: [(from: Int, record: Sealed)] = []
  private var waitingBytes = 0

  /// How many protected records wait for their keys.
  package var waitingRecords: Int { waiting.count }

  /// Protected records that their keys did not open, and those that were too many to wait.
  package private(set) var sealedRecords: UInt64 = 0
  package private(set) var droppedRecords: UInt64 = 0
  package private(set) var openedRecords: UInt64 = 0
  /// Records of data among those that no key opened and that do not wait.
  private var lostData: UInt64 = 0

  /// Records of data channels that are not opened so far.
  package var unopenedData: UInt64 {
    lostData + UInt64(waiting.count { $0.record.isData })
  }

  /// A protected record of either kind.
  enum Sealed: Sendable {
    case plain(DTLSRecord)
    case unified(UnifiedRecord)

    var count: Int {
      switch self {
      case .plain(let record): record.fragment.count
      case .unified(let record): record.sealed.count
      }
    }

    /// Whether it has a packet of SCTP, as far as it shows: acknowledgements of DTLS 1.3 have the
    /// same form, and are shorter than any packet with a chunk of data.
    var isData: Bool {
      switch self {
      case .plain(let record): record.type == ContentType.applicationData
      case .unified(let record): record.epochBits == 3 && record.sealed.count > 60
      }
    }
  }

  package init() {}

  /// Takes a datagram of an end, 0 or 1.
  package mutating func take(
    _ datagram: [UInt8], from end: Int, _ log: NSSKeyLog, into events: inout [Event]
  ) {
    var offset = 0
    while offset < datagram.count {
      if UnifiedRecord.matches(datagram[offset]) {
        guard let record = UnifiedRecord.read(datagram.span.bytes, at: &offset) else { return }
        take(.unified(record), from: end, log, &events)
      } else {
        guard let record = DTLSRecord.read(datagram.span.bytes, at: &offset) else { return }
        take(record, from: end, log, &events)
      }
    }
  }

  /// Tries again with a log that has grown.
  package mutating func retry(_ log: NSSKeyLog, into events: inout [Event]) {
    findKeys(log, &events)
    guard keys.isReady else { return }
    let records = waiting
    waiting = []
    waitingBytes = 0
    for (from, record) in records { take(record, from: from, log, &events) }
  }

  private mutating func take(
    _ record: DTLSRecord, from end: Int, _ log: NSSKeyLog, _ events: inout [Event]
  ) {
    guard record.epoch == 0 else { return take(.plain(record), from: end, log, &events) }
    switch record.type {
    case ContentType.handshake: read(record.fragment, from: end, log, &events)
    case ContentType.alert where record.fragment.count == 2:
      events.append(.alert(from: end, description: record.fragment[1]))
    default: break
    }
  }

  /// Opens a protected record, or lets it wait for its key.
  private mutating func take(
    _ record: Sealed, from end: Int, _ log: NSSKeyLog, _ events: inout [Event]
  ) {
    guard let facts else { return wait(record, from: end) }
    if case .plain(let plain) = record, plain.type == ContentType.handshake {
      // Nothing but Finished is protected in the handshake of 1.2.
      finish(end, &events)
      return
    }
    guard let (type, text) = keys.open(record, from: end, facts) else {
      if keys.isReady {
        sealedRecords += 1
        if record.isData { lostData += 1 }
      } else {
        wait(record, from: end)
        if case .plain(let plain) = record, plain.type == ContentType.alert {
          events.append(.alert(from: end, description: nil))
        }
        // What comes after the handshake shows that it is over.
        if case .unified(let unified) = record, unified.epochBits == 3 { finish(end, &events) }
        if case .plain(let plain) = record, plain.type == ContentType.applicationData {
          finish(end, &events)
        }
      }
      return
    }
    openedRecords += 1
    switch type {
    case ContentType.handshake: read(text, from: end, log, &events)
    case ContentType.applicationData:
      finish(end, &events)
      events.append(.data(from: end, text))
    case ContentType.alert where text.count == 2:
      events.append(.alert(from: end, description: text[1]))
    default: break
    }
  }

  private mutating func wait(_ record: Sealed, from end: Int) {
    guard waiting.count < Self.waitingMaximum,
      waitingBytes + record.count <= Self.waitingBytesMaximum
    else {
      droppedRecords += 1
      if record.isData { lostData += 1 }
      return
    }
    waitingBytes += record.count
    waiting.append((end, record))
  }

  private mutating func finish(_ end: Int, _ events: inout [Event]) {
    isFinished[end] = true
    guard isFinished[0], isFinished[1], !isConnected else { return }
    isConnected = true
    events.append(.connected)
  }

  // MARK: Handshake

  private mutating func read(
    _ text: [UInt8], from end: Int, _ log: NSSKeyLog, _ events: inout [Event]
  ) {
    // A new association begins with the number 0, and with another random value.
    if let known = facts?.clientRandom, let hello = DTLSFollower.firstClientHello(text),
      hello != known
    {
      let dropped = droppedRecords
      self = DTLSFollower()
      droppedRecords = dropped
    }
    for message in assemblers[end].add(text.span.bytes) {
      read(message, from: end, log, &events)
    }
  }

  /// The random value of a ClientHello that begins an association, whether it is whole or not.
  private static func firstClientHello(_ text: [UInt8]) -> [UInt8]? {
    // Type, length, sequence number, offset and length of the fragment; then version and random.
    guard text.count >= 12 + 34, text[0] == 1, text[4] == 0, text[5] == 0,
      text[6..<9].allSatisfy({ $0 == 0 })
    else { return nil }
    return Array(text[14..<46])
  }

  private mutating func read(
    _ message: HandshakeMessage, from end: Int, _ log: NSSKeyLog, _ events: inout [Event]
  ) {
    let body = message.body.span.bytes
    // Without the ClientHello nothing has a name; it may still come.
    if facts == nil, message.type != 1 {
      if early.count < Self.earlyMaximum { early.append((end, message)) }
      return
    }
    switch message.type {
    case 1:
      guard facts?.serverRandom == nil, let hello = try? Hello(client: body) else { return }
      let fresh = DTLSFacts(
        client: end, clientRandom: hello.random, offeredProfiles: hello.profiles)
      guard fresh != facts else { return }
      facts = fresh
      let messages = early
      early = []
      for (from, message) in messages { read(message, from: from, log, &events) }
    case 2:
      guard let hello = try? Hello(server: body), !hello.asksForAnother, facts?.client != end
      else { return }
      facts?.serverRandom = hello.random
      facts?.version = hello.versions.first
      facts?.cipherSuite = hello.cipherSuite
      facts?.usesExtendedMasterSecret = hello.usesExtendedMasterSecret
      if facts?.isVersion13 == false {
        facts?.profile = hello.profiles.first
        facts?.profileIsKnown = true
      }
    case 8:
      guard let hello = try? Hello(encryptedExtensions: body) else { return }
      facts?.profile = hello.profiles.first
      facts?.profileIsKnown = true
    case 11:
      guard let facts,
        let certificate = CertificateMessage.first(in: body, isVersion13: facts.isVersion13),
        let hash = certificateHash("sha-256", certificate)
      else { return }
      let value = hash.map { hexadecimal([$0]) }.joined(separator: ":")
      self.facts?.fingerprints[end] = CertificateFingerprint(algorithm: "sha-256", value: value)
    case 20:
      finish(end, &events)
      return
    default: return
    }
    if let facts { events.append(.facts(facts)) }
    findKeys(log, &events)
  }

  // MARK: Keys

  private mutating func findKeys(_ log: NSSKeyLog, _ events: inout [Event]) {
    guard let facts, facts.serverRandom != nil, let secrets = log.secrets(of: facts.clientRandom)
    else { return }
    let wasReady = keys.isReady
    keys.derive(secrets, facts)
    if !wasReady, keys.isReady, !waiting.isEmpty {
      let records = waiting
      waiting = []
      waitingBytes = 0
      for (from, record) in records { take(record, from: from, log, &events) }
    }
    guard !gaveSRTPKeys, let profile = self.facts?.profile,
      let pair = srtpKeys(profile, log)
    else { return }
    gaveSRTPKeys = true
    events.append(.srtpKeys(profile, pair))
  }

  /// The SRTP key with its salt of each end, if the log has what they derive from (RFC 5764
  /// section 4.2).
  ///
  /// Where the choice of the profile was not seen, each of `offeredProfiles` can be tried.
  package func srtpKeys(_ profile: SRTPProfile, _ log: NSSKeyLog) -> [[UInt8]]? {
    guard let facts, let serverRandom = facts.serverRandom, let suite = facts.cipherSuite,
      let secrets = log.secrets(of: facts.clientRandom)
    else { return nil }
    let pair: (send: [UInt8], receive: [UInt8])?
    if facts.isVersion13 {
      guard let exporter = secrets[.exporter], let count = profile.keyingMaterialLength else {
        return nil
      }
      let material = KeySchedule(hash: suite.hash).export(
        exporter, "EXTRACTOR-dtls_srtp", count: count)
      pair = profile.keys(in: material, role: .client)
    } else {
      guard let master = secrets[.masterSecret] else { return nil }
      pair = DTLSSecrets(
        clientRandom: facts.clientRandom, serverRandom: serverRandom, masterSecret: master
      ).srtpKeys(profile, cipherSuite: suite.name ?? "", role: .client)
    }
    guard let pair else { return nil }
    return facts.client == 0 ? [pair.send, pair.receive] : [pair.receive, pair.send]
  }
}

/// Finds out whether a DTLS client offers SRTP (RFC 5764 section 4.1.1), which those of calls do
/// and those of other things under DTLS do not.
package struct ClientHelloReader: Sendable {
  private var assembler = HandshakeAssembler()

  package init() {}

  /// Reads the next datagram of the client: whether it offers SRTP, or nil while its ClientHello is
  /// not whole.
  package mutating func offersSRTP(_ datagram: RawSpan) -> Bool? {
    var offset = 0
    while let record = DTLSRecord.read(datagram, at: &offset) {
      guard record.epoch == 0, record.type == DTLSFollower.ContentType.handshake else { continue }
      for message in assembler.add(record.fragment.span.bytes) where message.type == 1 {
        let hello = try? Hello(client: message.body.span.bytes)
        return hello?.profiles.isEmpty == false
      }
    }
    return nil
  }
}
