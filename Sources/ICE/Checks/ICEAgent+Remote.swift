import Wire

extension ICEAgent {
  /// Takes the peer's credentials, or keeps them for the restart that they announce.
  mutating func setRemote(_ credentials: ICECredentials, lite: Bool) {
    // RFC 8839 section 5.4 ends both at 256 characters.
    guard (1...256).contains(credentials.usernameFragment.utf8.count),
      (1...256).contains(credentials.password.utf8.count)
    else {
      counters.unusable += 1
      return
    }
    if epoch.remote == nil || epoch.remote == credentials {
      applyRemote(credentials, lite: lite)
    } else if upcomingRemote?.credentials == credentials {
      upcomingRemote?.isLite = lite
    } else {
      upcomingRemote = ICEUpcomingRemote(credentials: credentials, isLite: lite)
    }
  }

  /// Takes a candidate that was signaled, for the epoch that it names or else the newest one.
  mutating func takeRemote(_ candidate: ICECandidate) {
    let fragment = candidate.value(ofExtension: "ufrag")
    if let upcoming = upcomingRemote,
      fragment == nil || fragment == upcoming.credentials.usernameFragment
    {
      if upcoming.candidates.count < ICERemoteSide.candidatesMaximum {
        upcomingRemote?.candidates.append(candidate)
      } else {
        counters.overflows += 1
      }
      return
    }
    guard let remote = epoch.remote else {
      if remoteSide.held.count < ICERemoteSide.candidatesMaximum {
        remoteSide.held.append(candidate)
      } else {
        counters.overflows += 1
      }
      return
    }
    guard fragment == nil || fragment == remote.usernameFragment else {
      counters.foreignFragment += 1
      return
    }
    addRemote(candidate)
  }

  mutating func endRemoteCandidates() {
    if upcomingRemote == nil {
      remoteSide.hasEnded = true
    } else {
      upcomingRemote?.hasEnded = true
    }
  }

  mutating func nameResolved(_ id: UInt32, _ addresses: [IPAddress]) {
    if let index = gathering.servers.firstIndex(where: { $0.nameID == id }) {
      serverResolved(index, addresses)
      return
    }
    guard let index = remoteSide.names.firstIndex(where: { $0.id == id }) else { return }
    var candidate = remoteSide.names.remove(at: index).candidate
    // One address stands for the name: the first that a socket can send to.
    let isReachable = { (ip: IPAddress) in
      self.gathering.sockets.contains { $0.asked.isIPv4 == ip.isIPv4 }
    }
    guard let ip = addresses.first(where: isReachable) ?? addresses.first else { return }
    candidate.host = .address(ip)
    addRemote(candidate)
  }

  /// Begins a new epoch; the pair in use goes on until the new one has a pair that works.
  mutating func restart(_ credentials: ICECredentials) {
    let selected = selectedIndex
    let kept = selected.map { checklist[$0] }
    if let kept {
      if kept.epoch == epoch.number { earlierEpoch = epoch }
    } else {
      earlierEpoch = nil
    }
    checklist.restart(keeping: selected)
    let keptRelay = kept.flatMap { gathering.relayIndex(at: $0.base) }
      .map { gathering.relays[$0] }
    closeRelays { $0.id != keptRelay?.id }
    let keptSocket = keptRelay?.base ?? kept?.base
    closeSockets { $0.address == nil || $0.address != keptSocket }
    localCredentials = credentials
    epoch = ICEEpoch(number: epoch.number + 1, local: credentials)
    gathering.beginEpoch()
    gatheringState = .new
    remoteSide = ICERemoteSide()
    progress.restart()
    nomination.restart()
    retireAt = nil
    guard let upcoming = upcomingRemote else { return }
    upcomingRemote = nil
    applyRemote(upcoming.credentials, lite: upcoming.isLite)
    for candidate in upcoming.candidates { takeRemote(candidate) }
    remoteSide.hasEnded = upcoming.hasEnded
  }

  /// Gives up what a restart left behind, once it is due.
  mutating func retire() {
    guard let due = retireAt, due <= now else { return }
    retireAt = nil
    earlierEpoch = nil
    let number = epoch.number
    checklist.retire()
    closeRelays { $0.epoch != number }
    closeSockets { $0.epoch != number }
  }

