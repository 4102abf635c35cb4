extension SDKRow {
  /// Rows KA: the SDK of Kakao i Connect Live.
  static let connectLive: [SDKRow] = [
    .works(
      "KA1", "a package that applications name in their manifest",
      by: "CapturedCallTests/theCallWithChromiumReplays"),
    .inPart(
      "KA2", "permissions that the application asks for",
      without: "for the microphone; of the camera nobody is asked",
      by: "AudioUnitTests/whoDoesNotSayWhatForIsRefusedBeforeAnybodyIsAsked"),
    .missing("KA3", "signing in with a service's secret or a token"),
    .missing("KA4", "signing out"),
    .works(
      "KA5", "category, mode, options and buffer of the audio session",
      by: "AudioModeTests/theConfigurationOfAnApplicationReachesTheDevice"),
    .works(
      "KA6", "interruptions, routes and the other events of the audio session",
      by: "SessionEventTests/anInterruptionStopsTheDeviceUntilItEnds"),
    .missing("KA7", "how many videos a room receives at first and at most"),
    .inPart(
      "KA8", "what own media is made of", without: "the defaults as a value; no room takes them",
      by: "CapturerTests/theNearestFormatIsChosen"),
    .works(
      "KA9", "camera, pushed frames or a file as source",
      by: "CapturerTests/aFileIsCapturedAtItsPace"),
    .inPart(
      "KA10", "rotation by device or by application",
      without: "a frame has a rotation; nothing turns a device here",
      by: "VideoFrameTests/rotationIsAppliedAsAHandWould"),
    .inPart(
      "KA11", "voice or music, and automatic gain",
      without: "asked of the device; there is no processing of audio here",
      by: "AudioModeTests/noProfileCancelsEchoOrControlsGainHere"),
    .missing("KA12", "a pool of receivers that grows up to a limit"),
    .missing("KA13", "own media as an object: start, stop, switch the camera"),
    .missing("KA14", "making own media"),
    .missing("KA15", "making a room"),
    .missing("KA16", "publishing, also before the room is there"),
    .missing("KA17", "connecting to a room and leaving it"),
    .missing("KA18", "participants, and who is shown and heard"),
    .missing("KA19", "subscribing to video"),
    .missing("KA20", "asking for screen sharing, and its pause between two"),
    .missing("KA21", "the states of the extension that shares the screen"),
    .missing("KA22", "the extension's side of screen sharing"),
    .inPart(
      "KA23", "levels, and statistics by direction", without: "by track, not by participant",
      by: "StatsFormTests/roomSDKsGetAReportOfEachDirection"),
    .missing("KA24", "muting everything that is received"),
    .inPart(
      "KA25", "messages to participants", without: "text over channels; no addressees",
      by: "DataChannelTests/messagesTravelBothWaysOverLoopback"),
    .missing("KA26", "progress of connecting"),
    .missing("KA27", "who is in the room on arrival"),
    .inPart(
      "KA28", "why a room was left", without: "of a connection, not of a room",
      by: "TrackCallTests/closeReasonsTellWhoEndedIt"),
    .missing("KA29", "an error comes before the end that it causes"),
    .missing("KA30", "participants who enter and leave"),
    .missing("KA31", "own media that is published and withdrawn"),
    .inPart(
      "KA32", "media of others that is published and withdrawn", without: "no participants",
      by: "StreamTests/streamsAreToldToTheOtherSideOnly"),
    .works(
      "KA33", "audio of the few who speak",
      by: "SpeakerTests/whoSpeaksTakesASlotAndLosesItWithTheSlots"),
    .missing("KA34", "media of others that is switched on and off"),
    .missing("KA35", "own video in a room"),
    .missing("KA36", "own audio in a room"),
    .missing("KA37", "video of others: profile, pause, view"),
    .missing("KA38", "audio of others, and what is always heard"),
    .missing("KA39", "a participant with several videos"),
    .missing("KA40", "a view that shows one video at a time"),
    .missing("KA41", "the life of a broadcast extension"),
    .missing("KA42", "the table of error codes"),
    .works("KA43", "a restart of ICE keeps the call", by: "CallTests/iceRestartKeepsTheCall"),
  ]
}
