import Wire

/// The requests that wait for a response: when they are sent again, and when they are given up (RFC
/// 8489 section 6.2).
struct ServerTransactions {
  /// What a request is about.
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
  /// How long a server may take over a transport that loses nothing.
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

  /// Gives what is to be sent again, and what was sent often enough and is given up.
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