  /// Keeps a check that came before the credentials it belongs to.
  mutating func rememberEarly(_ check: ICERemoteSide.EarlyCheck) {
    for index in remoteSide.earlyChecks.indices
    where remoteSide.earlyChecks[index].remote == check.remote
      && remoteSide.earlyChecks[index].local == check.local
      && remoteSide.earlyChecks[index].fragment == check.fragment
    {
      remoteSide.earlyChecks[index].usesCandidate =
        remoteSide.earlyChecks[index].usesCandidate || check.usesCandidate
      remoteSide.earlyChecks[index].count += 1
      return
    }
    guard remoteSide.earlyChecks.count < ICERemoteSide.earlyChecksMaximum else {
      counters.overflows += 1
      return
    }
    remoteSide.earlyChecks.append(check)
  }

  /// Makes a candidate known; one that was learned from a check gets its real name when signaled.
  ///
  /// Returns whether it is new; nil when there is no room for it.
  mutating func learnRemote(_ candidate: ICECandidate) -> Bool? {
    for index in remoteSide.candidates.indices {
      let known = remoteSide.candidates[index]
      guard known.host == candidate.host, known.port == candidate.port,
        known.transport == candidate.transport
      else { continue }
      guard known.kind == .peerReflexive, candidate.kind != .peerReflexive else { return false }
      remoteSide.candidates[index] = candidate
      emit(.remoteCandidate(candidate))
      rename(to: candidate)
      return true
    }
    guard remoteSide.candidates.count < ICERemoteSide.candidatesMaximum else { return nil }
    remoteSide.candidates.append(candidate)
    emit(.remoteCandidate(candidate))
    return true
  }

  /// Sets the credentials of this epoch and takes what waited for them.
  private mutating func applyRemote(_ credentials: ICECredentials, lite: Bool) {
    let isNew = epoch.remote == nil
    epoch.setRemote(credentials, lite: lite)
    // A lite agent never checks, so that only this side can choose (RFC 8445 section 6.1.1).
    if lite, roles.role != .controlling {
      changeRole(to: .controlling)
      emit(.role(.controlling))
    }
    guard isNew else { return }
    let held = remoteSide.held
    let early = remoteSide.earlyChecks
    remoteSide.held = []
    remoteSide.earlyChecks = []
    for candidate in held { takeRemote(candidate) }
    for check in early {
      guard check.fragment == credentials.usernameFragment else {
        counters.foreignFragment += check.count
        continue
      }
      noteCheck(
        check.local, check.remote, priority: check.priority, usesCandidate: check.usesCandidate,
        count: check.count)
    }
  }

  /// Sorts a signaled candidate: to be paired, to be resolved, or only to be known.
  private mutating func addRemote(_ candidate: ICECandidate) {
    guard candidate.component == 1, candidate.port != 0 else {
      counters.unusable += 1
      return
    }
    switch candidate.host {
    case .address(let ip):
      guard !ip.isUnspecified else {
        counters.unusable += 1
        return
      }
      learnSignaled(candidate)
    case .name(let name):
      guard candidate.isTCP ? settings.usesTCP : candidate.transport == "udp" else { return }
      if remoteSide.names.contains(where: { $0.candidate == candidate }) {
        counters.duplicates += 1
        return
      }
      guard remoteSide.names.count < ICERemoteSide.namesMaximum else {
        counters.overflows += 1
        return
      }
      let id = numbers.next()
      remoteSide.names.append(ICERemoteSide.UnresolvedName(id: id, candidate: candidate))
      emit(.resolveName(id: id, name))
    }
  }

  /// Pairs a new candidate with every socket.
  private mutating func learnSignaled(_ candidate: ICECandidate) {
    switch learnRemote(candidate) {
    case .none: counters.overflows += 1
    case .some(false): counters.duplicates += 1
    case .some(true):
      for base in gathering.bases(of: epoch.number) { addPair(base: base, remote: candidate) }
    }
  }

  /// Gives the pairs of a peer-reflexive candidate the candidate that was signaled since; their
  /// states and counters stay.
  private mutating func rename(to candidate: ICECandidate) {
    let gathering = gathering
    checklist.rename(to: candidate, roles.role) { gathering.localPriority($0) }
  }

  private mutating func closeSockets(where isOver: (ICEGathering.Socket) -> Bool) {
    for socket in gathering.sockets where isOver(socket) {
      if let address = socket.address { emit(.closeSocket(address)) }
    }
    gathering.sockets.removeAll(where: isOver)
  }
}
