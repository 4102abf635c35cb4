import Wire

/// The candidate pairs and the order of their checks (RFC 8445 sections 6.1.2 and 6.1.4).
struct Checklist {
  /// The result of adding a pair.
  enum Addition {
    case added
    /// The pair already exists.
    case known
    case full
  }

  /// The maximum number of pairs (RFC 8445 section 6.1.2.5).
  static let maximum = 100

  /// All pairs, oldest first; the pair kept from an earlier generation, if there is one, is first.
  private(set) var pairs: [CandidatePair] = []
  /// Counts restarts from 0; pairs of the current generation have this number.
  private(set) var generation: UInt32 = 0
  /// Ids of pairs to check first, in order (RFC 8445 section 6.1.4.1).
  private var triggered: [UInt32] = []
  private var nextPacedAt = Instant.zero
  private var lastID: UInt32

  /// Creates an empty checklist that numbers pairs from `id + 1`.
  init(after id: UInt32) { lastID = id }

  var count: Int { pairs.count }
  var indices: Range<Int> { pairs.indices }
  subscript(index: Int) -> CandidatePair { pairs[index] }

  mutating func change<Result>(
    _ index: Int, _ body: (inout CandidatePair) -> Result
  ) -> Result {
    body(&pairs[index])
  }

  // MARK: Lookup

  func index(id: UInt32?) -> Int? {
    guard let id else { return nil }
    for index in pairs.indices where pairs[index].id == id { return index }
    return nil
  }

  func index(_ base: SocketAddress, _ target: SocketAddress) -> Int? {
    for index in pairs.indices
    where pairs[index].target == target && pairs[index].base == base { return index }
    return nil
  }

  /// Returns the index of the pair that is waiting for the connection with this request id; nil if
  /// there is none.
  func index(connection id: UInt32) -> Int? { pairs.firstIndex { $0.round.connectionID == id } }

  /// Finds the check that a response answers, by the transaction id; nil if no check has it.
  func check(_ transaction: STUNTransactionID) -> (pair: Int, place: Int)? {
    for index in pairs.indices {
      for place in pairs[index].round.checks.indices
      where pairs[index].round.checks[place].transaction == transaction { return (index, place) }
    }
    return nil
  }

  /// Returns whether a pair belongs to the current generation.
  func isPresent(_ index: Int) -> Bool { pairs[index].generation == generation }

  /// Returns whether any pair of the current generation satisfies a condition.
  func contains(where isWanted: (CandidatePair) -> Bool) -> Bool {
    pairs.contains { $0.generation == generation && isWanted($0) }
  }

  /// Returns the matching pair of the current generation with the highest priority, the oldest if
  /// several are equal; nil if no pair matches.
  func best(where isWanted: (CandidatePair) -> Bool) -> Int? {
    var found: Int?
    for index in pairs.indices where isPresent(index) && isWanted(pairs[index]) {
      if let best = found, pairs[best].priority >= pairs[index].priority { continue }
      found = index
    }
    return found
  }

  // MARK: Forming pairs

  /// Adds the pair of a local base and a remote candidate.
  ///
  /// - Parameter kept: the selected pair, which is never removed to make room.
  mutating func add(
    _ local: ICECandidate, base: SocketAddress, _ remote: ICECandidate, _ target: SocketAddress,
    _ role: ICERole, keeping kept: UInt32?
  ) -> Addition {
    guard !has(base, local, target) else { return .known }
    var pair = CandidatePair(
      id: lastID + 1, generation: generation, base: base, target: target, local: local,
      remote: remote)
    pair.rank(Self.priority(local.priority, remote.priority, role))
    guard makeRoom(for: pair, keeping: kept) else { return .full }
    lastID &+= 1
    // A pair need not wait if its foundation has no other undecided pair.
    if !pairs.contains(where: { $0.foundation == pair.foundation && $0.isUndecided }) {
      pair.change(to: .waiting)
    }
    pairs.append(pair)
    return .added
  }

  /// Returns whether the pair already exists; active TCP pairs are compared without the local port,
  /// because each connection has its own.
  private func has(_ base: SocketAddress, _ local: ICECandidate, _ target: SocketAddress) -> Bool {
    guard local.tcpType == .active else { return index(base, target) != nil }
    return contains { $0.isActive && $0.base.ip == base.ip && $0.target == target }
  }

  /// Makes room by removing a failed or lower-priority pair; returns false if there is no such
  /// pair.
  private mutating func makeRoom(for pair: CandidatePair, keeping kept: UInt32?) -> Bool {
    guard pairs.count >= Self.maximum else { return true }
    var worst: Int?
    for index in pairs.indices {
      let other = pairs[index]
      guard other.id != kept, other.state != .succeeded else { continue }
      guard other.state == .failed || other.priority < pair.priority else { continue }
      if let found = worst, isWorse(pairs[found], than: other) { continue }
      worst = index
    }
    guard let worst else { return false }
    pairs.remove(at: worst)
    return true
  }

  private func isWorse(_ left: CandidatePair, than right: CandidatePair) -> Bool {
    if (left.state == .failed) != (right.state == .failed) { return left.state == .failed }
    return left.priority <= right.priority
  }

  /// Returns a pair's priority (RFC 8445 section 6.1.2.3).
  private static func priority(_ local: UInt32, _ remote: UInt32, _ role: ICERole) -> UInt64 {
    role == .controlling
      ? ICEPriority.pair(controlling: local, controlled: remote)
      : ICEPriority.pair(controlling: remote, controlled: local)
  }

  /// Recomputes all priorities for a new role, and ends nominations in progress.
  ///
  /// - Parameter local: returns the priority of a pair's local candidate.
  mutating func rank(for role: ICERole, _ local: (CandidatePair) -> UInt32) {
    for index in pairs.indices where isPresent(index) {
      pairs[index].nomination.forgetChoices()
      pairs[index].rank(Self.priority(local(pairs[index]), pairs[index].remote.priority, role))
    }
  }

