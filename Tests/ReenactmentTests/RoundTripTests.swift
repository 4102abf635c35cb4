import RTP
import Testing
import Wire

@testable import Reenactment

/// The round trip that a recorded receiver measured, and that a live client measures again.
struct RoundTripTests {
  private static func at(_ milliseconds: Int64) -> Instant {
    Instant(nanoseconds: milliseconds * 1_000_000)
  }

  private static func written(_ packets: RTCPPacket...) -> [UInt8] {
    var writer = ByteWriter(capacity: 100)
    for packet in packets { packet.write(into: &writer) }
    return writer.bytes
  }

  /// An NTP time whose middle 32 bits are 0x0003_0004, and reports of that time.
  private static let time: UInt64 = 0x0001_0003_0004_0000
  private static let sender = RTCPPacket.senderReport(
    SenderReport(ssrc: 7, ntpTime: time, rtpTime: 0, packetCount: 0, octetCount: 0))
  private static let reference = RTCPPacket.extendedReport(
    ExtendedReport(ssrc: 7, receiverReferenceTime: time))

  /// Returns the report block of a sender that answers after 80 ms: 5243 parts of 1/65536 s.
  private static func block(_ report: UInt32) -> ReportBlock {
    ReportBlock(
      ssrc: 7, fractionLost: 0, cumulativeLost: 0, highestSequence: 0, jitter: 0,
      lastSenderReport: report, delaySinceLastSenderReport: 5_243)
  }

  @Test func aRoundTripIsWhatCameBackLessWhatTheSenderTook() {
    var finder = RoundTripFinder()
    finder.add(sent: Self.written(Self.sender), at: Self.at(100))
    // Block 9 answers an unknown report and does not yield a round trip.
    finder.add(
      received: Self.written(
        .receiverReport(ReceiverReport(ssrc: 1, blocks: [Self.block(9), Self.block(0x0003_0004)]))),
      at: Self.at(240))
    finder.add(sent: Self.written(Self.reference), at: Self.at(300))
    finder.add(
      received: Self.written(
        .extendedReport(
          ExtendedReport(
            ssrc: 1,
            delays: [
              ExtendedReport.DelayBlock(
                ssrc: 7, lastReport: 0x0003_0004, delaySinceLastReport: 5_243)
            ]))), at: Self.at(410))
    let found = finder.roundTrips(from: Self.at(50))
    #expect(found.map { ($0.value.nanoseconds + 500_000) / 1_000_000 } == [60, 30])
    #expect(found.map { $0.distance.nanoseconds / 1_000_000 } == [190, 360])
  }

  @Test(
    arguments: [(RoundTripTests.sender, 130 as Int64), (RoundTripTests.reference, 250 as Int64)]
      as [(RTCPPacket, Int64)])
  func aClientMeasuresItAlsoWhereTheAnswerIsLate(_ report: RTCPPacket, late: Int64) throws {
    var answers = ReportAnswers()
    answers.receive(
      report, over: 2, at: Self.at(100), notBefore: Self.at(120), roundTrip: .milliseconds(30))
    #expect(answers.deadline == Self.at(130))
    #expect(answers.advance(to: Self.at(129), from: 1).isEmpty)
    // The answer is delayed until the time at which the recorded receiver knew a round trip.
    var early = ReportAnswers()
    early.receive(
      report, over: 2, at: Self.at(100), notBefore: Self.at(900), roundTrip: .milliseconds(30))
    #expect(early.deadline == Self.at(900))
    let answer = try #require(answers.advance(to: Self.at(late), from: 1).first)
    #expect(answer.transport == 2 && answers.deadline == nil)
    var finder = RoundTripFinder()
    finder.add(sent: Self.written(report), at: Self.at(100))
    finder.add(received: answer.bytes, at: Self.at(late))
    let measured = try #require(finder.found.first).value.nanoseconds
    #expect(abs(measured - 30_000_000) < 50_000)
  }
}
