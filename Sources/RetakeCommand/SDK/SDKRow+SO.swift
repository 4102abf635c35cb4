extension SDKRow {
  /// Rows SO: the SDK of a Sora server.
  static let sora: [SDKRow] = [
    .works(
      "SO1", "muting a stream: silence while RTP flows on",
      by: "TrackCallTests/aDisabledTrackSendsSilenceWhileRTPFlows"),
    .works(
      "SO2", "finding a stream by the identifier of its connection",
      by: "StreamTests/streamsAreToldToTheOtherSideOnly"),
    .works(
      "SO3", "the volume of received sound, 0 to 10",
      by: "TrackCallTests/aVolumeScalesBeforeLevelDigestAndStatistics"),
    .works(
      "SO4", "an event for each stream that is added",
      by: "StreamTests/streamsAreToldToTheOtherSideOnly"),
    .inPart(
      "SO5", "the configuration of a connection, its defaults and time limit",
      without: "no channel, no simulcast", by: "EstablishmentTests/aCallThatIsNotAnsweredTimesOut"),
    .works(
      "SO6", "sending any sound",
      by: "LoopbackCallTests/filesAreSentAndWhatIsReceivedIsWrittenToFiles"),
    .missing("SO7", "audio modes: category, mode, options and output in one call"),
    .missing("SO8", "a mode that is refused is an error"),
    .missing("SO9", "changing the audio session step by step under a lock"),
    .missing("SO10", "the mode that a connection sets when it begins"),
    .missing("SO11", "a fault of a system version, as a switch of the simulated device"),
    .missing("SO12", "the question for the microphone, only when something is sent"),
    .inPart(
      "SO13", "hard and soft mute as two things, with their errors",
      without: "a device that stops is missing",
      by: "TrackCallTests/aDisabledVideoTrackSendsBlackPictures"),
    .missing("SO14", "manual audio of the whole SDK"),
    .works(
      "SO15", "statistics as id, type, time and values",
      by: "StatsFormTests/roomSDKsGetAReportOfEachDirection"),
    .inPart(
      "SO16", "events of connecting, streams, channels, signaling and routes",
      without: "no signaling and no routes", by: "DataChannelTests/eventsAndThresholdsAreTold"),
    .works(
      "SO17", "decoded sound and pictures for the application, and pictures of its own",
      by: "LoopbackCallTests/applicationMediaIsSentAndReceived"),
    .inPart(
      "SO18", "the frame rate of screen sharing, one frame at a time",
      without: "no capturer of the screen",
      by: "SendLimitTests/noMoreFramesAreSentThanTheLimitAllows"),
  ]
}
