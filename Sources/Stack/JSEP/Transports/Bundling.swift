import SDP

/// Which transport carries which m-section: bundled sections share one (RFC 9143), and what is
/// offered to a peer without BUNDLE depends on the policy (RFC 9429 section 4.1.1).
struct Bundling {
  /// Whether the peer bundles, as far as known.
  enum Peer {
    case unknown, bundles, separates
  }

  /// The most transports that remote descriptions may ask for at once; further sections are
  /// rejected.
  static let transportsMaximum = 16

  let policy: BundlePolicy
  private(set) var peer = Peer.unknown
  /// The transport of the bundle, or else of the first section; it always exists.
  private(set) var shared = 0
  /// The next transport number.
  private var next = 1

  init(_ policy: BundlePolicy) { self.policy = policy }

  /// The transport of a section that a local offer adds after sections of these kinds and
  /// transports.
  mutating func offered(_ kind: SectionKind, after kinds: [SectionKind], beside taken: [Int]) -> Int
  {
    // Once the peer bundles, new sections join the bundle immediately (RFC 9143 section 7.5.3).
    let isShared = peer == .bundles || policy.leavesToBundle(kind, after: kinds)
    return isShared || !taken.contains(shared) ? shared : fresh()
  }

  /// The transports for the groups of a remote offer: those that their sections had before, if any.
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

  /// Reserves the numbers that an offer uses.
  mutating func commit(_ offered: Bundling) { next = max(next, offered.next) }

  /// Learns from a final answer whether the peer bundles.
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
  /// Whether the section is on and uses a transport.
  func uses(_ number: Int) -> Bool { !isDead && transportNumber == number }
}
