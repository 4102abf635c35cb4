extension SDKRow {
  /// Rows PX: the fork of libwebrtc that takes an audio device.
  static let pixiv: [SDKRow] = [
    .missing("PX1", "a factory that takes codec factories and an audio device"),
    .missing("PX2", "an audio device as a part that can be exchanged"),
    .inPart(
      "PX3", "sound handed in from outside, with typed refusals and counted drops",
      without: "48 kHz only; nothing is counted",
      by: "LoopbackCallTests/applicationMediaIsSentAndReceived"),
    .missing("PX4", "silence where a source that was added gives nothing"),
    .inPart(
      "PX5", "any length of sound in, 10 ms out, and a pull for playing",
      without: "blocks of 20 ms; nothing is pulled",
      by: "AudioCaptureTests/soundOfAnyLengthIsCutIntoBlocks"),
    .missing("PX6", "manual audio: the unit starts when the application says so"),
    .missing("PX7", "a flag that permits the audio unit, and takes it away"),
    .missing("PX8", "a choice of audio unit, with or without voice processing"),
    .missing("PX9", "no question for the microphone before it is needed"),
    .missing("PX10", "two sources of sound of a broadcast, mixed or chosen"),
  ]
}
