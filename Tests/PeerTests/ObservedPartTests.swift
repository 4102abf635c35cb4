import Flow
import RTP
import Testing
import Wire

@testable import Peer

/// Tests each part of an observed peer separately.
struct ObservedPartTests {
  private func at(_ milliseconds: Int64) -> Instant { .zero + .milliseconds(milliseconds) }

  private func packet(_ sequence: UInt16, ssrc: UInt32) throws -> SeenPacket {
    var writer = ByteWriter()
    writer.uint16(0x8000 | 111)
    writer.uint16(sequence)
    writer.uint32(UInt32(sequence) * 960)
    writer.uint32(ssrc)
    writer.append([0xf8, 0xff, 0xfe])
    let bytes = writer.bytes
    return SeenPacket(
      header: try RTPHeader(parsing: bytes.span.bytes), bytes: bytes, isClear: true)
  }

  private func track(
    _ number: UInt32, ssrc: UInt32, isInbound: Bool, isKnown: Bool = true
  ) -> ObservedTrack {
    var track = ObservedTrack(
      number: number, ssrc: ssrc, isInbound: isInbound, kind: isKnown ? .audio : nil, mid: "0")
    guard isKnown else { return track }
    track.codecs = [
      FlowSection.Codec(
        payloadType: 111, name: CodecName(rawValue: "opus"), clockRate: 48_000,
        rtxPayloadType: nil, feedback: [])
    ]
    return track
  }

  // MARK: Reference times

  private func answer(_ lastReport: UInt32, delay: UInt32 = 0) -> ExtendedReport.DelayBlock {
    ExtendedReport.DelayBlock(ssrc: 1, lastReport: lastReport, delaySinceLastReport: delay)
  }

  @Test func theRoundTripTimeExcludesTheReportDelay() {
    var times = ReferenceTimes()
    times.send(0x0001_2345_6789_abcd, at: at(100))
    #expect(times.roundTrip(answer(0x2345_6789), at: at(180)) == .milliseconds(80))
    // Half a second, in 1/65536 s.
    #expect(times.roundTrip(answer(0x2345_6789, delay: 32_768), at: at(650)) == .milliseconds(50))
    #expect(times.roundTrip(answer(0x2345_6789, delay: 65_536), at: at(650)) == .zero)
    #expect(times.roundTrip(answer(0x2345_678a), at: at(180)) == nil)
  }

  @Test func aZeroReferenceTimeGivesNoRoundTripTime() {
    var times = ReferenceTimes()
    times.send(0, at: at(0))
    #expect(times.roundTrip(answer(0), at: at(10)) == nil)
  }

  @Test func theLastSixteenReferenceTimesAreRemembered() {
    var times = ReferenceTimes()
    for number in 1...17 as ClosedRange<UInt64> { times.send(number << 16, at: at(0)) }
    #expect(times.roundTrip(answer(1), at: at(5)) == nil)
    #expect(times.roundTrip(answer(2), at: at(5)) == .milliseconds(5))
    #expect(times.roundTrip(answer(17), at: at(5)) == .milliseconds(5))
  }

  // MARK: Samples

  @Test func samplesAreTakenEachSecondWhilePacketsArrive() {
    var samples = SampleSchedule()
    #expect(samples.due == nil && !samples.consumeDue(at: at(0)))
    samples.recordPackets(at: at(100))
    samples.recordPackets(at: at(700))
    #expect(samples.due == at(1100) && !samples.consumeDue(at: at(1099)))
    #expect(samples.consumeDue(at: at(1100)) && samples.due == at(2100))
    // Missed samples are skipped.
    #expect(samples.consumeDue(at: at(5000)) && samples.due == at(6000))
  }

  @Test func samplingPausesWithoutPacketsAndResumes() {
    var samples = SampleSchedule()
    samples.recordPackets(at: at(0))
    for second in 1...5 as ClosedRange<Int64> {
      #expect(samples.consumeDue(at: at(second * 1000)) == true)
    }
    #expect(samples.consumeDue(at: at(6000)) && samples.due == nil)
    samples.recordPackets(at: at(60_000))
    #expect(samples.due == at(61_000))
  }

