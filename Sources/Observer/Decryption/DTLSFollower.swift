import Crypto
package import Secure
package import Wire

/// The known facts about an observed DTLS association.
package struct DTLSFacts: Hashable, Sendable {
  /// The client's index: 0 or 1.
  package var client: Int
  package var clientRandom: [UInt8]
  package var serverRandom: [UInt8]?
  /// The version as on the wire: 0xFEFD for 1.2, 0xFEFC for 1.3; nil until it is seen.
  package var version: UInt16?
  package var cipherSuite: CipherSuite?
  /// The profiles that the client offers, in order of preference.
  package var offeredProfiles: [SRTPProfile] = []
  /// The profile that the server chose; nil until it is seen, and if the server chose none.
  package var profile: SRTPProfile?
  /// Whether the message that states the server's choice was seen, even if the server chose none.
  package var profileIsKnown = false
  package var usesExtendedMasterSecret = false
  /// The certificates' SHA-256 fingerprints, if the certificates were seen.
  package var fingerprints: [CertificateFingerprint?] = [nil, nil]

  package var isVersion13: Bool { version == 0xfefc }
  /// The client random in hexadecimal, by which key logs identify the association.
  package var name: String { hexadecimal(clientRandom) }
}

/// Follows a DTLS association from the datagrams of both ends, with the help of a key log.
///
/// It is passive and needs neither certificates nor private keys. Versions 1.0 to 1.3 are
/// supported; most of a 1.3 handshake (RFC 9147) is encrypted, and the logged secrets decrypt it.
/// Datagrams may be lost, duplicated and reordered.
package struct DTLSFollower: Sendable {
  /// A new fact about the association, or data and alerts that it carried.
  package enum Event: Hashable, Sendable {
    /// The association began, or a fact about it became known.
    case facts(DTLSFacts)
    /// Both ends have finished the handshake.
    case connected
    /// Both ends' SRTP keys with salts are available.
    case srtpKeys(SRTPProfile, [[UInt8]])
    /// An SCTP packet that an end sent.
    case data(from: Int, [UInt8])
    /// An alert from an end; the description is nil if it is encrypted.
    case alert(from: Int, description: UInt8?)
  }

  enum ContentType {
    static let changeCipherSpec: UInt8 = 20
    static let alert: UInt8 = 21
    static let handshake: UInt8 = 22
    static let applicationData: UInt8 = 23
  }

  /// Limits on protected records that wait for keys: their number and bytes.
  private static let waitingMaximum = 512
  private static let waitingBytesMaximum = 1 << 20

  package private(set) var facts: DTLSFacts?
  private var assemblers = [HandshakeAssembler(), HandshakeAssembler()]
  var keys = DTLSTrafficKeys()
  private var isFinished = [false, false]
  private var isConnected = false
  private var gaveSRTPKeys = false
  /// Messages that arrived before the ClientHello.
  private var early: [(from: Int, message: HandshakeMessage)] = []
  private static let earlyMaximum = 16
  private var waiting: [(from: Int, record: Sealed)] = []
  private var waitingBytes = 0

  /// The number of protected records waiting for keys.
  package var waitingRecords: Int { waiting.count }

  /// The numbers of protected records that could not be decrypted, that exceeded the waiting
  /// limits, and that were decrypted.
  package private(set) var sealedRecords: UInt64 = 0
  package private(set) var droppedRecords: UInt64 = 0
  package private(set) var openedRecords: UInt64 = 0
  /// Application data records that could not be decrypted and are not waiting.
  private var lostData: UInt64 = 0

  /// The number of data channel records not decrypted so far.
  package var unopenedData: UInt64 {
    lostData + UInt64(waiting.count { $0.record.isData })
  }

  /// A protected record of DTLS 1.2 or 1.3.
  enum Sealed: Sendable {
    case plain(DTLSRecord)
    case unified(UnifiedRecord)

    var count: Int {
      switch self {
      case .plain(let record): record.fragment.count
      case .unified(let record): record.sealed.count
      }
    }

    /// Whether the record may carry an SCTP packet.
    ///
    /// Encrypted acknowledgements in DTLS 1.3 look the same, but are shorter than any packet with a
    /// data chunk.
    var isData: Bool {
      switch self {
      case .plain(let record): record.type == ContentType.applicationData
      case .unified(let record): record.epochBits == 3 && record.sealed.count > 60
      }
    }
  }

  package init() {}

  /// Exchanges the numbers of the ends.
  mutating func swapEnds() {
    if let client = facts?.client { facts?.client = 1 - client }
    facts?.fingerprints.reverse()
    assemblers.reverse()
    keys.swapEnds()
    isFinished.reverse()
    early = early.map { (1 - $0.from, $0.message) }
    waiting = waiting.map { (1 - $0.from, $0.record) }
  }

  /// Handles a datagram from an end, 0 or 1.
  package mutating func receive(
    _ datagram: [UInt8], from end: Int, _ log: NSSKeyLog, into events: inout [Event]
  ) {
    var offset = 0
    while offset < datagram.count {
      if UnifiedRecord.matches(datagram[offset]) {
        guard let record = UnifiedRecord.read(datagram.span.bytes, at: &offset) else { return }
        process(.unified(record), from: end, log, &events)
      } else {
        guard let record = DTLSRecord.read(datagram.span.bytes, at: &offset) else { return }
        process(record, from: end, log, &events)
      }
    }
  }

  /// Retries waiting records after the log has grown.
  package mutating func retry(_ log: NSSKeyLog, into events: inout [Event]) {
    findKeys(log, &events)
    guard keys.isReady else { return }
    let records = waiting
    waiting = []
    waitingBytes = 0
    for (from, record) in records { process(record, from: from, log, &events) }
  }

  private mutating func process(
    _ record: DTLSRecord, from end: Int, _ log: NSSKeyLog, _ events: inout [Event]
  ) {
    guard record.epoch == 0 else { return process(.plain(record), from: end, log, &events) }
    switch record.type {
    case ContentType.handshake: read(record.fragment, from: end, log, &events)
    case ContentType.alert where record.fragment.count == 2:
      events.append(.alert(from: end, description: record.fragment[1]))
    default: break
    }
  }

  /// Decrypts a protected record, or queues it until its key is known.
  private mutating func process(
    _ record: Sealed, from end: Int, _ log: NSSKeyLog, _ events: inout [Event]
  ) {
    guard let facts else { return wait(record, from: end) }
    if case .plain(let plain) = record, plain.type == ContentType.handshake {
      // In a 1.2 handshake, only Finished is encrypted.
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
        // A record of epoch 3, or one with application data, shows that the handshake is over.
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
    // A new association begins with sequence number 0 and a different random.
    if let known = facts?.clientRandom, let hello = DTLSFollower.firstClientHello(text),
      hello != known
    {
      let earlier = self
      self = DTLSFollower()
      (sealedRecords, droppedRecords) = (earlier.sealedRecords, earlier.droppedRecords)
      openedRecords = earlier.openedRecords
      // Records that still waited for the earlier association's keys can no longer be opened.
      lostData = earlier.unopenedData
    }
    for message in assemblers[end].add(text.span.bytes) {
      read(message, from: end, log, &events)
    }
  }

  /// Returns the random of a ClientHello that begins an association, complete or fragmented; nil
  /// for other messages.
  private static func firstClientHello(_ text: [UInt8]) -> [UInt8]? {
    // The header consists of type, length, sequence number, fragment offset and fragment length;
    // the version and the random follow it.
    guard text.count >= 12 + 34, text[0] == 1, text[4] == 0, text[5] == 0,
      text[6..<9].allSatisfy({ $0 == 0 })
    else { return nil }
    return Array(text[14..<46])
  }

  private mutating func read(
    _ message: HandshakeMessage, from end: Int, _ log: NSSKeyLog, _ events: inout [Event]
  ) {
    let body = message.body.span.bytes
    // Without the ClientHello, which may still arrive, the association cannot be identified.
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
      for (from, record) in records { process(record, from: from, log, &events) }
    }
    guard !gaveSRTPKeys, let profile = self.facts?.profile,
      let pair = srtpKeys(profile, log)
    else { return }
    gaveSRTPKeys = true
    events.append(.srtpKeys(profile, pair))
  }

  /// Returns both ends' SRTP keys with salts, or nil if the log lacks the secrets (RFC 5764 section
  /// 4.2).
  ///
  /// If the server's choice was not seen, try each of `offeredProfiles`.
  package func srtpKeys(_ profile: SRTPProfile, _ log: NSSKeyLog) -> [[UInt8]]? {
    guard let facts, let serverRandom = facts.serverRandom, let suite = facts.cipherSuite,
      let secrets = log.secrets(of: facts.clientRandom)
    else { return nil }
    let pair: (send: [UInt8], receive: [UInt8])?
    if facts.isVersion13 {
      pair = secrets.srtpKeys(profile, suite).map { ($0.client, $0.server) }
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

/// Determines whether a DTLS client offers SRTP (RFC 5764 section 4.1.1), which only clients in
/// calls do.
package struct ClientHelloReader: Sendable {
  private var assembler = HandshakeAssembler()

  package init() {}

  /// Reads the client's next datagram; returns whether the ClientHello offers SRTP, or nil until it
  /// is complete.
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
