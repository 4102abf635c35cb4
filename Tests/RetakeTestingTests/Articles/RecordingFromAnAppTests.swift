import Foundation
import Retake
import Testing

/// The code in the article "Record from an app".
struct RecordingFromAnAppTests {
  @Test func twoConnectionsInOneProcessMakeATake() async throws {
    let folder = FileManager.default.temporaryDirectory.path + "/article-" + UUID().uuidString
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: folder) }
    let path = folder + "/call.take"
    try await record(path)
    let take = try Take.open(path)
    #expect(take.isComplete && take.peers.map(\.label) == ["caller", "callee"])
    #expect(take.label == "two connections in one process")
    let states = try take.rows(of: StateChange.self).all().filter { $0.machine == "connection" }
    #expect(states.filter { $0.to == "connected" }.map(\.peer).sorted() == [1, 2])
    #expect(try take.rows(of: SignalingRecord.self).all().map(\.type) == ["offer"])
    #expect(try await take.replay().isIdentical)
  }

  private func record(_ path: String) async throws {
    var options = Session.Options()
    options.takePath = path
    options.label = "two connections in one process"
    options.bind = .addresses([IPAddress(ipv4: 0x7f00_0001)])
    let session = try Session(options)
    let caller = session.makePeer(label: "caller", role: "offers")
    let callee = session.makePeer(label: "callee", role: "answers")

    try await caller.addTrack(.audio, source: .tone(hertz: 440, pauseSeconds: 0), streamIDs: ["s"])
    try await caller.setLocalDescription()
    try await caller.waitForGatheringComplete()
    guard let offer = try await caller.localDescription else { return }

    try await callee.setRemoteDescription(offer)
    try await callee.setLocalDescription()
    try await callee.waitForGatheringComplete()
    guard let answer = try await callee.localDescription else { return }
    try await caller.setRemoteDescription(answer)

    try await caller.waitUntilConnected()
    try await callee.waitUntilConnected()

    caller.recordSignaling(
      SignalingMessage(isInbound: false, transport: "memory", type: "offer", message: offer.sdp))

    let summary = try await session.finish()
    print(summary?.steps ?? 0, "steps in", summary?.path ?? "")
  }

  func publish(_ connection: PeerConnection, to endpoint: String) async throws {
    let client = SessionClient(.whip, endpoint: endpoint)
    try await connection.addTransceiver(
      .video, direction: .sendonly, source: .pattern(width: 320, height: 240, framesPerSecond: 15))
    let session = try await client.connect(connection)
    try await connection.waitUntilConnected()
    try await client.close(session)
  }

  @Test func aConnectionPublishesToAnEndpointAndHangsUp() async throws {
    var options = Session.Options()
    options.bind = .addresses([IPAddress(ipv4: 0x7f00_0001)])
    let session = try Session(options)
    let player = session.makePeer(label: "player")
    let (methods, note) = AsyncStream.makeStream(of: String.self)
    let server = try await HTTPServer.listen(host: "127.0.0.1", port: 0) { request in
      note.yield(request.method)
      guard request.method == "POST" else { return HTTPResponse() }
      do {
        let offer = SessionDescription(
          type: .offer, sdp: String(decoding: request.body, as: UTF8.self))
        try await player.setRemoteDescription(offer)
        try await player.setLocalDescription()
        try await player.waitForGatheringComplete()
        let answer = try await player.localDescription?.sdp ?? ""
        var response = HTTPResponse(
          status: 201, type: "application/sdp", body: Array(answer.utf8))
        response.headers.append(("Location", "/sessions/1"))
        return response
      } catch {
        return .refusal(500, "\(error)")
      }
    }
    try await publish(session.makePeer(label: "publisher"), to: server.url + "/whip")
    try await player.waitUntilConnected()
    note.finish()
    var seen: [String] = []
    for await method in methods { seen.append(method) }
    #expect(seen == ["POST", "DELETE"])
    await server.shutdown()
    try await session.finish()
  }

  @Test func anEndpointThatIsNotThereIsOneSentence() async throws {
    let session = try Session()
    let connection = session.makePeer(label: "publisher")
    let failure = await #expect(throws: SessionFailure.self) {
      // Port 9 on loopback has no listener.
      try await publish(connection, to: "http://127.0.0.1:9/whip")
    }
    #expect(failure?.description.contains("127.0.0.1:9") == true)
    try await session.finish()
  }

  /// The article's last block, which needs a caller: `CallServerTests` makes such a call.
  private func serve(_ folder: String) async throws {
    let server = try await CallServer(recordingTo: folder)
    print("open \(server.pageURL) in a browser")
    for await _ in server.endedCalls { break }
    let report = try await server.finish()
    print(report.lines.joined(separator: "\n"))
  }
}
