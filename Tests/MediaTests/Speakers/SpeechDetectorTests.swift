import Testing
import Wire

@testable import Media

struct SpeechDetectorTests {
  private let loud = AudioLevel(dbov: -30)
  private let quiet = AudioLevel(dbov: -48)

  private func at(_ milliseconds: Int64) -> Instant { .zero + .milliseconds(milliseconds) }

  /// Feeds a block every 20 ms; returns the changes, as phase, start and end in milliseconds.
  private func changes(
    _ level: AudioLevel, of participant: Int = 1, from: Int64, to: Int64,
    _ detector: inout SpeechDetector
  ) -> [[String]] {
    stride(from: from, to: to, by: 20).flatMap {
      detector.observe(level, of: participant, at: at($0)).map(words)
    }
  }

  private func words(_ speech: SpeechDetector.Speech) -> [String] {
    [
      "\(speech.participant) \(speech.phase)", "\(speech.from.nanoseconds / 1_000_000)",
      "\(speech.to.nanoseconds / 1_000_000)",
    ]
  }

  @Test func speechIsReportedAtItsStartEachSecondAndAtItsEnd() {
    var detector = SpeechDetector()
    #expect(
      changes(loud, from: 1000, to: 3500, &detector) == [
        ["1 began", "1000", "1200"], ["1 lasts", "1000", "2200"], ["1 lasts", "1000", "3200"],
      ])
    #expect(changes(quiet, from: 3500, to: 3990, &detector) == [])
    #expect(changes(quiet, from: 4000, to: 4020, &detector) == [["1 ended", "1000", "3500"]])
    #expect(changes(quiet, from: 4020, to: 9000, &detector) == [])
  }

  @Test func aClickIsNotSpeech() {
    var detector = SpeechDetector()
    #expect(changes(loud, from: 0, to: 180, &detector) == [])
    #expect(changes(quiet, from: 180, to: 2000, &detector) == [])
    #expect(detector.finish(1) == nil)
  }

  @Test func aShortPauseBelongsToTheSpeech() {
    var detector = SpeechDetector()
    _ = changes(loud, from: 0, to: 400, &detector)
    // The last loud block started at 380, so the pause is exactly half a second.
    #expect(changes(loud, from: 880, to: 900, &detector) == [])
    #expect(detector.finish(1).map(words) == ["1 ended", "0", "900"])
  }

  @Test func aLongerPauseEndsIt() {
    var detector = SpeechDetector()
    _ = changes(loud, from: 0, to: 400, &detector)
    #expect(changes(loud, from: 900, to: 920, &detector) == [["1 ended", "0", "400"]])
    #expect(detector.finish(1) == nil)
  }

  @Test func otherParticipantsBlocksEndAStalledSpeech() {
    var detector = SpeechDetector()
    _ = changes(loud, from: 0, to: 400, &detector)
    #expect(
      changes(loud, of: 2, from: 400, to: 1000, &detector) == [
        ["2 began", "400", "600"], ["1 ended", "0", "400"],
      ])
  }

  @Test func theMeanIsThatOfTheBlocksWithSpeech() {
    var detector = SpeechDetector()
    for index in 0..<20 {
      let level = AudioLevel(dbov: index % 2 == 0 ? -20 : -60)
      _ = detector.observe(level, of: 7, at: at(Int64(index) * 20))
    }
    let speech = detector.finish(7)
    #expect(speech?.blocks == 10)
    #expect(speech?.decibels == -200)
  }
}
