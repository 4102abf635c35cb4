extension SDKRow {
  /// The GU rows: the guide to libwebrtc's Objective-C API.
  static let guide: [SDKRow] = [
    .works(
      "GU1", "the classes of the guide", by: "GuideTests/aStreamIsPublishedReceivedAndRemoved"),
    .works(
      "GU2", "the application's usage descriptions for camera and microphone",
      by: "MachineDeviceTests/withoutUsageDescriptionsCameraAndMicrophoneAreRefused"),
    .works(
      "GU3", "offer and answer, and the descriptions set at both ends",
      by: "GuideTests/delegatesAndCompletionsAreCalledInTheOrderOfEvents"),
    .works(
      "GU4", "one factory for an application", by: "GuideTests/aStreamIsPublishedReceivedAndRemoved"
    ),
    .works(
      "GU5", "streams added and removed at any time",
      by: "GuideTests/aStreamIsPublishedReceivedAndRemoved"),
    .works(
      "GU6", "several streams added and removed",
      by: "StreamTests/streamsAreReportedOnlyToThePeer"),
    .works(
      "GU7", "streams, tracks and sources, and identifiers that are not used twice",
      by: "StreamTests/duplicatesAreRefusedWithoutSideEffects"),
    .works(
      "GU8", "remote streams are reported, local ones are not",
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
      "GU12", "negotiation, candidates, channels, receivers, pairs, errors are reported",
      by: "NoticeTests/theFirstPairAndTheOneAfterARestartAreReportedWithReasons"),
    .works(
      "GU13", "a stream to publish, from sources and tracks",
      by: "MachineDeviceTests/theStepsOfTheGuideSendMicrophoneAndCamera"),
    .works(
      "GU14", "remote streams need no request",
      by: "GuideTests/aStreamIsPublishedReceivedAndRemoved"),
    .works(
      "GU15", "no request for the microphone when only receiving",
      by: "AudioUnitTests/anOptionRequestsPermissionOnReceivingToo"),
    .works(
      "GU16", "a renderer for each track, notified of sizes and the end",
      by: "VideoTests/aCameraIsCapturedFilteredSentAndShown"),
    .works(
      "GU17", "capturer, source, track, renderer: the path of a frame",
      by: "VideoTests/aCameraIsCapturedFilteredSentAndShown"),
    .works(
      "GU18", "a filter between capturer and source",
      by: "VideoTests/aCameraIsCapturedFilteredSentAndShown"),
    .works(
      "GU19", "frames with their own rotation and time",
      by: "VideoTests/pixelBuffersBecomeI420"),
    .works(
      "GU20", "the audio session as an object with a lock",
      by: "RTCAudioSessionTests/settingsNeedTheLockAndReachTheDevice"),
    .works(
      "GU21", "the volume of received tracks; that of a microphone stays",
      by: "MachineDeviceTests/aRemovedTrackLeavesTheMicrophoneRunning"),
    .works(
      "GU22", "mute by track, by stream and by volume",
      by: "MachineDeviceTests/aRemovedTrackLeavesTheMicrophoneRunning"),
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
