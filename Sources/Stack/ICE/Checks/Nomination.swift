import Wire

/// Decides which pair is nominated: when the controlling side chooses (RFC 8445 section 8.1.1), and
/// how the controlled side follows (section 7.3.1.5).
struct Nomination {
  /// The number of the pair that was nominated last.
  private(set) var pairID: UInt32?
  /// When a nomination is to be considered again.
  private(set) var dueAt: Instant?
  private var nominatedAt: Instant?

  /// Nominates a pair.
  mutating func nominate(_ id: UInt32, at now: Instant) {
    pairID = id
    nominatedAt = now
  }

  /// Clears the nomination of a pair.
  mutating func forget(_ id: UInt32) {
    if pairID == id { pairID = nil }
  }

  /// Begins another generation.
  mutating func restart() { self = Nomination() }

  // MARK: The controlling side

  /// Nominates nothing until something changes.
  mutating func rest() { dueAt = nil }

  /// The pair to nominate now; nil if there is none, or it is too early.
  mutating func consider(
    _ checklist: Checklist, firstSuccessAt: Instant?, at now: Instant
  ) -> Int? {
    dueAt = nil
    guard let candidate = checklist.best(where: { $0.state == .succeeded }),
      !checklist.contains(where: \.nomination.isNominating)
    else { return nil }
    if let current = checklist.index(id: pairID), checklist[current].state == .succeeded {
      // Once only for a much better path, so that the peer is not made to flap.
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

  /// How long higher pairs may delay a nomination: a while, and twice the round trip.
  private static func patience(for pair: CandidatePair) -> Interval {
    let roundTrip = pair.traffic.roundTrip ?? .zero
    return min(
      ICETiming.nominationPatience + roundTrip * 2, ICETiming.nominationPatienceMaximum)
  }

  // MARK: The controlled side

  /// Whether the peer's latest USE-CANDIDATE is followed.
  ///
  /// A peer may put it into the checks of many pairs (aggressive nomination): then the highest pair
  /// counts. A lower one replaces the nominated pair when the peer insists: the other choice is a
  /// while ago, or this one came twice since.
  func follows(_ index: Int, _ checklist: Checklist, isSilent: Bool, at now: Instant) -> Bool {
    guard let current = checklist.index(id: pairID), current != index,
      checklist[current].state == .succeeded, !isSilent,
      checklist[index].priority < checklist[current].priority,
      checklist[index].nomination.timesChosen < 2,
      let chosenAt = checklist[current].nomination.chosenAt
    else { return true }
    return now - chosenAt >= ICETiming.choiceHold
  }

  /// The pair that the peer chose last, if it was left since and works again: the peer, which may
  /// never have missed it, does not choose it twice.
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

  // MARK: The choice

  /// The nominated pair, if it works, or its replacement.
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

/// Decides which side chooses the pair (RFC 8445 section 6.1.1), and how it ends when both sides
/// think the same (sections 7.2.5.1 and 7.3.1.1).
struct RoleSettlement {
  /// How the role in a request compares with this side's.
  enum Verdict {
    /// The sides agree.
    case agreed
    /// The peer has to change its role.
    case refused
    /// This side changed its role.
    case changed
  }

  private(set) var role = ICERole.controlling
  private(set) var tieBreaker: UInt64

  init(tieBreaker: UInt64) { self.tieBreaker = tieBreaker }

  /// Sets the role; false when it does not change.
  mutating func setRole(_ new: ICERole) -> Bool {
    guard role != new else { return false }
    role = new
    return true
  }

  /// Compares the claims of a request: the tie-breaker of its role.
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

  /// Changes the role because the peer refused the claimed one, and draws another tie-breaker;
  /// false when another conflict has changed the role since that request.
  mutating func concede(_ claimed: ICERole, _ entropy: EntropyStream) -> Bool {
    guard claimed == role else { return false }
    tieBreaker = entropy.integer(UInt64.self)
    role = role == .controlling ? .controlled : .controlling
    return true
  }
}
