import RTP
import Testing
import Wire

@testable import Flow

struct PartsTests {
  // MARK: - Counting

  @Test func lossAndFractionFollowTheStandard() throws {
    var reception = ReceptionStatistics()
    // 65530 to 9, without 65533 and 3, and with 5 twice.
    for number in Array(65_530...65_545) where number != 65_533 && number != 65_539 {
      let sequence = UInt16(truncatingIfNeeded: number)
      #expect(receive(&reception, sequence) == Int64(number))
    }
    _ = receive(&reception, 5)
    #expect(reception.lost == 1)
    var block = reception.report(ssrc: 1, lastReport: 0, delay: 0)
    #expect(block.cumulativeLost == 1)
    #expect(block.fractionLost == 16)
    #expect(block.highestSequence == 0x1_0009)
    block = reception.report(ssrc: 1, lastReport: 0, delay: 0)
    #expect(block.fractionLost == 0)
  }

  @Test func aSequenceJumpIsAcceptedOnlyWithAConsecutivePacket() {
    var reception = ReceptionStatistics()
    #expect(receive(&reception, 100) == 100)
    #expect(receive(&reception, 20_000) == nil)
    #expect(receive(&reception, 101) == 101)
    #expect(receive(&reception, 30_000) == nil)
    #expect(receive(&reception, 30_001) == 30_001)
    #expect(receive(&reception, 30_002) == 30_002)
    #expect(receive(&reception, 10) == nil)
    #expect(receive(&reception, 11) == Int64(65_547))
    #expect(reception.lost == 0)
  }

  @Test func jitterIsSmoothedBySixteenths() {
    var reception = ReceptionStatistics()
    // Transit times alternate by 10 ms, which is 900 clock units; the jitter approaches this value.
    for index in 0..<400 {
      let late = index % 2 == 0 ? 0 : 10
      _ = reception.receive(
        UInt16(index), timestamp: UInt32(index) * 1800, clockRate: 90_000,
        arrival: .zero + .milliseconds(Int64(index * 20 + late)))
    }
    #expect((880...900).contains(reception.jitter))
  }

  @Test func theWindowDistinguishesNewFromSeen() {
    var window = SequenceWindow()
    #expect(window.insert(10) == .new)
    #expect(window.insert(12) == .new)
    #expect(window.insert(11) == .new)
    #expect(window.insert(11) == .duplicate)
    #expect(window.insert(5) == .new)
    #expect(window.insert(-3) == .new)
    #expect(window.insert(-3) == .duplicate)
    #expect(window.insert(12 + 2047) == .new)
    #expect(window.insert(12) == .duplicate)
    #expect(window.insert(11) == .old)
    #expect(window.insert(13) == .new)
    #expect(window.insert(100_000) == .new)
    #expect(window.insert(99_999) == .new)
  }

  // MARK: - Retransmission requests

  @Test func aGapIsRequestedAfterThreePacketsOrSomeTime() {
    var missing = MissingPackets()
    missing.canRequest = true
    var now = Instant.zero
    func demand() -> [UInt16] { missing.demand(at: now, spacing: .milliseconds(100)).requested }
    #expect(missing.receive(1, at: now) == true)
    #expect(missing.receive(3, at: now) == true)
    #expect(missing.due == now + .milliseconds(10))
    #expect(demand().isEmpty)
    #expect(missing.receive(4, at: now) == true)
    #expect(demand().isEmpty)
    #expect(missing.receive(5, at: now) == true)
    #expect(demand() == [2])
    now += .milliseconds(99)
    #expect(demand().isEmpty)
    now += .milliseconds(1)
    #expect(demand() == [2])
    #expect(missing.receive(2, at: now) == true)
    #expect(missing.due == nil)
    #expect(missing.receive(8, at: now) == true)
    now += .milliseconds(10)
    #expect(demand() == [6, 7])
  }

  @Test(arguments: [(Int64(20), 10), (100, 10), (400, 5), (1500, 3)])
  func aPacketThatNeverArrivesIsAbandoned(spacing: Int64, expected: Int) {
    var missing = MissingPackets()
    missing.canRequest = true
    _ = missing.receive(1, at: .zero)
    _ = missing.receive(4, at: .zero)
    var tries = 0
    var abandoned: Int64?
    while abandoned == nil, let due = missing.due {
      let demand = missing.demand(at: due, spacing: .milliseconds(spacing))
      if !demand.requested.isEmpty { tries += 1 }
      abandoned = demand.abandoned
    }
    #expect(tries == expected)
    #expect(abandoned == 3)
    #expect(missing.oldest == nil && missing.due == nil)
  }

