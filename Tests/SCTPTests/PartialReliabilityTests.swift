import SCTP
import Testing
import Wire

struct PartialReliabilityTests {
  private static let kinds = [
    DataChannelInit(maxRetransmits: 0), DataChannelInit(ordered: false, maxRetransmits: 0),
    DataChannelInit(ordered: false, maxRetransmits: 1), DataChannelInit(maxPacketLifeTime: 100),
    DataChannelInit(ordered: false, maxPacketLifeTime: 100),
  ]

  @Test(arguments: kinds, [true, false])
  func onlyLostMessagesAreDropped(options: DataChannelInit, interleaving: Bool) {
    for seed in 0..<12 as Range<UInt64> {
      var link = Link(seed: seed, LinkQuality(loss: 15, jitter: .milliseconds(10)))
      link.connect { $1.offersInterleaving = interleaving }
      let lossy = link.open(0, options)
      let reliable = link.open(0)
      link.run(for: .seconds(5))
      for number in 0..<60 {
        let bytes = [UInt8(number)] + [UInt8](repeating: 9, count: number % 5 * 900)
        link.step(0, .send(lossy, binary: true, bytes))
        link.step(0, .send(reliable, binary: false, bytes))
        link.run(for: .milliseconds(20))
      }
      link.run(for: .seconds(120))
      let kept = link.seen[1].messages.filter { !$0.binary }.map { Int($0.bytes[0]) }
      #expect(kept == Array(0..<60), "seed \(seed)")
      let got = link.seen[1].messages.filter(\.binary).map { Int($0.bytes[0]) }
      if options.ordered { #expect(got == got.sorted(), "seed \(seed)") }
      #expect(Set(got).count == got.count, "seed \(seed)")
      #expect(!got.isEmpty, "seed \(seed): \(got.count)")
      // All messages that were not abandoned have arrived, and no message is pending.
      let lost = Int(link.sides[0].counters(of: lossy)?.messagesAbandoned ?? 0)
      #expect(got.count + lost >= 60, "seed \(seed)")
      #expect(link.sides[0].statistics.unacknowledgedChunks == 0, "seed \(seed)")
    }
  }

  @Test func anExpiredMessageIsNotSentAtAll() {
    var link = Link(seed: 1, LinkQuality(rate: 50_000))
    link.connect()
    let channel = link.open(0, DataChannelInit(maxPacketLifeTime: 50))
    link.run(for: .seconds(1))
    for _ in 0..<200 {
      link.step(0, .send(channel, binary: true, [UInt8](repeating: 0, count: 1000)))
    }
    link.run(for: .seconds(20))
    let received = link.seen[1].messages.count
    let lost = Int(link.sides[0].counters(of: channel)?.messagesAbandoned ?? 0)
    #expect(received < 60 && received + lost >= 200)
    #expect(link.sides[0].bufferedAmount(of: channel) == 0)
    link.send(0, channel, "still here")
    link.run(for: .seconds(5))
    #expect(link.seen[1].messages.last?.binary == false)
  }

  @Test func aPartlySentAbandonedMessageDoesNotBlockTheNext() {
    for interleaving in [true, false] {
      var link = Link(seed: 1, LinkQuality(rate: 100_000))
      link.connect { $1.offersInterleaving = interleaving }
      let channel = link.open(0, DataChannelInit(maxPacketLifeTime: 300))
      link.run(for: .seconds(1))
      link.step(0, .send(channel, binary: true, [UInt8](repeating: 0, count: 500_000)))
      link.run(for: .seconds(10))
      link.send(0, channel, "next")
      link.run(for: .seconds(10))
      #expect(link.seen[1].messages.map(\.binary) == [false])
      #expect(link.sides[0].statistics.unacknowledgedChunks == 0)
    }
  }
}
