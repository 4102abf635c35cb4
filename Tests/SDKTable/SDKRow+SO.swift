extension SDKRow {
  /// The SO rows: the SDK for Sora servers.
  static let sora: [SDKRow] = [
    .works(
      "SO1", "muting a stream: silence while RTP continues",
      by: "TrackCallTests/aDisabledTrackSendsSilenceWhileRTPFlows"),
    .works(
      "SO2", "finding a stream by the identifier of its connection",
      by: "TrackObjectTests/streamsAreReportedAndFoundByTheirNames"),
    .works(
      "SO3", "the volume of received audio, 0 to 10",
      by: "TrackCallTests/aVolumeScalesBeforeLevelDigestAndStatistics"),
    .works(
      "SO4", "an event for each stream that is added",
      by: "SoraHandlerTests/streamsOfBothSidesSignalingAndTheCloseReachTheHandlers"),
    .works(
      "SO5", "the configuration of a connection, its defaults and time limit",
      by: "SoraHandlerTests/theCameraAndTheMicrophoneCanBeOffAtFirst"),
    .works(
      "SO6", "sending any audio",
      by: "LoopbackCallTests/filesAreSentAndWhatIsReceivedIsWrittenToFiles"),
    .works(
      "SO7", "audio modes: category, mode, options and output in one call",
      by: "AudioModeTests/aModePerformsItsOperations"),
    .works(
      "SO8", "a mode that is refused is an error",
      by: "AudioModeTests/aRefusedModeStopsWithAnErrorAndUnlocks"),
    .works(
      "SO9", "changing the audio session step by step under a lock",
      by: "AudioModeTests/settingsNeedTheRecursiveLock"),
    .works(
      "SO10", "the mode that a connection sets when it begins",
      by: "AudioDeviceTests/aModeThatIsSetWhileConnectingIsWrittenOverOnceItIsConnected"),
    .works(
      "SO11", "a fault of a system version, as a switch of the simulated device",
      by: "AudioDeviceTests/aQuirkOfAPlatformCanBePlayed"),
    .works(
      "SO12", "a request for the microphone only if something is sent",
      by: "AudioUnitTests/onlySendingRequestsMicrophonePermission"),
    .works(
      "SO13", "hard and soft mute, with their errors",
      by: "TrackObjectTests/refusalsToMuteHaveAReason"),
    .works(
      "SO14", "manual audio of the whole SDK",
      by: "MachineDeviceTests/manualAudioThatIsSetFirstAppliesToALaterFactory"),
    .works(
      "SO15", "statistics as id, type, time and values",
      by: "MeetingTests/aRoomItsSignalingAndItsConnectionsReplay"),
    .works(
      "SO16", "events of connecting, streams, channels, signaling and routes",
      by: "SoraHandlerTests/streamsOfBothSidesSignalingAndTheCloseReachTheHandlers"),
    .works(
      "SO17", "decoded audio and video for the application, and its video frames",
      by: "LoopbackCallTests/applicationMediaIsSentAndReceived"),
    .works(
      "SO18", "the frame rate of screen sharing, one frame at a time",
      by: "CapturerTests/aScreenHasNoMoreFramesThanItsTarget"),
  ]
}
