extension SDKRow {
  /// Rows GU: the guide to libwebrtc's Objective-C API.
  static let guide: [SDKRow] = [
    .inPart(
      "GU1", "the classes of the guide", without: "no renderers, capturers and frames",
      by: "GuideTests/aStreamIsPublishedReceivedAndRemoved"),
    .missing("GU2", "what the application says it needs camera and microphone for"),
    .works(
      "GU3", "offer and answer, and the descriptions set on both sides",
      by: "GuideTests/delegatesAndCompletionsAreCalledInTheOrderOfEvents"),
    .works(
      "GU4", "one factory for an application", by: "GuideTests/aStreamIsPublishedReceivedAndRemoved"
    ),
    .works(
      "GU5", "streams that are added and removed at any time",
      by: "GuideTests/aStreamIsPublishedReceivedAndRemoved"),
    .works(
      "GU6", "several streams that come and go", by: "StreamTests/streamsAreToldToTheOtherSideOnly"),
    .works(
      "GU7", "streams, tracks and sources, and identifiers that are not used twice",
      by: "StreamTests/duplicatesAreRefusedWithoutATrace"),
    .works(
      "GU8", "streams of the peer are told, own ones are not",
      by: "GuideTests/aStreamIsPublishedReceivedAndRemoved"),
    .works(
      "GU9", "the states of signaling, ICE and gathering",
      by: "GuideTests/aStreamIsPublishedReceivedAndRemoved"),
    .works(
      "GU10", "when a call counts as established, and when it is too late",
      by: "StateTests/aCallIsEstablishedOnceEverythingIsThere"),
    .works(
      "GU11", "a call of the delegate for each change of state",
      by: "GuideTests/delegatesAndCompletionsAreCalledInTheOrderOfEvents"),
    .works(
      "GU12", "negotiation, candidates, channels, receivers, pairs and errors are told",
      by: "NoticeTests/theFirstPairAndTheOneAfterARestartAreToldWithReasons"),
    .inPart(
      "GU13", "a stream to publish, from sources and tracks",
      without: "no camera and no microphone of the system",
      by: "GuideTests/aStreamIsPublishedReceivedAndRemoved"),
    .works(
      "GU14", "streams of the peer come by themselves",
      by: "GuideTests/aStreamIsPublishedReceivedAndRemoved"),
    .missing("GU15", "no question for the microphone by who only receives"),
    .missing("GU16", "a renderer for each track, told of sizes and of the end"),
    .works(
      "GU17", "capturer, source, track, renderer: the way of a frame",
      by: "LoopbackCallTests/applicationMediaIsSentAndReceived"),
    .missing("GU18", "a filter between capturer and source"),
    .missing("GU19", "frames with rotation and a time of their own"),
    .missing("GU20", "the audio session as an object with a lock"),
    .works(
      "GU21", "the volume of received tracks; that of the microphone cannot be changed",
      by: "GuideTests/theThreeWaysToMuteAreThreeThings"),
    .works(
      "GU22", "mute by track, by stream and by volume",
      by: "GuideTests/theThreeWaysToMuteAreThreeThings"),
    .impossible(
      "GU23", "bitcode and the size of a framework",
      because: "there is no such framework on this system"),
  ]
}
