import RTP
import Testing
import Wire

@testable import Flow

/// Tests each part of the sending side and of RTCP separately.
struct SendPartTests {
  private let wallClock = WallClock(unixNanosecondsAtZero: 1_795_000_000_000_000_000)
  private func entropy() -> EntropyStream { Entropy(seed: [5]).stream("rtp") }
  private func at(_ milliseconds: Int64) -> Instant { .zero + .milliseconds(milliseconds) }

  private func frame(_ size: Int = 100, key: Bool = false) -> EncodedFrame {
    EncodedFrame(
      kind: .video, codec: .vp8, mediaTime: 0, bytes: [UInt8](repeating: key ? 0 : 1, count: size),
      isKey: key, width: 16, height: 16)
  }

  private func block(_ ssrc: UInt32) -> ReportBlock {
    ReportBlock(
      ssrc: ssrc, fractionLost: 0, cumulativeLost: 0, highestSequence: 0, jitter: 0,
      lastSenderReport: 0, delaySinceLastSenderReport: 0)
  }

  // MARK: Sent streams

  @Test func keyFrameRequestsAreServedOncePerNumberAndLimited() {
    var demands = KeyframeDemands()
    let takings = [(1, 0), (1, 400), (2, 299), (nil, 300), (2, 900), (3, 900)].map {
      demands.classify($0.0, at: at($0.1))
    }
    #expect(takings == [.passedOn, .repeated, .served, .passedOn, .repeated, .passedOn])
    #expect(demands.passedOnAt == at(900))
  }

  @Test func packetsNameTheirSectionUntilThePeerReportsOnThem() {
    var naming = SectionNaming([118])
    naming.recordReport(isRTX: true)
    #expect(naming.name == [118] && naming.rtxName == nil)
    naming.recordReport(isRTX: false)
    naming.forgetRTX()
    #expect(naming.name == nil && naming.rtxName == [118])
  }

  @Test func sequenceNumbersContinueAcrossAgreements() {
    let sections = Agreed.video()
    var streams = SendStreams(entropy())
    streams.configure([SectionState(sections[0])])
    func number() -> UInt16? {
      guard let index = streams.index(of: Agreed.videoSSRC) else { return nil }
      let part = streams.split(frame(), index, at: .zero)[0]
      let packet = streams.packet(
        for: part, index, transportSequence: 0, sendTime: 0, at: .zero)
      return (try? RTPHeader(parsing: packet.span.bytes))?.sequence
    }
    let first = number()
    streams.configure([])
    #expect(streams.localSSRC == 1 && streams.activeSSRCs.isEmpty && number() == nil)
    streams.configure([SectionState(sections[0])])
    #expect(streams.activeSSRCs == [Agreed.videoSSRC, Agreed.rtxSSRC])
    #expect(first != nil && number() == first.map { $0 + 1 })
  }

  @Test func lostFramesAreReportedOnceAndOnlyForSentStreams() {
    let sections = Agreed.video()
    var streams = SendStreams(entropy())
    streams.configure([SectionState(sections[0])])
    streams.loseFrames()
    let reported = [streams.consumeLosses(), streams.consumeLosses()]
    #expect(reported == [[StreamName("v", nil)], []])
    streams.discardFrame(0)
    #expect(streams.all[0].snapshot.framesDiscarded == 1 && streams.all[0].lostFrames)
    streams.configure([])
    let silent = streams.consumeLosses()
    #expect(silent.isEmpty && !streams.all[0].lostFrames)
  }

