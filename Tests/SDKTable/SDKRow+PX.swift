extension SDKRow {
  /// The PX rows: the libwebrtc fork with a replaceable audio device.
  static let pixiv: [SDKRow] = [
    .works(
      "PX1", "a factory that takes codec factories and an audio device",
      by: "TrackObjectTests/oneMicrophoneFeedsTwoConnections"),
    .works(
      "PX2", "an audio device as a part that can be exchanged",
      by: "MachineDeviceTests/aBroadcastIsHeardAndSeen"),
    .works(
      "PX3", "audio handed in from outside, with typed refusals and counted drops",
      by: "AudioDeviceTests/aManualDeviceDecidesWhatIsRefused"),
    .works(
      "PX4", "silence where a source that was added gives nothing",
      by: "CaptureTests/silenceReplacesAStarvingSource"),
    .works(
      "PX5", "any length of audio in, 10 ms out, and a pull for playing",
      by: "CaptureTests/nativeSizesBecomeTenMilliseconds"),
    .works(
      "PX6", "manual audio: the unit starts when the application says so",
      by: "MachineDeviceTests/manualAudioThatIsSetFirstHoldsForTheFactoryThatComesLater"),
    .works(
      "PX7", "a flag that permits the audio unit, and takes it away",
      by: "AudioUnitTests/theEnableFlagCountsWithManualAudioOnly"),
    .works(
      "PX8", "a choice of audio unit, with or without voice processing",
      by: "VoiceProcessingTests/theKindOfProcessingThatASessionAsksForIsDone"),
    .works(
      "PX9", "no question for the microphone before it is needed",
      by: "AudioUnitTests/theMicrophoneCanBeRequestedExplicitly"),
    .works(
      "PX10", "two sources of audio of a broadcast, mixed or chosen",
      by: "CaptureTests/sourcesAreMixedAndClipped"),
  ]
}
