import Crypto
import Secure

/// The keys of the records of an association, of both ends.
struct DTLSTrafficKeys: Sendable {
  /// The keys of an end in DTLS 1.3: of the handshake, and of one epoch after the other.
  private struct End: Sendable {
    var handshake: EpochProtection?
    var traffic: EpochProtection?
    /// The secret that the next epoch derives from (RFC 8446 section 7.2).
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

  /// Derives what the secrets of a log are enough for.
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

  /// The content type and the text of a protected record; nil when no key opens it.
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
      // The sender may have gone on to its next epoch (RFC 9147 section 8).
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