  @Test func aSenderReportsOnlyWhatIsNew() {
    var tally = SendTally(
      OutboundStreamCounters(
        mid: "v", kind: .video, ssrc: 9, rtxSSRC: nil, codec: .vp8, payloadType: 96))
    func report() -> SenderReport? {
      tally.makeReport(clockRate: 90_000, wallClock, at: at(1000))
    }
    #expect(report() == nil)
    tally.countFrame(frame(1000, key: true), timestamp: 50, at: .zero)
    #expect(report() == nil)
    tally.countPacket(1050, payload: 1000, delay: .milliseconds(3))
    let sent = report()
    #expect(sent?.rtpTime == 90_050 && sent?.packetCount == 1 && sent?.octetCount == 1000)
    #expect(report() == nil)
    // A retransmission causes another sender report, but does not increase the report's counts
    // (RFC 3550 section 6.4.1).
    tally.countRetransmission(1052, payload: 1002)
    #expect(report()?.octetCount == 1000)
    tally.countFrame(frame(2500), timestamp: 60, at: .zero)
    let counters = tally.counters
    #expect(counters.packetsSent == 2 && counters.headerBytesSent == 100)
    #expect(counters.hugeFramesSent == 1 && counters.keyFramesSent == 1)
  }

  // MARK: Rate

  @Test func significantTargetChangesAreReportedToEncoders() {
    var rate = RateControl()
    rate.congestion.setLimits(start: 500_000, maximum: 1_000_000)
    var reported = [rate.announce(at: .zero)]
    rate.congestion.setLimits(start: 510_000, maximum: 1_000_000)
    reported.append(rate.announce(at: at(1000)))
    rate.congestion.setLimits(start: 600_000, maximum: 1_000_000)
    reported.append(rate.announce(at: at(149)))
    reported.append(rate.announce(at: at(150)))
    #expect(reported == [500_000, nil, nil, 600_000])
    // Retransmissions reduce the encoders' share.
    rate.resends.spend(bytes: 12_500, at: at(1000))
    #expect(rate.announce(at: at(1000)) == 500_000 && rate.target == 600_000)
  }

  @Test func onlyNumberedPacketsConsumeTransportWideNumbers() {
    var rate = RateControl()
    #expect(rate.nextSequence == 0)
    rate.resends.earn(bytes: 100)
    rate.sendNumbered(100, at: .zero)
    #expect(rate.nextSequence == 1)
    for _ in 0..<0x1_0000 { rate.sendNumbered(1, at: .zero) }
    #expect(rate.nextSequence == 1)
  }

  // MARK: RTCP

  @Test func theFirstReportIsEarlyAndTheOthersAreOnSchedule() {
    var schedule = ReportSchedule(entropy())
    #expect(schedule.due == nil && schedule.deadline == nil)
    schedule.begin(at: .zero)
    let first = schedule.due ?? .zero
    #expect((at(250)..<at(750)).contains(first))
    #expect(schedule.deadline == first + .milliseconds(50))
    schedule.begin(at: at(100))
    #expect(schedule.due == first)
    let isEarly = schedule.consumeDue(at: first - Interval(nanoseconds: 1))
    let isDue = schedule.consumeDue(at: first)
    #expect(!isEarly && isDue && schedule.due == nil)
    schedule.begin(at: at(1000))
    #expect(schedule.due.map { (at(1500)..<at(2500)).contains($0) } == true)
  }

  @Test func implausibleRoundTripsAreIgnored() {
    var meter = RoundTripMeter()
    #expect(meter.requestSpacing == .milliseconds(100))
    #expect(meter.resendSpacing == .milliseconds(20))
    // The first block answers no report; the second states a round trip of more than 30 seconds.
    let unbelieved = [
      meter.measure(lastReport: 0, delay: 0, arrival: 65_536),
      meter.measure(lastReport: 1, delay: 0, arrival: 1 + 31 << 16),
    ]
    #expect(unbelieved == [nil, nil] && meter.newest == nil)
    let half = meter.measure(lastReport: .max, delay: 32_768, arrival: 65_535)
    #expect(half == .milliseconds(500) && meter.newest == half)
    #expect(meter.requestSpacing == .milliseconds(625))
    // Rounding may produce slightly less than zero.
    let least = meter.measure(lastReport: 100, delay: 50, arrival: 100)
    #expect(least == Interval(compactUnits: 1))
    #expect(meter.requestSpacing == .milliseconds(20))
    #expect(meter.resendSpacing == .milliseconds(5))
  }

