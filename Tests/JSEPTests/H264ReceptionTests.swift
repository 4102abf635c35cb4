import Testing

@testable import JSEP

/// Tests what a peer's H.264 parameters allow it to receive (RFC 6184 sections 8.1 and 8.2.2).
struct H264ReceptionTests {
  private static let own = "level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=42e01f"

  /// Returns whether 1920x1080 at 30 frames per second is accepted (8160 macroblocks, 244,800 per
  /// second).
  private func isAccepted(_ peer: String, own: String = own, level: String = "28") -> Bool? {
    H264Reception(own: own, peer: peer)?.accepts(
      H264Stream(
        profileLevelID: "42c0" + level, width: 1920, height: 1080, framesPerSecond: 30))
  }

  @Test(arguments: [
    ("profile-level-id=42e01f;level-asymmetry-allowed=1", false),
    ("profile-level-id=42e028;level-asymmetry-allowed=1", true),
    ("profile-level-id=42e034;level-asymmetry-allowed=1", true),
    // Unless both sides allow asymmetry, the local level also limits what is sent.
    ("profile-level-id=42e028", false),
    ("profile-level-id=42e028;level-asymmetry-allowed=0", false),
    // Without a profile-level-id, the values that browsers assume apply.
    ("packetization-mode=1", false),
    // Parameters may raise the limits above the level, if none of them is too small.
    ("profile-level-id=42e01f;level-asymmetry-allowed=1;max-recv-level=e028", true),
    ("profile-level-id=42e01f;level-asymmetry-allowed=1;max-recv-level=e020", false),
    ("profile-level-id=42e01f;level-asymmetry-allowed=1;max-recv-level=28", false),
    ("profile-level-id=42e01f;level-asymmetry-allowed=1;max-fs=8160;max-mbps=244800", true),
    ("profile-level-id=42e01f;level-asymmetry-allowed=1;max-fs=8160;max-mbps=244799", false),
    ("profile-level-id=42e01f;level-asymmetry-allowed=1;max-fs=8159;max-mbps=300000", false),
    ("profile-level-id=42e01f;level-asymmetry-allowed=1;max-fs=8160", false),
  ])
  func aStreamIsComparedWithThePeersParameters(peer: String, expected: Bool) {
    #expect(isAccepted(peer) == expected)
    #expect(isAccepted(peer, level: "1f") == true)
  }

  @Test(arguments: ["profile-level-id=4d", "profile-level-id=nonsen"])
  func invalidParametersForbidNothing(peer: String) { #expect(isAccepted(peer) == nil) }

  @Test func levelsAreOrderedAndNamed() throws {
    // Level 1b has two spellings.
    let digits = ["42c00a", "42f00b", "42c00b", "42c00c", "42c015", "42c01e", "42c01f", "42c033"]
    let levels = try digits.map { try #require(H264Level(profileLevelID: $0)) }
    #expect(levels.map(\.description) == ["1", "1b", "1.1", "1.2", "2.1", "3", "3.1", "5.1"])
    #expect(levels == levels.sorted() && Set(levels).count == levels.count)
    #expect(H264Level(profileLevelID: "640009") == levels[1])
  }
}
