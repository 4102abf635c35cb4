import Wire

/// What is known of the peer within one ICE generation: its candidates, names that are being
/// resolved, and what came before its credentials.
struct RemoteSide {
  /// A check that came before the peer's credentials were known.
  struct EarlyCheck {
    let local: SocketAddress
    let remote: SocketAddress
    /// The peer's username fragment as the check names it.
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

  /// The result of learning a candidate.
  enum Learning {
    case new
    /// It was learned from a check before and has its real name now.
    case renamed
    case known
    case full
  }

  /// The result of receiving a candidate with a name.
  enum Naming: Equatable {
    /// The name is to be resolved under a number.
    case asked(UInt32)
    case known
    case full
  }

  static let candidatesMaximum = 60
  static let namesMaximum = 32
  static let earlyChecksMaximum = 32

  /// Candidates that can be paired, or could but for their transport; no two with the same address.
  private(set) var candidates: [ICECandidate] = []
  private(set) var hasEnded = false
  /// Candidates that wait for the credentials they belong to.
  private var held: [ICECandidate] = []
  private var names: [UnresolvedName] = []
  private var earlyChecks: [EarlyCheck] = []
  /// How many peer-reflexive candidates were learned; names their foundations.
  private var reflexiveCount = 0

  /// Whether no candidate can come any more.
  var isComplete: Bool { hasEnded && names.isEmpty }

  /// Whether there is something to check, or the news that nothing will come.
  var hasChanges: Bool { !candidates.isEmpty || !names.isEmpty || hasEnded }

  /// Records that the peer has no more candidates.
  mutating func end() { hasEnded = true }

  // MARK: Before the credentials

  /// Holds a candidate that came before the credentials; false when there are too many.
  mutating func hold(_ candidate: ICECandidate) -> Bool {
    guard held.count < Self.candidatesMaximum else { return false }
    held.append(candidate)
    return true
  }

  /// Holds a check that came before the credentials; false when there are too many.
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

  /// Removes and returns what waited for the credentials.
  mutating func removeHeld() -> (candidates: [ICECandidate], checks: [EarlyCheck]) {
    defer {
      held = []
      earlyChecks = []
    }
    return (held, earlyChecks)
  }

  // MARK: Candidates

  /// Adds a candidate.
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

  /// Forgets a candidate wherever it stands.
  mutating func forget(_ candidate: ICECandidate) {
    func isIt(_ known: ICECandidate) -> Bool {
      known.host == candidate.host && known.port == candidate.port
        && known.transport == candidate.transport
    }
    candidates.removeAll(where: isIt)
    held.removeAll(where: isIt)
    names.removeAll { isIt($0.candidate) }
  }

  /// The peer-reflexive candidate of a check (RFC 8445 section 7.3.1.3).
  mutating func reflexive(
    _ address: SocketAddress, priority: UInt32, isTCP: Bool
  ) -> ICECandidate {
    reflexiveCount += 1
    return ICECandidate(
      foundation: "prflx\(reflexiveCount)", transport: isTCP ? "tcp" : "udp",
      priority: priority, host: .address(address.ip), port: address.port, kind: .peerReflexive,
      // Whoever connected here is the active side (RFC 6544 section 7.2).
      extensions: isTCP ? [ICECandidate.tcpType(.active)] : [])
  }

  /// The candidate over UDP at an address.
  func candidate(at address: SocketAddress) -> ICECandidate? {
    candidates.first { $0.transport == "udp" && $0.address == address }
  }

  // MARK: Names

  /// Keeps a candidate until its name is resolved.
  mutating func resolve(_ candidate: ICECandidate, _ numbers: inout RequestNumbers) -> Naming {
    if names.contains(where: { $0.candidate == candidate }) { return .known }
    guard names.count < Self.namesMaximum else { return .full }
    let id = numbers.next()
    names.append(UnresolvedName(id: id, candidate: candidate))
    return .asked(id)
  }

  /// Removes and returns the candidate whose name was requested under a number.
  mutating func removeNamed(_ id: UInt32) -> ICECandidate? {
    guard let index = names.firstIndex(where: { $0.id == id }) else { return nil }
    return names.remove(at: index).candidate
  }
}
