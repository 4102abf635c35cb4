import JSEP
import Live
import Media
import Peer
import Stats
import Testing
import Wire

/// Tests track and stream objects over real connections.
@Suite(.timeLimit(.minutes(10)), .serialized) struct TrackObjectTests {
  private static let tone = MediaSource.tone(hertz: 440, pauseSeconds: 0)
  private static let pattern = MediaSource.pattern(width: 64, height: 48, framesPerSecond: 25)

  private func stream(_ id: String, audio: MediaSource = tone) throws -> MediaStream {
    let stream = MediaStream(id: id)
    try stream.addTrack(LocalAudioTrack(source: AudioSource(audio), id: id + "-audio"))
    try stream.addTrack(LocalVideoTrack(source: VideoSource(Self.pattern), id: id + "-video"))
    return stream
  }

  // SO2, SO4, GU5, GU6, GU8, GU12, GU13, GU14: streams by name, with their tracks.
  @Test func streamsAreReportedAndFoundByTheirNames() async throws {
    let call = try FactoryCall()
    try await call.caller.add(try stream("one"))
    try await call.caller.add(try stream("two"))
    try await call.callee.add(try stream("own"))
    try await call.connect()
    // Only remote streams are reported, with their tracks.
    let streams = call.heard.callee.all.filter { $0.hasPrefix("stream") }
    #expect(
      streams == [
        "stream one: one-audio one-video", "stream two: two-audio two-video",
      ])
    #expect(call.heard.callee.all.contains("track one-audio in one"))
    let others = call.heard.caller.all.filter { $0.hasPrefix("stream") }
    #expect(others == ["stream own: own-audio own-video"])
    #expect(call.heard.caller.all.contains("pair first"))
    #expect(call.callee.localStreams.map(\.id) == ["own"])
    #expect(call.callee.receiverStreams.map(\.id) == ["one", "two"])
    let found = try #require(call.callee.receiverStream(connectionID: "two"))
    #expect(found.isRemote && found === call.callee.remoteStreams.last)
    #expect(call.callee.receiverStream(connectionID: "own") == nil)
    let track = try #require(call.callee.remoteTrack(id: "two-audio") as? RemoteAudioTrack)
    #expect(found.audioTracks.first === track && found.track(id: "two-audio") === track)
    #expect(call.callee.receivers.count == 4)
    #expect(call.callee.receivers.contains { $0.track === track })
    // A stream that is no longer sent is removed with its tracks, and its name may be used again.
    let two = try #require(call.caller.localStreams.last)
    try await call.caller.remove(two)
    #expect(call.caller.localStreams.map(\.id) == ["one"] && call.caller.senders.count == 2)
    try await FactoryCall.negotiate(call.caller, call.callee)
    #expect(call.heard.callee.all.contains("no track two-video"))
    #expect(call.heard.callee.all.last == "no stream two")
    #expect(found.tracks.isEmpty && track.isMuted && track.readyState == .live)
    #expect(call.callee.receiverStreams.map(\.id) == ["one"])
    await call.caller.close()
    await call.heard.callee.wait { $0.all.contains("end peer") }
    await call.callee.close()
    #expect(track.readyState == .ended)
    #expect(call.heard.caller.all.last == "end application")
    try await call.factory.finish()
  }

  // A publisher recognizes its own stream, sent back by a server, by its name.
  @Test func aLocalStreamThatIsEchoedIsNotAReceiverStream() async throws {
    let call = try FactoryCall()
    try await call.caller.add(try stream("mine"))
    try await call.callee.add(try stream("mine"))
    try await call.connect()
    #expect(call.heard.caller.all.contains("stream mine: mine-audio mine-video"))
    #expect(call.caller.remoteStreams.map(\.id) == ["mine"])
    #expect(call.caller.receiverStreams.isEmpty)
    #expect(call.caller.localStreams.first !== call.caller.remoteStreams.first)
    try await call.factory.finish()
  }

  // GU7: names of streams and tracks.
  @Test func namesAreUniqueWhereTheyHaveToBe() async throws {
    let call = try FactoryCall()
    let one = try stream("one")
    let twin = LocalVideoTrack(source: VideoSource(), id: "one-audio")
    let refused = #expect(throws: PeerError.self) { try one.addTrack(twin) }
    #expect(refused?.isDuplicateID == true && one.tracks.count == 2)
    let audio = try #require(one.audioTracks.first)
    try one.addTrack(audio)
    #expect(one.tracks.count == 2)
    try await call.caller.add(one)
    let again = await #expect(throws: PeerError.self) {
      try await call.caller.add(MediaStream(id: "one"))
    }
    #expect(again?.name == "InvalidAccessError")
    let other = MediaStream(id: "one")
    try other.addTrack(LocalAudioTrack(source: AudioSource(), id: "other"))
    let duplicate = await #expect(throws: PeerError.self) { try await call.caller.add(other) }
    #expect(duplicate?.isDuplicateID == true)
    let sameTrack = await #expect(throws: PeerError.self) {
      try await call.caller.addTrack(twin, streamIDs: ["three"])
    }
    #expect(sameTrack?.isDuplicateID == true)
    let sentTwice = await #expect(throws: PeerError.self) {
      try await call.caller.addTrack(audio)
    }
    #expect(sentTwice?.name == "InvalidAccessError")
    try await call.factory.finish()
  }

  // SO1, SO17, GU22: audio sinks, volume and switching audio off.
  @Test func audioGoesToSinksUntilTheTrackIsDisabled() async throws {
    let call = try FactoryCall()
    let local = try stream("s")
    try await call.caller.add(local)
    try await call.connect()
    let remote = try #require(call.callee.remoteStreams.first)
    let track = try #require(remote.audioTracks.first as? RemoteAudioTrack)
    let sink = Listener()
    track.addSink(sink)
    track.addSink(sink)
    let blocks = call.callee.counters.audioReceived
    await sink.wait { $0.audio.count >= 10 }
    // The sink is called once per block, although it was added twice.
    #expect(sink.audio.count <= call.callee.counters.audioReceived - blocks + 1)
    #expect(!track.isMuted)
    #expect(sink.audio.last?.samples.contains { $0 != 0 } == true)
    await sink.wait { _ in (track.audioLevel?.decibels ?? -127) > -30 }
    // A switch is reported only if it changes the state.
    let switches = Listener()
    var handlers = MediaStreamHandlers()
    handlers.onSwitchAudio = { switches.onSwitch(audio: $0) }
    local.handlers = handlers
    #expect(local.audioEnabled)
    local.audioEnabled = true
    local.audioEnabled = false
    local.audioEnabled = false
    #expect(switches.all == ["audio false"])
    #expect(!MediaStream(id: "empty").audioEnabled)
    await sink.wait { $0.audio.suffix(5).allSatisfy { !$0.samples.contains { abs($0) > 8 } } }
    await sink.wait { _ in track.audioLevel?.percent == 0 }
    // RTP packets continue to arrive.
    let flowing = call.callee.counters.audioReceived - call.callee.counters.audioConcealed
    await sink.wait { _ in
      let counters = call.callee.counters
      return counters.audioReceived - counters.audioConcealed > flowing + 10
    }
    local.audioEnabled = true
    await sink.wait { $0.audio.last?.samples.contains { $0 > 1_000 } == true }
    // The receiver disables the track; a volume set meanwhile applies once the track is enabled
    // again.
    track.isEnabled = false
    await sink.wait { $0.audio.last?.samples.allSatisfy { $0 == 0 } == true }
    remote.remoteAudioVolume = nil
    remote.remoteAudioVolume = 99
    #expect(remote.remoteAudioVolume == 10 && local.remoteAudioVolume == nil)
    track.volume = 0
    track.isEnabled = true
    let state = try await call.callee.getStats()
    #expect(!state.objects.isEmpty)
    let silent = sink.audio.count
    await sink.wait { $0.audio.count > silent + 5 }
    #expect(sink.audio.last?.samples.allSatisfy { $0 == 0 } == true)
    track.removeSink(sink)
    try await call.factory.finish()
  }

  // GU16, GU17: video renderers and frame sizes.
  @Test func framesGoToRenderersWithTheirSizes() async throws {
    let call = try FactoryCall()
    let source = call.factory.videoSource()
    let local = call.factory.videoTrack(with: source, trackID: "camera")
    let preview = Listener()
    local.add(preview)
    local.add(preview)
    let pattern = TestPattern(width: 64, height: 48)
    #expect(source.capture(pattern.videoFrame(0)))
    local.isEnabled = false
    source.capture(pattern.videoFrame(1))
    local.isEnabled = true
    source.capture(TestPattern(width: 32, height: 48).videoFrame(2))
    #expect(preview.all == ["size 64x48", "frame", "black", "size 32x48", "frame"])
    local.remove(preview)
    try await call.caller.addTrack(local, streamIDs: ["s"])
    try await call.connect()
    let remote = try #require(call.callee.remoteTrack(id: "camera") as? RemoteVideoTrack)
    let renderer = Listener()
    remote.add(renderer)
    remote.add(renderer)
    let feeding = Task {
      let pattern = TestPattern(width: 64, height: 48)
      for number in 0... {
        guard !Task.isCancelled else { return }
        // Frames that arrive faster than the encoder processes them are dropped.
        source.capture(pattern.videoFrame(Int64(number)))
        await Task.yield()
      }
    }
    await renderer.wait { $0.all.count { $0 == "frame" } >= 3 }
    #expect(renderer.all.first == "size 64x48" && renderer.all.count { $0 == "size 64x48" } == 1)
    remote.isEnabled = false
    await renderer.wait { $0.all.last == "black" }
    feeding.cancel()
    await feeding.value
    await call.callee.close()
    await renderer.wait { $0.all.last == "nothing" }
    local.stop()
    #expect(local.readyState == .ended && !source.capture(pattern.videoFrame(0)))
    try await call.factory.finish()
  }

  // PX1: the device belongs to the factory and feeds all of its connections.
  @Test func oneMicrophoneFeedsTwoConnections() async throws {
    let microphone = TestMicrophone()
    let call = try FactoryCall(device: microphone)
    #expect(call.factory.audioDeviceModule != nil)
    var source: AudioSource? = call.factory.audioSource()
    let track = call.factory.audioTrack(with: try #require(source), trackID: "microphone")
    try await call.caller.addTrack(track)
    try await call.callee.addTrack(track)
    try await call.connect()
    let sinks = (Listener(), Listener())
    for (connection, sink) in [(call.caller, sinks.0), (call.callee, sinks.1)] {
      let remote = connection.remoteTrack(id: "microphone") as? RemoteAudioTrack
      try #require(remote).addSink(sink)
    }
    let block = AudioBlock(samples: (0..<960).map { Int16($0 % 100) * 100 }, channels: 1)
    for _ in 0..<8 { microphone.speak(block) }
    for sink in [sinks.0, sinks.1] {
      await sink.wait { $0.audio.contains { $0.samples.contains { $0 > 1_000 } } }
      #expect(sink.audio.contains { $0.samples.contains { $0 > 1_000 } })
    }
    #expect(microphone.sinkCount == 1)
    source = nil
    try await call.factory.finish()
  }

  // SO13, GU22: each refusal to mute says why.
  @Test func refusalsToMuteHaveAReason() async throws {
    let call = try FactoryCall()
    func refusal(_ connection: PeerConnection, _ kind: MediaKind) async -> MuteError? {
      do throws(MuteError) {
        try await connection.setSoftMute(true, of: kind)
        return nil
      } catch {
        return error
      }
    }
    #expect(await refusal(call.caller, .audio) == .notConnected)
    let track = LocalAudioTrack(source: AudioSource(Self.tone), id: "sound")
    #expect(track.audioLevel == nil)
    let sender = try await call.caller.addTrack(track, streamIDs: ["s"])
    try await call.connect()
    #expect(await refusal(call.caller, .video) == .notUsed(.video))
    #expect(await refusal(call.callee, .audio) == .notASender)
    try await call.callee.setDirection(.sendrecv, of: 1)
    #expect(await refusal(call.callee, .audio) == .noSenderStream)
    #expect(await refusal(call.caller, .audio) == nil)
    #expect(!track.isEnabled)
    #expect(sender.track === track)
    try await call.caller.setSoftMute(false, of: .audio)
    #expect(track.isEnabled)
    let videoFrame = LocalVideoTrack(source: VideoSource(), id: "camera")
    await #expect(throws: PeerError.self) { try await sender.replaceTrack(videoFrame) }
    try await call.caller.addTrack(videoFrame, streamIDs: ["s"])
    try await sender.replaceTrack(nil)
    #expect(sender.track == nil)
    #expect(await refusal(call.caller, .audio) == .noTrack(.audio))
    try await sender.replaceTrack(track)
    #expect(sender.track === track)
    try await call.caller.removeTrack(sender)
    #expect(call.caller.senders.count == 1)
    let remote = try #require(call.callee.remoteTrack(id: "sound"))
    let received = await #expect(throws: PeerError.self) {
      try await call.callee.addTrack(remote)
    }
    #expect(received?.name == "InvalidAccessError")
    try await call.factory.finish()
  }
}
