import Wire

/// The requests that wait for a response: when they are sent again, and when they are given up (RFC
/// 8489 section 6.2).
struct ServerTransactions {
  /// The purpose of a request.
  enum Purpose: Equatable {
    case allocate
    case refresh
    case permission(IPAddress)
    case channel(UInt16)
  }

  /// A request that waits for its response.
  struct Transaction {
    let purpose: Purpose
    fileprivate let id: STUNTransactionID
    fileprivate let bytes: [UInt8]
    /// How often it was sent.
    fileprivate var attempts = 1
    /// When it is sent again, or given up.
    fileprivate var dueAt: Instant
    /// How often it was repeated because of the credentials.
    let renewals: Int

    /// Whether it may be repeated once more with other credentials.
    var mayRenew: Bool { renewals < ServerTransactions.renewalsMaximum }
  }

  /// How often one request is repeated with other credentials before it counts as refused.
  private static let renewalsMaximum = 3
  /// How long a server may take to answer over TCP or TLS.
  private static let reliableWait = Interval.milliseconds(9500)

  private var all: [Transaction] = []
  /// Whether the transport loses nothing, so that nothing is sent twice (RFC 8489 section 6.2.2).
  private let isReliable: Bool

  init(isReliable: Bool) { self.isReliable = isReliable }

  /// When one is to be sent again, or given up.
  var deadline: Instant? {
    var deadline: Instant?
    for transaction in all { deadline = earliest(deadline, transaction.dueAt) }
    return deadline
  }

  /// Whether a request waits for its response.
  func contains(_ purpose: Purpose) -> Bool { all.contains { $0.purpose == purpose } }

  /// Records a request that is sent now, in place of one about the same.
  mutating func begin(
    _ purpose: Purpose, _ id: STUNTransactionID, _ bytes: [UInt8], renewals: Int, at now: Instant
  ) {
    let wait = isReliable ? Self.reliableWait : TURNTiming.queryWaits[0]
    all.removeAll { $0.purpose == purpose }
    all.append(
      Transaction(purpose: purpose, id: id, bytes: bytes, dueAt: now + wait, renewals: renewals))
  }

  /// Returns the requests to retransmit, and those that had their last retransmission and are
  /// dropped.
  mutating func retransmitDue(at now: Instant) -> (again: [[UInt8]], silent: [Purpose]) {
    var again: [[UInt8]] = []
    for index in all.indices where all[index].dueAt <= now {
      let attempts = all[index].attempts
      guard !isReliable, attempts < TURNTiming.queryWaits.count else { continue }
      all[index].attempts += 1
      all[index].dueAt = now + TURNTiming.queryWaits[attempts]
      again.append(all[index].bytes)
    }
    let silent = all.filter { $0.dueAt <= now }.map(\.purpose)
    all.removeAll { $0.dueAt <= now }
    return (again, silent)
  }

  /// Whether a response belongs to one.
  func contains(_ id: STUNTransactionID) -> Bool { all.contains { $0.id == id } }

  /// Ends the transaction that a response belongs to.
  mutating func remove(_ id: STUNTransactionID) -> Transaction? {
    all.firstIndex { $0.id == id }.map { all.remove(at: $0) }
  }

  mutating func removeAll() { all = [] }
}

// MARK: - ServerAuthentication

/// The authentication of requests: the long-term credentials, and the realm and nonce of the server
/// (RFC 8489 section 9.2).
struct ServerAuthentication {
  private let credentials: TURNCredentials
  private var realm: String?
  private var nonce: [UInt8] = []
  private var key: [UInt8]?

  init(_ credentials: TURNCredentials) { self.credentials = credentials }

  /// Completes a request, with credentials once the server has demanded them.
  func finish(_ request: consuming STUNWriter) -> [UInt8] {
    var writer = request
    if key != nil, let realm {
      writer.username(credentials.username)
      writer.attribute(.realm, Array(realm.utf8))
      writer.attribute(.nonce, nonce)
    }
    return writer.finish(key: key)
  }

  /// Whether a response is the server's: a success must prove that it knows the password; an error
  /// that is wrong about it is not believed either (RFC 8489 section 9.2.5).
  func accepts(_ response: STUNMessage) -> Bool {
    guard let key, response.hasIntegrity || response.messageClass == .success else { return true }
    return response.verifiesIntegrity(key: key)
  }

  /// Applies the values that an error demands for the next attempt; false if they are not new.
  ///
  /// The first 401 states the realm; another one with the same realm is final.
  mutating func learn(_ error: UInt16, _ message: STUNMessage) -> Bool {
    switch error {
    case 401 where message.realm != nil && message.realm != realm: break
    case 438 where message.nonce != nil: break
    default: return false
    }
    if let told = message.realm, told != realm {
      realm = told
      key = stunLongTermKey(
        username: credentials.username, realm: told, password: credentials.password)
    }
    if let told = message.nonce { nonce = told }
    return true
  }
}

/// Owns when something is sent to the server only to keep the mapping of a NAT before it.
struct MappingKeeper {
  /// When the next message is due, unless others go out until then.
  private(set) var deadline: Instant?
  private var sentAt = Instant.zero
  /// A connection needs no such messages.
  private let isReliable: Bool

  init(isReliable: Bool) { self.isReliable = isReliable }

  /// Starts the timers once the allocation exists.
  mutating func begin(at now: Instant) {
    if !isReliable { deadline = now + TURNTiming.keepAlive }
  }

  /// Notes any message to the server.
  mutating func recordSent(at now: Instant) { sentAt = now }

  /// Whether it is time to look; whatever is sent is noted before `settle`.
  func isDue(at now: Instant) -> Bool { deadline.map { $0 <= now } ?? false }

  /// Whether nothing was sent for long.
  func isSilent(at now: Instant) -> Bool { sentAt + TURNTiming.keepAlive <= now }

  /// Sets the next time to look.
  mutating func settle() { deadline = sentAt + TURNTiming.keepAlive }

  /// Ends with the allocation.
  mutating func end() { deadline = nil }
}
