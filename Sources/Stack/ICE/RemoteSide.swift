import Wire

/// The peer within one ICE generation: its candidates, names being resolved, and candidates and
/// checks that arrived before its credentials.
struct RemoteSide {
  /// A check that arrived before the peer's credentials were known.
  struct EarlyCheck {
    let local: SocketAddress
    let remote: SocketAddress
    /// The peer's username fragment in the check.
    let fragment: String
    var priority: UInt32
    var usesCandidate: Bool
    var count: UInt64 = 1
  }

  /// A candidate whose name is being resolved.
  private struct UnresolvedName {
    let id: UInt32
    let candidate: ICECandidate
  }

  /// The result of adding a candidate.
  enum Learning {
    case new
    /// The candidate was known as peer-reflexive, and the signaled one has replaced it.
    case renamed
    case known
    case full
  }

  /// The result of receiving a candidate whose host is a name.
  enum Naming: Equatable {
    /// The name is being resolved under this request id.
    case asked(UInt32)
    case known
    case full
  }

  static let candidatesMaximum = 60
  static let namesMaximum = 32
  static let earlyChecksMaximum = 32

  /// All candidates, including those with an unsupported transport; no two have the same address
  /// and transport.
  private(set) var candidates: [ICECandidate] = []
  private(set) var hasEnded = false
  /// Candidates that arrived before the credentials.
  private var held: [ICECandidate] = []
  private var names: [UnresolvedName] = []
  private var earlyChecks: [EarlyCheck] = []
  /// The number of peer-reflexive candidates so far, which becomes part of each one's foundation.
  private var reflexiveCount = 0

  /// Whether no more candidates can appear.
  var isComplete: Bool { hasEnded && names.isEmpty }

  /// Whether there is a candidate to check, or the candidates have ended.
  var hasChanges: Bool { !candidates.isEmpty || !names.isEmpty || hasEnded }

  /// Records that the peer has no more candidates.
  mutating func end() { hasEnded = true }

  // MARK: Arrivals before credentials

  /// Stores a candidate that arrived before the credentials; returns false if there are too many.
  mutating func hold(_ candidate: ICECandidate) -> Bool {
    guard held.count < Self.candidatesMaximum else { return false }
    held.append(candidate)
    return true
  }

  /// Stores a check that arrived before the credentials; returns false if there are too many.
  mutating func hold(_ check: EarlyCheck) -> Bool {
    for index in earlyChecks.indices
    where earlyChecks[index].remote == check.remote && earlyChecks[index].local == check.local
      && earlyChecks[index].fragment == check.fragment
    {
      earlyChecks[index].usesCandidate = earlyChecks[index].usesCandidate || check.usesCandidate
      earlyChecks[index].count += 1
      return true
    }
    guard earlyChecks.count < Self.earlyChecksMaximum else { return false }
    earlyChecks.append(check)
    return true
  }

  /// Removes and returns everything that arrived before the credentials.
  mutating func removeHeld() -> (candidates: [ICECandidate], checks: [EarlyCheck]) {
    defer {
      held = []
      earlyChecks = []
    }
    return (held, earlyChecks)
  }

  // MARK: Candidates

  /// Adds a candidate; a signaled candidate replaces the peer-reflexive candidate with the same
  /// address.
  mutating func learn(_ candidate: ICECandidate) -> Learning {
    for index in candidates.indices {
      let known = candidates[index]
      guard known.host == candidate.host, known.port == candidate.port,
        known.transport == candidate.transport
      else { continue }
      guard known.kind == .peerReflexive, candidate.kind != .peerReflexive else { return .known }
      candidates[index] = candidate
      return .renamed
    }
    guard candidates.count < Self.candidatesMaximum else { return .full }
    candidates.append(candidate)
    return .new
  }

  mutating func forget(_ candidate: ICECandidate) {
    func isIt(_ known: ICECandidate) -> Bool {
      known.host == candidate.host && known.port == candidate.port
        && known.transport == candidate.transport
    }
    candidates.removeAll(where: isIt)
    held.removeAll(where: isIt)
    names.removeAll { isIt($0.candidate) }
  }

  /// Creates the peer-reflexive candidate for the source of a check (RFC 8445 section 7.3.1.3).
  mutating func reflexive(
    _ address: SocketAddress, priority: UInt32, isTCP: Bool
  ) -> ICECandidate {
    reflexiveCount += 1
    return ICECandidate(
      foundation: "prflx\(reflexiveCount)", transport: isTCP ? "tcp" : "udp",
      priority: priority, host: .address(address.ip), port: address.port, kind: .peerReflexive,
      // The peer that connected is the active one (RFC 6544 section 7.2).
      extensions: isTCP ? [ICECandidate.tcpType(.active)] : [])
  }

  /// Returns the UDP candidate at an address; nil if there is none.
  func candidate(at address: SocketAddress) -> ICECandidate? {
    candidates.first { $0.transport == "udp" && $0.address == address }
  }

  // MARK: Names

  /// Stores a candidate until its name is resolved.
  mutating func resolve(_ candidate: ICECandidate, _ numbers: inout RequestNumbers) -> Naming {
    if names.contains(where: { $0.candidate == candidate }) { return .known }
    guard names.count < Self.namesMaximum else { return .full }
    let id = numbers.next()
    names.append(UnresolvedName(id: id, candidate: candidate))
    return .asked(id)
  }

  /// Removes and returns the candidate whose name is resolved under this request id; nil if there
  /// is none.
  mutating func removeNamed(_ id: UInt32) -> ICECandidate? {
    guard let index = names.firstIndex(where: { $0.id == id }) else { return nil }
    return names.remove(at: index).candidate
  }
}

// MARK: - ICEAgent: Remote

// Handles the peer's signaled credentials and candidates, and restarts.
extension ICEAgent {
  /// Applies the peer's credentials, or stores them for the restart they announce.
  mutating func setRemote(_ credentials: ICECredentials, lite: Bool) {
    switch generations.apply(credentials, lite: lite) {
    case .unusable: counters.count(.unusable)
    case .upcoming: break
    case .present(let isNew):
      // A lite agent never checks, so only the local agent can nominate (RFC 8445 section 6.1.1).
      if lite, roles.role != .controlling {
        changeRole(to: .controlling)
        emit(.role(.controlling))
      }
      if isNew { applyHeld(credentials.usernameFragment) }
    }
  }

  /// Applies candidates and checks that arrived before the peer's credentials.
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

  /// Handles a signaled candidate for the generation it names, or for the newest if it names none.
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

  /// Removes a remote candidate; its working pairs stay in use.
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
    // Only one address of the name is used: the first that a socket can send to, or else the first.
    let sockets = gatherer.sockets
    guard let ip = addresses.first(where: { sockets.reaches($0) }) ?? addresses.first else {
      return
    }
    candidate.host = .address(ip)
    addRemote(candidate)
  }

  /// Starts a new generation; the selected pair stays until a new pair works.
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

  /// Drops the replaced generation, with its pair, relays and sockets, when that is due.
  mutating func retire() {
    guard generations.retire(at: now) else { return }
    let number = generations.present.number
    checklist.retire()
    closeRelays { $0.generation != number }
    closeSockets { $0.generation != number }
  }

  /// Adds a candidate; a signaled candidate replaces the peer-reflexive candidate with the same
  /// address.
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

  /// Handles a signaled candidate: pairs it, resolves its name, or only counts it.
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

  /// Pairs a new remote candidate with every local base: sockets, relayed addresses, and the
  /// addresses that active TCP connections can be opened from.
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
