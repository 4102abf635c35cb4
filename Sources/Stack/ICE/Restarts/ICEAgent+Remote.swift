import Wire

// What the peer signals, and restarts.
extension ICEAgent {
  /// Applies the peer's credentials, or holds them for the restart that they announce.
  mutating func setRemote(_ credentials: ICECredentials, lite: Bool) {
    switch generations.apply(credentials, lite: lite) {
    case .unusable: counters.count(.unusable)
    case .upcoming: break
    case .present(let isNew):
      // A lite agent never checks, so that only this side can choose (RFC 8445 section 6.1.1).
      if lite, roles.role != .controlling {
        changeRole(to: .controlling)
        emit(.role(.controlling))
      }
      if isNew { applyHeld(credentials.usernameFragment) }
    }
  }

  /// Applies what waited for the peer's credentials.
  private mutating func applyHeld(_ fragment: String) {
    let (candidates, checks) = remoteSide.removeHeld()
    for candidate in candidates { receiveRemoteCandidate(candidate) }
    for check in checks {
      guard check.fragment == fragment else {
        counters.count(.foreignFragment, check.count)
        continue
      }
      recordCheck(
        check.local, check.remote, priority: check.priority, usesCandidate: check.usesCandidate,
        count: check.count)
    }
  }

  /// Handles a signaled candidate, for the generation that it names or else the newest one.
  mutating func receiveRemoteCandidate(_ candidate: ICECandidate) {
    let fragment = candidate.value(ofExtension: "ufrag")
    if generations.isUpcoming(fragment) {
      if !generations.hold(candidate) { counters.count(.overflows) }
      return
    }
    guard let remote = generations.present.remote else {
      if !remoteSide.hold(candidate) { counters.count(.overflows) }
      return
    }
    guard fragment == nil || fragment == remote.usernameFragment else {
      return counters.count(.foreignFragment)
    }
    addRemote(candidate)
  }

  /// Forgets a candidate of the peer; pairs of it that work continue.
  mutating func removeRemote(_ candidate: ICECandidate) {
    remoteSide.forget(candidate)
    guard let address = candidate.address else { return }
    let number = generations.present.number
    checklist.fail {
      $0.generation == number && $0.target == address && $0.state != .succeeded
        && $0.remote.transport == candidate.transport
    }
  }

  mutating func endRemoteCandidates() {
    if !generations.endUpcoming() { remoteSide.end() }
  }

  mutating func nameResolved(_ id: UInt32, _ addresses: [IPAddress]) {
    if serverResolved(id, addresses) { return }
    guard var candidate = remoteSide.removeNamed(id) else { return }
    // One address stands for the name: the first that a socket can send to.
    let sockets = gatherer.sockets
    guard let ip = addresses.first(where: { sockets.reaches($0) }) ?? addresses.first else {
      return
    }
    candidate.host = .address(ip)
    addRemote(candidate)
  }

  /// Begins a new generation; the selected pair continues until the new one has a pair that works.
  mutating func restart(_ credentials: ICECredentials) {
    let selected = selectedIndex
    let kept = selected.map { checklist[$0] }
    checklist.restart(keeping: selected)
    let keptRelay = kept.flatMap { relays.index(at: $0.base) }.map { relays[$0] }
    closeRelays { $0.id != keptRelay?.id }
    let keptSocket = keptRelay?.base ?? kept?.base
    closeSockets { $0.address == nil || $0.address != keptSocket }
    let upcoming = generations.restart(credentials, keeping: kept?.generation)
    gatherer.restart()
    remoteSide = RemoteSide()
    progress.restart()
    nomination.restart()
    guard let upcoming else { return }
    setRemote(upcoming.credentials, lite: upcoming.isLite)
    for candidate in upcoming.candidates { receiveRemoteCandidate(candidate) }
    if upcoming.hasEnded { remoteSide.end() }
  }

  /// Gives up what a restart left behind, once it is due.
  mutating func retire() {
    guard generations.retire(at: now) else { return }
    let number = generations.present.number
    checklist.retire()
    closeRelays { $0.generation != number }
    closeSockets { $0.generation != number }
  }

  /// Adds a candidate; a signaled one replaces the peer-reflexive one learned from a check.
  mutating func learnRemote(_ candidate: ICECandidate) -> RemoteSide.Learning {
    let learning = remoteSide.learn(candidate)
    switch learning {
    case .new: emit(.remoteCandidate(candidate))
    case .renamed:
      emit(.remoteCandidate(candidate))
      let candidates = gatherer.candidates
      checklist.rename(to: candidate, roles.role) { candidates.priority(of: $0) }
    case .known, .full: break
    }
    return learning
  }

  /// Sorts a signaled candidate: to be paired, to be resolved, or only to be known.
  private mutating func addRemote(_ candidate: ICECandidate) {
    guard candidate.component == 1, candidate.port != 0 else { return counters.count(.unusable) }
    switch candidate.host {
    case .address(let ip):
      guard !ip.isUnspecified else { return counters.count(.unusable) }
      learnSignaled(candidate)
    case .name(let name):
      guard candidate.isTCP ? settings.usesTCP : candidate.transport == "udp" else { return }
      switch remoteSide.resolve(candidate, &numbers) {
      case .known: counters.count(.duplicates)
      case .full: counters.count(.overflows)
      case .asked(let id): emit(.request(.resolveName(id: id, name)))
      }
    }
  }

  /// Pairs a new candidate with every socket.
  private mutating func learnSignaled(_ candidate: ICECandidate) {
    switch learnRemote(candidate) {
    case .full: counters.count(.overflows)
    case .known: counters.count(.duplicates)
    case .new, .renamed:
      let number = generations.present.number
      let bases =
        gatherer.sockets.bases(of: number) + relays.bases(of: number)
        + gatherer.candidates.activeBases
      for base in bases { addPair(base: base, remote: candidate) }
    }
  }
}
