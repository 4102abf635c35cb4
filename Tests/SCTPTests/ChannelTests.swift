import SCTP
import Testing
import Wire

struct ChannelTests {
  @Test func bothSidesConnectInAnyOrder() {
    for seed in 0..<50 as Range<UInt64> {
      var link = Link(seed: seed, LinkQuality(loss: 20, duplication: 20, jitter: .milliseconds(60)))
      link.connect()
      link.run(for: .seconds(20))
      #expect(link.seen[0].states == [.connecting, .connected], "seed \(seed)")
      #expect(link.seen[1].states == [.connecting, .connected], "seed \(seed)")
    }
  }

  @Test func packetsBeforeTheStartAreKept() {
    var link = Link()
    link.step(0, .start(SCTPParameters(isClient: true)))
    link.run(for: .milliseconds(100))
    link.step(1, .start(SCTPParameters(isClient: false)))
    link.run { $0.sides.allSatisfy { $0.state == .connected } }
    #expect(link.now < Instant.zero + .milliseconds(300))
  }

  @Test func channelsAreAnnouncedWithAllOptions() throws {
    var link = Link()
    let options = DataChannelInit(
      label: "Grüße", protocol: "chat.v1", ordered: false, maxRetransmits: 3, priority: .high)
    let early = link.open(0, options)
    link.connect()
    let late = link.open(1, DataChannelInit(label: "", maxPacketLifeTime: 250))
    link.run { $0.seen.allSatisfy { $0.announced.count == 1 } }
    var expected = options
    expected.id = 0
    #expect(link.sides[0].options(of: early) == expected)
    #expect(link.sides[1].options(of: try #require(link.seen[1].announced.first)) == expected)
    let other = link.sides[0].options(of: try #require(link.seen[0].announced.first))
    #expect(other?.id == 1)
    #expect(other?.maxPacketLifeTime == 250)
    #expect(link.sides[1].state(of: late) == .open)
  }

  @Test func messagesMayFollowTheAnnouncementImmediately() {
    for seed in 0..<30 as Range<UInt64> {
      var link = Link(seed: seed, LinkQuality(loss: 10, jitter: .milliseconds(30)))
      link.connect()
      let channel = link.open(0, DataChannelInit(ordered: false))
      for number in 0..<5 { link.send(0, channel, "\(number)") }
      link.run { $0.seen[1].messages.count >= 5 }
      #expect(link.seen[1].messages.count == 5, "seed \(seed)")
    }
  }

  @Test func negotiatedChannelsAreNotAnnounced() {
    var link = Link()
    let options = DataChannelInit(label: "both", negotiated: true, id: 7)
    let channels = [link.open(0, options), link.open(1, options)]
    link.connect()
    link.send(0, channels[0], "hello")
    link.run { $0.seen[1].messages.count == 1 }
    #expect(link.seen.allSatisfy { $0.announced.isEmpty && $0.opened.count == 1 })
    #expect(link.seen[1].messages.first?.channel == channels[1])
  }

  @Test func aHundredChannelsCloseAndFreeTheirStreams() {
    var link = Link(seed: 2, LinkQuality(loss: 10, jitter: .milliseconds(10)))
    link.connect()
    for round in 1...2 {
      var channels: [DataChannelNumber] = []
      for number in 0..<100 {
        channels.append(link.open(number % 2))
        link.send(number % 2, channels[number], "last words")
      }
      for number in 0..<100 { link.step(number % 2, .close(channels[number])) }
      link.run { $0.seen.allSatisfy { $0.closed.count == 100 * round } }
      #expect(link.seen.allSatisfy { $0.closed.count == 100 * round })
      // Messages sent before the end arrived.
      #expect(link.seen.map(\.messages.count) == [50 * round, 50 * round])
      #expect(link.sides.allSatisfy { $0.channelNumbers.isEmpty })
    }
    let next = link.open(0)
    #expect(link.sides[0].options(of: next)?.id == 0)
  }

  @Test func aChannelClosesWithoutWaitingForADelayedAcknowledgement() {
    var link = Link(LinkQuality(delay: .milliseconds(1)))
    link.connect()
    let channel = link.open(0)
    link.send(0, channel, "a question")
    link.run { $0.seen[1].messages.count == 1 }
    link.send(1, link.seen[1].announced[0], "an answer")
    link.run { $0.seen[0].messages.count == 1 }
    // The remote side resets its own stream once it knows that its response has arrived.
    link.step(0, .close(channel))
    link.run(for: .milliseconds(20))
    #expect(link.seen.allSatisfy { $0.closed.count == 1 })
  }

  @Test func aStreamStartsOverAfterItsReset() {
    var link = Link()
    link.connect()
    for round in 1...3 {
      let channel = link.open(0)
      link.send(0, channel, "\(round)")
      link.step(0, .close(channel))
      link.run { $0.seen.allSatisfy { $0.closed.count == round } }
    }
    #expect(link.seen[1].messages.map(\.bytes) == ["1", "2", "3"].map { Array($0.utf8) })
  }

  @Test func theFallingBufferedAmountIsReportedOnce() {
    var link = Link()
    link.connect()
    let channel = link.open(0)
    link.run(for: .seconds(1))
    link.step(0, .setBufferedAmountLowThreshold(channel, 10_000))
    for _ in 0..<50 {
      link.step(0, .send(channel, binary: true, [UInt8](repeating: 1, count: 4000)))
    }
    let amount = link.sides[0].bufferedAmount(of: channel)
    #expect(amount > 150_000 && amount < 200_000)
    link.run { $0.seen[1].messages.count == 50 }
    #expect(link.seen[0].low == [channel])
    #expect(link.sides[0].counters(of: channel)?.bytesSent == 200_000)
  }

  @Test func refusalsStateTheReason() {
    var link = Link()
    #expect(link.sides[0].refusal(ofSending: 1, on: DataChannelNumber(0)) == .notOpen)
    link.connect { $1.remoteMaximumMessageSize = 1000 }
    let channel = link.open(0)
    #expect(link.sides[0].refusal(ofSending: 1001, on: channel) == .tooLarge(maximum: 1000))
    #expect(link.sides[0].refusal(ofSending: 1000, on: channel) == nil)
    #expect(link.sides[0].refusal(ofOpening: DataChannelInit(negotiated: true)) == .malformed)
    #expect(link.sides[0].refusal(ofOpening: DataChannelInit(id: 0)) == .noStream)
    #expect(link.sides[0].refusal(ofOpening: DataChannelInit(id: 65535)) == .malformed)
    link.step(0, .abort)
    #expect(link.sides[0].refusal(ofOpening: DataChannelInit()) == .closed)
  }

  @Test func bytesAreSharedByPriority() {
    var link = Link(seed: 1, LinkQuality(rate: 200_000))
    link.connect()
    let low = link.open(0, DataChannelInit(label: "low", priority: .low))
    let high = link.open(0, DataChannelInit(label: "high", priority: .high))
    for channel in [low, high] {
      for _ in 0..<200 {
        link.step(0, .send(channel, binary: true, [UInt8](repeating: 0, count: 1000)))
      }
    }
    link.run { $0.seen[1].messages.count >= 150 }
    // The first congestion window was filled by the first channel alone.
    let names = link.seen[1].messages[50..<150].map {
      link.sides[1].options(of: $0.channel)?.label ?? ""
    }
    let share = names.filter { $0 == "high" }.count
    #expect((75...85).contains(share), "\(share) of 100")
  }

  @Test(arguments: [true, false])
  func interleavedSmallMessagesDoNotWaitForLargeOnes(interleaving: Bool) {
    var link = Link(seed: 1, LinkQuality(rate: 1_000_000, queue: .seconds(1)))
    link.connect { $1.offersInterleaving = interleaving }
    let bulk = link.open(0)
    let chat = link.open(0)
    link.run(for: .seconds(1))
    link.step(0, .send(bulk, binary: true, [UInt8](repeating: 0, count: 500_000)))
    link.send(0, chat, "quick")
    link.run { $0.seen[1].messages.count == 2 }
    #expect((link.seen[1].messages.first?.binary == false) == interleaving)
  }

  @Test func shutdownDeliversEverythingFirst() {
    var link = Link(seed: 4, LinkQuality(loss: 10))
    link.connect()
    let channel = link.open(0)
    for number in 0..<50 { link.send(0, channel, "\(number)") }
    link.step(0, .shutdown)
    link.run { $0.sides.allSatisfy { $0.state == .closed } }
    #expect(link.seen[1].messages.count == 50)
    #expect(link.seen.allSatisfy { $0.states.last == .closed && $0.closed.count == 1 })
    #expect(link.seen[0].failures + link.seen[1].failures == [])
    #expect(link.sides.allSatisfy { $0.deadline == nil })
  }

  @Test func abortEndsBothSides() {
    var link = Link()
    link.connect()
    _ = link.open(0)
    link.run(for: .seconds(1))
    link.step(1, .abort)
    link.run { $0.sides.allSatisfy { $0.state == .closed } }
    #expect(link.seen.allSatisfy { $0.closed.count == 1 && $0.failures.isEmpty })
  }

  @Test func aSilentPeerEndsTheAssociation() {
    var link = Link()
    link.connect()
    let channel = link.open(0)
    link.tamper = { _, _, _ in nil }
    link.send(0, channel, "anyone?")
    link.run { $0.sides[0].state == .closed }
    #expect(link.seen[0].failures == ["the peer acknowledges nothing"])
    #expect(link.now > Instant.zero + .seconds(30))
  }

  @Test func aRecoveredPathIsUsedSoon() {
    var link = Link()
    link.connect()
    let channel = link.open(0)
    link.tamper = { _, _, _ in nil }
    link.send(0, channel, "later")
    link.run(for: .seconds(30))
    link.tamper = nil
    let back = link.now
    link.run { $0.seen[1].messages.count == 1 }
    #expect(link.now - back < .seconds(6))
  }
}
