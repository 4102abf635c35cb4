import SDP
import Testing
import Wire

@testable import JSEP

@Suite struct BundlePolicyTests {
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
    // Without the group, port 0 is a rejected section to the peer.
    let offer = try offerer.offer().sdp.with("a=group:BUNDLE 0 1\r\n", "")
      .with("a=bundle-only\r\n", "")
    try answerer.take(.offer, offer)
    try offerer.take(try answerer.answer())
    #expect(offerer.agreed == ["0 audio sendonly"])
    #expect(offerer.negotiation.transceivers.map(\.kind) == [.audio])
  }
}
