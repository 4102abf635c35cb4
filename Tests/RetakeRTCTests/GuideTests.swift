import RetakeRTC
import Testing

/// Follows the guide to the Objective-C API step by step, with a live peer.
@Suite(.timeLimit(.minutes(10)), .serialized) struct GuideTests {
  /// Makes a stream with an audio track and a video track.
  private func stream(_ pair: LoopbackPair) -> RTCMediaStream {
    let videoSource = pair.factory.videoSource()
    let videoTrack = pair.factory.videoTrack(with: videoSource, trackId: "video")
    let audioSource = pair.factory.audioSource(with: nil)
    let audioTrack = pair.factory.audioTrack(with: audioSource, trackId: "audio")
    let stream = pair.factory.mediaStream(withStreamId: "publisher")
    stream.addVideoTrack(videoTrack)
    stream.addAudioTrack(audioTrack)
    return stream
  }

  @Test func aStreamIsPublishedReceivedAndRemoved() async throws {
    let pair = try LoopbackPair()
    let sent = stream(pair)
    pair.caller.add(sent)
    #expect(pair.caller.localStreams == [sent])
    #expect(pair.caller.senders.compactMap { $0.track?.trackId } == ["audio", "video"])
    try await pair.connect()

    // A local stream is reported at the remote peer, but not at the local peer.
    let received = try #require(pair.calleeHears.streams.first)
    #expect(received.streamId == "publisher")
    #expect(received.audioTracks.map(\.trackId) == ["audio"])
    #expect(received.videoTracks.map(\.trackId) == ["video"])
    #expect(pair.callerHears.streams == [])
    #expect(pair.callee.localStreams == [])

    // The guide's condition for an established connection.
    await pair.callerHears.told.wait(for: "gathering complete")
    #expect(pair.caller.signalingState == .stable)
    #expect([.connected, .completed].contains(pair.caller.iceConnectionState))
    #expect(pair.caller.iceGatheringState == .complete)

    pair.caller.remove(sent)
    #expect(pair.caller.localStreams == [])
    try await pair.negotiate()
    await pair.calleeHears.told.wait(for: "removed publisher")
    #expect(received.audioTracks.isEmpty && received.videoTracks.isEmpty)

    pair.caller.close()
    await pair.callerHears.told.wait(for: "signaling closed")
    #expect(pair.caller.signalingState == .closed)
    #expect(pair.caller.connectionState == .closed)
    pair.callee.close()
  }

  @Test func noTrackOfAStreamIsSentIfOneIsRemote() async throws {
    let pair = try LoopbackPair()
    pair.caller.add(stream(pair))
    try await pair.connect()
    let heard = try #require(pair.calleeHears.streams.first?.audioTracks.first)
    let mixed = stream(pair)
    mixed.addAudioTrack(heard)
    pair.callee.add(mixed)
    #expect(pair.callee.localStreams == [])
    #expect(pair.callee.senders.allSatisfy { $0.track == nil })
    pair.caller.close()
    pair.callee.close()
  }

  @Test func theThreeWaysToMuteAreThreeThings() async throws {
    let pair = try LoopbackPair()
    let sent = stream(pair)
    pair.caller.add(sent)
    try await pair.connect()
    let audio = try #require(sent.audioTracks.first)
    let heard = try #require(pair.calleeHears.streams.first?.audioTracks.first)

    // A disabled track is silent and needs no negotiation.
    let needs = pair.callerHears.told.log.count { $0 == "negotiate" }
    audio.isEnabled = false
    #expect(!audio.isEnabled && pair.caller.senders.first?.track === audio)
    #expect(pair.callerHears.told.log.count { $0 == "negotiate" } == needs)

    // The volume applies to received audio only.
    heard.source.volume = 30
    #expect(heard.source.volume == 10)
    heard.source.volume = 0
    #expect(heard.source.volume == 0)
    audio.source.volume = 0
    #expect(audio.source.volume == 1)

    // A track removed from its stream is no longer sent; the other tracks are.
    sent.removeAudioTrack(audio)
    await pair.callerHears.told.wait(for: "negotiate", count: needs + 1)
    #expect(pair.caller.senders.map { $0.track?.trackId } == [nil, "video"])
    try await pair.negotiate()
    await pair.calleeHears.told.wait(for: "removed receiver1")
    #expect(!pair.calleeHears.told.log.contains("removed publisher"))
    // The track stays with its transceiver, which may receive again.
    #expect(pair.calleeHears.streams.first?.audioTracks.isEmpty == true)
    #expect(heard.readyState == .live && pair.callee.receivers.first?.track === heard)
    pair.caller.close()
    pair.callee.close()
    #expect(heard.readyState == .ended)
  }

  @Test func delegatesAndCompletionsAreCalledInTheOrderOfEvents() async throws {
    let pair = try LoopbackPair()
    pair.caller.add(stream(pair))
    let caller = pair.callerHears.told
    let callee = pair.calleeHears.told
    pair.caller.offer(for: LoopbackPair.none) { offer, _ in
      guard let offer else { return }
      caller.note("offered")
      pair.caller.setLocalDescription(offer) { _ in caller.note("set local") }
      pair.callee.setRemoteDescription(offer) { _ in callee.note("set remote") }
    }
    await callee.wait(for: "set remote")
    #expect(
      callee.log == [
        "signaling haveRemoteOffer", "receiving audio", "receiver of publisher",
        "receiving video", "receiver of publisher", "added publisher", "set remote",
      ])
    await caller.wait(for: "gathering complete")
    let log = caller.log
    let places = ["negotiate", "offered", "signaling haveLocalOffer", "set local", "candidate"]
      .map { text in log.firstIndex(of: text) ?? -1 }
    #expect(places == places.sorted() && !places.contains(-1), "\(log)")
    #expect(log.last == "gathering complete")

    let answer = try await pair.callee.answer(for: LoopbackPair.none)
    try await pair.callee.setLocalDescription(answer)
    try await pair.caller.setRemoteDescription(answer)
    let trickling = pair.trickle()
    await caller.wait(for: "connection connected")
    trickling.cancel()
    let states = caller.log.filter { $0.hasPrefix("ice ") || $0.hasPrefix("standardized ") }
    #expect(
      states.prefix(4) == [
        "ice checking", "standardized ice checking", "ice connected", "standardized ice connected",
      ])
    #expect(caller.log.contains("pair"))
    pair.caller.close()
    pair.callee.close()
    await caller.wait(for: "standardized ice closed")
  }

  @Test func aRefusedCallHasAReason() async throws {
    let pair = try LoopbackPair()
    let nonsense = RTCSessionDescription(type: .answer, sdp: "nonsense")
    let error = await #expect(throws: RTCPeerConnectionError.self) {
      try await pair.caller.setRemoteDescription(nonsense)
    }
    #expect(error?.errorDescription?.contains("Error: ") == true)
    let configuration = RTCConfiguration()
    configuration.sdpSemantics = .planB
    #expect(
      pair.factory.peerConnection(
        with: configuration, constraints: LoopbackPair.none, delegate: nil) == nil)
    pair.caller.close()
    await #expect(throws: RTCPeerConnectionError.self) {
      try await pair.caller.offer(for: LoopbackPair.none)
    }
  }

  @Test func anOfferAsksToReceiveByItsConstraints() async throws {
    let pair = try LoopbackPair()
    let wants = RTCMediaConstraints(
      mandatoryConstraints: [
        kRTCMediaConstraintsOfferToReceiveAudio: kRTCMediaConstraintsValueTrue
      ], optionalConstraints: nil)
    let offer = try await pair.caller.offer(for: wants)
    #expect(offer.type == .offer && offer.sdp.contains("a=recvonly"))
    #expect(pair.caller.transceivers.map(\.direction) == [.recvOnly])
    _ = try await pair.caller.offer(for: wants)
    #expect(pair.caller.transceivers.count == 1)
    let refuses = RTCMediaConstraints(
      mandatoryConstraints: [
        kRTCMediaConstraintsOfferToReceiveAudio: kRTCMediaConstraintsValueFalse
      ], optionalConstraints: nil)
    _ = try await pair.caller.offer(for: refuses)
    #expect(pair.caller.transceivers.map(\.direction) == [.inactive])
  }
}
