import SDP

/// Which transport carries which m-section: bundled sections share one (RFC 9143), and what an
/// offer allows a peer that does not bundle depends on the policy (RFC 9429 section 4.1.1).
struct Bundling {
  /// What exchanges showed of the peer.
  enum Peer {
    case unknown, bundles, separates
  }

  /// How many transports descriptions of the peer may ask for at once; sections beyond them are
  /// rejected.
  static let transportsMaximum = 16

  let policy: BundlePolicy
  private(set) var peer = Peer.unknown
  /// The transport of the bundle, or else of the first section; there always is one.
  private(set) var shared = 0
  /// The number of the next transport.
  private var next = 1

  init(_ policy: BundlePolicy) { self.policy = policy }

  /// The transport of a section that a local offer adds after sections of these kinds, which use
  /// these transports.
  mutating func offered(_ kind: SectionKind, after kinds: [SectionKind], beside taken: [Int]) -> Int
  {
    // Once the peer bundles, what is new goes into the bundle from the beginning (RFC 9143 section
    // 7.5.3).
    let isShared = peer == .bundles || policy.leavesToBundle(kind, after: kinds)
    return isShared || !taken.contains(shared) ? shared : fresh()
  }

  /// The transports of the groups of sections in an offer of the peer: those that their sections
  /// had before, as far as there were any.
  mutating func numbers(of groups: [[Int]], before slots: [SectionSlot]) -> [Int] {
    var numbers: [Int?] = []
    for group in groups {
      let known = group.lazy.filter { slots.indices.contains($0) && !slots[$0].isDead }
        .map { slots[$0].transportNumber }
      numbers.append(known.first { !numbers.contains($0) })
    }
    for index in numbers.indices where numbers[index] == nil {
      numbers[index] = numbers.contains(shared) ? fresh() : shared
    }
    return numbers.compactMap(\.self)
  }

  /// Keeps the numbers that an offer uses from being given to others.
  mutating func commit(_ offered: Bundling) { next = max(next, offered.next) }

  /// Learns from what a final answer left of the sections.
  mutating func settle(_ slots: [SectionSlot], _ answer: SDPDocument) {
    let alive = slots.indices.filter { !slots[$0].isDead }
    let grouped = alive.filter { index in
      guard let mid = answer.sections[index].mid else { return false }
      return answer.bundles.contains { $0.contains(mid) }
    }
    if !grouped.isEmpty { peer = .bundles } else if alive.count > 1 { peer = .separates }
    if let first = grouped.first ?? alive.first { shared = slots[first].transportNumber }
  }

  private mutating func fresh() -> Int {
    defer { next += 1 }
    return next
  }
}

extension SectionSlot {
  /// Whether the section lives on a transport.
  func uses(_ number: Int) -> Bool { !isDead && transportNumber == number }
}
