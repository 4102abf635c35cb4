import Wire

// Pairs that are made, nominated and used.
extension ICEAgent {
  /// Creates the pair of a base and a remote candidate unless it cannot work or is there already.
  mutating func addPair(base: SocketAddress, remote: ICECandidate) {
    guard let target = remote.address, base.ip.isIPv4 == target.ip.isIPv4,
      // Link-local addresses reach link-local addresses only (RFC 8445 section 6.1.2.2).
      base.ip.isIPv4 || base.ip.isLinkLocal == target.ip.isLinkLocal,
      let local = gatherer.candidates.baseCandidate(of: base), local.pairs(with: remote)
    else { return }
    switch checklist.add(
      local, base: base, remote, target, roles.role, keeping: consent.pairID)
    {
    case .known: break
    case .full: counters.count(.overflows)
    case .added:
      permit(target.ip, at: base)
      progress.revive(at: now)
    }
  }

  /// Queues a pair for a check ahead of the ordinary ones.
  mutating func trigger(_ index: Int) {
    progress.revive(at: now)
    checklist.trigger(index)
  }

  /// Checks every other pair again, because the selected one is silent or gone.
  private mutating func recheckOthers() {
    let (gatherer, relays) = (gatherer, relays)
    let selected = consent.pairID
    checklist.recheck {
      $0.id != selected
        && (gatherer.hasBase($0) || !$0.local.isTCP && relays.index(at: $0.base) != nil)
    }
  }

  // MARK: Nomination

  /// Nominates the best pair when this side is to choose (RFC 8445 section 8.1.1).
  mutating func considerNomination() {
    guard roles.role == .controlling, generations.present.remote != nil, !progress.hasFailed else {
      return nomination.rest()
    }
    let chosen = nomination.consider(
      checklist, firstSuccessAt: progress.firstSuccessAt, at: now)
    guard let chosen else { return }
    checklist.change(chosen) { $0.beginNominating() }
    sendCheck(on: chosen)
  }

  /// Nominates a pair: by an answered USE-CANDIDATE of this side, or by the peer's choice.
  mutating func nominate(_ index: Int) {
    checklist.change(index) { $0.setNominated() }
    nomination.nominate(checklist[index].id, at: now)
  }

  /// Follows the peer's latest USE-CANDIDATE, if it is to be followed.
  mutating func followChoice(_ index: Int) {
    if nomination.follows(index, checklist, isSilent: consent.isSilent, at: now) {
      nominate(index)
    }
  }

  // MARK: The pair in use

  var selectedIndex: Int? { checklist.index(id: consent.pairID) }

  /// Chooses the selected pair: the nominated one, or else the best that works.
  mutating func updateSelection() {
    if consent.isSilent, let silent = selectedIndex, checklist.isPresent(silent),
      consent.graceEnd(checklist[silent]) <= now
    {
      let id = checklist[silent].id
      // All others were checked again when silence began, so that this one works now.
      if checklist.best(where: { $0.state == .succeeded && $0.id != id }) != nil {
        checklist.change(silent) { $0.fail() }
        nomination.forget(id)
      }
    }
    var wanted = nomination.choose(checklist, roles.role)
    wanted = wanted ?? checklist.best { $0.state == .succeeded }
    if wanted == nil, let index = selectedIndex, !checklist.isPresent(index) { wanted = index }
    select(wanted)
  }

  private mutating func select(_ index: Int?) {
    let id = index.map { checklist[$0].id }
    guard id != consent.pairID else { return }
    if let old = selectedIndex { checklist.change(old) { $0.selectionChanged() } }
    consent.select(id)
    guard let index else {
      // The selected pair is gone: the others are checked again, with the full time limit.
      if progress.beginAnew(at: now) { recheckOthers() }
      return
    }
    checklist.change(index) { $0.selectionChanged() }
    if checklist.isPresent(index) { progress.recordPath() }
    bindChannel(to: checklist[index].target, at: checklist[index].base)
    consent.begin(checklist[index], entropy, at: now)
    if checklist.isPresent(index) { generations.recordPath(at: now) }
  }

  /// Acts when the selected pair falls silent, recovers, or loses consent (RFC 7675).
  mutating func judgeLife() {
    guard let index = selectedIndex else { return }
    switch consent.judge(checklist[index], at: now) {
    case .nothing, .resumed: break
    case .silent:
      progress.recordSilence()
      verifyRelay(at: checklist[index].base)
      recheckOthers()
    case .expired:
      checklist.change(index) { $0.fail() }
      nomination.forget(checklist[index].id)
      if checklist.isPresent(index) {
        if checklist.best(where: { $0.state == .succeeded }) == nil { abandon() }
      } else {
        generations.losePath(at: now)
        consent.select(nil)
      }
    }
  }

  /// Sends a consent check when it is due.
  mutating func runConsent() {
    guard let index = selectedIndex, consent.isDue(checklist[index], at: now) else { return }
    sendCheck(on: index, isConsent: true)
    consent.recordRequest(entropy, at: now)
  }

  /// Stops checking: nothing works, until something new turns up.
  mutating func abandon() {
    progress.fail()
    checklist.abandon()
  }
}
