import STUN
import TURN
import Wire

/// Owns the questions to STUN servers: when they are asked, again or given up, and how mappings are
/// kept alive (RFC 8445 sections 5.1.1.2, 11 and 14).
struct ServerQueries {
  /// A question about the mapping of one socket.
  struct Query {
    let base: SocketAddress
    let server: SocketAddress
    let transaction: STUNTransactionID
    /// When the next request is due, or the question is given up; nil once it is answered.
    fileprivate var nextAttempt: Instant?
    fileprivate var attempts = 0
    fileprivate var sendFailures = 0
    /// When the mapping is to be kept alive next.
    fileprivate var keepAliveAt: Instant?

    fileprivate init(
      _ base: SocketAddress, _ server: SocketAddress, _ transaction: STUNTransactionID,
      at due: Instant
    ) {
      self.base = base
      self.server = server
      self.transaction = transaction
      nextAttempt = due
    }
  }

  /// What is due for a question.
  enum Due {
    case nothing, request, keepAlive, givenUp
  }

  private(set) var all: [Query] = []
  /// When the next question may be asked for the first time (Ta).
  private var nextFirst = Instant.zero

  /// When a first question may go out.
  func turn(at now: Instant) -> Instant { max(now, nextFirst) }

  /// Notes that a first question, to whatever server, goes out at an instant.
  mutating func takeTurn(at due: Instant) { nextFirst = due + ICETiming.paceSmall }

  /// Adds a question that is first asked at an instant.
  mutating func add(
    _ base: SocketAddress, _ server: SocketAddress, _ transaction: STUNTransactionID,
    at due: Instant
  ) {
    all.append(Query(base, server, transaction, at: due))
  }

  /// Forgets the questions from an end point that is gone.
  mutating func drop(from base: SocketAddress) { all.removeAll { $0.base == base } }

  /// Forgets all questions.
  mutating func removeAll() { all = [] }

  /// Takes a response; whether it is the first one, or nil when it answers nothing.
  mutating func take(
    _ transaction: STUNTransactionID, _ local: SocketAddress, _ remote: SocketAddress
  ) -> Bool? {
    let index = all.firstIndex {
      $0.transaction == transaction && $0.base == local && $0.server == remote
    }
    guard let index else { return nil }
    defer { all[index].nextAttempt = nil }
    return all[index].nextAttempt != nil
  }

  /// Notes that the system refused a send: three times end a question, of which is told.
  @discardableResult
  mutating func refuse(_ local: SocketAddress, _ remote: SocketAddress) -> Bool {
    var isOver = false
    for index in all.indices where all[index].base == local && all[index].server == remote {
      all[index].sendFailures += 1
      guard all[index].sendFailures >= 3 else { continue }
      isOver = isOver || all[index].nextAttempt != nil
      all[index].nextAttempt = nil
    }
    return isOver
  }

  /// Keeps the mapping that a server told alive from now on.
  mutating func keepAlive(_ base: SocketAddress, _ server: SocketAddress, at now: Instant) {
    for index in all.indices where all[index].base == base && all[index].server == server {
      all[index].keepAliveAt = now + ICETiming.keepAlive
    }
  }

  /// What is due for a question now.
  ///
  /// - Parameter keepsAlive: whether mappings are kept alive; later checks do so.
  mutating func takeDue(_ index: Int, keepsAlive: Bool, at now: Instant) -> Due {
    if let due = all[index].nextAttempt, due <= now {
      guard all[index].attempts < TURNTiming.queryWaits.count else {
        all[index].nextAttempt = nil
        return .givenUp
      }
      all[index].nextAttempt = now + TURNTiming.queryWaits[all[index].attempts]
      all[index].attempts += 1
      return .request
    }
    guard keepsAlive, let due = all[index].keepAliveAt, due <= now else { return .nothing }
    all[index].keepAliveAt = now + ICETiming.keepAlive
    return .keepAlive
  }

  /// Forgets the questions that are over.
  mutating func removeFinished() {
    all.removeAll { $0.nextAttempt == nil && $0.keepAliveAt == nil }
  }

  /// Whether an answer is waited for.
  var isWaiting: Bool { all.contains { $0.nextAttempt != nil } }

  /// When a question wants attention next.
  func deadline(keepsAlive: Bool) -> Instant? {
    var next: Instant?
    for query in all {
      next = earliest(next, query.nextAttempt ?? (keepsAlive ? query.keepAliveAt : nil))
    }
    return next
  }
}
