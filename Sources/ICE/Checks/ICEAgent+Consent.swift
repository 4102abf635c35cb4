import Wire

extension ICEAgent {
  /// Notices that the pair in use fell silent, was heard again, or lost consent (RFC 7675).
  mutating func judgeLife() {
    guard let index = selectedIndex else { return }
    if consentEnd(index) <= now {
      checklist[index].fail()
      if nominatedID == checklist[index].id { nominatedID = nil }
      let isEarlier = checklist[index].epoch != epoch.number
      if isEarlier { retireAt = now }
      if !isEarlier, best(where: { $0.state == .succeeded }) == nil { giveUp() }
      if isEarlier { dropSelection() }
      return
    }
    let silent = silenceBegin(index) <= now
    guard silent != isSilent else { return }
    isSilent = silent
    if silent {
      isCompleted = false
      verifyRelay(at: checklist[index].base)
      recheckOthers()
    }
  }

  /// Asks the pair in use for consent when it is time, and more often while it is not heard.
  mutating func runConsent() {
    guard let index = selectedIndex, let due = consentDue(index), due <= now else { return }
    sendCheck(on: index, isConsent: true)
    consentAskedAt = now
    if let next = nextConsentAt, next <= now { nextConsentAt = now + consentInterval() }
  }

  /// Draws the time to the next consent check.
  func consentInterval() -> Interval {
    let spread = UInt64(ICETiming.consentIntervalSpread.nanoseconds)
    let extra = Int64(truncatingIfNeeded: entropy.integer(below: spread))
    return ICETiming.consentIntervalMinimum + Interval(nanoseconds: extra)
  }

  /// Stops checking: nothing works, until something new turns up.
  mutating func giveUp() {
    hasFailed = true
    hadPath = false
    triggered = []
    for index in checklist.indices
    where checklist[index].epoch == epoch.number && checklist[index].state != .succeeded {
      checklist[index].fail()
    }
  }

  /// When the pair in use wants attention next.
  var lifeDeadline: Instant? {
    guard let index = selectedIndex else { return nil }
    let next = earliest(consentDue(index), consentEnd(index))
    guard isSilent else { return earliest(next, silenceBegin(index)) }
    let grace = graceEnd(index)
    return grace > now ? earliest(next, grace) : next
  }

  /// When a silent pair in use may be replaced.
  func graceEnd(_ index: Int) -> Instant { silenceBegin(index) + ICETiming.silenceGrace }

  private mutating func dropSelection() {
    selectedID = nil
    isSilent = false
    nextConsentAt = nil
    consentAskedAt = nil
  }

  private func consentDue(_ index: Int) -> Instant? {
    guard let asked = consentAskedAt else { return nextConsentAt }
    let heard = checklist[index].heardAt ?? asked
    return earliest(nextConsentAt, max(asked, heard) + ICETiming.probeInterval)
  }

  private func silenceBegin(_ index: Int) -> Instant {
    max(checklist[index].heardAt ?? selectedSince, selectedSince) + ICETiming.silence
  }

  private func consentEnd(_ index: Int) -> Instant {
    max(checklist[index].consentedAt ?? selectedSince, selectedSince) + ICETiming.consentLifetime
  }
}
