extension SDKRow {
  /// The PX rows: the libwebrtc fork with a replaceable audio device.
  static let pixiv: [SDKRow] = [
    .works(
      "PX1", "a factory that takes codec factories and an audio device",
      by: "TrackObjectTests/oneMicrophoneFeedsTwoConnections"),
    .works(
      "PX2", "an audio device as a part that can be exchanged",
      by: "MachineDeviceTests/aBroadcastIsReceivedWithAudioAndVideo"),
    .works(
      "PX3", "audio from the application, with typed refusals and counted drops",
      by: "AudioDeviceTests/aManualDeviceRefusesChosenOperations"),
    .works(
      "PX4", "silence when an added source delivers nothing",
      by: "CaptureTests/silenceReplacesAStarvingSource"),
    .works(
      "PX5", "any length of audio in, 10 ms out, and a pull for playing",
      by: "CaptureTests/nativeSizesBecomeTenMilliseconds"),
    .works(
      "PX6", "manual audio: the unit starts when the application says so",
      by: "MachineDeviceTests/manualAudioThatIsSetFirstAppliesToALaterFactory"),
    .works(
      "PX7", "a flag that enables and disables the audio unit",
      by: "AudioUnitTests/theEnableFlagCountsWithManualAudioOnly"),
    .works(
      "PX8", "a choice of audio unit, with or without voice processing",
      by: "VoiceProcessingTests/theKindOfProcessingThatASessionAsksForIsDone"),
    .works(
      "PX9", "no request for the microphone before it is needed",
      by: "AudioUnitTests/theMicrophoneCanBeRequestedExplicitly"),
    .works(
      "PX10", "a broadcast's two audio sources, mixed or selected",
      by: "CaptureTests/sourcesAreMixedAndClipped"),
  ]
}
