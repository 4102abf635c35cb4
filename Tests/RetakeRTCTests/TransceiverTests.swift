import RetakeRTC
import Testing

@Suite(.timeLimit(.minutes(10)), .serialized) struct TransceiverTests {
  // TW2: codec preferences.
  @Test func theOrderOfCodecsIsThatOfTheOffer() async throws {
    let pair = try LoopbackPair()
    let video = try #require(pair.caller.addTransceiver(of: .video))
    let kind = kRTCMediaStreamTrackKindVideo
    let codecs = pair.factory.rtpSenderCapabilities(forKind: kind).codecs
    #expect(
      codecs.map(\.name).prefix(2) == ["VP8", "VP9"] && codecs.allSatisfy { $0.kind == kind })
    try video.setCodecPreferences(codecs.filter { $0.name == "VP9" })
    let offer = try await pair.caller.offer(for: LoopbackPair.none)
    #expect(offer.sdp.contains("VP9/90000") && !offer.sdp.contains("VP8/90000"))
    #expect(throws: RTCPeerConnectionError.self) {
      try video.setCodecPreferences(codecs.filter { $0.name == "rtx" })
    }
    try video.setCodecPreferences(nil)
    let usual = try await pair.caller.offer(for: LoopbackPair.none)
    #expect(usual.sdp.contains("VP8/90000"))
    let opus = pair.factory.rtpReceiverCapabilities(forKind: kRTCMediaStreamTrackKindAudio).codecs
    #expect(opus.first?.clockRate == 48_000 && opus.first?.numChannels == 2)
    pair.caller.close()
    pair.callee.close()
  }

  // TW2: codec preferences, and telephone keys sent in a call with the preferred codec.
  @Test func thePreferredAudioCodecIsSentAndReceived() async throws {
    let pair = try LoopbackPair()
    let kind = kRTCMediaStreamTrackKindAudio
    let codecs = pair.factory.rtpSenderCapabilities(forKind: kind).codecs
    #expect(
      codecs.map(\.name) == ["opus", "PCMU", "PCMA", "telephone-event", "telephone-event"])
    let chosen =
      codecs.filter { $0.name == "PCMA" }
      + codecs.filter { $0.name == "telephone-event" && $0.clockRate == 8_000 }
      + codecs.filter { $0.name == "opus" }
    let sender = try #require(
      pair.caller.add(pair.factory.audioTrack(withTrackId: "a"), streamIds: ["s"]))
    let transceiver = try #require(pair.caller.transceivers.first)
    #expect(throws: RTCPeerConnectionError.self) {
      try transceiver.setCodecPreferences(codecs.filter { $0.name == "telephone-event" })
    }
    #expect(sender.dtmfSender?.canInsertDtmf == false)
    try transceiver.setCodecPreferences(chosen)
    let offer = try await pair.caller.offer(for: LoopbackPair.none)
    #expect(offer.sdp.contains(" UDP/TLS/RTP/SAVPF 8 126 111\r\n"), "\(offer.sdp)")
    try await pair.connect()
    // Waits until the received tone has a level.
    var level = 0.0
    var mimeType: String?
    while level == 0 {
      let report = await pair.callee.statistics()
      let inbound = report.statistics.values.first { $0.type == "inbound-rtp" }
      level = (inbound?.values["audioLevel"] as? NSNumber)?.doubleValue ?? 0
      let codec = (inbound?.values["codecId"] as? String).flatMap { report.statistics[$0] }
      mimeType = codec?.values["mimeType"] as? String
    }
    #expect(level > 0.05 && mimeType == "audio/PCMA", "\(level), \(mimeType ?? "none")")
    let keys = try #require(sender.dtmfSender)
    #expect(keys.canInsertDtmf && keys.insertDtmf("12#", duration: 0.1, interToneGap: 0.05))
    #expect(!keys.insertDtmf("x", duration: 0.1, interToneGap: 0.05))
    pair.caller.close()
    pair.callee.close()
  }

  @Test func aTransceiverIsOneObjectWithItsSenderAndReceiver() async throws {
    let pair = try LoopbackPair()
    let options = RTCRtpTransceiverInit()
    options.direction = .sendOnly
    options.streamIds = ["s"]
    let track = pair.factory.audioTrack(withTrackId: "a")
    let made = try #require(pair.caller.addTransceiver(with: track, init: options))
    #expect(pair.caller.transceivers == [made])
    #expect(made.sender.track === track && made.sender.streamIds == ["s"])
    #expect(made.mid == "" && made.mediaType == .audio && made.direction == .sendOnly)
    var direction = RTCRtpTransceiverDirection.inactive
    #expect(!made.currentDirection(&direction))
    // A connection sends a track only once.
    #expect(pair.caller.add(track, streamIds: ["s"]) == nil)

    try await pair.connect()
    #expect(made.mid == "0" && made.currentDirection(&direction) && direction == .sendOnly)
    var error: NSError?
    made.setDirection(.inactive, error: &error)
    #expect(error == nil && made.direction == .inactive)
    #expect(pair.caller.removeTrack(made.sender) && made.sender.track == nil)
    made.stopInternal()
    #expect(made.isStopped)
    pair.caller.close()
    made.setDirection(.sendRecv, error: &error)
    #expect(error?.domain == kRTCPeerConnectionErrorDomain)
    pair.callee.close()
  }

  @Test func parametersAreReadChangedAndSet() async throws {
    let pair = try LoopbackPair()
    let sender = try #require(
      pair.caller.add(pair.factory.audioTrack(withTrackId: "a"), streamIds: ["s"]))
    try await pair.connect()
    let parameters = sender.parameters
    #expect(parameters.codecs.first?.name == "opus")
    parameters.encodings.first?.maxBitrateBps = 20_000
    sender.parameters = parameters
    #expect(sender.parameters.encodings.first?.maxBitrateBps == 20_000)
    pair.caller.close()
    pair.callee.close()
  }

  @Test func statisticsHaveTheMembersOfTheStandard() async throws {
    let pair = try LoopbackPair()
    let sender = try #require(
      pair.caller.add(pair.factory.audioTrack(withTrackId: "a"), streamIds: ["s"]))
    try await pair.connect()
    let report = await pair.caller.statistics()
    let candidatePair = try #require(
      report.statistics.values.first { $0.type == "candidate-pair" })
    #expect(report.timestamp_us > 1e15 && candidatePair.timestamp_us == report.timestamp_us)
    #expect(candidatePair.values["state"] as? String == "succeeded")
    #expect((candidatePair.values["bytesSent"] as? NSNumber)?.intValue ?? -1 >= 0)
    #expect(candidatePair.values["nominated"] as? Bool == true)
    let ofSender = await withCheckedContinuation { continuation in
      pair.caller.statistics(for: sender) { continuation.resume(returning: $0) }
    }
    let types = Set(ofSender.statistics.values.map(\.type))
    #expect(types.isSuperset(of: ["outbound-rtp", "codec"]) && !types.contains("peer-connection"))
    pair.caller.close()
    pair.callee.close()
  }
}
