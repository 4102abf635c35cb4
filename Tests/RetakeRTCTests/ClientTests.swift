import Live
import RetakeRTC
import RetakeTesting
import SDP
import Synchronization
import Testing

/// Tests that the same call logic works with a live peer and with a take of that call.
@Suite(.timeLimit(.minutes(10)), .serialized) struct ClientTests {
  /// The application around a client, which passes its candidates to the other client.
  private final class App: CallClientDelegate {
    let told = Told()
    private let other = Mutex<CallClient?>(nil)

    func connect(to client: CallClient?) { other.withLock { $0 = client } }

    func callClient(_ client: CallClient, didDiscover candidate: RTCIceCandidate) {
      other.withLock { $0 }?.set(remoteCandidate: candidate)
    }
    func callClient(_ client: CallClient, didChange state: RTCIceConnectionState) {
      told.note("\(state)")
    }
    func callClientDidOpenChat(_ client: CallClient) { told.note("open") }
    func callClient(_ client: CallClient, didReceive data: Data) {
      told.note(String(decoding: data, as: UTF8.self))
    }
  }

  private func inFolder(_ body: (String) async throws -> Void) async throws {
    let folder = FileManager.default.temporaryDirectory.path + "/rtc-\(UUID().uuidString)"
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: folder) }
    try await body(folder + "/call.take")
  }

  /// Records two clients that call each other, greet, and hang up.
  private func record(_ path: String) async throws {
    let session = try LoopbackPair.session(take: path)
    let factory = RTCPeerConnectionFactory(
      session: session, microphone: LoopbackPair.microphone)
    let (callerApp, calleeApp) = (App(), App())
    let caller = try #require(CallClient(factory: factory, delegate: callerApp))
    let callee = try #require(CallClient(factory: factory, delegate: calleeApp))
    callerApp.connect(to: callee)
    calleeApp.connect(to: caller)
    caller.offer { offer in
      callee.set(remoteSdp: offer) { _ in
        callee.answer { answer in caller.set(remoteSdp: answer) { _ in } }
      }
    }
    await callerApp.told.wait(for: "open")
    await calleeApp.told.wait(for: "open")
    #expect(caller.sendData(Data("hello".utf8)))
    await calleeApp.told.wait(for: "hello")
    #expect(callee.sendData(Data("well".utf8)))
    await callerApp.told.wait(for: "well")
    #expect(callerApp.told.log.contains("connected"))
    caller.hangUp()
    callee.hangUp()
    await callerApp.told.wait(for: "closed")
    callerApp.connect(to: nil)
    calleeApp.connect(to: nil)
    try await session.finish()
  }

  @Test func theSameLogicRunsAgainstATakeOfItsCall() async throws {
    try await inFolder { path in
      try await record(path)
      let network = try RecordedNetwork(path, peer: 1)
      let factory = RTCPeerConnectionFactory(
        connections: [network.connection], microphone: LoopbackPair.microphone)
      let app = App()
      let client = try #require(CallClient(factory: factory, delegate: app))
      client.offer { _ in app.told.note("offered") }
      await app.told.wait(for: "offered")
      let answer = try #require(network.remoteDescriptions.first)
      client.set(
        remoteSdp: RTCSessionDescription(
          type: RTCSessionDescription.type(for: answer.type.rawValue), sdp: answer.sdp)
      ) { _ in app.told.note("answered") }
      await app.told.wait(for: "answered")
      for candidate in network.remoteCandidates.compactMap(\.self) {
        client.set(
          remoteCandidate: RTCIceCandidate(
            sdp: candidate.candidate, sdpMLineIndex: Int32(candidate.sdpMLineIndex ?? 0),
            sdpMid: candidate.sdpMid))
      }
      await app.told.wait(for: "open")
      #expect(client.sendData(Data("hello".utf8)))
      await app.told.wait(for: "well")
      client.hangUp()
      await app.told.wait(for: "closed")
      #expect(app.told.log.contains("connected"))
      try await network.expectSameSession()
      // A take has one connection for each recorded peer.
      #expect(CallClient(factory: factory, delegate: nil) == nil)
    }
  }

  @Test func logicThatDiffersFromTheRecordedIsReported() async throws {
    try await inFolder { path in
      try await record(path)
      let network = try RecordedNetwork(path, peer: 1)
      // The client's microphone differs from the recorded one.
      let factory = RTCPeerConnectionFactory(connections: [network.connection])
      let client = try #require(CallClient(factory: factory, delegate: nil))
      let report = await network.finish(within: .zero)
      #expect(report.deviations.first?.contains("addTrack was called with other") == true)
      _ = client
    }
  }
}
