import Wire

extension ICEAgent {
  /// Runs all that is due, selects a pair, reports changes and computes the next deadline.
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

  /// Checks begin with the peer's credentials and something to check, or with the news that no
  /// candidate will come, when only its own checks can still help.
  private mutating func beginChecking() {
    guard progress.checkingSince == nil, generations.present.remote != nil else { return }
    if remoteSide.hasChanges { progress.begin(at: now) }
  }

  /// Gives up when every pair failed and no other can come, or after a long time without success.
  private mutating func checkPatience() {
    guard let end = progress.patienceEnd, !progress.hasFailed else { return }
    var hasPairs = false
    var isOpen = false
    for pair in checklist.pairs where pair.generation == checklist.generation {
      if pair.state == .succeeded { return }
      hasPairs = true
      isOpen = isOpen || pair.isUndecided
    }
    // What worked once may come back, or another interface may come.
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

  /// Whether nothing is left to do: all candidates known, all pairs decided, one nominated in use.
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
