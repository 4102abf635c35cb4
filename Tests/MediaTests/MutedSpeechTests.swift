import Testing
import Wire

@testable import Media

struct MutedSpeechTests {
  private static let voice = AudioBlock(samples: [Int16](repeating: 4_000, count: 960), channels: 1)
  private static let quiet = AudioBlock(samples: [Int16](repeating: 3, count: 960), channels: 1)

  /// Returns the milliseconds at which speech starts or ends, given a block every 20 ms.
  private func changes(_ blocks: [AudioBlock]) -> [(at: Int, isSpeaking: Bool)] {
    var speech = MutedSpeech()
    return blocks.enumerated().compactMap { index, block in
      let now = Instant.zero + .milliseconds(Int64(index) * 20)
      return speech.observe(block, at: now).map { (index * 20, $0) }
    }
  }

  @Test func speechBeginsWithThreeTenthsOfASecondOfVoice() {
    let found = changes([AudioBlock](repeating: Self.voice, count: 20))
    #expect(found.map(\.at) == [280] && found.map(\.isSpeaking) == [true])
  }

  @Test func aCoughIsNotSpeech() {
    let cough = [AudioBlock](repeating: Self.voice, count: 10)
    let pause = [AudioBlock](repeating: Self.quiet, count: 60)
    #expect(changes(cough + pause + cough + pause + cough).isEmpty)
  }

  @Test func aSecondOfSilenceEndsIt() {
    let voice = [AudioBlock](repeating: Self.voice, count: 20)
    let breath = [AudioBlock](repeating: Self.quiet, count: 30)
    let pause = [AudioBlock](repeating: Self.quiet, count: 60)
    let found = changes(voice + breath + voice + pause)
    // The last voiced block was at 1380 ms.
    #expect(found.map(\.at) == [280, 2_380] && found.map(\.isSpeaking) == [true, false])
  }

  @Test func unmutingEndsMutedSpeech() {
    var speech = MutedSpeech()
    #expect(speech.end() == nil)
    for index in 0..<20 {
      _ = speech.observe(Self.voice, at: .zero + .milliseconds(Int64(index) * 20))
    }
    #expect(speech.isSpeaking)
    #expect(speech.end() == false)
    #expect(!speech.isSpeaking && speech.end() == nil)
  }
}
