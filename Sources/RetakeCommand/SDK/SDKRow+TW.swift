extension SDKRow {
  /// Rows TW: Twilio's video SDK, and the talk about its audio.
  static let twilio: [SDKRow] = [
    .missing("TW1", "one audio device module for each platform"),
    .works(
      "TW2", "the choice and order of audio codecs",
      by: "CodecPreferenceTests/offersAndAnswersFollowThePreferences"),
    .missing("TW3", "voice processing by the hardware, as an interface"),
    .inPart(
      "TW4", "a capture thread whose blocks are not 10 ms long", without: "no simulated device",
      by: "AudioCaptureTests/soundOfAnyLengthIsCutIntoBlocks"),
    .works(
      "TW5", "encoding away from the thread that captures",
      by: "MailboxTests/messagesFromManyTasksAllArriveAndEachTasksKeepTheirOrder"),
    .missing("TW6", "a session that the system activates, and tells of"),
    .missing("TW7", "a changed sampling rate when the route changes"),
    .impossible(
      "TW8", "names of methods that a store refuses",
      because: "no store reviews programs for this system"),
    .inPart(
      "TW9", "audio that starts with the first connection and stops with the last",
      without: "no manual mode", by: "CallTests/aCallConnectsAndCarriesMediaBothWays"),
    .missing("TW10", "one thread or two for input and output"),
    .missing("TW11", "modes for voice and for video, and the number of channels"),
    .inPart(
      "TW12", "definitions of capturers and renderers", without: "no protocols for them",
      by: "LoopbackCallTests/applicationMediaIsSentAndReceived"),
    .inPart(
      "TW13", "encoders and decoders as blocks that can be exchanged",
      without: "not for applications", by: "PictureCodecTests/thePatternSurvivesTheRoundTrip"),
    .works(
      "TW14", "VP8 and VP9 by library, H.264 passed through",
      by: "CodecTests/vp9IsSentAndDecodedWhereItIsPreferred"),
    .inPart(
      "TW15", "I420 for encoders, conversions from other formats", without: "I420 only",
      by: "PictureCodecTests/anySizeWorks"),
    .works(
      "TW16", "pictures that are shared and not copied",
      by: "LoopbackCallTests/applicationMediaIsSentAndReceived"),
    .inPart(
      "TW17", "a camera with front and back", without: "a pattern; no camera",
      by: "PatternTests/aPictureIsAFunctionOfItsNumber"),
    .missing("TW18", "capturers of an application: formats, start, did start, stop"),
    .missing("TW19", "formats by size, rate and pixels"),
    .missing("TW20", "the hint that pictures are of a screen"),
    .missing("TW21", "capturing the screen, never the same frame twice"),
    .inPart(
      "TW22", "capturers of files, games, filters", without: "no filters, no screen, no camera",
      by: "MediaFileTests/picturesComeInOrderWithTheirTimesAndOverAndOver"),
    .missing("TW23", "an audio device whose formats change while it runs"),
    .missing("TW24", "the last frame again while the screen stands still"),
  ]
}
