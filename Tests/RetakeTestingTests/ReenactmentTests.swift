import RetakeTesting
import Testing

/// Tests, without a browser, how re-enactments that serve as tests fail.
struct ReenactmentFailureTests {
  @Test func aFailureNamesTheTakeAndTheFault() async throws {
    let take = capture("virtual-heavy-loss")
    let browser = await #expect(throws: ReenactmentFailure.self) {
      try await expectReenactment(take, peer: 1, browser: "/none/browser", "freezeCount <= 1")
    }
    #expect(browser?.path == take && browser?.description.contains("/none/browser") == true)
    let peer = await #expect(throws: ReenactmentFailure.self) {
      try await expectReenactment(take, "freezeCount <= 1")
    }
    #expect(peer?.description.contains("1 (caller), 2 (callee)") == true)
    let expectation = await #expect(throws: ReenactmentFailure.self) {
      try await expectReenactment(take, peer: 1, "freezeCount is low")
    }
    #expect(expectation?.description.contains("freezeCount <= 1") == true)
    let page = await #expect(throws: ReenactmentFailure.self) {
      try await expectReenactment(take, peer: 1, upstream: "ws://[::1]:9", "freezeCount <= 1")
    }
    #expect(page?.description.contains("the page has to be named") == true)
    let upstream = await #expect(throws: ReenactmentFailure.self) {
      try await expectReenactment(
        take, peer: 1, page: "http://[::1]:9/", upstream: "sfu.example", browser: "/bin/true",
        "freezeCount <= 1")
    }
    #expect(upstream?.description.contains("sfu.example") == true)
  }
}
