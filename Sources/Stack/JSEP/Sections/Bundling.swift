import SDP
package import Wire

/// Assigns transports to m-sections: bundled sections share one (RFC 9143), and offers to a peer
/// without BUNDLE depend on the policy (RFC 9429 section 4.1.1).
struct Bundling {
  /// Whether the peer bundles; unknown until an answer shows it.
  enum Peer {
    case unknown, bundles, separates
  }

  /// The maximum number of transports that remote descriptions may use at once; further sections
  /// are rejected.
  static let transportsMaximum = 16

  let policy: BundlePolicy
  private(set) var peer = Peer.unknown
  /// The number of the transport used by the bundle, or by the first section if nothing is bundled;
  /// the transport always exists.
  private(set) var shared = 0
  /// The transport number to assign next.
  private var next = 1

  init(_ policy: BundlePolicy) { self.policy = policy }

  /// Returns the transport for a section that a local offer adds.
  ///
  /// `kinds` lists the kinds of the preceding sections, and `taken` the transports of existing
  /// sections.
  mutating func offered(_ kind: SectionKind, after kinds: [SectionKind], beside taken: [Int]) -> Int
  {
    // Once the peer bundles, new sections join the bundle immediately (RFC 9143 section 7.5.3).
    let isShared = peer == .bundles || policy.leavesToBundle(kind, after: kinds)
    return isShared || !taken.contains(shared) ? shared : fresh()
  }

  /// Returns the transports for a remote offer's groups: the transports that their sections already
  /// have, or else new ones.
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

  /// Reserves the transport numbers that a created offer uses, so that no other section gets them.
  mutating func commit(_ offered: Bundling) { next = max(next, offered.next) }

  /// Determines from a final answer whether the peer bundles.
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
  func uses(_ number: Int) -> Bool { !isDead && transportNumber == number }
}

// MARK: - BundlePolicy

/// How offers bundle sections for a peer that may not support BUNDLE (W3C RTCBundlePolicy, RFC 9429
/// section 4.1.1).
///
/// The policy decides which new m-sections in an offer have their own transport until the peer
/// bundles them, and which are marked `bundle-only`, so that a peer without BUNDLE rejects them. It
/// also decides which of the peer's m-sections an answer accepts.
public enum BundlePolicy: String, Hashable, Sendable, Codable, CaseIterable {
  /// The first section of each kind (audio, video, data) has its own transport; further sections of
  /// that kind do not.
  case balanced
  /// Every section has its own transport.
  case maxCompat = "max-compat"
  /// Only the first section has its own transport.
  case maxBundle = "max-bundle"

  /// Returns whether a new section is `bundle-only` after sections of these kinds (RFC 9429
  /// section 5.2.1).
  func leavesToBundle<Kind: Equatable>(_ kind: Kind, after others: [Kind]) -> Bool {
    switch self {
    case .balanced: others.contains(kind)
    case .maxCompat: false
    case .maxBundle: !others.isEmpty
    }
  }

  /// Returns which sections of a remote offer may be accepted: sections that have their own
  /// transport under this policy, and other sections in their BUNDLE groups (RFC 9429 section
  /// 5.3.1).
  func admits(_ offer: SDPDocument) -> [Bool] {
    guard self != .maxCompat else { return offer.sections.map { _ in true } }
    let bundles = offer.bundles.map { Set($0) }
    var leading: [SectionKind: Int?] = [:]
    return offer.sections.map { section in
      guard !section.isRejected else { return false }
      let bundle = section.mid.flatMap { mid in bundles.firstIndex { $0.contains(mid) } }
      // With max-bundle, all kinds count as the same.
      let kind = self == .balanced ? section.kind : .audio
      guard let first = leading[kind] else {
        leading[kind] = .some(bundle)
        return true
      }
      return bundle != nil && bundle == first
    }
  }
}

/// A transport's local side, as stated in descriptions.
package struct LocalTransport: Hashable, Sendable {
  /// Identifies the transport within this peer; never reused.
  package var number: Int
  package var usernameFragment: String
  package var password: String
  package var fingerprints: [CertificateFingerprint]
  /// The candidates gathered so far, each as the text after `a=` (`candidate:...`).
  package var candidates: [String]
  package var gatheringIsComplete: Bool
  /// The default address for `c=` and `m=`, once a candidate is known.
  package var defaultAddress: SocketAddress?
  /// The values of `a=ice-options` (RFC 9429 section 5.2.1).
  var iceOptions = ["trickle", "ice2"]

  package init(
    number: Int = 0, usernameFragment: String, password: String,
    fingerprints: [CertificateFingerprint],
    candidates: [String] = [], gatheringIsComplete: Bool = false,
    defaultAddress: SocketAddress? = nil
  ) {
    self.number = number
    self.usernameFragment = usernameFragment
    self.password = password
    self.fingerprints = fingerprints
    self.candidates = candidates
    self.gatheringIsComplete = gatheringIsComplete
    self.defaultAddress = defaultAddress
  }
}

/// A transport's remote side, from the peer's description.
package struct RemoteTransport: Hashable, Sendable {
  /// The transport number, as on the local side.
  package var number: Int
  package var usernameFragment: String
  package var password: String
  package var isLite: Bool
  package var fingerprints: [CertificateFingerprint]
  /// Whether the local peer is the DTLS client; nil until an answer decides.
  package var localIsDTLSClient: Bool?
  /// The candidates in the description, each as the text after `a=`.
  package var candidates: [String]
  package var endOfCandidates: Bool

  package init(
    number: Int = 0, usernameFragment: String, password: String, isLite: Bool,
    fingerprints: [CertificateFingerprint], localIsDTLSClient: Bool?,
    candidates: [String], endOfCandidates: Bool
  ) {
    self.number = number
    self.usernameFragment = usernameFragment
    self.password = password
    self.isLite = isLite
    self.fingerprints = fingerprints
    self.localIsDTLSClient = localIsDTLSClient
    self.candidates = candidates
    self.endOfCandidates = endOfCandidates
  }
}

