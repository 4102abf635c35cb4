import DequeModule
import Testing
import Wire

@testable import SCTP

/// Tests each of the association's parts that manage times and numbers.
struct PartTests {
  private let second = Interval.seconds(1)

  // MARK: Timers

  @Test func theEarliestTimerIsNextAndSimultaneousOnesAreOrdered() {
    var timers = TimerTable()
    #expect(timers.next == nil)
    let now = Instant.zero + second
    for timer in SCTPTimer.allCases.reversed() { timers.arm(timer, at: now) }
    timers.arm(.heartbeat, at: .zero)
    #expect(timers.next == .zero)
    #expect(SCTPTimer.allCases.filter { timers.isDue($0, at: .zero) } == [.heartbeat])
    #expect(
      SCTPTimer.allCases.filter { timers.isDue($0, at: now) } == [
        .initiation, .acknowledgement, .retransmission, .reset, .heartbeat, .shutdown,
      ])
    timers.cancel(.heartbeat)
    #expect(timers.next == now && timers[.heartbeat] == nil)
    timers.armIfIdle(.initiation, at: .zero)
    #expect(timers[.initiation] == now)
    timers.arm(.initiation, at: now + second)
    #expect(timers[.initiation] == now + second)
    timers.cancelAll()
    #expect(timers.next == nil)
  }

  // MARK: Round trips

  @Test func theTimeoutFollowsTheMeasurements() {
    var trip = RoundTrip()
    #expect(trip.smoothed == nil && trip.timeout == .milliseconds(500))
    // The first measurement R: SRTT = R, RTTVAR = R / 2, RTO = SRTT + 4 * RTTVAR.
    trip.measure(.milliseconds(200))
    #expect(trip.smoothed == .milliseconds(200) && trip.timeout == .milliseconds(600))
    // RTTVAR = 3/4 * 100 + 1/4 * 80 = 95; SRTT = 7/8 * 200 + 1/8 * 280 = 210.
    trip.measure(.milliseconds(280))
    #expect(trip.smoothed == .milliseconds(210) && trip.timeout == .milliseconds(590))
    trip.backOff()
    #expect(trip.timeout == .milliseconds(1180))
    for _ in 0..<5 { trip.backOff() }
    #expect(trip.timeout == .seconds(5))
    trip.settle()
    #expect(trip.timeout == .milliseconds(590))
    for _ in 0..<60 { trip.measure(.milliseconds(20)) }
    #expect(trip.timeout == .milliseconds(400))
  }

  @Test func retransmittedChunksAreNotMeasured() {
    var trip = RoundTrip()
    trip.begin(7, at: .zero)
    trip.begin(8, at: .zero)
    #expect(trip.timedNumber == 7)
    trip.finish(8, transmissions: 1, at: .zero + second)
    #expect(trip.timedNumber == 7 && trip.smoothed == nil)
    trip.finish(7, transmissions: 2, at: .zero + second)
    #expect(trip.timedNumber == nil && trip.smoothed == nil)
    trip.begin(9, at: .zero)
    trip.finish(9, transmissions: 1, at: .zero + second)
    #expect(trip.smoothed == second)
  }

  // MARK: Sent chunks

  private func chunk(_ number: UInt32, message: UInt64 = 0, stream: UInt16 = 0) -> SentChunk {
    SentChunk(
      bytes: [1], offset: 0, count: 1, size: 100, message: message, channel: 0, stream: stream,
      flags: [.beginning, .end], payloadProtocol: .binary, order: UInt32(message), part: 0,
      limits: MessageLimits(), strikeFloor: number &+ 1)
  }

  private func sent(_ count: UInt32, from first: UInt32) -> SentChunks {
    var sent = SentChunks(firstNumber: first)
    for index in 0..<count { sent.append(chunk(first &+ index, message: UInt64(index))) }
    return sent
  }

  @Test func gapReportsRemoveChunksFromTheFlight() {
    var sent = sent(6, from: .max - 2)
    #expect(sent.flight == 600 && sent.nextNumber == 3)
    var trip = RoundTrip()
    var progress = SentChunks.Progress()
    sent.acknowledgeFirst(1, at: .zero, &trip, &progress)
    let blocks = Crafted.words(2, 2, 4, 5)
    var reader = ByteReader(blocks.span.bytes)
    let isPossible = sent.acknowledge(gaps: 2, &reader, at: .zero, &trip, &progress)
    #expect(isPossible && progress.bytes == 400 && progress.advanced)
    #expect(progress.newest == 2 && progress.highest == 2)
    #expect(sent.flight == 200 && sent.firstNumber == .max - 1 && sent.isConsistent)
    let fates: [SentChunk.Fate] = [
      .outstanding, .acknowledged, .outstanding, .acknowledged, .acknowledged,
    ]
    #expect(sent.chunks.map(\.fate) == fates)
  }

  @Test func gapReportsAboutUnsentChunksAreInvalid() {
    var sent = sent(3, from: 10)
    var trip = RoundTrip()
    var progress = SentChunks.Progress()
    let blocks = Crafted.words(2, 4)
    var reader = ByteReader(blocks.span.bytes)
    let isPossible = sent.acknowledge(gaps: 1, &reader, at: .zero, &trip, &progress)
    #expect(!isPossible && sent.flight == 300)
    let half: [UInt8] = [0, 2]
    var cut = ByteReader(half.span.bytes)
    let isTaken = sent.acknowledge(gaps: 1, &cut, at: .zero, &trip, &progress)
    #expect(isTaken && progress.isCutOff)
  }

  @Test func threeMissesAreALossAndLostChunksAreInOrder() {
    var sent = sent(4, from: 0)
    let strikes = (0..<3).map { _ in sent.strike(at: 1, by: 3) }
    #expect(strikes == [false, false, true])
    sent.lose(at: 1)
    sent.lose(at: 0)
    #expect(sent.lostCount == 2 && sent.flight == 200)
    let first = sent.firstLost()
    #expect(first == 0)
    sent.resend(at: 0)
    let second = sent.firstLost()
    #expect(second == 1 && sent.flight == 300 && sent.chunks[0].transmissions == 2)
    // Only reports on later transmissions count.
    let isStruck = (0..<3).map { _ in sent.strike(at: 0, by: 3) }
    #expect(isStruck == [false, false, false] && sent.isConsistent)
  }

  @Test func abandonedChunksAreForwardedPerStream() {
    var sent = SentChunks(firstNumber: 50)
    for (index, stream) in [3, 4, 3, 9].enumerated() {
      let number = 50 + UInt32(index)
      sent.append(chunk(number, message: UInt64(index), stream: UInt16(stream)))
    }
    #expect(sent.forward(room: 1000, interleaves: false) == nil)
    for index in 0..<3 { sent.abandon(UInt64(index), around: index, interleaves: false) }
    #expect(sent.abandonedPrefix == 3 && sent.flight == 100 && sent.isConsistent)
    let forward = sent.forward(room: 1000, interleaves: false)
    #expect(forward?.end == 52)
    #expect(forward?.body == Crafted.words(long: 52) + Crafted.words(3, 2, 4, 1))
    let interleaved = sent.forward(room: 1000, interleaves: true)
    let streams =
      Crafted.words(3, 0) + Crafted.words(long: 2) + Crafted.words(4, 0) + Crafted.words(long: 1)
    #expect(interleaved?.body == Crafted.words(long: 52) + streams)
    // If there is room for one stream only, the chunk skips no message of the second stream.
    #expect(sent.forward(room: 12, interleaves: false)?.end == 50)
  }

  // MARK: Liveness

  @Test func twentyConsecutiveTimeoutsEndTheAssociation() {
    var liveness = Liveness()
    let first = (0..<20).map { _ in liveness.countTimeout("silent") }
    #expect(first == [SCTPFailure?](repeating: nil, count: 20))
    let last = liveness.countTimeout("silent")
    #expect(last?.reason == "silent")
    liveness.answer()
    let next = liveness.countTimeout("silent")
    #expect(next == nil && liveness.silentTimeouts == 1)
  }

  @Test func onlyTheLastHeartbeatsAnswerIsMeasured() {
    var liveness = Liveness()
    let entropy = Entropy(seed: [1]).stream("sctp")
    guard case .append(let beat) = liveness.beat(entropy, at: .zero) else {
      Issue.record("no heartbeat")
      return
    }
    #expect(beat.type == .heartbeat)
    var other = beat.body
    other[7] ^= 1
    let wrong = liveness.receiveAcknowledgement(other.span.bytes, at: .zero + second)
    #expect(wrong == nil)
    let right = liveness.receiveAcknowledgement(beat.body.span.bytes, at: .zero + second)
    #expect(right == second)
    let again = liveness.receiveAcknowledgement(beat.body.span.bytes, at: .zero + second)
    #expect(again == nil)
  }
}
