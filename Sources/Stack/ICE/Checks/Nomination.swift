import Wire

/// Decides which pair is nominated: when the controlling agent nominates (RFC 8445 section 8.1.1),
/// and when the controlled agent follows (section 7.3.1.5).
struct Nomination {
  /// The id of the pair nominated last; nil if there is none or it was given up.
  private(set) var pairID: UInt32?
  /// When to consider a nomination again.
  private(set) var dueAt: Instant?
  private var nominatedAt: Instant?

  mutating func nominate(_ id: UInt32, at now: Instant) {
    pairID = id
    nominatedAt = now
  }

  /// Clears the nomination if this pair is the nominated one.
  mutating func forget(_ id: UInt32) {
    if pairID == id { pairID = nil }
  }

  /// Clears the nomination because another generation starts.
  mutating func restart() { self = Nomination() }

  // MARK: Controlling

  /// Stops considering nominations until something changes.
  mutating func rest() { dueAt = nil }

  /// Returns the pair to nominate now; nil if there is none or it is too early.
  mutating func consider(
    _ checklist: Checklist, firstSuccessAt: Instant?, at now: Instant
  ) -> Int? {
    dueAt = nil
    guard let candidate = checklist.best(where: { $0.state == .succeeded }),
      !checklist.contains(where: \.nomination.isNominating)
    else { return nil }
    if let current = checklist.index(id: pairID), checklist[current].state == .succeeded {
      // Replace the nominated pair only with a much better one, so that the selection does not
      // flap.
      guard candidate != current, checklist[candidate].directness > checklist[current].directness
      else { return nil }
      let due = (nominatedAt ?? now) + ICETiming.nominationHold
      guard due <= now else {
        dueAt = due
        return nil
      }
    } else {
      let priority = checklist[candidate].priority
      let isBestOpen = checklist.contains { $0.isUndecided && $0.priority > priority }
      let due = (firstSuccessAt ?? now) + Self.patience(for: checklist[candidate])
      if isBestOpen, due > now {
        dueAt = due
        return nil
      }
    }
    return candidate
  }

  /// Returns how long pairs of higher priority may delay a nomination: a fixed time plus two round
  /// trips, up to a limit.
  private static func patience(for pair: CandidatePair) -> Interval {
    let roundTrip = pair.traffic.roundTrip ?? .zero
    return min(
      ICETiming.nominationPatience + roundTrip * 2, ICETiming.nominationPatienceMaximum)
  }

  // MARK: Controlled

  /// Returns whether to follow the peer's latest USE-CANDIDATE.
  ///
  /// A peer may send it on many pairs (aggressive nomination); then the pair with the highest
  /// priority wins. A pair of lower priority replaces the nominated one only if the peer insists:
  /// it last nominated the current pair at least a second ago, or it has nominated the other pair
  /// twice since.
  func follows(_ index: Int, _ checklist: Checklist, isSilent: Bool, at now: Instant) -> Bool {
    guard let current = checklist.index(id: pairID), current != index,
      checklist[current].state == .succeeded, !isSilent,
      checklist[index].priority < checklist[current].priority,
      checklist[index].nomination.timesChosen < 2,
      let chosenAt = checklist[current].nomination.chosenAt
    else { return true }
    return now - chosenAt >= ICETiming.choiceHold
  }

  /// Returns the pair that the peer nominated last, even if it was given up in the meantime; nil if
  /// it does not work now.
  ///
  /// A peer that did not notice the failure will not nominate the pair again.
  private static func peersChoice(_ checklist: Checklist) -> Int? {
    var found: Int?
    for index in checklist.indices
    where checklist.isPresent(index) && checklist[index].nomination.isNominated {
      guard let chosenAt = checklist[index].nomination.chosenAt else { continue }
      if let last = found.flatMap({ checklist[$0].nomination.chosenAt }), last >= chosenAt {
        continue
      }
      found = index
    }
    return found.flatMap { checklist[$0].state == .succeeded ? $0 : nil }
  }

  // MARK: Selection

  /// Returns the nominated pair if it works; nil if no nominated pair works.
  ///
  /// If the nominated pair does not work, a controlled agent falls back to the pair that the peer
  /// nominated last, if that pair works.
  mutating func choose(_ checklist: Checklist, _ role: ICERole) -> Int? {
    var wanted = checklist.index(id: pairID)
    if let index = wanted, checklist[index].state != .succeeded {
      pairID = nil
      wanted = nil
    }
    if wanted == nil, role == .controlled, let index = Self.peersChoice(checklist) {
      pairID = checklist[index].id
      wanted = index
    }
    return wanted
  }
}

// MARK: - RoleSettlement

/// Decides which agent is controlling (RFC 8445 section 6.1.1), and resolves role conflicts
/// (sections 7.2.5.1 and 7.3.1.1).
struct RoleSettlement {
  /// The result of comparing the role in a request with the local role.
  enum Verdict {
    /// The roles differ, as they should.
    case agreed
    /// The peer has to change its role.
    case refused
    /// The local agent changed its role.
    case changed
  }

  private(set) var role = ICERole.controlling
  private(set) var tieBreaker: UInt64

  init(tieBreaker: UInt64) { self.tieBreaker = tieBreaker }

  /// Sets the role; returns false if it is unchanged.
  mutating func setRole(_ new: ICERole) -> Bool {
    guard role != new else { return false }
    role = new
    return true
  }

  /// Compares the role that a request claims with the local role; tie-breakers resolve a conflict.
  mutating func settle(controlling: UInt64?, controlled: UInt64?) -> Verdict {
    switch role {
    case .controlling:
      guard let theirs = controlling else { return .agreed }
      if tieBreaker >= theirs { return .refused }
      role = .controlled
    case .controlled:
      guard let theirs = controlled else { return .agreed }
      if tieBreaker < theirs { return .refused }
      role = .controlling
    }
    return .changed
  }

  /// Changes the role because the peer refused the claimed role, and draws another tie-breaker;
  /// returns false if another conflict has already changed the role since that request.
  mutating func concede(_ claimed: ICERole, _ entropy: EntropyStream) -> Bool {
    guard claimed == role else { return false }
    tieBreaker = entropy.integer(UInt64.self)
    role = role == .controlling ? .controlled : .controlling
    return true
  }
}