// MARK: - RemoteTransport: Reading

/// The transport of a bundle or single section, parsed from a remote description.
struct TransportReading {
  var usernameFragment: String
  var password: String
  var isLite: Bool
  var fingerprints: [CertificateFingerprint]
  var setup: SetupRole?
  var candidates: [String]
  var endOfCandidates: Bool

  /// The maximum number of fingerprints stored; peers state one for each supported hash function.
  static let fingerprintLimit = 16

  /// Parses the transport of a bundle from its first accepted section.
  ///
  /// Missing attributes are looked up at the session level, where Firefox writes them, or in the
  /// other sections of the bundle, which need not all repeat them (RFC 9143 section 7.1.3).
  init(_ document: SDPDocument, section index: Int, bundle: [Int]) throws(JSEPError) {
    let sections = ([index] + bundle.filter { $0 != index }).map { document.sections[$0] }
    let place = JSEPError.place(in: document, at: index)
    var credentials: (usernameFragment: String, password: String, section: SDPSection)?
    for section in sections {
      guard let fragment = section.iceUsernameFragment ?? document.iceUsernameFragment,
        let password = section.icePassword ?? document.icePassword
      else { continue }
      credentials = (fragment, password, section)
      break
    }
    guard let credentials else {
      throw JSEPError(.invalidAccess, "\(place) has no a=ice-ufrag and a=ice-pwd")
    }
    usernameFragment = credentials.usernameFragment
    password = credentials.password
    isLite = document.isICELite
    var prints: [CertificateFingerprint] = []
    for section in sections {
      for print in section.fingerprints + document.fingerprints
      where prints.count < TransportReading.fingerprintLimit && !prints.contains(print) {
        prints.append(print)
      }
      if !prints.isEmpty { break }
    }
    guard !prints.isEmpty else {
      throw JSEPError(.invalidAccess, "\(place) has no a=fingerprint: only DTLS-SRTP is supported")
    }
    fingerprints = prints
    setup = sections.lazy.compactMap { $0.setup ?? document.setup }.first
    guard setup != .holdconn else {
      throw JSEPError(.invalidAccess, "\(place) says a=setup:holdconn")
    }
    candidates = credentials.section.candidates
    endOfCandidates = credentials.section.endOfCandidates || document.endOfCandidates
  }
}

extension RemoteTransport {
  init(_ reading: TransportReading, number: Int, localIsDTLSClient: Bool?) {
    self.init(
      number: number, usernameFragment: reading.usernameFragment, password: reading.password,
      isLite: reading.isLite, fingerprints: reading.fingerprints,
      localIsDTLSClient: localIsDTLSClient, candidates: reading.candidates,
      endOfCandidates: reading.endOfCandidates)
  }

  /// Returns whether the local peer is the client of a DTLS association that continues under a new
  /// description; nil if new fingerprints start another association (RFC 8842 section 5.5), or if
  /// the role is undecided.
  func establishedRole(for reading: TransportReading) -> Bool? {
    fingerprints == reading.fingerprints ? localIsDTLSClient : nil
  }
}

extension JSEPError {
  /// Returns an m-section's line, index, kind and MID as errors state them.
  static func place(in document: SDPDocument, at index: Int) -> String {
    "line \(document.line(ofSection: index)), \(place(of: document.sections[index], at: index))"
  }

  /// Returns an m-section's index, kind and MID as errors state them.
  static func place(of section: SDPSection, at index: Int) -> String {
    "m-section \(index) (\(section.kind.rawValue)\(section.mid.map { ", mid \($0)" } ?? ""))"
  }
}

// MARK: - RemoteTransports

/// The remote side of each transport in the peer's descriptions, in section order.
struct RemoteTransports {
  typealias Change = Negotiation.Change

  private(set) var all: [RemoteTransport] = []

  subscript(number: Int) -> RemoteTransport? { all.first { $0.number == number } }

  /// Applies the remote side of a transport from a description; returns the changes.
  mutating func adopt(_ transport: RemoteTransport) -> [Change] {
    if let place = all.firstIndex(where: { $0.number == transport.number }) {
      guard transport != all[place] else { return [] }
      all[place] = transport
    } else {
      all.append(transport)
    }
    return [.remoteTransport(transport.number)]
  }

  /// Sets the DTLS roles according to a local answer.
  mutating func settleRoles(bySetupOf answer: SDPDocument, _ slots: [SectionSlot]) -> [Change] {
    var changes: [Change] = []
    for var transport in all {
      let place = slots.indices.first {
        slots[$0].uses(transport.number) && !answer.sections[$0].isRejected
      }
      guard let place, let setup = answer.sections[place].setup else { continue }
      transport.localIsDTLSClient = setup == .active
      changes += adopt(transport)
    }
    return changes
  }

  /// Removes transports that no section uses.
  mutating func removeAll(besides numbers: [Int]) {
    all.removeAll { !numbers.contains($0.number) }
  }

  /// Restores the transports of a stable state; returns the changes.
  mutating func roll(backTo stable: RemoteTransports) -> [Change] {
    let before = self
    self = stable
    let numbers = before.all.map(\.number).distinct(after: [])
    return all.map(\.number).distinct(after: numbers).filter { before[$0] != self[$0] }
      .map { .remoteTransport($0) }
  }
}

extension [Int] {
  /// Returns other numbers followed by these, without duplicates.
  func distinct(after others: [Int]) -> [Int] {
    reduce(into: others) { known, number in
      if !known.contains(number) { known.append(number) }
    }
  }
}
