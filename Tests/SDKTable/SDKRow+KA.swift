extension SDKRow {
  /// The KA rows: the SDK of Kakao i Connect Live.
  static let connectLive: [SDKRow] = [
    .works(
      "KA1", "a package that applications name in their manifest",
      by: "CapturedCallTests/theCallWithChromiumReplays"),
    .works(
      "KA2", "permissions that the application asks for",
      by: "MachineDeviceTests/withoutPermissionNothingIsRecordedOrCaptured"),
    .works(
      "KA3", "signing in with a service's secret or a token",
      by: "MeetingTests/tokensAreIssuedForASecret"),
    .works("KA4", "signing out", by: "EnteringTests/enteringRequiresSigningIn"),
    .works(
      "KA5", "category, mode, options and buffer of the audio session",
      by: "RoomAudioTests/theMicrophoneIsSentAndTheLoudspeakerPlaysReceivedAudio"),
    .works(
      "KA6", "interruptions, routes and the other events of the audio session",
      by: "SessionEventTests/anInterruptionStopsTheDeviceUntilItEnds"),
    .works(
      "KA7", "how many videos a room receives at first and at most",
      by: "ReceivingTests/receiversAreAddedUpToTheirLimit"),
    .works(
      "KA8", "the parts of local media",
      by: "OwnViewTests/theLocalViewIsMirroredAndSentVideoIsNot"),
    .works(
      "KA9", "camera, pushed frames or a file as source",
      by: "OwnViewTests/aFileOfAnyFormatIsDecodedWithItsSound"),
    .works(
      "KA10", "rotation by device or by application",
      by: "VideoCaptureSessionTests/theOptionsOfLocalMediaMakeACapturerThatFollowsTheDevice"),
    .works(
      "KA11", "voice or music, and automatic gain",
      by: "RoomAudioTests/audioTypeAndAutoGainHoldForWhatIsPublished"),
    .works(
      "KA12", "a pool of receivers that grows up to a limit",
      by: "ReceivingTests/receiversAreAddedUpToTheirLimit"),
    .works(
      "KA13", "local media as an object: start, stop, switch the camera",
      by: "OwnViewTests/aCameraIsSwitchedByItsPositionAndByACall"),
    .works("KA14", "creating local media", by: "MeetingTests/ownMediaNeedsACapturerThatStarts"),
    .works("KA15", "creating a room", by: "MeetingTests/aRoomItsSignalingAndItsConnectionsReplay"),
    .works(
      "KA16", "publishing, also before the room is connected",
      by: "PublishingTests/mediaPublishedBeforeEnteringWaits"),
    .works(
      "KA17", "connecting to a room and leaving it",
      by: "EndingTests/leavingEndsInBeingDisconnected"),
    .works(
      "KA18", "participants, and who is shown and heard",
      by: "MeetingTests/aRoomItsSignalingAndItsConnectionsReplay"),
    .works(
      "KA19", "subscribing to video",
      by: "ReceivingTests/errorsForOneVideoAreRepliesAndForSeveralEvents"),
    .works(
      "KA20", "requesting screen sharing, and the pause between requests",
      by: "ScreenShareTests/theNextShareWaitsFiveSeconds"),
    .works(
      "KA21", "the states of the extension that shares the screen",
      by: "ScreenShareTests/aHelperIsReadyThenStartedThenClosed"),
    .works(
      "KA22", "the extension's side of screen sharing",
      by: "ScreenSharingTests/aHelperSharesUntilTheRoomEndsIt"),
    .works(
      "KA23", "levels, and statistics by direction",
      by: "MeetingTests/aRoomItsSignalingAndItsConnectionsReplay"),
    .works(
      "KA24", "muting everything that is received",
      by: "PeopleTests/allReceivedAudioIsMutedSeparatelyFromEach"),
    .works("KA25", "messages to participants", by: "PeopleTests/messagesAreSentToSomeOrAll"),
    .works(
      "KA26", "progress of connecting",
      by: "EnteringTests/progressIncreasesFromOneToAHundred"),
    .works(
      "KA27", "the participants present on joining",
      by: "EnteringTests/participantsAreReportedOnEntryLocalFirst"),
    .works("KA28", "why a room was left", by: "EndingTests/theServicesReasonIsReported"),
    .works(
      "KA29", "an error is reported before the end that it causes",
      by: "EndingTests/anErrorIsReportedBeforeTheEndItCauses"),
    .works("KA30", "participants who enter and leave", by: "PeopleTests/participantsJoinAndLeave"),
    .works(
      "KA31", "local media that is published and withdrawn",
      by: "PublishingTests/unpublishedMediaIsRemovedFromItsConnection"),
    .works(
      "KA32", "remote media that is published and withdrawn",
      by: "ReceivingTests/unpublishedMediaIsUnsubscribed"),
    .works(
      "KA33", "audio of the few who speak",
      by: "VoicesTests/fourOfEightVoicesOccupyAndTheyAreThoseWhoSpeak"),
    .works(
      "KA34", "remote media that is switched on and off",
      by: "PeopleTests/switchingMediaOnAndOffIsReported"),
    .works(
      "KA35", "local video in a room", by: "MeetingTests/ownMediaHasDefaultsUntilItIsPublished"),
    .works(
      "KA36", "local audio in a room", by: "MeetingTests/ownMediaHasDefaultsUntilItIsPublished"),
    .works(
      "KA37", "remote video: profile, pause, view",
      by: "ProfileTests/theLargestLayerThatFitsTheProfileIsReceived"),
    .works(
      "KA38", "remote audio, and audio that is always on",
      by: "VoicesTests/alwaysOnAudioIsSentBesidesTheSelectedVoices"),
    .works(
      "KA39", "a participant with several videos",
      by: "PeopleTests/aParticipantMayHaveSeveralVideos"),
    .works(
      "KA40", "a view that shows one video at a time",
      by: "MeetingTests/aViewShowsOneVideoAtATime"),
    .works(
      "KA41", "the life of a broadcast extension",
      by: "ScreenSharingTests/aHelperSharesUntilTheRoomEndsIt"),
    .works(
      "KA42", "the numbers of errors that the document explains, 49 of 79",
      by: "RoomErrorTests/everyNumberThatHasAMeaningIsRaised"),
    .works(
      "KA43", "a restart of ICE keeps the call",
      by: "EndingTests/aChangeOfTheNetworkRestartsICEOnAllConnections"),
  ]
}
