import Foundation
import Media
import Testing

struct AudioLevelTests {
  @Test(arguments: [
    (0, 100), (-1, 98), (-18, 70), (-29, 52), (-30, 50), (-59, 2), (-60, 0), (-61, 0), (-127, 0),
  ])
  func theMeterShowsComfortableSpeechInTheMiddle(dbov: Int, percent: Int) {
    #expect(AudioLevel(dbov: dbov).percent == percent)
  }

  @Test func percentagesMatchTheFormula() {
    for dbov in -127...0 {
      let exact = (100 * Double(dbov + 60) / 60).rounded()
      #expect(AudioLevel(dbov: dbov).percent == Int(min(100, max(0, exact))), "\(dbov)")
    }
  }

  @Test func sharesOfFullScaleArePowersOfTen() {
    for dbov in -126...0 {
      let expected = pow(10, Double(dbov) / 20)
      #expect(abs(AudioLevel(dbov: dbov).linear - expected) < 1e-12 * expected + 1e-18)
      #expect(AudioLevel(linear: AudioLevel(dbov: dbov).linear).dbov == dbov)
    }
    #expect(AudioLevel.silence.linear == 0)
  }

  @Test(arguments: [
    (Double.nan, -127), (-1, -127), (0, -127), (1e-300, -127), (0.5, -6), (1, 0), (7, 0),
    (.infinity, 0), (0.94, -1), (0.95, 0),
  ])
  func anyShareHasALevel(share: Double, dbov: Int) {
    #expect(AudioLevel(linear: share).dbov == dbov)
  }

  @Test func theHeaderExtensionCarriesTheMagnitude() {
    #expect(AudioLevel(headerExtension: 0).dbov == 0)
    #expect(AudioLevel(headerExtension: 127) == .silence)
    // The top bit marks voice and is not part of the level.
    #expect(AudioLevel(headerExtension: 0x80 | 30).dbov == -30)
    #expect(AudioLevel(dbov: 9).dbov == 0)
    #expect(AudioLevel(dbov: -999) == .silence)
  }
}
