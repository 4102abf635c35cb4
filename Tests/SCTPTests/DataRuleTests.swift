import Testing
import Wire

@testable import SCTP

/// Tests rules about data, acknowledgements and streams that well-behaved peers never violate.
struct DataRuleTests {
  private func connected(interleaving: Bool = false) -> Link {
    var link = Link()
    link.connect { $1.offersInterleaving = interleaving }
    return link
  }

  /// Returns the number of the next DATA chunk to a side.
  private func next(_ side: SCTPAssociation) -> UInt32 {
    side.receiver.numbers.acknowledged &+ 1
  }

  @Test func theFirstPacketIsAcknowledgedImmediatelyAndThenEverySecond() {
    var link = connected()
    let first = next(link.sides[1])
    let types = (0..<3 as Range<UInt32>).map { offset in
      Crafted.answer(
        &link.sides[1], to: [Crafted.data(first &+ offset, stream: 0, [1])], at: link.now
      ).map(\.type)
    }
    #expect(types == [[.selectiveAcknowledgement], [], [.selectiveAcknowledgement]])
  }

  @Test func anOpeningWindowIsReportedImmediately() {
    var link = Link()
    link.connect {
      $1.offersInterleaving = false
      $1.receiveWindow = 4000
    }
    let first = next(link.sides[1])
    // A message in four parts; the third one leaves less than a packet in the window.
    let windows = [2, 0, 0, 1].enumerated().map { index, flags -> UInt32? in
      var part = Crafted.data(
        first &+ UInt32(index), stream: 0, kind: 53, [UInt8](repeating: 0, count: 1100))
      part.flags = UInt8(flags)
      let replies = Crafted.answer(&link.sides[1], to: [part], at: link.now)
      return replies.first.flatMap {
        var reader = ByteReader($0.body.span.bytes)
        try? reader.skip(4)
        return try? reader.uint32()
      }
    }
    #expect(windows == [2900, nil, 700, 4000])
  }

  @Test func acknowledgingUnsentDataEndsTheAssociation() {
    for gap in [[], Crafted.words(2, 9)] {
      var link = connected()
      let channel = link.open(0)
      for _ in 0..<3 { link.send(0, channel, "x") }
      // Acknowledges a number above the last one sent, or one far above it in a gap block.
      let last = link.sides[0].sender.sent.nextNumber &- 1
      let cumulative = gap.isEmpty ? last &+ 1 : last &- 2
      let body =
        Crafted.words(long: cumulative, 65536) + Crafted.words(UInt16(gap.count / 4), 0) + gap
      let replies = Crafted.answer(
        &link.sides[0], to: [.init(type: .selectiveAcknowledgement, body: body)], at: link.now)
      #expect(replies.map(\.type) == [.abort])
      #expect(replies.first?.body.prefix(2) == [0, 13])
      #expect(link.sides[0].state == .closed)
    }
  }

  @Test func emptyDataEndsTheAssociationAndNamesTheTSN() {
    var link = connected()
    let number = next(link.sides[1])
    let replies = Crafted.answer(
      &link.sides[1], to: [Crafted.data(number, stream: 0, [])], at: link.now)
    #expect(replies.map(\.type) == [.abort])
    #expect(replies.first?.body == Crafted.words(9, 8) + Crafted.words(long: number))
  }

  @Test func dataOnAMissingStreamIsReportedAndAcknowledged() {
    var link = connected()
    let number = next(link.sides[1])
    let replies = Crafted.answer(
      &link.sides[1], to: [Crafted.data(number, stream: 65535, [1])], at: link.now)
    #expect(replies.map(\.type) == [.error, .selectiveAcknowledgement])
    #expect(replies.first?.body == Crafted.words(1, 8, 65535, 0))
    #expect(link.sides[1].receiver.numbers.acknowledged == number)
  }

  @Test func dataOfTheWrongKindEndsTheAssociation() {
    for interleaving in [true, false] {
      var link = connected(interleaving: interleaving)
      var chunk = Crafted.data(next(link.sides[1]), stream: 0, [1, 2, 3, 4, 5])
      if !interleaving { chunk.type = .interleavedData }
      let replies = Crafted.answer(&link.sides[1], to: [chunk], at: link.now)
      #expect(replies.map(\.type) == [.abort])
      #expect(link.sides[1].state == .closed)
    }
  }

  @Test func aPeerMayAddStreamsUpToTheMaximum() {
    var link = Link()
    // The first side announces 100 streams to the second.
    link.tamper = { side, bytes, _ in
      guard side == 0, bytes[12] == 1 || bytes[12] == 2 else { return bytes }
      var changed = bytes
      changed.replaceSubrange(24..<26, with: [0, 100])
      return Crafted.sealed(changed)
    }
    link.connect { $1.offersInterleaving = false }
    link.tamper = nil
    #expect(link.sides[1].receiver.streamCount == 100)
    let first = link.sides[1].channels.resets.expectedRequest
    let asked: [(UInt16, result: UInt32, UInt16)] = [(28, 1, 128), (65500, 2, 128), (2, 1, 130)]
    for (index, (more, result, count)) in asked.enumerated() {
      let number = first &+ UInt32(index)
      let body = Crafted.words(17, 12) + Crafted.words(long: number) + Crafted.words(more, 0)
      let request = Crafted.Chunk(type: .reconfiguration, body: body)
      // The peer sends the request twice. It gets the same answer twice, but the request is carried
      // out once.
      for _ in 0..<2 {
        let replies = Crafted.answer(&link.sides[1], to: [request], at: link.now)
        #expect(replies.first?.body == Crafted.words(16, 12) + Crafted.words(long: number, result))
        #expect(link.sides[1].receiver.streamCount == count)
      }
    }
  }

