import Foundation
import Testing

/// Every rule of `findings` has a test in which it fires, and a similar test in which it does not.
struct RuleTests {
  /// Rules outside the tables of cases, each with a test in which it fires and a test in which it
  /// does not.
  ///
  /// A test that covers both is listed twice.
  private static let tests: [(rule: String, fires: String, silent: String)] = [
    (
      "concealed-audio", "FindingTests/concealedAudioIsReported",
      "FindingEvidenceTests/pausesOfTheSenderAreNotConcealment"
    ),
    both("silent-audio", "FindingEvidenceTests/undecodedAudioIsNotSilent"),
    both("silent-while-speaking", "FindingTests/speechThatIsNotHeardIsReported"),
    both("speech-while-muted", "FindingTests/speechIntoADisabledTrackIsReported"),
    (
      "never-connected", "FindingTests/aCallThatNeverConnectsIsReported",
      "FindingEvidenceTests/anEndThatWasOnlySeenNeverConnects"
    ),
    (
      "disconnected", "FindingTests/aSilentPathIsADisconnection",
      "FindingTests/aDeadPathIsNotOneWay"
    ),
    good("srtp-refused"), good("payload-type-unknown"),
    both("ice-flapping", "FindingTests/aRelayInUseAndAPairThatFlapsAreReported"),
    (
      "relay-in-use", "FindingTests/aRelayInUseAndAPairThatFlapsAreReported",
      "FindingTests/aGoodCallHasNoProblems"
    ),
    both("high-round-trip", "FindingTests/aPathThatBecomesLongIsReported"),
    both("loss", "FindingTests/aPartOfATakeHasThePacketsOfThatPart"),
    (
      "loss-burst", "FindingTests/aGapIsABurstAndAFreezeForItsReceiver",
      "FindingEvidenceTests/aRestartOfNumbersIsNoBurstThatEndsBeforeItBegins"
    ),
    both("loss-at-peer", "FindingTests/lossAndItsShareAreReported"),
    both("encoder-limited", "FindingEvidenceTests/aFallingTargetIsALimitWhateverTheEncoderReports"),
    (
      "refused-section", "RefusedSectionTests/aSectionWithoutACommonCodecIsNamedWithItsCodecs",
      "GoodCallTests/nothingIsWrongInAGoodCall"
    ),
    meant("encoder-capped"), meant("codec-changed"), meant("clipped-microphone"),
    meant("microphone-without-signal"), meant("camera-stopped"), meant("camera-repeats"),
    meant("camera-black"),
    (
      "simulcast-layer-ended", "PerceptionRuleTests/generatedFaultsAreFound",
      "PerceptionRuleTests/layersAllSentAndRequestsAnsweredAreNoFault"
    ),
    (
      "key-frame-requests-unanswered", "PerceptionRuleTests/generatedFaultsAreFound",
      "PerceptionRuleTests/layersAllSentAndRequestsAnsweredAreNoFault"
    ),
    (
      "audio-video-apart", "PerceptionRuleTests/generatedFaultsAreFound",
      "PerceptionRuleTests/intendedInputIsNotAFault"
    ),
    both("stream-gap", "FindingEvidenceTests/observedMediaIsOneWayIfItsSenderContinues"),
    both("one-way-media", "FindingEvidenceTests/observedMediaIsOneWayIfItsSenderContinues"),
    both("audio-paused", "FindingEvidenceTests/observedMediaIsOneWayIfItsSenderContinues"),
    both("video-paused", "GoodCallTests/nothingIsWrongInAGoodCall"),
    both("sequence-restart", "StreamImportTests/restartedNumbersAreNamedAndNotLost"),
    both("rtcp-other-ssrc", "StreamImportTests/reportsOfAnotherSourceAreNamed"),
    both("uneven-timestamps", "StreamImportTests/unevenTimestampsAreNamed"),
    (
      "no-key-frame", "FindingTests/aMissingKeyFrameIsReported",
      "FindingTests/aGoodCallHasNoProblems"
    ),
    both("freeze", "FindingEvidenceTests/anUnchangingScreenIsNoFreeze"),
    both("video-stopped", "FindingEvidenceTests/videoThatDiesIsReportedWithWhoLetItDie"),
    both("late-first-frame", "FindingEvidenceTests/aLateFirstPictureIsReported"),
    generated("payload-types-crossed"), generated("address-changed"),
    generated("large-packets-lost"), generated("channel-not-open"), generated("microphone-quiet"),
    generated("microphone-gaps"), generated("encoder-stopped"),
    generated("media-switched-off", silent: "aHoldThatEndsIsNoFault"),
    generated("dtls-roles-clash", silent: "aRestartIsNoFault"),
    generated("ice-password-wrong", silent: "aRestartIsNoFault"),
    (
      "video-undecodable", "GeneratedFaultTests/aReceiverAloneNamesIt",
      "GeneratedFaultTests/similarCallsWithoutFaultsHaveNoFinding"
    ),
    received("media-in-bursts"), received("media-never-came"),
  ]

  /// Returns the entry for a rule with which a receiver detects a fault of its sender.
  private static func received(_ rule: String) -> (String, String, String) {
    (
      rule, "GeneratedFaultTests/aReceiverAloneNamesIt",
      "GeneratedFaultTests/aReceiverAloneSeesNothingNearlyTheSame"
    )
  }

