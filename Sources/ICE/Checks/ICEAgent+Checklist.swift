import Wire

extension ICEAgent {
  /// Makes the pair of a base and a remote candidate unless it cannot work or is there already.
  mutating func addPair(base: SocketAddress, remote: ICECandidate) {
    guard let target = remote.address, base.ip.isIPv4 == target.ip.isIPv4,
      // Link-local addresses reach link-local addresses only (RFC 8445 section 6.1.2.2).
      base.ip.isIPv4 || base.ip.isLinkLocal == target.ip.isLinkLocal,
      let local = baseCandidate(of: base), local.pairs(with: remote), !hasPair(base, local, target)
    else { return }
    var pair = CandidatePair(
      id: lastPairID + 1, epoch: epoch.number, base: base, target: target, local: local,
      remote: remote)
    pair.priority = pairPriority(pair)
    guard makeRoom(for: pair) else {
      counters.overflows += 1
      return
    }
    lastPairID &+= 1
    // With nothing of the same foundation on its way a pair need not wait for any other.
    if !checklist.contains(where: { $0.foundation == pair.foundation && $0.isUndecided }) {
      pair.state = .waiting
    }
    checklist.append(pair)
    letIn(target.ip, at: base)
    reviveAfterFailure()
  }

  func pairPriority(_ pair: CandidatePair) -> UInt64 {
    let local = baseCandidate(of: pair.base)?.priority ?? pair.local.priority
    return role == .controlling
      ? ICEPriority.pair(controlling: local, controlled: pair.remote.priority)
      : ICEPriority.pair(controlling: pair.remote.priority, controlled: local)
  }

  /// The pair to be checked next: a triggered one, or the best that waits, or one that thaws
  /// (RFC 8445 section 6.1.4.2).
  mutating func nextToCheck() -> Int? {
    while !triggered.isEmpty {
      let id = triggered.removeFirst()
      if let index = pairIndex(id: id), checklist[index].state != .succeeded { return index }
    }
    return best { $0.state == .waiting } ?? thaw()
  }

  /// The pair of this epoch with the highest priority among some; the oldest of equals.
  func best(where isWanted: (CandidatePair) -> Bool) -> Int? {
    var found: Int?
    for index in checklist.indices
    where checklist[index].epoch == epoch.number && isWanted(checklist[index]) {
      if let best = found, checklist[best].priority >= checklist[index].priority { continue }
      found = index
    }
    return found
  }

  /// Lets all pairs that share a foundation with a working one be checked.
  mutating func thawAll(foundation: String) {
    for index in checklist.indices
    where checklist[index].state == .frozen && checklist[index].foundation == foundation {
      checklist[index].change(to: .waiting)
    }
  }

  /// Queues a pair for a check ahead of the ordinary ones (RFC 8445 section 7.3.1.4).
  mutating func trigger(_ index: Int) {
    reviveAfterFailure()
    checklist[index].restartChecks()
    let id = checklist[index].id
    if !triggered.contains(id) { triggered.append(id) }
  }

  /// Begins checking again after it led to nothing, because there is something new to check.
  mutating func reviveAfterFailure() {
    guard hasFailed else { return }
    hasFailed = false
    checkingSince = now
  }

  /// Checks every other pair once more, because the one in use is silent.
  mutating func recheckOthers() {
    for index in checklist.indices
    where checklist[index].epoch == epoch.number && checklist[index].id != selectedID
      && hasBase(checklist[index])
    {
      checklist[index].restartChecks()
    }
  }

  /// Whether there is still something to send from, or to connect from.
  private func hasBase(_ pair: CandidatePair) -> Bool {
    if pair.isActive {
      return gathering.candidates.contains {
        $0.candidate.tcpType == .active && $0.base.ip == pair.base.ip
      }
    }
    if pair.local.isTCP { return gathering.connectionIndex(pair.base, pair.target) != nil }
    return gathering.localPreference(of: pair.base) != nil
  }

  /// Whether a check waits for its turn.
  var hasUncheckedPairs: Bool {
    guard epoch.remote != nil else { return false }
    if !triggered.isEmpty { return true }
    return checklist.contains {
      $0.epoch == epoch.number && ($0.state == .waiting || $0.state == .frozen)
    }
  }

  /// Whether a pair is there already; one that makes its connection is known by the address that it
  /// begins at, because its port is its own.
  private func hasPair(_ base: SocketAddress, _ local: ICECandidate, _ target: SocketAddress)
    -> Bool
  {
    guard local.tcpType == .active else { return pairIndex(base, target) != nil }
    return checklist.contains {
      $0.isActive && $0.base.ip == base.ip && $0.target == target && $0.epoch == epoch.number
    }
  }

  /// The candidate that is its own base (RFC 8445 section 5.1.1): a host or a relayed one.
  private func baseCandidate(of base: SocketAddress) -> ICECandidate? {
    for local in gathering.candidates
    where local.base == base && (local.candidate.kind == .host || local.candidate.kind == .relayed)
    {
      return local.candidate
    }
    return nil
  }

  /// The best frozen pair of a foundation on which nothing is under way, or nothing that answers.
  ///
  /// RFC 8445 lets such pairs wait until the others of the foundation failed, which takes seconds;
  /// here the first unanswered request ends the wait.
  private mutating func thaw() -> Int? {
    best { pair in
      pair.state == .frozen
        && !checklist.contains {
          $0.foundation == pair.foundation
            && ($0.state == .waiting || $0.state == .inProgress && $0.attempts < 2)
        }
    }
  }

  /// Sees to it that the limit holds: a pair without hope or of lower priority has to go.
  private mutating func makeRoom(for pair: CandidatePair) -> Bool {
    guard checklist.count >= ICEAgent.pairsMaximum else { return true }
    var worst: Int?
    for index in checklist.indices {
      let other = checklist[index]
      guard other.id != selectedID, other.state != .succeeded else { continue }
      guard other.state == .failed || other.priority < pair.priority else { continue }
      if let found = worst, isWorse(checklist[found], than: other) { continue }
      worst = index
    }
    guard let worst else { return false }
    checklist.remove(at: worst)
    return true
  }

  private func isWorse(_ left: CandidatePair, than right: CandidatePair) -> Bool {
    if (left.state == .failed) != (right.state == .failed) { return left.state == .failed }
    return left.priority <= right.priority
  }
}
