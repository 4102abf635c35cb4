import Wire

extension ICEAgent {
  /// Nominates the best pair when this side is to choose (RFC 8445 section 8.1.1).
  mutating func considerNomination() {
    nominationDueAt = nil
    guard role == .controlling, epoch.remote != nil, !hasFailed,
      let candidate = best(where: { $0.state == .succeeded }),
      !checklist.contains(where: { $0.epoch == epoch.number && $0.isNominating })
    else { return }
    if let current = pairIndex(id: nominatedID), checklist[current].state == .succeeded {
      // Once only for a much better path, so that the peer is not made to flap.
      guard candidate != current, checklist[candidate].directness > checklist[current].directness
      else { return }
      let due = (nominatedAt ?? now) + ICETiming.nominationHold
      guard due <= now else {
        nominationDueAt = due
        return
      }
    } else {
      let priority = checklist[candidate].priority
      let isBestOpen = checklist.contains {
        $0.epoch == epoch.number && $0.isUndecided && $0.priority > priority
      }
      let due = (firstSuccessAt ?? now) + patience(for: candidate)
      if isBestOpen, due > now {
        nominationDueAt = due
        return
      }
    }
    checklist[candidate].isNominating = true
    checklist[candidate].attempts = 0
    sendCheck(on: candidate)
  }

  /// Takes a pair as nominated: by an answered USE-CANDIDATE of this side, or by the peer's choice.
  mutating func nominate(_ index: Int) {
    checklist[index].setNominated()
    nominatedID = checklist[index].id
    nominatedAt = now
  }

  /// Follows the peer's latest USE-CANDIDATE.
  ///
  /// A peer may put it into the checks of many pairs (aggressive nomination): then the highest pair
  /// counts. A lower one replaces the nominated pair when the peer insists: the other choice is a
  /// while ago, or this one came twice since.
  mutating func followChoice(_ index: Int) {
    if let current = pairIndex(id: nominatedID), current != index,
      checklist[current].state == .succeeded, !isSilent,
      checklist[index].priority < checklist[current].priority,
      checklist[index].timesChosen < 2,
      let chosenAt = checklist[current].chosenAt, now - chosenAt < ICETiming.choiceHold
    {
      return
    }
    nominate(index)
  }

  /// Chooses the pair in use: the nominated one, or else the best that works.
  mutating func updateSelection() {
    if isSilent, let silent = selectedIndex, checklist[silent].epoch == epoch.number,
      graceEnd(silent) <= now
    {
      let id = checklist[silent].id
      // All others were checked anew when silence began, so that this one works now.
      if best(where: { $0.state == .succeeded && $0.id != id }) != nil {
        checklist[silent].fail()
        if nominatedID == id { nominatedID = nil }
      }
    }
    var wanted = pairIndex(id: nominatedID)
    if let index = wanted, checklist[index].state != .succeeded {
      nominatedID = nil
      wanted = nil
    }
    if wanted == nil, let index = peersChoice() {
      nominatedID = checklist[index].id
      wanted = index
    }
    wanted = wanted ?? best { $0.state == .succeeded }
    if wanted == nil, let index = selectedIndex, checklist[index].epoch != epoch.number {
      wanted = index
    }
    select(wanted)
  }

  /// The pair that the peer chose last, if it was left since and works again: the peer, which may
  /// never have missed it, does not choose it twice.
  private func peersChoice() -> Int? {
    guard role == .controlled else { return nil }
    var found: Int?
    for index in checklist.indices
    where checklist[index].epoch == epoch.number && checklist[index].isNominated {
      guard let chosenAt = checklist[index].chosenAt else { continue }
      if let last = found.flatMap({ checklist[$0].chosenAt }), last >= chosenAt { continue }
      found = index
    }
    return found.flatMap { checklist[$0].state == .succeeded ? $0 : nil }
  }

  private mutating func select(_ index: Int?) {
    let id = index.map { checklist[$0].id }
    guard id != selectedID else { return }
    if let old = selectedIndex { checklist[old].hasNews = true }
    selectedID = id
    isSilent = false
    consentAskedAt = nil
    nextConsentAt = nil
    guard let index else {
      // What was in use is gone: the others get a new chance and as long as the first time.
      guard !hasFailed else { return }
      checkingSince = now
      recheckOthers()
      return
    }
    checklist[index].hasNews = true
    selectedSince = now
    if checklist[index].epoch == epoch.number { hadPath = true }
    bindChannel(to: checklist[index].target, at: checklist[index].base)
    // Right after a check that was answered, the next one is only due in its time.
    if let answeredAt = checklist[index].answeredAt, now - answeredAt < .seconds(1) {
      nextConsentAt = answeredAt + consentInterval()
    } else {
      nextConsentAt = now
    }
    if checklist[index].epoch == epoch.number, earlierEpoch != nil, retireAt == nil {
      retireAt = now + ICETiming.retirement
    }
  }

  /// How long higher pairs may delay a nomination: a while, and twice what a round trip takes.
  private func patience(for index: Int) -> Interval {
    let roundTrip = checklist[index].roundTrip ?? .zero
    return min(
      ICETiming.nominationPatience + roundTrip * 2, ICETiming.nominationPatienceMaximum)
  }
}