  // MARK: Sent streams

  @Test func retransmissionsCountInTheirStream() throws {
    var tracks = OutboundTracks()
    tracks.learn(track(1, ssrc: 10, isInbound: false))
    var repairs = track(2, ssrc: 20, isInbound: false)
    repairs.repairs = 10
    tracks.learn(repairs)
    tracks.send(try packet(1, ssrc: 10), 1)
    tracks.send(try packet(1, ssrc: 20), 2)
    tracks.send(try packet(1, ssrc: 30), 3)
    #expect(tracks.all.count == 2 && tracks.all[1].counters == nil)
    let counters = try #require(tracks.all[0].counters)
    #expect(counters.packetsSent == 2 && counters.retransmittedPacketsSent == 1)
  }

  @Test func requestsCountInTheStreamTheyName() throws {
    var tracks = OutboundTracks()
    for number in 1...2 as ClosedRange<UInt32> {
      tracks.learn(track(number, ssrc: number * 10, isInbound: false))
      tracks.send(try packet(1, ssrc: number * 10), number)
    }
    tracks.receive(GenericNACK(senderSSRC: 1, mediaSSRC: 20, sequences: [1]))
    tracks.countKeyframeRequest(20, isFIR: true)
    tracks.countKeyframeRequest(20, isFIR: false)
    tracks.receive(GenericNACK(senderSSRC: 1, mediaSSRC: 30, sequences: [1]))
    let counters = tracks.all.compactMap(\.counters)
    #expect(counters.map(\.nackCount) == [0, 1])
    #expect(counters.map(\.firCount) == [0, 1] && counters.map(\.pliCount) == [0, 1])
  }

  /// libwebrtc retransmits packets as soon as arrival feedback reports them lost, before any
  /// request; retransmissions without a reason are padding.
  @Test(arguments: [(false, UInt64(0)), (true, 1)])
  func requestsAfterTheRetransmissionCount(countsEarlyRepeats: Bool, counted: UInt64) throws {
    var tracks = OutboundTracks(countsEarlyRepeats: countsEarlyRepeats)
    tracks.learn(track(1, ssrc: 10, isInbound: false))
    var repairs = track(2, ssrc: 20, isInbound: false)
    repairs.repairs = 10
    tracks.learn(repairs)
    tracks.send(try packet(1, ssrc: 10), 1)
    let again = try packet(1, ssrc: 20)
    // The original's number precedes the payload (RFC 4588 section 4).
    let repeated = RTX.unwrap(again.bytes.span.bytes, header: again.header)
    let original = try #require(repeated?.sequence)
    func request(_ sequence: UInt16) {
      tracks.receive(GenericNACK(senderSSRC: 1, mediaSSRC: 10, sequences: [sequence]))
    }
    request(original &+ 7)
    tracks.send(again, 2)
    #expect(tracks.all[0].counters?.retransmittedPacketsSent == 0)
    request(original)
    #expect(tracks.all[0].counters?.retransmittedPacketsSent == counted)
    // A second request gets a second retransmission.
    request(original)
    tracks.send(try packet(2, ssrc: 20), 2)
    let counters = try #require(tracks.all[0].counters)
    #expect(counters.retransmittedPacketsSent == counted + 1 && counters.nackCount == 3)
  }

  // MARK: Received streams

  @Test func packetsWaitUntilTheirCodecIsKnown() throws {
    var tracks = InboundTracks(codecs: nil, furtherDecoders: [])
    #expect(tracks.learn(track(1, ssrc: 10, isInbound: true, isKnown: false), at: at(0)) == nil)
    #expect(tracks.receive(try packet(1, ssrc: 10), 1, at: at(0))?.frames.count == 0)
    #expect(tracks.receive(try packet(1, ssrc: 10), 9, at: at(0)) == nil)
    #expect(tracks.all[0].counters?.packetsReceived == 1)
    let completed = tracks.learn(track(1, ssrc: 10, isInbound: true), at: at(20))
    #expect(completed?.place == 0 && completed?.frames.count == 1)
    #expect(tracks.all[0].counters?.packetsReceived == 1)
  }

