// Switches that disable the GU rows.
extension RowSwitch {
  static let guide: [RowSwitch] = [
    .before(
      "GU1", "RTCPeerConnectionFactory.swift",
      "guard let native = configuration.native else { return nil }", do: "return nil"),
    .value("GU2", "AVCaptureDevice.swift", "info[name]?.isEmpty == false", becomes: "true"),
    .without(
      "GU3", "RTCPeerConnection+Descriptions.swift",
      "apply(.setRemoteDescription(sdp.native), completionHandler)",
      but: "completionHandler(nil)"),
    .before(
      "GU4", "RTCPeerConnectionFactory.swift", "return .session(session)\n    case .own",
      do: "self = .given([])"),
    .value(
      "GU5", "RTCPeerConnection.swift",
      "(try? connection.performAndWait(.removeStream(stream.streamId))) != nil", becomes: "true"),
    .value(
      "GU6", "PeerStack+Streams.swift", "removed.map { .streamRemoved(id: $0.id) }", becomes: "[]"),
    .value(
      "GU7", "PeerStack+Streams.swift",
      "!streams().local.contains(where: { $0.id == stream.id })", becomes: "true"),
    .without(
      "GU8", "RTCPeerConnection+News.swift", "delegate?.peerConnection(self, didAdd: stream)"),
    .value(
      "GU9", "RTCPeerConnection.swift", "RTCIceConnectionState(connection.iceConnectionState)",
      becomes: ".new"),
    .value(
      "GU10", "ConnectionLife.swift", "(states.iceGathering == .complete || !needsAllCandidates)",
      becomes: "true"),
    .without(
      "GU11", "RTCPeerConnection+News.swift",
      "delegate?.peerConnection(self, didChange: RTCSignalingState(state))"),
    .before(
      "GU12", "PeerStack+Bundles.swift", "guard let reason = bundle.follow(pair) else { return }",
      do: "return"),
    .without("GU13", "RTCPeerConnectionFactory.swift", "lines?.begin(in: session)"),
    .without(
      "GU14", "RTCPeerConnection+News.swift",
      "stream.received(transceiver.receiver.named(info.remoteTrackID))"),
    .without(
      "GU14", "RTCPeerConnection+News.swift",
      "stream.received(transceiver.receiver.named(track.id))"),
    .value(
      "GU15", "SessionControl.swift",
      "connection.sends || policy.requestsInputOnReceiveOnly && connection.receives",
      becomes: "true"),
    .without(
      "GU16", "RTCVideoRenderer.swift",
      "if isNewSize, let size { renderer.value.setSize(size) }"),
    .without(
      "GU17", "RTCVideoSource.swift",
      "for track in tracks { track.captured(shown, smaller ?? upright) }"),
    .value(
      "GU18", "RTCVideoCapturer.swift", "delegate.value",
      becomes: "(delegate.value as? RTCVideoSource) as (any RTCVideoCapturerDelegate)?"),
    .without(
      "GU19", "RTCVideoFrame.swift", "self.rotation = rotation", but: "self.rotation = ._0"),
    .value("GU20", "SessionControl.swift", "states.lockCount == 0", becomes: "false"),
    .without(
      "GU21", "RTCMediaStream.swift",
      "inlet.post(.setVolume(transceiver: inlet.transceiver, volume: volume))"),
    .without(
      "GU22", "RTCAudioDeviceModule.swift", "attachments.withLock { $0[key] }?.endSending()",
      but: "_ = attachments.withLock { $0.removeValue(forKey: key) }"),
    .without("GU24", "AVAudioSession.swift", "try session.setMode(mode)"),
    .value(
      "GU25", "RTCMediaStream.swift",
      "core.kind == .audio ? kRTCMediaStreamTrackKindAudio : kRTCMediaStreamTrackKindVideo",
      becomes: "kRTCMediaStreamTrackKindVideo"),
    .without(
      "GU5.later", "RTCPeerConnection.swift", "stream.follow(self)",
      by: "MachineDeviceTests/aRemovedTrackLeavesTheMicrophoneRunning"),
    .value(
      "GU9.gathering", "RTCPeerConnection.swift",
      "RTCIceGatheringState(connection.iceGatheringState)", becomes: ".new"),
    .value(
      "GU9.signaling", "RTCPeerConnection.swift", "RTCSignalingState(connection.signalingState)",
      becomes: ".stable"),
    .value(
      "GU10.late", "ConnectionLife.swift", "deadline <= now", becomes: "false",
      by: "StateTests/aCallThatIsLateMayStillBeEstablished"),
    .without(
      "GU11.checks", "RTCPeerConnection+News.swift",
      "delegate?.peerConnection(self, didChange: RTCIceConnectionState(state))"),
    .without(
      "GU12.negotiation", "RTCPeerConnection+News.swift",
      "delegate.peerConnectionShouldNegotiate(self)",
      by: "GuideTests/delegatesAndCompletionsAreCalledInTheOrderOfEvents"),
    .without(
      "GU12.candidates", "RTCPeerConnection+News.swift",
      "delegate.peerConnection(self, didGenerate: own)",
      by: "GuideTests/delegatesAndCompletionsAreCalledInTheOrderOfEvents"),
    .without(
      "GU12.receivers", "RTCPeerConnection+News.swift",
      "delegate?.peerConnection(self, didStartReceivingOn: transceiver)",
      by: "GuideTests/delegatesAndCompletionsAreCalledInTheOrderOfEvents"),
    .without(
      "GU13.camera", "RTCPeerConnectionFactory.swift",
      "if usesDefaultCamera { source.useDefaultCamera() }"),
    .without(
      "GU16.end", "TrackCore.swift", "core.atEnd { [renderers] in renderers.show(nil) }"),
    .value(
      "GU22.track", "SendingTrack.swift", "isEnabled != self.isEnabled", becomes: "false",
      by: "TrackCallTests/aDisabledTrackSendsSilenceWhileRTPFlows"),
  ]
}