  @Test func tooManyMissingPacketsAreRefused() {
    var missing = MissingPackets()
    missing.canRequest = true
    #expect(missing.receive(1, at: .zero) == true)
    #expect(missing.receive(600, at: .zero) == true)
    #expect(missing.receive(1200, at: .zero) == false)
  }

  // MARK: - The path

  @Test func feedbackIsMatchedWithSentPackets() {
    var log = SentLog()
    for sequence in Int64(65_530)..<65_550 {
      log.append(sequence, bytes: 100, at: .zero + .milliseconds(sequence))
    }
    let arrivals: [TransportFeedback.Arrival] = [0, 1, 3, 9].map { (offset: UInt16) in
      TransportFeedback.Arrival(offset: offset, ticks: Int32(offset))
    }
    var feedback = TransportFeedback(
      senderSSRC: 1, mediaSSRC: 2, base: 65_530, count: 10, reference: 0x7f_ffff, number: 0,
      arrivals: arrivals)
    var news = log.news(in: feedback)
    #expect(news.arrived.count == 4 && news.lostCount == 6)
    // Repeated feedback has no effect. If it reports that a packet arrived late, the arrival is
    // new, but the packet's loss is not undone.
    feedback.arrivals.append(.init(offset: 5, ticks: 12))
    news = log.news(in: feedback)
    #expect(news.arrived.count == 1 && news.lostCount == 0)
    // The reference time wraps around; the sequence number already has.
    feedback.base = 4
    feedback.reference = -0x80_0000
    feedback.count = 2
    feedback.arrivals = [.init(offset: 1, ticks: 4)]
    news = log.news(in: feedback)
    #expect(news.arrived.map(\.sentAt) == [.zero + .milliseconds(65_541)])
    #expect(news.arrived.map(\.arrivalTicks) == [0x8000_0004])
    #expect(news.lostCount == 1)
    // Feedback about packets that were never sent is ignored.
    feedback.base = 40_000
    news = log.news(in: feedback)
    #expect(news.arrived.isEmpty)
  }

  @Test func growingQueuesAreDetected() {
    for (drift, expected) in [(0.0, DelayTrend.Signal.steady), (0.3, .growing)] {
      var trend = DelayTrend()
      var signals: Set<DelayTrend.Signal> = []
      for index in 0..<200 {
        let sent = Int64(index * 10)
        trend.receive(
          SentLog.Acknowledged(
            sentAt: .zero + .milliseconds(sent),
            arrivalTicks: Int64(Double(sent) * 4 * (1 + drift)), bytes: 1000))
        signals.insert(trend.signal)
      }
      #expect(trend.signal == expected)
      #expect(signals.contains(.growing) == (expected == .growing))
    }
  }

  @Test func arrivalsFarApartAreReportedSeparately() {
    var log = ArrivalLog()
    let times: [Int64] = [0, 1, 9000, 9001]
    for (index, time) in times.enumerated() {
      let at = Instant.zero + .milliseconds(time)
      log.receive(UInt16(truncatingIfNeeded: 65_534 + index), arrival: at, at: at)
    }
    let feedbacks = log.report(senderSSRC: 1, mediaSSRC: 2)
    #expect(feedbacks.map(\.base) == [65_534, 0])
    #expect(feedbacks.map(\.number) == [0, 1])
    var ticks: [Int64] = []
    for feedback in feedbacks {
      for arrival in feedback.arrivals {
        ticks.append(Int64(feedback.reference) * 256 + Int64(arrival.ticks))
      }
    }
    #expect(ticks == times.map { $0 * 4 })
    #expect(log.due == nil)
    let rest = log.report(senderSSRC: 1, mediaSSRC: 2)
    #expect(rest.isEmpty)
    // A gap before the next packet is reported as missing.
    log.receive(5, arrival: .zero + .seconds(10), at: .zero + .seconds(10))
    let next = log.report(senderSSRC: 1, mediaSSRC: 2)
    #expect(next.map(\.base) == [2] && next.map(\.count) == [4])
    #expect(next.first?.arrivals.map(\.offset) == [3])
  }

  private func receive(_ reception: inout ReceptionStatistics, _ sequence: UInt16) -> Int64? {
    reception.receive(sequence, timestamp: 0, clockRate: 90_000, arrival: .zero)
  }
}
