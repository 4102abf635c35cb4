extension SDKRow {
  /// The TW rows: Twilio's video SDK, and the talk about its audio.
  static let twilio: [SDKRow] = [
    .works(
      "TW1", "one audio device module for each platform",
      by: "AudioDeviceTests/aToneIsCapturedAndBecomesTheMicrophoneOfAnotherCall"),
    .works(
      "TW2", "the choice and order of audio codecs",
      by: "TransceiverTests/thePreferredAudioCodecIsSentAndReceived"),
    .works(
      "TW3", "voice processing by the hardware, as an interface",
      by: "VoiceProcessingTests/theKindOfProcessingThatASessionAsksForIsDone"),
    .works(
      "TW4", "a capture thread whose blocks are not 10 ms long",
      by: "CaptureTests/nativeSizesBecomeTenMilliseconds"),
    .works(
      "TW5", "encoding away from the thread that captures",
      by: "SendingCapturersTests/encodingHoldsUpNoCapturer"),
    .works(
      "TW6", "a session that the system activates and reports",
      by: "SessionEventTests/anExternalActivationIsRecognized"),
    .works(
      "TW7", "a changed sampling rate when the route changes",
      by: "SessionEventTests/aRouteWithOtherFormatsRecreatesTheDevice"),
    .impossible(
      "TW8", "method names that a store rejects",
      because: "no store reviews programs for this system"),
    .works(
      "TW9", "audio that starts with the first connection and stops with the last",
      by: "AudioUnitTests/withoutManualAudioAConnectionStartsTheDevice"),
    .works(
      "TW10", "one thread or two for input and output",
      by: "PlayoutTests/anAggregatedDeviceServesOutputFirst"),
    .works(
      "TW11", "modes for voice and for video, and the number of channels",
      by: "AudioModeTests/theConfigurationOfAnApplicationReachesTheDevice"),
    .works(
      "TW12", "definitions of capturers and renderers",
      by: "VideoCaptureSessionTests/aPushedCameraIsSentShownRecordedAndReplayed"),
    .works(
      "TW13", "encoders and decoders as blocks that can be exchanged",
      by: "OwnCodecTests/ownCodecsAreNamedInGenesisAndTheirFramesReplaceMissingOnes"),
    .works(
      "TW14", "VP8 and VP9 by library, H.264 by OpenH264 where the build has it",
      by: "H264SendingTests/aCameraIsSentInH264WhereThatIsPreferredAndReplays"),
    .works(
      "TW15", "I420 for encoders, conversions from other formats",
      by: "VideoFrameTests/coloursFollowBT601InBothOrders"),
    .works(
      "TW16", "video frames that are shared and not copied",
      by: "VideoFrameTests/aFrameIsCopiedOnlyWhenItIsShared"),
    .works(
      "TW17", "a camera with front and back (V4L2, by ffmpeg), sizes and constraints",
      by: "CapturerTests/aCameraIsOpenedByItsDeviceSizeAndRate"),
    .works(
      "TW18", "capturers of an application: formats, start, did start, stop",
      by: "SendingCapturersTests/aCapturerRunsFromTheFirstSenderToTheLast"),
    .works(
      "TW19", "formats by size, rate and pixels", by: "CapturerTests/theNearestFormatIsChosen"),
    .works(
      "TW20", "a hint that video frames show a screen",
      by: "SendingCapturersTests/aScreenIsReportedOnEveryWayToASender"),
    .works(
      "TW21", "capturing the screen, never the same frame twice",
      by: "CapturerTests/aStillScreenIsSentOnceOrAgainAfterAWhile"),
    .works(
      "TW22", "capturers of files, games, filters",
      by: "CapturerTests/filtersChangeOnlyFramesOnTheirPath"),
    .works(
      "TW23", "an audio device whose formats change while it runs",
      by: "CaptureTests/aDeviceWithAnotherFormatIsRecreated"),
    .works(
      "TW24", "the last frame again while the screen is unchanged",
      by: "CapturerTests/aStillScreenIsSentOnceOrAgainAfterAWhile"),
    .works(
      "TW25", "NV12 and the other formats as RGBA for a screen",
      by: "SourceTests/framesAreShownAsRGBA"),
  ]
}
