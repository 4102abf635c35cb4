import Wire

extension ICEAgent {
  /// Runs all that is due, chooses, tells what changed and finds the next deadline.
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
    guard checkingSince == nil, epoch.remote != nil else { return }
    if !remoteSide.candidates.isEmpty || !remoteSide.names.isEmpty || remoteSide.hasEnded {
      checkingSince = now
    }
  }

  /// Gives up when every pair failed and no other can come, or after a long time without success.
  private mutating func checkPatience() {
    guard let since = checkingSince, !hasFailed else { return }
    var hasPairs = false
    var isOpen = false
    for pair in checklist where pair.epoch == epoch.number {
      if pair.state == .succeeded { return }
      hasPairs = true
      isOpen = isOpen || pair.isUndecided
    }
    // What worked once may come back, or another interface may come.
    let isOver =
      hasPairs && !isOpen && !hadPath && remoteSide.hasEnded && remoteSide.names.isEmpty
      && gatheringState == .complete
    if isOver || since + ICETiming.checkingPatience <= now { giveUp() }
  }

  private mutating func report() {
    for index in checklist.indices where checklist[index].hasNews {
      checklist[index].hasNews = false
      emit(.pair(checklist[index].report(isSelected: checklist[index].id == selectedID)))
    }
    if let index = selectedIndex, selectedID != announcedID {
      emit(.selected(local: checklist[index].base, remote: checklist[index].target))
    }
    announcedID = selectedID
    if !isCompleted, isDone { isCompleted = true }
    let target = stateNow
    // Completed is reached by way of connected, as applications expect.
    if target == .completed, connectionState != .completed { change(to: .connected) }
    change(to: target)
  }

  private mutating func change(to state: ICEConnectionState) {
    guard connectionState != state else { return }
    connectionState = state
    emit(.connectionState(state))
  }

  /// The W3C state (webrtc-pc section 5.6.4), from what is known now.
  private var stateNow: ICEConnectionState {
    if let index = selectedIndex {
      guard isSilent else { return isCompleted ? .completed : .connected }
      // A restart forgets that connectivity was lost.
      return checklist[index].epoch == epoch.number ? .disconnected : .checking
    }
    if hasFailed { return .failed }
    // A path that was there and is gone may still be replaced.
    if checkingSince != nil { return hadPath ? .disconnected : .checking }
    switch connectionState {
    case .new, .failed: return connectionState
    default: return .checking
    }
  }

  /// Whether nothing is left to do: all candidates known, all pairs decided, one nominated in use.
  private var isDone: Bool {
    guard let nominatedID, nominatedID == selectedID, !isSilent, gatheringState == .complete,
      remoteSide.hasEnded, remoteSide.names.isEmpty
    else { return false }
    return !checklist.contains {
      $0.epoch == epoch.number && ($0.isUndecided || $0.isNominating)
    }
  }

  private func nextDeadline() -> Instant? {
    var next = earliest(gatheringDeadline, lifeDeadline)
    next = earliest(earliest(next, retireAt), streamsDeadline)
    guard epoch.remote != nil, !hasFailed else { return next }
    next = earliest(next, nominationDueAt)
    if hasUncheckedPairs { next = earliest(next, nextPacedAt) }
    var hasSucceeded = false
    for pair in checklist {
      next = earliest(next, pair.nextAttempt)
      hasSucceeded = hasSucceeded || pair.epoch == epoch.number && pair.state == .succeeded
    }
    if !hasSucceeded, let checkingSince {
      next = earliest(next, checkingSince + ICETiming.checkingPatience)
    }
    return next
  }
}
