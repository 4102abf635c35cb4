import Foundation
import Testing

@testable import Replay

/// Tests that errors suggest the right spelling of misspelt words.
struct SpellingTests {
  @Test(arguments: [
    (["timelin", "TAKE"], "timeline"), (["record", "dmeo"], "demo"),
    (["info", "TAKE", "--jsno"], "--json"),
    (["replay", "TAKE", "--until", "state ice-connection faild"], "failed"),
    (["replay", "TAKE", "--until", "state to_state=conected"], "connected"),
    (["replay", "TAKE", "--until", "pakcet rtcp pli"], "packet"),
    (["replay", "TAKE", "--until", "packet rtp seqence=3"], "sequence"),
    (["replay", "TAKE", "--until", "stat frezeCount>0"], "freezeCount"),
    (["whatif", "TAKE", "--drop", "packt rtp"], "packet"),
    (["whatif", "TAKE", "--set", "audioBitrat=9"], "audioBitrate"),
    (["stats", "TAKE", "--type", "inbond-rtp"], "inbound-rtp"),
    (["debug", "TAKE", "-c", "sekk 1s"], "seek"),
    (["debug", "TAKE", "-c", "pictur x.png"], "picture"),
    (["timeline", "TAKE", "--lane", "sate"], "state"),
    (["timeline", "TAKE", "--peer", "calller"], "caller"),
    (["stats", "TAKE", "--peer", "caler"], "caller"),
    (["speakers", "TAKE", "--peer", "calle"], "callee"),
    (["export", "TAKE", "--pcap", "-", "--peer", "callre"], "caller"),
  ])
  func theNearestWordIsReported(arguments: [String], word: String) async throws {
    let made = try await Takes.lossyCall()
    let outcome = try await Tool.run(arguments.map { $0 == "TAKE" ? made.path : $0 })
    #expect(outcome.status == 64 && outcome.errorLines.count == 1, "\(outcome)")
    #expect(
      outcome.errors.lowercased().contains("did you mean")
        && outcome.errors.split { " ?'".contains($0) }.contains(Substring(word)),
      "\(outcome.errors)")
  }

  /// No state of a call is mistaken for a misspelling.
  @Test func theStatesOfCallsAreKnown() async throws {
    let made = try await Takes.lossyCall()
    let rows = try await Tool.run(
      "sql", made.path, "--csv",
      """
      SELECT machine FROM state UNION SELECT from_state FROM state
      UNION SELECT to_state FROM state
      """)
    let words = rows.output.split { $0.isNewline }.dropFirst()
    #expect(words.count > 10)
    // States of further transports have a number after their name.
    for word in words {
      let name = word.prefix { $0 != " " }
      #expect(StepCondition.states.contains(String(name)), "\(word)")
    }
  }

  @Test(arguments: [
    ("repaly", ["replay"]), ("time", ["timeline"]), ("x", []), ("", []),
    (String(repeating: "replay", count: 100_000), []),
  ])
  func nearWordsAreFound(word: String, expected: [String]) {
    #expect(Nearest.words(to: word, among: ["replay", "info", "timeline", "sql"]) == expected)
  }

  @Test func processorsDifferByTheFeaturesThatOneLacks() {
    let difference = ToolchainDifference(
      part: "cpu", recorded: "x86_64 sse2 avx2", present: "x86_64 sse2 avx2 avx512f vaes")
    #expect(difference.summary == "recorded on another CPU (without avx512f, vaes)")
    let older = ToolchainDifference(
      part: "cpu", recorded: "x86_64 avx512f avx512bw avx512vl vaes", present: "x86_64 gfni")
    #expect(
      older.summary == "recorded on another CPU (without gfni; with avx512f, avx512bw and 2 more)")
  }
}