  /// Replaces a peer-reflexive candidate in its pairs with the same candidate as signaled later;
  /// states and counters stay.
  mutating func rename(
    to candidate: ICECandidate, _ role: ICERole, _ local: (CandidatePair) -> UInt32
  ) {
    for index in pairs.indices
    where isPresent(index) && pairs[index].target == candidate.address
      && pairs[index].remote.transport == candidate.transport
    {
      pairs[index].rename(remote: candidate)
      pairs[index].rank(Self.priority(local(pairs[index]), candidate.priority, role))
    }
  }

  /// Starts a new generation, keeping at most one pair.
  mutating func restart(keeping kept: Int?) {
    generation += 1
    triggered = []
    guard let kept else {
      pairs = []
      return
    }
    pairs[kept].outlive()
    pairs = [pairs[kept]]
  }

  /// Removes the pair kept from an earlier generation.
  mutating func retire() { pairs.removeAll { $0.generation != generation } }

  /// Returns reports of the pairs that changed since the last call.
  mutating func removeChanges(selected: UInt32?) -> [ICEPairReport] {
    var reports: [ICEPairReport] = []
    for index in pairs.indices where pairs[index].removeChanges() {
      reports.append(pairs[index].report(isSelected: pairs[index].id == selected))
    }
    return reports
  }
}

// MARK: - Check order

extension Checklist {
  /// Returns the next pair to check: a triggered pair, or else the best waiting pair, or else a
  /// frozen pair that may be unfrozen (RFC 8445 section 6.1.4.2); nil if there is none.
  mutating func next() -> Int? {
    while !triggered.isEmpty {
      let id = triggered.removeFirst()
      if let index = index(id: id), pairs[index].state != .succeeded { return index }
    }
    return best { $0.state == .waiting } ?? thaw()
  }

  /// Returns the best frozen pair whose foundation has no check under way, or only checks whose
  /// first request went unanswered; nil if there is none.
  ///
  /// In RFC 8445, a frozen pair waits until the other pairs with its foundation have failed, which
  /// takes seconds. Here the wait ends after the first unanswered request.
  private func thaw() -> Int? {
    best { pair in
      pair.state == .frozen
        && !pairs.contains {
          $0.foundation == pair.foundation
            && ($0.state == .waiting || $0.state == .inProgress && $0.round.attempts < 2)
        }
    }
  }

  /// Returns whether a new check may be sent now; if so, the next check has to wait for Ta (RFC
  /// 8445 section 14.2).
  mutating func useTurn(at now: Instant) -> Bool {
    guard nextPacedAt <= now, hasUnchecked else { return false }
    let isSmall = pairs.count <= ICETiming.smallChecklist
    nextPacedAt = now + (isSmall ? ICETiming.paceSmall : ICETiming.paceLarge)
    return true
  }

  /// Whether a check is waiting for its turn.
  var hasUnchecked: Bool {
    !triggered.isEmpty || contains { $0.state == .waiting || $0.state == .frozen }
  }

  /// When the next check is due: the first check of a pair, or the next one in a round under way.
  var deadline: Instant? {
    var next = hasUnchecked ? nextPacedAt : nil
    for pair in pairs { next = earliest(next, pair.round.nextAttempt) }
    return next
  }

  /// Returns how long to wait for a response after this many requests in a round.
  ///
  /// The wait is longer while many pairs are being checked, so that their requests together keep to
  /// the pace (RFC 8445 section 14.3).
  func wait(after attempts: Int) -> Interval {
    let wait = ICETiming.checkWaits[min(attempts, ICETiming.checkWaits.count) - 1]
    let busy = pairs.reduce(into: 0) { $0 += $1.state == .inProgress ? 1 : 0 }
    return max(wait, ICETiming.paceSmall * Int64(busy))
  }

  /// Queues a pair for a check ahead of ordinary ones (RFC 8445 section 7.3.1.4).
  mutating func trigger(_ index: Int) {
    pairs[index].restartChecks()
    let id = pairs[index].id
    if !triggered.contains(id) { triggered.append(id) }
  }

  /// Marks a pair as succeeded, and cancels its queued check.
  mutating func succeed(_ index: Int) {
    pairs[index].change(to: .succeeded)
    let id = pairs[index].id
    triggered.removeAll { $0 == id }
  }

  /// Unfreezes all pairs that share a foundation with a working pair.
  mutating func thawAll(foundation: String) {
    for index in pairs.indices
    where pairs[index].state == .frozen && pairs[index].foundation == foundation {
      pairs[index].change(to: .waiting)
    }
  }

  /// Queues the matching pairs for new checks because the selected one is silent or gone.
  mutating func recheck(where isWanted: (CandidatePair) -> Bool) {
    for index in pairs.indices where isPresent(index) && isWanted(pairs[index]) {
      pairs[index].restartChecks()
    }
  }

  /// Fails the matching pairs of all generations.
  mutating func fail(where isOver: (CandidatePair) -> Bool) {
    for index in pairs.indices where isOver(pairs[index]) { pairs[index].fail() }
  }

  /// Ends all checks that have not succeeded.
  mutating func abandon() {
    triggered = []
    let generation = generation
    fail { $0.generation == generation && $0.state != .succeeded }
  }

  /// Records that the peer nominated a pair (RFC 8445 section 7.3.1.5).
  mutating func recordChoice(_ index: Int, at now: Instant) {
    for other in pairs.indices where other != index {
      pairs[other].nomination.chooseOther()
    }
    pairs[index].recordChoice(at: now)
  }
}
