extension SDKRow {
  /// The GU rows: the guide to libwebrtc's Objective-C API.
  static let guide: [SDKRow] = [
    .works(
      "GU1", "the classes of the guide", by: "GuideTests/aStreamIsPublishedReceivedAndRemoved"),
    .works(
      "GU2", "what the application says it needs camera and microphone for",
      by: "MachineDeviceTests/whoDoesNotSayWhatForIsRefusedCameraAndMicrophone"),
    .works(
      "GU3", "offer and answer, and the descriptions set on both sides",
      by: "GuideTests/delegatesAndCompletionsAreCalledInTheOrderOfEvents"),
    .works(
      "GU4", "one factory for an application", by: "GuideTests/aStreamIsPublishedReceivedAndRemoved"
    ),
    .works(
      "GU5", "streams added and removed at any time",
      by: "GuideTests/aStreamIsPublishedReceivedAndRemoved"),
    .works(
      "GU6", "several streams come and go", by: "StreamTests/streamsAreReportedOnlyToThePeer"),
    .works(
      "GU7", "streams, tracks and sources, and identifiers that are not used twice",
      by: "StreamTests/duplicatesAreRefusedWithoutSideEffects"),
    .works(
      "GU8", "streams of the peer are told, own ones are not",
      by: "GuideTests/aStreamIsPublishedReceivedAndRemoved"),
    .works(
      "GU9", "the states of signaling, ICE and gathering",
      by: "GuideTests/aStreamIsPublishedReceivedAndRemoved"),
    .works(
      "GU10", "when a call counts as established, and when it is too late",
      by: "StateTests/aCallIsEstablishedOnceEverythingIsConnected"),
    .works(
      "GU11", "a call of the delegate for each change of state",
      by: "GuideTests/delegatesAndCompletionsAreCalledInTheOrderOfEvents"),
    .works(
      "GU12", "negotiation, candidates, channels, receivers, pairs, errors are told",
      by: "NoticeTests/theFirstPairAndTheOneAfterARestartAreReportedWithReasons"),
    .works(
      "GU13", "a stream to publish, from sources and tracks",
      by: "MachineDeviceTests/theStepsOfTheGuideSendMicrophoneAndCamera"),
    .works(
      "GU14", "streams of the peer come by themselves",
      by: "GuideTests/aStreamIsPublishedReceivedAndRemoved"),
    .works(
      "GU15", "no question for the microphone by who only receives",
      by: "AudioUnitTests/anOptionRequestsPermissionOnReceivingToo"),
    .works(
      "GU16", "a renderer for each track, told of sizes and of the end",
      by: "VideoTests/aCameraIsCapturedFilteredSentAndShown"),
    .works(
      "GU17", "capturer, source, track, renderer: the way of a frame",
      by: "VideoTests/aCameraIsCapturedFilteredSentAndShown"),
    .works(
      "GU18", "a filter between capturer and source",
      by: "VideoTests/aCameraIsCapturedFilteredSentAndShown"),
    .works(
      "GU19", "frames with rotation and a time of their own",
      by: "VideoTests/pixelBuffersBecomeI420"),
    .works(
      "GU20", "the audio session as an object with a lock",
      by: "RTCAudioSessionTests/settingsNeedTheLockAndReachTheDevice"),
    .works(
      "GU21", "the volume of received tracks; that of a microphone stays",
      by: "MachineDeviceTests/aTrackThatIsTakenOutLeavesTheMicrophoneRunning"),
    .works(
      "GU22", "mute by track, by stream and by volume",
      by: "MachineDeviceTests/aTrackThatIsTakenOutLeavesTheMicrophoneRunning"),
    .impossible(
      "GU23", "bitcode and the size of a framework",
      because: "there is no such framework on this system"),
    .works(
      "GU24", "the audio session of the platform used without that of the library",
      by: "MachineDeviceTests/theAudioSessionOfThePlatformIsUsedDirectly"),
    .works(
      "GU25", "base classes of tracks and of sources",
      by: "SourceTests/tracksAndSourcesHaveBaseClasses"),
  ]
}
