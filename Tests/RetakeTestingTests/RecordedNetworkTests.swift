import Live
import Media
import Peer
import RetakeTesting
import SDP
import Stats
import Testing
import Wire

struct RecordedNetworkTests {
  /// Makes the callee's calls of the recorded session, as its application made them.
  private func answer(_ network: RecordedNetwork) async throws {
    let connection = network.connection
    try await connection.addTrack(
      .audio, source: .tone(hertz: 440, pauseSeconds: 0), streamIDs: ["s"])
    let offer = try #require(network.remoteDescriptions.first)
    try await connection.setRemoteDescription(offer)
    try await connection.setLocalDescription()
  }

  @Test func anApplicationThatDoesTheSameHasTheSameSession() async throws {
    let recording = try Recording()
    let network = try RecordedNetwork(recording.path, peer: 2)
    #expect(network.connection.label == "callee")
    #expect(network.signaling.map(\.type) == ["offer", "answer"])
    try await answer(network)
    try await network.connection.waitUntilConnected()
    let report = try await network.connection.getStats()
    #expect(!report.objects.isEmpty)
    try await network.expectSameSession()
    #expect(network.connection.states.connection == .closed)
    #expect(network.connection.counters.audioReceived > 40)
  }

  @Test func theOffererGetsTheRecordedAnswer() async throws {
    let recording = try Recording()
    let network = try RecordedNetwork(recording.path)
    let connection = network.connection
    try await connection.addTrack(
      .audio, source: .tone(hertz: 440, pauseSeconds: 0), streamIDs: ["s"])
    try await connection.setLocalDescription()
    let offer = try #require(try await connection.localDescription)
    #expect(offer.sdp == network.signaling.first { !$0.isInbound }?.message)
    try await connection.setRemoteDescription(network.remoteDescriptions[0])
    try await connection.waitUntilConnected()
    let report = await network.finish()
    #expect(report.sentOtherwise == 0 && report.sentAsRecorded > 50)
    #expect(report.deviations == [])
    #expect(report.steps == report.recordedSteps)
  }

  @Test func anotherCallIsReported() async throws {
    let recording = try Recording()
    let network = try RecordedNetwork(recording.path, peer: 2)
    try await network.connection.addTrack(.audio, source: .echo, streamIDs: ["s"])
    try await network.connection.restartICE()
    let difference = await #expect(throws: RecordedNetwork.Difference.self) {
      // Do not wait: the application makes none of the missing calls.
      try await network.expectSameSession(within: .zero)
    }
    let deviations = try #require(difference?.report.deviations)
    #expect(deviations.count == 4, "\(deviations)")
    #expect(
      deviations[0].hasSuffix(
        "addTrack was called with other arguments: "
          + "source: echo, recorded tone(hertz: 440, pauseSeconds: 0)"))
    #expect(deviations[1].contains("restartICE was called where"))
    #expect(deviations[2].contains("the recorded application called setRemoteDescription"))
    #expect(difference?.description.contains(recording.path) == true)
  }

  @Test func aWrongDescriptionIsRefusedAsEver() async throws {
    let recording = try Recording()
    let network = try RecordedNetwork(recording.path, peer: 2)
    try await network.connection.addTrack(
      .audio, source: .tone(hertz: 440, pauseSeconds: 0), streamIDs: ["s"])
    await #expect(throws: PeerError.self) {
      try await network.connection.setRemoteDescription(
        SessionDescription(type: .offer, sdp: "nonsense"))
    }
    await network.connection.close()
    let report = await network.finish(within: .zero)
    let wrong = try #require(report.deviations.first { $0.contains("other arguments") })
    #expect(wrong.contains("setRemoteDescription was called with other arguments: sdp: "))
    #expect(wrong.contains("line 1 is \"nonsense\", recorded \"v=0\""))
  }

  @Test func theApplicationMayStillBeAtWorkWhenTheTestFinishes() async throws {
    let recording = try Recording()
    let network = try RecordedNetwork(recording.path, peer: 2)
    // The application answers in a separate task, which has not started when the test finishes.
    let (start, signal) = AsyncStream.makeStream(of: Void.self)
    let application = Task {
      for await _ in start { break }
      try await answer(network)
    }
    async let report = network.finish()
    signal.yield()
    #expect(await report.deviations == [])
    #expect(await report.sentOtherwise == 0)
    try await application.value
  }

  @Test func missingCallsAreReportedAfterTheLimit() async throws {
    let recording = try Recording()
    let network = try RecordedNetwork(recording.path, peer: 2)
    let report = await network.finish(within: .milliseconds(1))
    #expect(report.deviations.count == 3, "\(report.deviations)")
    #expect(report.deviations.first?.contains("the recorded application called addTrack(") == true)
    #expect(report.steps == report.recordedSteps)
  }

  @Test func theEndOfTheTakeDoesNotEndTheConnection() async throws {
    let recording = try Recording()
    let network = try RecordedNetwork(recording.path, peer: 2)
    try await answer(network)
    await network.connection.close()
    await network.connection.close()
    #expect(try await network.connection.transceivers.count == 1)
    _ = await network.finish()
  }

  @Test func aPeerThatTheTakeDoesNotHaveIsAnError() throws {
    let recording = try Recording()
    let error = #expect(throws: SessionError.self) {
      _ = try RecordedNetwork(recording.path, peer: 7)
    }
    #expect(error?.description.contains("only peer 1, peer 2") == true)
  }
}