  @Test func anUnusableAnnouncementClosesTheChannelWithoutAnAnswer() {
    let good = ChannelMessage.open(DataChannelInit(label: "a")).bytes
    var bad = good
    bad[1] = 9  // no channel type
    // Side 1 is the DTLS server, so the peer's streams are even.
    for (stream, bytes) in [(3 as UInt16, good), (4, bad), (4, Array(good.prefix(8)))] {
      var link = connected()
      let number = next(link.sides[1])
      let replies = Crafted.answer(
        &link.sides[1], to: [Crafted.data(number, stream: stream, kind: 50, bytes)], at: link.now)
      #expect(replies.map(\.type) == [.selectiveAcknowledgement, .reconfiguration])
      // The request's only stream, and padding.
      #expect(replies.last?.body.suffix(4) == Crafted.words(stream, 0)[...])
      #expect(link.sides[1].channelNumbers.isEmpty)
    }
  }

  @Test func aChannelAnnouncedTwiceIsClosed() {
    var link = connected()
    let channel = link.open(0, DataChannelInit(label: "twice"))
    link.run(for: .seconds(1))
    let there = link.seen[1].announced[0]
    let number = link.sides[0].sender.sent.nextNumber
    let again = ChannelMessage.open(DataChannelInit(label: "twice")).bytes
    let replies = Crafted.answer(
      &link.sides[1],
      to: [Crafted.data(number, stream: 0, sequence: 1, kind: 50, again)], at: link.now)
    #expect(replies.contains { $0.type == .reconfiguration })
    #expect(link.sides[1].state(of: there) == .closing)
    #expect(link.sides[0].state(of: channel) == .open)
  }

  @Test func afterATimeoutOnePacketIsInFlightUntilAnAcknowledgement() {
    var link = connected()
    let channel = link.open(0)
    link.run(for: .seconds(1))
    for _ in 0..<40 { link.send(0, channel, String(repeating: "x", count: 300)) }
    var lost: [Instant: Int] = [:]
    withoutActuallyEscaping({ (side: Int, _: [UInt8], now: Instant) -> [UInt8]? in
      if side == 0 { lost[now, default: 0] += 1 }
      return nil
    }) { lose in
      link.tamper = lose
      link.run(for: .seconds(4))
      link.tamper = nil
    }
    #expect(link.sides[0].statistics.timeouts >= 3)
    #expect(lost.count >= 3 && lost.values.allSatisfy { $0 == 1 }, "\(lost)")
    link.run { $0.seen[1].messages.count == 40 }
    #expect(link.seen[1].messages.count == 40)
  }

  @Test func largeMessagesFillThePackets() {
    var link = connected()
    let channel = link.open(0)
    link.run(for: .seconds(1))
    var sizes: [Int] = []
    withoutActuallyEscaping({ (side: Int, bytes: [UInt8], _: Instant) -> [UInt8]? in
      if side == 0, bytes[12] == 0 { sizes.append(bytes.count) }
      return bytes
    }) { watch in
      link.tamper = watch
      for _ in 0..<20 {
        link.step(0, .send(channel, binary: true, [UInt8](repeating: 1, count: 16_384)))
      }
      link.run { $0.seen[1].messages.count == 20 }
      link.tamper = nil
    }
    // A remainder of less than 144 bytes is left unused.
    let full = sizes.filter { $0 > 1160 - 144 }.count
    #expect(full >= sizes.count - 4, "\(sizes.count - full) of \(sizes.count) are not full")
  }

  @Test func duringRecoveryAnAdvancingCumulativeTSNCountsAllMisses() {
    var link = connected()
    let channel = link.open(0)
    // The window grows until ten packets fit.
    for _ in 0..<60 {
      link.step(0, .send(channel, binary: true, [UInt8](repeating: 0, count: 1100)))
    }
    link.run { $0.sides[0].statistics.unacknowledgedChunks == 0 }
    link.tamper = { _, _, _ in nil }
    let first = link.sides[0].sender.sent.nextNumber
    for _ in 0..<10 {
      link.step(0, .send(channel, binary: true, [UInt8](repeating: 0, count: 1100)))
    }
    #expect(link.sides[0].sender.sent.count == 10)
    // Delivers a SACK with a cumulative TSN, counted from the first chunk, and gap blocks; returns
    // which chunks are retransmitted.
    func acknowledge(_ cumulative: Int, _ gaps: [UInt16]) -> [UInt32] {
      let number = first &+ UInt32(truncatingIfNeeded: cumulative)
      let body =
        Crafted.words(long: number, 65536) + Crafted.words(UInt16(gaps.count / 2), 0)
        + gaps.flatMap { Crafted.words($0) }
      let replies = Crafted.answer(
        &link.sides[0], to: [.init(type: .selectiveAcknowledgement, body: body)], at: link.now)
      return replies.filter { $0.type == .data }.map {
        var reader = ByteReader($0.body.span.bytes)
        return ((try? reader.uint32()) ?? 0) &- first
      }
    }
    #expect(acknowledge(-1, [2, 2]) == [])
    #expect(acknowledge(-1, [2, 3]) == [])
    // This is the third report that the first chunk is missing, and the first report that the
    // fourth chunk is missing.
    #expect(acknowledge(-1, [2, 3, 5, 5]) == [0])
    // The first chunk has arrived. This is the second report that the fourth chunk is missing,
    // although no later chunk is newly acknowledged.
    #expect(acknowledge(2, [2, 2]) == [])
    #expect(acknowledge(2, [2, 3]).first == 3)
  }
}
