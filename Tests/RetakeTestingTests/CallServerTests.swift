import Foundation
import Retake
import Testing

/// Tests a call recorder inside an application.
@Suite(.timeLimit(.minutes(10))) struct CallServerTests {
  @Test func everyCallerIsRecorded() async throws {
    let folder = FileManager.default.temporaryDirectory.path + "/calls-" + UUID().uuidString
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: folder) }
    var options = Session.Options()
    options.bind = .addresses([try #require(IPAddress("127.0.0.1"))])
    let server = try await CallServer(recordingTo: folder + "/", options: options)

    let session = try Session(options)
    let caller = session.makePeer(label: "caller")
    try await caller.addTrack(.audio, source: .tone(hertz: 440, pauseSeconds: 0))
    try await caller.setLocalDescription()
    try await caller.waitForGatheringComplete(timeout: .seconds(120))
    let offer = try #require(try await caller.localDescription)
    let response = try await HTTPClient(timeout: .seconds(120)).post(
      server.url + "/offer", json: String(decoding: try JSONEncoder().encode(offer), as: UTF8.self))
    #expect(response.status == 200, "\(response.text)")
    let answer = try JSONDecoder().decode(CallDescription.self, from: Data(response.body))
    try await caller.setRemoteDescription(SessionDescription(type: .answer, sdp: answer.sdp))
    try await caller.waitUntilConnected(timeout: .seconds(120))
    await caller.close()
    for await _ in server.endedCalls { break }
    try await session.finish()

    let report = try await server.finish()
    let path = try #require(report.takes.first?.path)
    #expect(report.takes.count == 1 && path.hasPrefix(folder))
    let take = try Take.open(path)
    #expect(take.peers.count == 1)
    #expect(try await take.replay().isIdentical)
  }

  @Test func anExistingTakeIsNotReplaced() async throws {
    await #expect(throws: TakeError.self) {
      try await CallServer(recordingTo: capture("virtual-loss"))
    }
  }
}
