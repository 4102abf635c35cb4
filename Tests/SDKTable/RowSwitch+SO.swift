// Switches that disable the SO rows.
extension RowSwitch {
  static let sora: [RowSwitch] = [
    .without("SO1", "SendingTrack.swift", "audio.drive(.enabled(isEnabled), at: now)"),
    .value(
      "SO2", "PeerConnection+Tracks.swift", "receiverStreams.first { $0.id == connectionID }",
      becomes: "receiverStreams.first"),
    .value(
      "SO3", "ReceivingTrack.swift", "PlayoutGain(volume: state.volume)",
      becomes: "PlayoutGain(volume: 1)"),
    .without("SO4", "RoomLink.swift", "tell(.stream(own, isAdded: true))"),
    .value("SO5", "Room.swift", "!sora.initialCameraEnabled", becomes: "false"),
    .value("SO6", "PeerConnection.swift", "send(.audio(block), on: transceiver)", becomes: "false"),
    .value(
      "SO7", "SessionControl+Requests.swift",
      "mode.operations(options: options, current: settings.category)",
      becomes: "[.setCategory(mode.category, options: options)]"),
    .value(
      "SO8", "SessionControl+Requests.swift", "!request.isTolerant || operation.isDecisive",
      becomes: "false"),
    .value("SO9", "SessionControl.swift", "states.lockCount == 0", becomes: "false"),
    .without(
      "SO10", "SessionControl.swift",
      "if connections.sends(number) { return add(.connection, call: id, into: &outbox) }"),
    .value(
      "SO11", "AudioDeviceModule.swift", "state.behaviour.losesOutputAfterDefaultMode",
      becomes: "false"),
    .value(
      "SO12", "SessionControl.swift",
      "connection.sends || policy.requestsInputOnReceiveOnly && connection.receives",
      becomes: "true"),
    .without(
      "SO13", "PeerConnection+Tracks.swift",
      "for track in tracks { track.isEnabled = !isMuted }"),
    .value("SO14", "SessionControl.swift", "!isManual || isEnabled", becomes: "true"),
    .value(
      "SO15", "Statistics.swift",
      "Dictionary(object.members.map { ($0.name, $0.value) }) { first, _ in first }",
      becomes: "[:]"),
    .without(
      "SO16", "SoraHandlers.swift",
      "onDisconnect?(.ok(code: closure?.code ?? 1_000, reason: closure?.message ?? \"\"))"),
    .value(
      "SO17", "PeerConnection.swift", "send(.videoFrame(videoFrame), on: transceiver)",
      becomes: "false"),
    .without("SO18", "ScreenVideoCapturer.swift", "thinner.limit(to: self.framesPerSecond)"),
    .value(
      "SO3.range", "PeerStack+Media.swift",
      "min(max(volume, limits.lowerBound), limits.upperBound)", becomes: "volume"),
    .value("SO5.microphone", "Room.swift", "!sora.initialMicrophoneEnabled", becomes: "false"),
    .without(
      "SO13.hard", "SessionControl.swift",
      "if isPaused != pauses { return add(.pause(pauses), call: id, into: &outbox) }",
      by: "SessionEventTests/aHardMuteStopsTheMicrophoneAndIsIdempotent"),
    .without("SO16.connecting", "SoraHandlers.swift", "onConnect?(nil)"),
    .without("SO16.signaling", "SoraHandlers.swift", "onReceiveSignaling?(text)"),
    .without(
      "SO16.routes", "Room.swift", "handlers.onChangeAudioRoute?(reason, current)",
      by: "SoraHandlerTests/theCameraAndTheMicrophoneCanBeOffAtFirst"),
    .value(
      "SO18.one", "ScreenVideoCapturer.swift", "!state.isBusy", becomes: "true",
      by: "CapturerTests/noFrameIsMadeWhileAnotherIsInProgress"),
  ]
}