  @Test func referenceTimesAreAnsweredOnceAndTheOldestEvicted() {
    var meter = RoundTripMeter()
    for ssrc in 1...9 {
      meter.recordReference(UInt64(ssrc) << 16, of: UInt32(ssrc), arrival: .zero)
    }
    meter.recordReference(77 << 16, of: 5, arrival: at(500))
    let answers = meter.makeAnswers(at: at(1000))
    #expect(answers.map(\.ssrc) == [2, 3, 4, 6, 7, 8, 9, 5])
    #expect(answers.last?.lastReport == 77 && answers.last?.delaySinceLastReport == 32_768)
    #expect(answers.first?.delaySinceLastReport == 65_536)
    let rest = meter.makeAnswers(at: at(1000))
    #expect(rest.isEmpty)
  }

  @Test func feedbackFollowsAReportUnlessReducedSizeIsAllowed() {
    let composer = RTCPComposer(cname: "me")
    let loss = RTCPPacket.pictureLoss(PictureLoss(senderSSRC: 1, mediaSSRC: 2))
    #expect(composer.feedback(loss, localSSRC: 7, isAlone: true) == [loss])
    let names = RTCPPacket.sourceDescription(
      SourceDescription(chunks: [.init(ssrc: 7, cname: "me")]))
    #expect(
      composer.feedback(loss, localSSRC: 7, isAlone: false)
        == [.receiverReport(ReceiverReport(ssrc: 7)), names, loss])
    // A report block is included if there is one, because a server may identify the source by it.
    #expect(
      composer.feedback(loss, localSSRC: 7, isAlone: false, block: block(2))
        == [.receiverReport(ReceiverReport(ssrc: 7, blocks: [block(2)])), names, loss])
  }

  @Test func aSenderReportsWithItsFirstSource() {
    let composer = RTCPComposer(cname: "me")
    let blocks = (0..<40).map { block($0) }
    func report(_ ssrc: UInt32, _ blocks: [ReportBlock] = []) -> SenderReport {
      SenderReport(
        ssrc: ssrc, ntpTime: 1, rtpTime: 2, packetCount: 3, octetCount: 4, blocks: blocks)
    }
    let sent = composer.reports(
      [report(5), report(6)], blocks, localSSRC: 5, receives: false, reference: 99, [])
    #expect(
      sent == [
        .senderReport(report(5, Array(blocks.prefix(31)))), .senderReport(report(6)),
        .sourceDescription(
          SourceDescription(chunks: [.init(ssrc: 5, cname: "me"), .init(ssrc: 6, cname: "me")])),
      ])
    // A receive-only endpoint requests its round trip even if nothing arrives (RFC 3611 section
    // 4.4).
    let idle = composer.reports(
      [], [], localSSRC: 1, receives: false, reference: 99, [])
    #expect(
      idle.first == .receiverReport(ReceiverReport(ssrc: 1))
        && idle.last == .extendedReport(ExtendedReport(ssrc: 1, receiverReferenceTime: 99)))
  }

  @Test func arrivalsAreReportedForTheNewestSource() {
    var arrivals = ArrivalFeedback()
    #expect(arrivals.due == nil)
    arrivals.receive(3, ssrc: 10, arrival: .zero, at: .zero)
    arrivals.receive(4, ssrc: 11, arrival: .zero, at: .zero)
    #expect(arrivals.due == at(100) && arrivals.deadline == at(120))
    let reports = arrivals.makeReports(senderSSRC: 1)
    #expect(reports.map(\.mediaSSRC) == [11] && reports.map(\.count) == [2])
    #expect(arrivals.due == nil)
    // An estimate needs at least one source, and bytes counted for at least 100 ms.
    arrivals.receive(bytes: 1000, at: .zero)
    #expect(arrivals.estimate(senderSSRC: 1, of: [], at: at(500)) == nil)
    #expect(arrivals.estimate(senderSSRC: 1, of: [7], at: at(99)) == nil)
    #expect(arrivals.reportedBitrate == nil)
    #expect(arrivals.estimate(senderSSRC: 1, of: [7], at: at(100))?.bitrate == 1_000_000)
    #expect(arrivals.reportedBitrate == 1_000_000)
  }
}
