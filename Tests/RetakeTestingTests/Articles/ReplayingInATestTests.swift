import Foundation
import Retake
import RetakeTesting
import Testing

/// The code in the article "Replay in a test".
struct ReplayingInATestTests {
  @Test func theCallReplays() async throws {
    try await expectReplay(capture("virtual-loss"))
  }

  @Test func theEchoAnswersAsItDidThen() async throws {
    let network = try RecordedNetwork(capture("janus-videoroom-peer-offers"))
    let application = EchoApplication(network.connection)
    try await application.answer(network.remoteDescriptions[0])
    try await network.connection.waitUntilConnected()
    try await network.expectSameSession()
  }

  @Test func nobodyWaitedLongForTheFirstFrame() async throws {
    let take = try Take.open(capture("virtual-loss"))
    let delays = try take.query("SELECT since_connected_ms FROM first_frame", as: Double.self)
    #expect(try delays.all().allSatisfy { $0 < 200 })
  }
}

struct EchoApplication {
  private let connection: PeerConnection

  init(_ connection: PeerConnection) { self.connection = connection }

  func answer(_ offer: SessionDescription) async throws {
    try await connection.setRemoteDescription(offer)
    for transceiver in try await connection.transceivers {
      try await connection.addTrack(transceiver.kind, source: .echo, streamIDs: ["retake"])
    }
    try await connection.setLocalDescription()
  }
}

/// Returns the path of one of the repository's captures.
func capture(_ name: String) -> String {
  let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
    .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
  return root.appendingPathComponent("Captures/\(name).take").path
}
