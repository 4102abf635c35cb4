import Testing
import Wire

@testable import Media

struct StreamThinnerTests {
  private struct Sent {
    var key: [Int] = []
    var all: [Int] = []
    var bits = 0
  }

  /// Feeds video frames at 25 per second, with a key frame every second.
  ///
  /// - Parameters:
  ///   - bytes: the size of a video frame; key frames have `keyBytes`.
  ///   - hasFree: whether every second frame is one that no other frame refers to.
  private func film(
    _ thinner: inout StreamThinner, from second: Int = 0, seconds: Int, bytes: Int,
    keyBytes: Int? = nil, hasFree: Bool = false, limit: UInt64?
  ) -> Sent {
    var sent = Sent()
    for number in second * 25..<(second + seconds) * 25 {
      let isKey = number % 25 == 0
      let size = isKey ? keyBytes ?? bytes : bytes
      let isAdmitted = thinner.admits(
        byteCount: size, isKey: isKey, isReference: !hasFree || number % 2 == 0, limit: limit,
        at: .zero + .milliseconds(Int64(number) * 40))
      guard isAdmitted else { continue }
      sent.all.append(number)
      if isKey { sent.key.append(number) }
      sent.bits += size * 8
    }
    return sent
  }

  @Test func withoutALimitEverythingIsSent() {
    var thinner = StreamThinner()
    #expect(film(&thinner, seconds: 10, bytes: 1 << 20, limit: nil).all.count == 250)
  }

  @Test func aMeanRateBelowTheLimitIsSentWholeWithLargeKeyFrames() {
    var thinner = StreamThinner()
    // Each second has a key frame of 25 kB and 24 kB of other frames, which is 392 kbit/s.
    let sent = film(&thinner, seconds: 30, bytes: 1_000, keyBytes: 25_000, limit: 400_000)
    #expect(sent.all.count == 750)
  }

  @Test func excessFramesAreDroppedUpToAKeyFrame() {
    var thinner = StreamThinner()
    // Video of 2 Mbit/s over a path of 500 kbit/s.
    let sent = film(&thinner, seconds: 60, bytes: 10_000, limit: 500_000)
    #expect(sent.bits <= 60 * 500_000 + 2 * 500_000 + 80_000)
    #expect(sent.bits > 60 * 400_000)
    #expect(sent.key.count > 5)
    // The first frame after a gap is a key frame.
    for (one, next) in zip(sent.all, sent.all.dropFirst()) where next != one + 1 {
      #expect(next % 25 == 0)
    }
  }

  @Test func unreferencedVideoFramesAreDroppedFirst() {
    var thinner = StreamThinner()
    // Half of the video frames fit: the ones that other frames need.
    let sent = film(&thinner, seconds: 20, bytes: 2_000, hasFree: true, limit: 220_000)
    let needed = sent.all.filter { $0 % 25 == 0 || $0 % 2 == 0 }
    #expect(needed.count == 20 * 25 / 2 + 10)
    #expect(sent.all.count < 20 * 25 * 3 / 4)
  }

  @Test func removingTheLimitResumesAtAKeyFrame() {
    var thinner = StreamThinner()
    let full = film(&thinner, seconds: 3, bytes: 100_000, limit: 500_000)
    #expect(full.all.count < 10 && thinner.waitsForKey)
    // Frame 75 is the next key frame, from which everything is sent.
    let free = film(&thinner, from: 3, seconds: 2, bytes: 100_000, limit: nil)
    #expect(free.all == Array(75..<125))
  }
}
