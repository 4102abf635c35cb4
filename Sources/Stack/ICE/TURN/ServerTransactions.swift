import Wire

/// Requests waiting for a response: when each is sent again or given up (RFC 8489 section 6.2).
struct ServerTransactions {
  enum Purpose: Equatable {
    case allocate
    case refresh
    case permission(IPAddress)
    case channel(UInt16)
  }

  /// A request waiting for its response.
  struct Transaction {
    let purpose: Purpose
    fileprivate let id: STUNTransactionID
    fileprivate let bytes: [UInt8]
    /// The number of times that the request was sent.
    fileprivate var attempts = 1
    /// When to send the request again or give up.
    fileprivate var dueAt: Instant
    /// The number of times that the request was repeated with new authentication values.
    let renewals: Int

    /// Whether the request may be repeated once more with new authentication values.
    var mayRenew: Bool { renewals < ServerTransactions.renewalsMaximum }
  }

  /// The number of repetitions with new authentication values before a request counts as refused.
  private static let renewalsMaximum = 3
  /// The time limit for a server's response over TCP or TLS.
  private static let reliableWait = Interval.milliseconds(9500)

  private var all: [Transaction] = []
  /// Whether the transport is reliable; if so, nothing is sent twice (RFC 8489 section 6.2.2).
  private let isReliable: Bool

  init(isReliable: Bool) { self.isReliable = isReliable }

  /// When the next request is sent again or given up.
  var deadline: Instant? {
    var deadline: Instant?
    for transaction in all { deadline = earliest(deadline, transaction.dueAt) }
    return deadline
  }

  /// Returns whether a request for this purpose is waiting.
  func contains(_ purpose: Purpose) -> Bool { all.contains { $0.purpose == purpose } }

  /// Records a request sent now, replacing one for the same purpose.
  mutating func begin(
    _ purpose: Purpose, _ id: STUNTransactionID, _ bytes: [UInt8], renewals: Int, at now: Instant
  ) {
    let wait = isReliable ? Self.reliableWait : TURNTiming.queryWaits[0]
    all.removeAll { $0.purpose == purpose }
    all.append(
      Transaction(purpose: purpose, id: id, bytes: bytes, dueAt: now + wait, renewals: renewals))
  }

  /// Returns the requests to retransmit, and the purposes of the requests that are dropped because
  /// their last retransmission was not answered.
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

  /// Returns whether a request with this transaction id is waiting.
  func contains(_ id: STUNTransactionID) -> Bool { all.contains { $0.id == id } }

  /// Removes and returns the waiting request with this transaction id; nil if there is none.
  mutating func remove(_ id: STUNTransactionID) -> Transaction? {
    all.firstIndex { $0.id == id }.map { all.remove(at: $0) }
  }

  mutating func removeAll() { all = [] }
}

// MARK: - ServerAuthentication

/// Authenticates requests with long-term credentials and with the server's realm and nonce (RFC
/// 8489 section 9.2).
struct ServerAuthentication {
  private let credentials: TURNCredentials
  private var realm: String?
  private var nonce: [UInt8] = []
  private var key: [UInt8]?

  init(_ credentials: TURNCredentials) { self.credentials = credentials }

  /// Finishes a request, with credentials once the server has demanded them.
  func finish(_ request: consuming STUNWriter) -> [UInt8] {
    var writer = request
    if key != nil, let realm {
      writer.username(credentials.username)
      writer.attribute(.realm, Array(realm.utf8))
      writer.attribute(.nonce, nonce)
    }
    return writer.finish(key: key)
  }

  /// Returns whether a response is authentic.
  ///
  /// A success must prove that the server knows the password, and an error with wrong integrity is
  /// not trusted either (RFC 8489 section 9.2.5).
  func accepts(_ response: STUNMessage) -> Bool {
    guard let key, response.hasIntegrity || response.messageClass == .success else { return true }
    return response.verifiesIntegrity(key: key)
  }

  /// Applies the realm and nonce that an error response states; returns false if repeating the
  /// request with them is pointless.
  ///
  /// The first 401 states the realm; another 401 with the same realm is final.
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

/// Decides when a message is needed merely to keep the NAT mapping to the server open.
struct MappingKeeper {
  /// When to check next whether a message is needed; nil if no mapping is kept open.
  private(set) var deadline: Instant?
  private var sentAt = Instant.zero
  /// Whether the server is reached over TCP, where no mapping needs to be kept open.
  private let isReliable: Bool

  init(isReliable: Bool) { self.isReliable = isReliable }

  /// Starts the timer once the allocation exists.
  mutating func begin(at now: Instant) {
    if !isReliable { deadline = now + TURNTiming.keepAlive }
  }

  /// Records that a message was sent to the server.
  mutating func recordSent(at now: Instant) { sentAt = now }

  /// Returns whether it is time to check if a message is needed.
  ///
  /// Call `recordSent` for each message sent, and `settle` afterwards.
  func isDue(at now: Instant) -> Bool { deadline.map { $0 <= now } ?? false }

  /// Returns whether nothing has been sent for the keep-alive interval.
  func isSilent(at now: Instant) -> Bool { sentAt + TURNTiming.keepAlive <= now }

  /// Sets the time of the next check.
  mutating func settle() { deadline = sentAt + TURNTiming.keepAlive }

  /// Stops when the allocation ends.
  mutating func end() { deadline = nil }
}
