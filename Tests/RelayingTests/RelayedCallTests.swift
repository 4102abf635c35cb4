import CallRecording
import Foundation
import Importing
import JSEP
import Live
import Media
import Peer
import Replay
import SCTP
import SDP
import Secure
import Signaling
import Tape
import Testing
import Wire

@testable import Relaying

/// Calls between two connections through a relay that neither knows of.
@Suite(.timeLimit(.minutes(10)), .serialized) struct RelayedCallTests {
  private static let pattern = MediaSource.pattern(width: 64, height: 48, framesPerSecond: 10)
  private static let tone = MediaSource.tone(hertz: 440, pauseSeconds: 0)

  private func addMedia(_ peers: [PeerConnection]) async throws {
    for peer in peers {
      try await peer.addTrack(.audio, source: Self.tone)
      try await peer.addTrack(.video, source: Self.pattern)
    }
  }

  @Test func bothEndsDecodeAllAndTheTakeReplaysIdentical() async throws {
    try await RelayRig.inFolder { path in
      let rig = try await RelayRig(take: path)
      let offerer = rig.ends.makePeer(label: "offerer")
      try await addMedia([offerer, rig.answerer])
      let echo = Task { [answerer = rig.answerer] in
        await answerer.forEachRemoteDataChannel { channel in
          for await message in channel.messages { try? await channel.send(message) }
        }
      }
      let channel = try await offerer.createDataChannel("chat")
      try await rig.call(offerer)
      try await offerer.waitUntilConnected(timeout: .seconds(120))
      await RelayRig.receive(videoFrames: 8, blocks: 40, of: offerer)
      await RelayRig.receive(videoFrames: 8, blocks: 40, of: rig.answerer)
      try await channel.waitUntilOpen(timeout: .seconds(120))
      let messages = channel.messages.makeAsyncIterator()
      try await channel.send("through both legs")
      #expect(await messages.next() == .text("through both legs"))
      // The answerer receives the relay's credentials instead of the offerer's.
      let request = try #require(rig.arrived.first)
      let offer = try #require(try await offerer.localDescription)
      let own = try SDPDocument(parsing: offer.sdp)
      let shown = String(decoding: request.body, as: UTF8.self)
      #expect(!shown.contains(try #require(own.sections[0].iceUsernameFragment)))
      let summary = try #require(try await rig.finish())
      await echo.value
      #expect(summary.packets > 100)
      try checkReplay(path)
      try checkRows(path)
      let relayed = try StoredPackets(path)
      try relayed.checkAreStoredOnce()
      // A redacted copy is searched for the packets' plaintext.
      let redacted = try Redactor.run(
        path: path, output: path + ".redacted", parts: .all,
        secret: [UInt8](repeating: 7, count: 32))
      #expect(redacted.searched > 0)
      // A packet's replacement is the same for the leg and for the observer.
      let copy = try StoredPackets(path + ".redacted")
      try copy.checkAreStoredOnce()
      #expect(copy.count == relayed.count)
      let media = relayed.packets.filter { $0.count > 300 }
      #expect(!media.isEmpty && copy.packets.isDisjoint(with: media))
    }
  }

  @Test func aTakeCutShortAnywhereReplaysToItsEnd() async throws {
    try await RelayRig.inFolder { path in
      let rig = try await RelayRig(take: path)
      // If a fault delays packets, the legs may record them before or after the observer does.
      try await rig.relay.calls.set(
        RelayFault.list(parsing: "delay 40ms video") + RelayFault.list(parsing: "duplicate audio"))
      let offerer = rig.ends.makePeer(label: "offerer")
      try await addMedia([offerer, rig.answerer])
      try await rig.call(offerer)
      try await offerer.waitUntilConnected(timeout: .seconds(120))
      await RelayRig.receive(videoFrames: 4, blocks: 40, of: offerer)
      await RelayRig.receive(videoFrames: 4, blocks: 40, of: rig.answerer)
      try await rig.finish()
      try checkReplay(path)
      try StoredPackets(path).checkAreStoredOnce()
      let steps = try #require(try TakeFile.open(path).integer("SELECT steps FROM ending"))
      for part in 1...8 {
        let copy = "\(path).\(part)"
        try FileManager.default.copyItem(atPath: path, toPath: copy)
        let kept = try StoredPackets.cut(copy, atStep: steps * Int64(part) / 9)
        #expect(kept > 0 && kept < steps)
        try checkReplay(copy)
        #expect(try TapeAudit.run(path: copy).steps == kept)
      }
    }
  }

  /// Checks that every machine in the take replays identically.
  private func checkReplay(_ path: String) throws {
    let replayer = try Replayer(
      path: path, codecs: { LibraryCodecs() }, peer: { PeerMachine(codecs: $0) })
    let verdict = try replayer.run().verdict
    if case .identical = verdict {} else { Issue.record("\(verdict)") }
  }

  /// Checks the rows of both legs and both observed ends.
  private func checkRows(_ path: String) throws {
    let labels = try Self.texts(path, "SELECT label FROM peer ORDER BY peer")
    #expect(labels == ["near 1", "far 1", "near end 1", "far end 1"])
    let types = try Self.texts(
      path, "SELECT direction || ' ' || type FROM signaling WHERE peer <= 2 ORDER BY peer, step")
    #expect(types == ["in offer", "out answer", "out offer", "in answer"])
    let streams = try Self.texts(
      path,
      "SELECT DISTINCT kind || ' ' || codec FROM frame WHERE peer > 2 ORDER BY 1")
    #expect(streams == ["audio opus", "video vp8"], "\(streams)")
  }

  private static func texts(_ path: String, _ sql: String) throws -> [String] {
    let take = try TakeFile.openForQueries(path)
    let statement = try take.prepare(sql)
    var texts: [String] = []
    while try statement.step() { texts.append(statement.text(0) ?? "") }
    return texts
  }

  @Test func aRingHasBothLegsAndBothEndsOfTheLastSeconds() async throws {
    try await RelayRig.inFolder { path in
      var settings = RingPlan.Settings()
      settings.isSynchronous = true
      let plan = RingPlan(settings) { _ in }
      let recorder = plan.recorder(take: path)
      let rig = try await RelayRig(take: path, sink: PeerRing(recorder))
      let offerer = rig.ends.makePeer(label: "offerer")
      try await addMedia([offerer, rig.answerer])
      try await rig.call(offerer)
      try await offerer.waitUntilConnected(timeout: .seconds(120))
      await RelayRig.receive(videoFrames: 8, blocks: 40, of: rig.answerer)
      plan.writeAll(.signal("SIGUSR1"))
      try await rig.finish()
      let take = try #require(recorder.takes.first?.capture.take)
      let labels = try Self.texts(take, "SELECT label FROM peer ORDER BY label")
      #expect(labels == ["far 1", "far end 1", "near 1", "near end 1"])
      // The take has the frames from one end and those to the other end, decrypted.
      let frames = try Self.texts(
        take,
        """
        SELECT DISTINCT label || ' ' || kind FROM frame JOIN peer USING (peer)
        WHERE label IN ('near 1', 'far end 1') ORDER BY 1
        """)
      #expect(
        frames == ["far end 1 audio", "far end 1 video", "near 1 audio", "near 1 video"],
        "\(frames)")
      try checkReplay(take)
    }
  }

  @Test func anEndThatLeavesEndsTheOtherLeg() async throws {
    let rig = try await RelayRig()
    let offerer = rig.ends.makePeer(label: "offerer")
    try await addMedia([offerer, rig.answerer])
    try await rig.call(offerer)
    try await offerer.waitUntilConnected(timeout: .seconds(120))
    try await rig.answerer.waitUntilConnected(timeout: .seconds(120))
    await offerer.close()
    for await states in rig.answerer.stateChanges where states.dtls == .closed { break }
    try await rig.finish()
  }

  @Test func aLegThatNeverConnectsEndsTheCall() async throws {
    var settings = RelayService.Settings()
    settings.connectionLimit = .milliseconds(200)
    let rig = try await RelayRig(settings: settings) { _ in
      HTTPResponse(status: 404, json: "{\"error\":\"nobody is here\"}")
    }
    let offerer = rig.ends.makePeer(label: "offerer")
    try await addMedia([offerer])
    try await offerer.setLocalDescription()
    try await offerer.waitForGatheringComplete(timeout: .seconds(120))
    let offer = try #require(try await offerer.localDescription)
    var client = HTTPClient(timeout: .seconds(120))
    client.timeout = .seconds(30)
    let response = try await client.send(
      "POST", rig.proxy.url + "/whip", body: Array(offer.sdp.utf8), type: "application/sdp")
    #expect(response.status == 404 && response.text.contains("nobody is here"))
    #expect(await rig.relay.calls.callCount == 1)
    while await rig.relay.calls.openCount > 0 { await Task.yield() }
    try await rig.finish()
  }

  @Test func callsAtOnceDoNotMeet() async throws {
    let ends = try Session(RelayRig.options())
    let rig = try await RelayRig(respond: { request in
      guard let number = request.query("n") else { return nil }
      let answerer = ends.makePeer(label: "answerer \(number)")
      Task {
        await answerer.forEachRemoteDataChannel { channel in
          for await message in channel.messages {
            guard case .text(let text) = message else { continue }
            try? await channel.send("\(text) heard by \(number)")
          }
        }
      }
      return await RelayRig.answer(request, answerer)
    })
    try await withThrowingTaskGroup(of: Void.self) { group in
      for number in 1...4 {
        group.addTask {
          let offerer = rig.ends.makePeer(label: "offerer \(number)")
          let channel = try await offerer.createDataChannel("chat")
          try await rig.call(offerer, path: "/offer?n=\(number)")
          try await channel.waitUntilOpen(timeout: .seconds(120))
          let messages = channel.messages.makeAsyncIterator()
          try await channel.send("\(number)")
          #expect(await messages.next() == .text("\(number) heard by \(number)"))
        }
      }
      try await group.waitForAll()
    }
    #expect(await rig.relay.calls.callCount == 4)
    try await ends.finish()
    try await rig.finish()
  }

  @Test func renegotiationIsOfTheSameCall() async throws {
    let rig = try await RelayRig()
    let offerer = rig.ends.makePeer(label: "offerer")
    try await offerer.addTrack(.audio, source: Self.tone)
    try await rig.call(offerer)
    try await offerer.waitUntilConnected(timeout: .seconds(120))
    try await offerer.addTrack(.video, source: Self.pattern)
    try await rig.call(offerer)
    await RelayRig.receive(videoFrames: 3, blocks: 0, of: rig.answerer)
    #expect(await rig.relay.calls.callCount == 1)
    try await rig.finish()
  }

  /// Perfect negotiation (W3C webrtc section 10.7): each end offers a track before it sees the
  /// other's offer.
  ///
  /// The polite end, here the client or the server, answers and then offers again.
  @Test(arguments: [RelaySide.near, .far])
  func ofTwoOffersThatCrossThePoliteEndAnswersTheOther(polite: RelaySide) async throws {
    try await RelayRig.inFolder { take in
      let rig = try await RelayRig(take: take)
      let ends: [RelaySide: PeerConnection] = [
        .near: rig.ends.makePeer(label: "offerer"), .far: rig.answerer,
      ]
      func pass(from side: RelaySide) async throws -> SessionDescription {
        let end = try #require(ends[side])
        try await end.setLocalDescription()
        try await end.waitForGatheringComplete(timeout: .seconds(120))
        let own = try #require(try await end.localDescription)
        let passed = try await rig.relay.calls.pass(own.type, own.sdp, from: side, on: 1)
        return SessionDescription(type: own.type, sdp: passed.text)
      }
      func apply(_ description: SessionDescription, at side: RelaySide) async throws {
        try await ends[side]?.setRemoteDescription(description)
      }
      try await ends[.near]?.addTrack(.audio, source: Self.tone)
      try await apply(try await pass(from: .near), at: .far)
      try await apply(try await pass(from: .far), at: .near)
      try await ends[.near]?.waitUntilConnected(timeout: .seconds(120))

      for end in ends.values { try await end.addTrack(.video, source: Self.pattern) }
      var offers: [RelaySide: SessionDescription] = [:]
      for side in [polite.other, polite] { offers[side] = try await pass(from: side) }
      // The polite end's offer is ignored, and the polite end rolls it back itself.
      try await apply(try #require(offers[polite.other]), at: polite)
      try await apply(try await pass(from: polite), at: polite.other)
      try await apply(try await pass(from: polite), at: polite.other)
      try await apply(try await pass(from: polite.other), at: polite)
      for end in ends.values {
        #expect(end.signalingState == .stable)
        await RelayRig.receive(videoFrames: 3, blocks: 0, of: end)
      }
      #expect(await rig.relay.calls.callCount == 1)
      try await rig.finish()
      try checkReplay(take)
    }
  }

  @Test func aFaultIsAppliedAndOnTheTape() async throws {
    try await RelayRig.inFolder { path in
      let rig = try await RelayRig(take: path)
      try await rig.relay.calls.set(RelayFault.list(parsing: "drop near rtp video"))
      let offerer = rig.ends.makePeer(label: "offerer")
      try await addMedia([offerer, rig.answerer])
      try await rig.call(offerer)
      try await offerer.waitUntilConnected(timeout: .seconds(120))
      await RelayRig.receive(videoFrames: 5, blocks: 40, of: offerer)
      let counters = rig.answerer.counters
      #expect(counters.videoFramesReceived == 0)
      #expect(counters.audioReceived > 10)
      await rig.relay.calls.set([])
      await RelayRig.receive(videoFrames: 3, blocks: 0, of: rig.answerer)
      try await rig.finish()
      let faults = try Self.texts(
        path, "SELECT message FROM signaling WHERE type = 'fault' AND peer = 1 ORDER BY step")
      #expect(faults == ["drop near rtp video", ""])
      try checkReplay(path)
    }
  }
}
