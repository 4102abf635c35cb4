import Lab
import Peer
import SCTP
import Testing
import Wire

/// Measures the full stack's throughput over a bottleneck with a round trip of 50 ms and 1 % loss.
struct DataGoodputTests {
  /// The throughput under random loss if each loss halves the congestion window, in bits per
  /// second.
  ///
  /// It is a packet's bits divided by the round trip, times the square root of (3/2 divided by the
  /// loss rate).
  private static let bound = 8 * 1160 / 0.05 * (1.5 / 0.01).squareRoot()
  /// The payload's share of a datagram, without 20 and 12 bytes of SCTP headers, 37 of the DTLS
  /// record, and 28 of UDP and IP.
  private static let share = 1128.0 / (1160 + 37 + 28)

  @Test(arguments: [500_000, 1_000_000, 2_000_000, 4_000_000, 10_000_000] as [UInt64])
  func theBottleneckOrTheTheorySetsTheRate(bitsPerSecond: UInt64) {
    var link = LinkSettings()
    link.delay = .milliseconds(25)
    link.lossPerMille = 10
    link.bitsPerSecond = bitsPerSecond
    link.queueLimit = .milliseconds(100)
    let call = DataChannelTests.call(seed: 40, link: link)
    let size = 16_384
    var isReady = true
    func pass(_ interval: Interval) {
      let end = call.now + interval
      while call.now < end {
        if isReady { call.send(0, channel: 0, bytes: [UInt8](repeating: 7, count: size)) }
        call.run(for: .milliseconds(10))
        if case .dataChannels(let channels) = call.call(0, .dataChannels) {
          isReady = channels.allSatisfy { $0.bufferedAmount < 1 << 18 }
        }
      }
    }
    pass(.seconds(3))
    let before = call.messages(of: 1).count
    pass(.seconds(20))
    let goodput = Double((call.messages(of: 1).count - before) * size * 8) / 20
    let possible = min(Double(bitsPerSecond) * DataGoodputTests.share, DataGoodputTests.bound)
    #expect(goodput > 0.9 * possible, "\(goodput) of \(possible) bits per second")
  }
}
