import Wire

/// The local candidates and their foundations (RFC 8445 section 5.1.1).
struct LocalCandidates {
  /// A local candidate and the socket that it sends from.
  struct Candidate {
    let candidate: ICECandidate
    let base: SocketAddress
    /// Who reported or allocated the address, for reflexive and relayed candidates.
    let server: ICEServer?
  }

  /// What makes two candidates share a foundation (RFC 8445 section 5.1.1.3).
  struct FoundationKey: Equatable {
    let kind: ICECandidate.Kind
    let base: IPAddress
    let server: IPAddress?
    var isTCP = false
  }

  static let maximum = 100

  private(set) var all: [Candidate] = []
  private var foundations: [FoundationKey] = []

  var isFull: Bool { all.count >= Self.maximum }

  /// The foundation of a kind of candidate, as a small number; the same for the whole session.
  mutating func foundation(_ key: FoundationKey) -> String {
    if let index = foundations.firstIndex(of: key) { return String(index + 1) }
    foundations.append(key)
    return String(foundations.count)
  }

  mutating func add(_ candidate: ICECandidate, base: SocketAddress, server: ICEServer? = nil) {
    all.append(Candidate(candidate: candidate, base: base, server: server))
  }

  /// Forgets the candidates of a base that is gone; returns them.
  @discardableResult
  mutating func remove(base: SocketAddress) -> [ICECandidate] { remove { $0.base == base } }

  /// Forgets the candidates that connections began at, where an address is gone; returns them.
  mutating func removeActive(where isGone: (IPAddress) -> Bool) -> [ICECandidate] {
    remove { $0.candidate.tcpType == .active && isGone($0.base.ip) }
  }

  private mutating func remove(where isGone: (Candidate) -> Bool) -> [ICECandidate] {
    defer { all.removeAll(where: isGone) }
    return all.filter(isGone).map(\.candidate)
  }

  /// Begins another generation; foundations stay.
  mutating func restart() { all = [] }

  // MARK: Finding

  /// The candidate that is its own base: a host or a relayed one.
  func baseCandidate(of base: SocketAddress) -> ICECandidate? {
    for local in all
    where local.base == base && (local.candidate.kind == .host || local.candidate.kind == .relayed)
    {
      return local.candidate
    }
    return nil
  }

  /// The candidate of a base that peers see at an address.
  func candidate(_ base: SocketAddress, seenAt address: SocketAddress) -> ICECandidate? {
    all.first { $0.base == base && $0.candidate.address == address }?.candidate
  }

  /// Whether a mapping changes nothing, or another server reported it already, so that it is
  /// redundant (RFC 8445 section 5.1.3).
  func isRedundant(_ mapped: SocketAddress, base: SocketAddress) -> Bool {
    all.contains {
      $0.base == base && $0.candidate.address == mapped && $0.candidate.kind != .peerReflexive
    }
  }

  /// The addresses that connections can begin at.
  var activeBases: [SocketAddress] {
    all.filter { $0.candidate.tcpType == .active }.map(\.base)
  }

  /// The priority of the local candidate that a pair sends from.
  func priority(of pair: CandidatePair) -> UInt32 {
    baseCandidate(of: pair.base)?.priority ?? pair.local.priority
  }
}