  /// Packets and losses are counted even without a clock rate, and packets that waited for the
  /// clock rate stay counted.
  @Test func packetsOfUnknownStreamsCountAtBothEnds() throws {
    var inbound = InboundTracks(codecs: nil, furtherDecoders: [])
    var outbound = OutboundTracks()
    _ = inbound.learn(track(1, ssrc: 10, isInbound: true, isKnown: false), at: at(0))
    outbound.learn(track(1, ssrc: 10, isInbound: false, isKnown: false))
    for number in 0..<1000 as Range<UInt16> where number != 500 {
      _ = inbound.receive(try packet(number, ssrc: 10), 1, at: at(0))
      outbound.send(try packet(number, ssrc: 10), 1)
    }
    for isKnown in [false, true] {
      if isKnown {
        _ = inbound.learn(track(1, ssrc: 10, isInbound: true), at: at(20))
        outbound.learn(track(1, ssrc: 10, isInbound: false))
      }
      #expect(inbound.all[0].counters?.packetsReceived == 999)
      #expect(inbound.all[0].counters?.packetsLost == 1)
      #expect(outbound.all[0].counters?.packetsSent == 999)
    }
  }

  @Test func aFrameGoesToThePlayoutOfItsStream() throws {
    var tracks = InboundTracks(codecs: nil, furtherDecoders: [])
    var outbox = Outbox<ReceivingTrack.Output>()
    _ = tracks.learn(track(1, ssrc: 10, isInbound: true), at: at(0))
    _ = tracks.learn(track(2, ssrc: 20, isInbound: true), at: at(0))
    let completed = tracks.receive(try packet(1, ssrc: 20), 2, at: at(0))
    #expect(completed?.place == 1)
    let frame = try #require(completed?.frames.first)
    let isPlayed = tracks.play(frame, 1, at: at(0), into: &outbox)
    #expect(isPlayed)
    #expect(tracks.all[0].playout == nil && tracks.all[1].playout != nil)
    let due = try #require(tracks.deadline)
    let played = [0, 1].map { tracks.playDue($0, at: due, into: &outbox) }
    #expect(played == [false, true])
  }

  @Test func playoutsAreLimitedAndFurtherStreamsCounted() throws {
    var tracks = InboundTracks(codecs: nil, furtherDecoders: [])
    var outbox = Outbox<ReceivingTrack.Output>()
    var played = 0
    for number in 0..<260 as Range<UInt32> {
      _ = tracks.learn(track(number, ssrc: 1000 + number, isInbound: true), at: at(0))
      let seen = try packet(1, ssrc: 1000 + number)
      let completed = tracks.receive(seen, number, at: at(0))
      let frame = try #require(completed?.frames.first)
      if tracks.play(frame, Int(number), at: at(0), into: &outbox) { played += 1 }
    }
    #expect(played == 256 && tracks.all.count == 260)
    #expect(tracks.all.allSatisfy { $0.counters?.packetsReceived == 1 })
  }

  @Test func reportsAndRoundTripsGoToTheStreamsOfTheirSource() throws {
    var tracks = InboundTracks(codecs: nil, furtherDecoders: [])
    for number in 1...2 as ClosedRange<UInt32> {
      _ = tracks.learn(track(number, ssrc: number * 10, isInbound: true), at: at(0))
      _ = tracks.receive(try packet(1, ssrc: number * 10), number, at: at(0))
    }
    let report = SenderReport(
      ssrc: 20, ntpTime: 1 << 40, rtpTime: 960, packetCount: 1, octetCount: 3)
    tracks.receive(report, at: at(30))
    tracks.receive(roundTrip: .milliseconds(40), to: [5, 20])
    #expect(tracks.all[0].counters?.remote == nil)
    #expect(tracks.all[1].counters?.remote?.roundTripTime == 0.04)
  }
}
