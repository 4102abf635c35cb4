import SCTP
import Testing
import Wire

/// Measures a saturated sender's throughput over a bottleneck that also loses packets at random.
struct GoodputTests {
  /// The path: a round trip of 50 ms, 1 % of the packets lost in each direction.
  private static let roundTrip = 0.05
  private static let loss = 0.01

  /// The throughput under random loss if each loss halves the congestion window, in bytes per
  /// second.
  ///
  /// It is a packet's bytes divided by the round trip, times the square root of (3/2 divided by the
  /// loss rate).
  private static let bound = 1160 / roundTrip * (1.5 / loss).squareRoot()

  /// The payload's share of a packet on the bottleneck: 1,144 of 1,160 bytes, plus 65 for DTLS, UDP
  /// and IP.
  private static let share = 1144.0 / (1160 + 65)

  /// Returns the payload that gets through a bottleneck, in bytes per second.
  private func goodput(rate: Int, seed: UInt64) -> Double {
    var link = Link(seed: seed, LinkQuality(loss: 1, rate: rate))
    link.connect { $1.offersInterleaving = false }
    let channel = link.open(0)
    let size = 16_384
    func fill() {
      while link.sides[0].bufferedAmount(of: channel) < 1 << 18 {
        link.step(0, .send(channel, binary: true, [UInt8](repeating: 7, count: size)))
      }
    }
    // The measurement starts after five seconds, so that slow start does not count.
    let seconds: Int64 = 60
    for _ in 0..<50 {
      fill()
      link.run(for: .milliseconds(100))
    }
    let before = link.seen[1].messages.count
    for _ in 0..<seconds * 10 {
      fill()
      link.run(for: .milliseconds(100))
    }
    return Double((link.seen[1].messages.count - before) * size) / Double(seconds)
  }

  private func mean(_ value: (UInt64) -> Double) -> Double {
    let seeds = 0..<4 as Range<UInt64>
    return seeds.map(value).reduce(0, +) / Double(seeds.count)
  }

  /// The rates go from half a megabit per second to ten.
  ///
  /// At two megabits per second, the bottleneck and the losses allow similar rates.
  @Test(arguments: [
    (60_000, 0.95), (125_000, 0.95), (250_000, 0.9), (500_000, 0.95), (1_250_000, 0.95),
  ])
  func goodputOnALossyPathReachesTheTheoreticalLimit(rate: Int, least: Double) {
    let possible = min(Double(rate) * GoodputTests.share, GoodputTests.bound)
    let mean = mean { goodput(rate: rate, seed: $0) }
    #expect(mean > least * possible, "\(mean) of \(possible) bytes per second")
  }

  /// Where the two limits are about equal, a window that each loss halves reaches neither of them.
  ///
  /// Half of the time the window is too small to fill the path; at other times it is larger than
  /// useful.
  @Test(arguments: [250_000, 312_500, 375_000])
  func whereTheBoundsMeetGoodputIsNearAnIdealSenders(rate: Int) {
    let ideal = mean { IdealSender.goodput(rate: rate, seed: $0) }
    let mean = mean { goodput(rate: rate, seed: $0) }
    #expect(mean > 0.95 * ideal, "\(mean) of \(ideal) bytes per second")
    // Even the ideal sender stays below both limits; at 312,500 bytes per second, by more than a
    // tenth.
    let possible = min(Double(rate) * GoodputTests.share, GoodputTests.bound)
    #expect(ideal < possible, "\(ideal) of \(possible) bytes per second")
    if rate == 312_500 { #expect(ideal < 0.9 * possible, "\(ideal) of \(possible)") }
  }
}
