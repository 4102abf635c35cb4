import Wire

// Creates, nominates and selects pairs.
extension ICEAgent {
  /// Adds the pair of a base and a remote candidate unless it cannot work or already exists.
  mutating func addPair(base: SocketAddress, remote: ICECandidate) {
    guard let target = remote.address, base.ip.isIPv4 == target.ip.isIPv4,
      // Link-local addresses reach only link-local addresses (RFC 8445 section 6.1.2.2).
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

  /// Queues a pair for a check ahead of ordinary ones.
  mutating func trigger(_ index: Int) {
    progress.revive(at: now)
    checklist.trigger(index)
  }

  /// Checks all other pairs again because the selected one is silent or gone.
  private mutating func recheckOthers() {
    let (gatherer, relays) = (gatherer, relays)
    let selected = consent.pairID
    checklist.recheck {
      $0.id != selected
        && (gatherer.hasBase($0) || !$0.local.isTCP && relays.index(at: $0.base) != nil)
    }
  }

  // MARK: Nomination

  /// Nominates the best pair if the local agent is controlling (RFC 8445 section 8.1.1).
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

  /// Nominates a pair after an answered USE-CANDIDATE, or because the peer nominated it.
  mutating func nominate(_ index: Int) {
    checklist.change(index) { $0.setNominated() }
    nomination.nominate(checklist[index].id, at: now)
  }

  /// Nominates the pair of the peer's latest USE-CANDIDATE, unless another pair must stay
  /// nominated.
  mutating func followChoice(_ index: Int) {
    if nomination.follows(index, checklist, isSilent: consent.isSilent, at: now) {
      nominate(index)
    }
  }

  // MARK: Selected pair

  var selectedIndex: Int? { checklist.index(id: consent.pairID) }

  /// Selects the nominated pair, or else the best working one.
  mutating func updateSelection() {
    if consent.isSilent, let silent = selectedIndex, checklist.isPresent(silent),
      consent.graceEnd(checklist[silent]) <= now
    {
      let id = checklist[silent].id
      // The other pairs were checked again when the silence began, so a pair that succeeded since
      // then works now.
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
      // The selected pair is gone, so check the others again, with the full time limit.
      if progress.beginAnew(at: now) { recheckOthers() }
      return
    }
    checklist.change(index) { $0.selectionChanged() }
    if checklist.isPresent(index) { progress.recordPath() }
    bindChannel(to: checklist[index].target, at: checklist[index].base)
    consent.begin(checklist[index], entropy, at: now)
    if checklist.isPresent(index) { generations.recordPath(at: now) }
  }

  /// Reacts when the selected pair becomes silent, recovers, or loses consent (RFC 7675).
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

  /// Stops checking until something new to check appears.
  mutating func abandon() {
    progress.fail()
    checklist.abandon()
  }
}

// MARK: - State

extension ICEAgent {
  /// Runs everything due, selects a pair, reports changes and computes the next deadline.
  mutating func settle() {
    judgeLife()
    retire()
    beginChecking()
    runGathering()
    runChecks()
    checkPatience()
    considerNomination()
    updateSelection()
    runConsent()
    closeStreams()
    report()
    deadline = nextDeadline()
  }

  /// Starts checking once the peer's credentials are known and the peer has sent a candidate, or
  /// the end of its candidates.
  ///
  /// If the peer sent no candidate, only its checks can reveal its address.
  private mutating func beginChecking() {
    guard progress.checkingSince == nil, generations.present.remote != nil else { return }
    if remoteSide.hasChanges { progress.begin(at: now) }
  }

  /// Stops checking if every pair failed and no other pair can appear, or after a long time
  /// without success.
  private mutating func checkPatience() {
    guard let end = progress.patienceEnd, !progress.hasFailed else { return }
    var hasPairs = false
    var isOpen = false
    for pair in checklist.pairs where pair.generation == checklist.generation {
      if pair.state == .succeeded { return }
      hasPairs = true
      isOpen = isOpen || pair.isUndecided
    }
    // A pair that once worked may recover, or another interface may appear.
    let isOver =
      hasPairs && !isOpen && !progress.hadPath && remoteSide.isComplete
      && gatheringState == .complete
    if isOver || end <= now { abandon() }
  }

  private mutating func report() {
    for report in checklist.removeChanges(selected: consent.pairID) { emit(.pair(report)) }
    let selected = selectedIndex
    if progress.isNew(consent.pairID), let index = selected {
      emit(.selected(local: checklist[index].base, remote: checklist[index].target))
    }
    let path = selected.map {
      CheckProgress.Path(isPresent: checklist.isPresent($0), isSilent: consent.isSilent)
    }
    let states = progress.settle(path, isDone: !progress.isCompleted && isDone)
    for state in states { emit(.connectionState(state)) }
  }

  /// Whether checking is complete: all candidates are known, all pairs are decided, and a nominated
  /// pair is selected.
  private var isDone: Bool {
    guard let nominated = nomination.pairID, nominated == consent.pairID, !consent.isSilent,
      gatheringState == .complete,
      remoteSide.isComplete
    else { return false }
    return !checklist.contains { $0.isUndecided || $0.nomination.isNominating }
  }

  private func nextDeadline() -> Instant? {
    let life = selectedIndex.flatMap { consent.deadline(checklist[$0], at: now) }
    var next = earliest(gatheringDeadline, life)
    next = earliest(earliest(next, generations.retireAt), gatherer.connections.deadline(checklist))
    guard generations.present.remote != nil, !progress.hasFailed else { return next }
    next = earliest(earliest(next, nomination.dueAt), checklist.deadline)
    guard !checklist.contains(where: { $0.state == .succeeded }) else { return next }
    return earliest(next, progress.patienceEnd)
  }
}
