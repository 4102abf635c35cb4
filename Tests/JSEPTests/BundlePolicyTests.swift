import SDP
import Testing
import Wire

@testable import JSEP

struct BundlePolicyTests {
  private func side(_ policy: BundlePolicy, _ kinds: [MediaKind]) throws -> Side {
    var side = Side("a")
    side.negotiation = Negotiation(
      entropy: Entropy(seed: [1]).stream("sdp"), cname: "c", bundlePolicy: policy)
    for kind in kinds { _ = try side.add(kind) }
    return side
  }

  private static let policies: [(BundlePolicy, [MediaKind], [Int])] = [
    (.balanced, [.audio, .video, .audio, .video], [2, 3]), (.balanced, [.video, .video], [1]),
    (.balanced, [.audio, .video], []), (.maxCompat, [.audio, .video, .audio], []),
    (.maxBundle, [.audio, .video, .audio], [1, 2]),
  ]

  @Test(arguments: policies)
  func newSectionsAreLeftToTheBundle(policy: BundlePolicy, kinds: [MediaKind], left: [Int]) throws {
    var side = try side(policy, kinds)
    side.transport.defaultAddress = SocketAddress(IPAddress(ipv4: 0x0a00_0001), port: 4000)
    let offer = try document(try side.offer())
    for (index, section) in offer.sections.enumerated() {
      #expect(section.has(.bundleOnly) == left.contains(index))
      #expect(section.port == (left.contains(index) ? 0 : 4000))
      #expect(!section.isRejected)
    }
    #expect(offer.bundles == [kinds.indices.map { "\($0)" }])
  }

  private static let transports: [(BundlePolicy, [MediaKind], [Int])] = [
    (.balanced, [.audio, .video, .audio, .video], [0, 1, 2]), (.balanced, [], [0]),
    (.maxCompat, [.audio, .video, .audio], [0, 1, 2, 3]),
    (.maxBundle, [.audio, .video, .audio], [0]),
  ]

  @Test(arguments: transports)
  func candidatesAreGatheredForSectionsThatMayBeUnbundled(
    policy: BundlePolicy, kinds: [MediaKind], numbers: [Int]
  ) throws {
    var side = try side(policy, kinds)
    side.negotiation.wantData()
    #expect(side.negotiation.offeredTransportNumbers == numbers)
    let data = try #require(try document(try side.offer()).sections.last)
    #expect(data.kind == .application)
    #expect(data.has(.bundleOnly) == (policy == .maxBundle))
    #expect(data.port == (policy == .maxBundle ? 0 : 9))
    #expect(side.negotiation.transportNumbers.sorted() == numbers)
    // The answer bundles all sections, including those that could have stood alone.
    var answerer = Side("b")
    try answerer.apply(try #require(side.negotiation.pendingLocal))
    try side.apply(try answerer.answer())
    #expect(side.negotiation.transportNumbers == [0])
    #expect(try document(try side.offer()).sections.allSatisfy { !$0.has(.bundleOnly) })
  }

  @Test func aStoppedSectionIsReplacedByTheNextOfItsKind() throws {
    var side = try side(.balanced, [.audio, .video])
    _ = try side.offer()
    try side.negotiation.stop(transceiver: 2)
    _ = try side.add(.video)
    let offer = try document(try side.offer())
    #expect(offer.sections.map(\.isRejected) == [false, true, false])
    #expect(!offer.sections[2].has(.bundleOnly))
    let numbers = [0, 2].map { side.negotiation.transportNumber(ofMID: String($0)) }
    #expect(numbers[0] != numbers[1] && !numbers.contains(nil))
  }

  /// Tests which sections an answer accepts of an unbundled offer of audio, video, video and audio.
  @Test(arguments: [
    (BundlePolicy.balanced, [0, 1]), (.maxCompat, [0, 1, 2, 3]), (.maxBundle, [0]),
  ])
  func anAnswerAcceptsWhatThePolicyAllows(policy: BundlePolicy, accepted: [Int]) throws {
    let kinds: [MediaKind] = [.audio, .video, .video, .audio]
    var offerer = try side(.maxCompat, kinds)
    let offer = try offerer.offer().sdp
    for (group, expected) in [("", accepted), ("a=group:BUNDLE 0 1 2 3\r\n", [0, 1, 2, 3])] {
      var answerer = try side(policy, [])
      try answerer.apply(.offer, offer.with("a=group:BUNDLE 0 1 2 3\r\n", group))
      let answer = try document(try answerer.answer())
      #expect(answer.sections.indices.filter { !answer.sections[$0].isRejected } == expected)
      #expect(answerer.negotiation.sections.map(\.mid) == expected.map(String.init))
    }
    // If only some sections are grouped, `balanced` accepts those grouped with the first section of
    // their kind.
    var answerer = try side(policy, [])
    try answerer.apply(.offer, offer.with("BUNDLE 0 1 2 3", "BUNDLE 0 2 3"))
    let some =
      switch policy {
      case .balanced: ["0", "1", "3"]
      case .maxCompat: ["0", "1", "2", "3"]
      case .maxBundle: ["0", "2", "3"]
      }
    _ = try answerer.answer()
    #expect(answerer.negotiation.sections.map(\.mid) == some)
  }

  @Test(arguments: [BundlePolicy.balanced, .maxCompat, .maxBundle])
  func sectionsInTheBundleAreNotMarkedAgain(policy: BundlePolicy) throws {
    var offerer = try side(policy, [.video, .video])
    var answerer = Side("b")
    try exchange(&offerer, &answerer)
    #expect(offerer.agreed == ["0 video sendonly", "1 video sendonly"])
    _ = try offerer.add(.video)
    let again = try document(try offerer.offer())
    #expect(again.sections.map { $0.has(.bundleOnly) } == [false, false, policy != .maxCompat])
  }

  @Test func aPeerWithoutBundleGetsTheFirstSection() throws {
    var offerer = try side(.maxBundle, [.audio, .video])
    var answerer = Side("b")
    // Without the group, the peer reads port 0 as a rejected section.
    let offer = try offerer.offer().sdp.with("a=group:BUNDLE 0 1\r\n", "")
      .with("a=bundle-only\r\n", "")
    try answerer.apply(.offer, offer)
    try offerer.apply(try answerer.answer())
    #expect(offerer.agreed == ["0 audio sendonly"])
    #expect(offerer.negotiation.transceivers.map(\.kind) == [.audio])
  }
}
