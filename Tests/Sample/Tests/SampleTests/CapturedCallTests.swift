import Foundation
import Retake
import RetakeTesting
import Sample
import Testing

/// The takes are beside the package here; a real package keeps them in `Captures/`.
private let captures = URL(fileURLWithPath: #filePath)
  .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
  .deletingLastPathComponent().deletingLastPathComponent().appendingPathComponent("Captures").path

struct CapturedCallTests {
  @Test func theCallWithChromiumReplays() async throws {
    try await expectReplay("\(captures)/chromium-peer-offers.take")
  }

  @Test func theEchoAnswersJanusAsItDidThen() async throws {
    let network = try RecordedNetwork("\(captures)/janus-videoroom-peer-offers.take")
    let echo = Echo(network.connection)
    let answer = try await echo.answer(network.remoteDescriptions[0])
    #expect(answer?.sdp.contains("m=video") == true)
    try await network.connection.waitUntilConnected()
    try await network.expectSameSession()
    #expect(network.connection.counters.videoFramesReceived > 20)
  }

  @Test func aCapturedCallAnswersQuestions() throws {
    let take = try Take.open("\(captures)/virtual-loss.take")
    let peers = try take.query("SELECT peer, label FROM peer", as: Int.self, String.self).all()
    #expect(peers.map(\.1) == ["caller", "callee"])
  }
}
