import Foundation
import Media
import Testing

struct SpeechScoreTests {
  /// Computes ln C(n, v) + n ln p - ln λ + λ v with p = 1/2, at least the minimum score.
  private func score(_ count: Int, of parts: Int, lambda: Double) -> Double {
    var ways = 1.0
    for index in 0..<count { ways = ways * Double(parts - index) / Double(index + 1) }
    let score = log(ways) + Double(parts) * log(0.5) - log(lambda) + lambda * Double(count)
    return max(SpeechScore.least, score)
  }

  @Test(arguments: [
    (SpeechScore.immediate, 13, 0.78), (SpeechScore.medium, 5, 24.0), (SpeechScore.long, 10, 47.0),
  ])
  func theConstantsMatchTheFormula(scores: [Double], parts: Int, lambda: Double) {
    #expect(scores.count == parts + 1)
    for count in 0...parts {
      let expected = score(count, of: parts, lambda: lambda)
      #expect(abs(scores[count] - expected) < 1e-12 * max(1, expected), "\(count) of \(parts)")
    }
  }

  @Test func theScoresMatchThePublishedOnes() {
    let immediate = [
      0.929831, 2.297617, 3.365299, 4.145299, 4.637617, 4.829831, 4.69354, 4.174257, 3.162497,
    ]
    for (index, value) in immediate.enumerated() {
      #expect(abs(SpeechScore.immediate[index + 4] - value) < 1e-6)
    }
    #expect(SpeechScore.immediate[..<4].allSatisfy { $0 == 1e-10 })
    let medium = [18.965648, 43.658795, 67.658795, 90.965648, 113.35621]
    for (index, value) in medium.enumerated() {
      #expect(abs(SpeechScore.medium[index + 1] - value) < 1e-6)
    }
    #expect(abs(SpeechScore.long[1] - 38.520966) < 1e-6)
  }
}