  /// Returns the entry for a rule about generated faults.
  private static func generated(
    _ rule: String, silent: String = "similarCallsWithoutFaultsHaveNoFinding"
  )
    -> (String, String, String)
  {
    (rule, "GeneratedFaultTests/theFirstFindingNamesIt", "GeneratedFaultTests/\(silent)")
  }

  private static func both(_ rule: String, _ test: String) -> (String, String, String) {
    (rule, test, test)
  }

  /// Returns the entry for a rule that fires in a scene, and not in a call without a fault.
  private static func good(_ rule: String) -> (String, String, String) {
    (
      rule, "NetworkFindingTests/aFaultIsNamedAndASimilarCallIsNot",
      "FindingTests/aGoodCallHasNoProblems"
    )
  }

  /// Returns the entry for a rule about wrong input, which is silent if the input is intended.
  private static func meant(_ rule: String) -> (String, String, String) {
    (
      rule, "PerceptionRuleTests/insertedFaultsAreFound",
      "PerceptionRuleTests/intendedInputIsNotAFault"
    )
  }

  /// Returns the first participating group of all matches.
  private static func matches(_ expression: String, _ text: String) throws -> [String] {
    let whole = text as NSString
    return try NSRegularExpression(pattern: expression, options: [.dotMatchesLineSeparators])
      .matches(in: text, range: NSRange(location: 0, length: whole.length))
      .map { whole.substring(with: $0.range(at: 1)) }
  }

  private static func text(of file: String) throws -> String {
    try #require(SourceTree.tests.first { $0.path.hasSuffix("/\(file)") }?.text)
  }

  private static func quoted(_ texts: [String]) throws -> [String] {
    try texts.flatMap { try matches("\"([a-z0-9-]+)\"", $0) }
  }

  private static func rules() throws -> [String] {
    try SourceTree.sources.filter { $0.path.contains("/Findings/FindingRule+") }
      .flatMap { try matches("\\bid: \"([a-z0-9-]+)\"", $0.text) }
  }

  @Test func eachRuleHasATestInWhichItFiresAndOneInWhichItDoesNot() throws {
    let scenes = try Self.text(of: "NetworkFindingTests.swift")
    // Each of these cases is also run without its fault, so it counts for both.
    let pairs =
      try Self.matches("\\bChange\\(\\s*\"([a-z0-9-]+)\"", scenes)
      + Self.matches("\\brule: \"([a-z0-9-]+)\"", try Self.text(of: "StatRuleTests.swift"))
      + Self.matches("\\bCase\\(\\s*\"([a-z0-9-]+)\"", try Self.text(of: "RowRuleTests.swift"))
    let fires =
      pairs + Self.tests.map(\.rule)
      + (try Self.quoted(Self.matches("\\bCase\\(\\s*\\.\\w+, \\[([^\\]]*)\\]", scenes)))
    let silent =
      pairs + Self.tests.map(\.rule)
      + (try Self.quoted(Self.matches("not: \\[([^\\]]*)\\]", scenes)))
    let rules = try Self.rules()
    #expect(rules.count >= 132 && Set(rules).count == rules.count)
    #expect(Set(rules).subtracting(fires) == [], "rules without a test in which they fire")
    #expect(Set(rules).subtracting(silent) == [], "rules without a test in which they do not fire")
    #expect(Set(fires + silent).subtracting(rules) == [], "tests of rules that are not there")
  }

  /// Hyphenated words in the sources of findings that name something else, such as statistics,
  /// state machines and SDP attributes.
  private static let otherWords: Set = [
    "bundle-only", "flexfec-03", "ice-connection", "inbound-rtp", "media-playout", "media-source",
    "other-end", "outbound-rtp", "retake-findings", "rtcp-fb", "small-video", "telephone-event",
  ]

  @Test func theSourcesNameOnlyRulesThatExist() throws {
    let words = try SourceTree.sources.filter { $0.path.contains("/Queries/Findings/") }
      .flatMap { try Self.matches("\"([a-z0-9]+(?:-[a-z0-9]+)+)\"", $0.text) }
    let rules = try Self.rules()
    #expect(Set(rules).subtracting(words).allSatisfy { !$0.contains("-") })
    #expect(Set(words).subtracting(rules).subtracting(Self.otherWords) == [])
    #expect(Self.otherWords.subtracting(words) == [], "words that are no longer used")
  }

  @Test func theTestsThatAreNamedExistAndKnowTheirRule() {
    let files = SourceTree.tests.filter { $0.ending == "swift" }.map(\.text)
    for one in Self.tests {
      for name in Set([one.fires, one.silent]) {
        let parts = name.split(separator: "/")
        let suite = files.filter {
          $0.contains("struct \(parts[0]) {") && $0.contains("func \(parts[1])(")
        }
        #expect(suite.count == 1, "\(one.rule): there is no test \(name)")
      }
      let suite = one.fires.split(separator: "/")[0]
      #expect(
        files.contains { $0.contains("struct \(suite) {") && $0.contains("\"\(one.rule)") },
        "\(one.rule) is not in \(suite)")
    }
  }
}
