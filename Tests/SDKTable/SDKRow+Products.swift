extension SDKRow {
  /// The tests of the products that reproduce two SDKs' names, each with the rows that it
  /// demonstrates.
  package static let productTests: [(test: String, rows: [String])] = [
    (
      "AudioOperationsTests/aReceivedStreamIsFoundByItsConnectionMadeLouderAndMuted",
      ["SO1", "SO2", "SO3", "SO4", "SO5"]
    ),
    ("AudioOperationsTests/mutingSentAudioLeavesTheMicrophoneRunning", ["SO1", "SO3", "SO6"]),
    (
      "AudioOperationsTests/aModeThatIsSetWhenConnectedHoldsAndOneFromBeforeDoesNot",
      ["SO7", "SO9", "SO10"]
    ),
    ("AudioOperationsTests/aModeThatTheDeviceRefusesIsAFailure", ["SO8"]),
    ("AudioOperationsTests/onlySendersRequestTheMicrophone", ["SO12"]),
    (
      "AudioOperationsTests/aChannelReportsItsEventsAndItsStatistics",
      ["SO13", "SO14", "SO15", "SO16", "SO17"]
    ),
    (
      "ConnectLiveTests/onlySignedInParticipantsEnter",
      ["KA3", "KA4", "KA15", "KA17", "KA26", "KA27", "KA28", "KA29", "KA42"]
    ),
    (
      "ConnectLiveTests/twoParticipantsExchangeVideoAudioAndMessages",
      [
        "KA8", "KA9", "KA11", "KA16", "KA18", "KA19", "KA23", "KA24", "KA25", "KA30", "KA31",
        "KA32", "KA33", "KA34", "KA35", "KA36", "KA37", "KA38", "KA40",
      ]
    ),
    ("ConnectLiveTests/subscriptionsThatCannotBeAreAnswered", ["KA7", "KA12", "KA19"]),
    ("ConnectLiveTests/aCameraIsStartedAndSwitched", ["KA2", "KA9", "KA13", "KA14", "KA40"]),
    ("ConnectLiveTests/theAudioSessionIsAsItWasSetAndItsEventsAreReported", ["KA5", "KA6"]),
    (
      "ConnectLiveTests/aScreenIsSharedUntilTheRoomEndsIt",
      ["KA20", "KA21", "KA22", "KA39", "KA41"]
    ),
  ]

  /// The product tests that demonstrate the row.
  var productTests: [String] {
    SDKRow.productTests.filter { $0.rows.contains(id) }.map(\.test)
  }

  /// The products' tests as rows of the article's table.
  package static var productMarkdown: [String] {
    productTests.map { test, rows in "| `\(test)` | \(rows.joined(separator: ", ")) |" }
  }
}
