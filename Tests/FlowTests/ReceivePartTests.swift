import RTP
import Testing
import Wire

@testable import Flow

/// Tests each part of the receiving side separately.
struct ReceivePartTests {
  private func at(_ milliseconds: Int64) -> Instant { .zero + .milliseconds(milliseconds) }

  private func header(
    _ sequence: UInt16 = 1, type: UInt8 = Agreed.videoFrame(.vp8).payloadType,
    ssrc: UInt32 = Agreed.videoSSRC, payload: Int = 10
  ) throws -> RTPHeader {
    var writer = ByteWriter(capacity: 12 + payload)
    OutgoingHeader(payloadType: type, sequence: sequence, timestamp: 0, ssrc: ssrc)
      .write(into: &writer, map: HeaderExtensionMap())
    for _ in 0..<payload { writer.uint8(0) }
    let bytes = writer.bytes
    return try RTPHeader(parsing: bytes.span.bytes)
  }

  /// Removes the outputs and describes those about streams, as in `began v 5`.
  private func descriptions(_ outbox: inout Outbox<MediaFlow.Output>) -> [String] {
    outbox.drain().map {
      switch $0 {
      case .streamBegan(let mid, let ssrc): "began \(mid) \(ssrc)"
      case .streamEnded(let mid, let ssrc): "ended \(mid) \(ssrc)"
      default: "other"
      }
    }
  }

  // MARK: Sections

  @Test func aPayloadTypeOfTwoSectionsIsAmbiguous() throws {
    var other = Agreed.video(announced: false)[1]
    let one = other
    other.mid = "w"
    let type = try header(ssrc: 77)
    #expect(FlowAgreement([one]).section(of: type, mid: nil)?.mid == "v")
    #expect(FlowAgreement([one, other]).section(of: type, mid: nil) == nil)
    #expect(FlowAgreement([one, other]).section(of: type, mid: [119])?.mid == "w")
    #expect(FlowAgreement([one, other]).section(of: type, mid: [1]) == nil)
    let announced = FlowAgreement([other, Agreed.video()[1]])
    #expect(announced.section(of: try header(), mid: nil)?.mid == "v")
  }

  @Test func featuresNeedTheAgreementOfAllSections() {
    let sections = [Agreed.video()[1], Agreed.video(reducedSize: false)[1]]
    #expect(FlowAgreement([sections[0]]).usesReducedSize)
    #expect(!FlowAgreement(sections).usesReducedSize && !FlowAgreement().usesReducedSize)
    let remb = FlowAgreement([Agreed.video(feedback: ["goog-remb"])[1]])
    #expect(remb.reportsBitrate && !remb.reportsArrivals)
    // With feedback on every packet, a bitrate estimate is not needed.
    let all = FlowAgreement([sections[0]])
    #expect(all.reportsArrivals && !all.reportsBitrate)
  }

  // MARK: Streams

  @Test func aStreamAfterABYEReturnsWithItsNextPacket() throws {
    let agreement = FlowAgreement([Agreed.video()[1]])
    var streams = ReceiveStreams()
    var outbox = Outbox<MediaFlow.Output>()
    let first = streams.route(
      try header(), ReceiveStreams.Name(), agreement, at: .zero, into: &outbox)
    #expect(first?.index == 0 && first?.isRetransmission == false)
    #expect(streams.isReceiving && streams.videoSSRCs == [Agreed.videoSSRC])
    streams.end([Agreed.videoSSRC, 5], into: &outbox)
    streams.end([Agreed.videoSSRC], into: &outbox)
    #expect(!streams.isReceiving && streams.videoSSRCs.isEmpty)
    let padding = streams.route(
      try header(2, payload: 0), ReceiveStreams.Name(), agreement, at: .zero, into: &outbox)
    #expect(padding == nil)
    let again = streams.route(
      try header(3), ReceiveStreams.Name(), agreement, at: .zero, into: &outbox)
    #expect(again?.index == 0 && streams.routes.count == 1)
    let ssrc = Agreed.videoSSRC
    #expect(descriptions(&outbox) == ["began v \(ssrc)", "ended v \(ssrc)", "began v \(ssrc)"])
  }

  @Test func retransmissionsGoToTheAnnouncedStream() throws {
    let agreement = FlowAgreement([Agreed.video()[1]])
    let type = try #require(Agreed.videoFrame(.vp8).rtxPayloadType)
    var streams = ReceiveStreams()
    var outbox = Outbox<MediaFlow.Output>()
    let rtx = try header(type: type, ssrc: Agreed.rtxSSRC)
    // Before the stream exists, there is nothing that a retransmission could repair.
    let early = streams.route(rtx, ReceiveStreams.Name(), agreement, at: .zero, into: &outbox)
    _ = streams.route(try header(), ReceiveStreams.Name(), agreement, at: .zero, into: &outbox)
    let place = streams.route(rtx, ReceiveStreams.Name(), agreement, at: .zero, into: &outbox)
    #expect(early == nil && place?.index == 0 && place?.isRetransmission == true)
    #expect(streams.routes.map(\.ssrc) == [Agreed.videoSSRC, Agreed.rtxSSRC])
    // When its section is removed, the stream and its sources are removed too.
    streams.configure(FlowAgreement(), into: &outbox)
    #expect(streams.all.isEmpty && streams.routes.isEmpty)
  }

  @Test func onlyTheLastFormerStreamIsKept() throws {
    let agreement = FlowAgreement([Agreed.video(announced: false)[1]])
    var streams = ReceiveStreams()
    var outbox = Outbox<MediaFlow.Output>()
    for ssrc: UInt32 in 1...4 {
      _ = streams.route(
        try header(ssrc: ssrc), ReceiveStreams.Name(), agreement, at: .zero, into: &outbox)
    }
    #expect(streams.all.map(\.ssrc) == [3, 4] && streams.routes.map(\.ssrc) == [3, 4])
    #expect(streams.all.map(\.hasEnded) == [true, false])
    // A packet from the previous source counts as late, unless the current source has long been
    // silent.
    let late = streams.route(
      try header(ssrc: 3), ReceiveStreams.Name(), agreement, at: at(5), into: &outbox)
    #expect(late == nil)
  }

  // MARK: Reports

  @Test func onlySourcesWithPacketsAreReported() throws {
    var reports = ReceptionReports()
    #expect(reports.extended(1) == nil)
    let numbers = [1, 2, 4].map { sequence in
      (try? header(sequence)).flatMap {
        reports.receive($0, clockRate: 90_000, arrival: .zero)
      }
    }
    #expect(numbers == [1, 2, 4] && reports.extended(3) == 3)
    reports.receive(
      SenderReport(ssrc: 9, ntpTime: 7 << 16, rtpTime: 0, packetCount: 0, octetCount: 0),
      at: .zero)
    reports.receiveRTX(try header(1), clockRate: 90_000, arrival: .zero)
    let blocks = reports.makeBlocks(9, rtxSSRC: 10, at: at(500))
    #expect(blocks.map(\.ssrc) == [9, 10] && blocks.map(\.cumulativeLost) == [1, 0])
    #expect(blocks.map(\.lastSenderReport) == [7, 0])
    #expect(blocks.map(\.delaySinceLastSenderReport) == [32_768, 0])
    let silent = reports.makeBlocks(9, rtxSSRC: 10, at: at(600))
    #expect(silent.isEmpty)
  }

  @Test func keyFrameRequestsUseTheNegotiatedForm() {
    var requests = KeyframeRequests()
    func next(_ feedback: [String], _ milliseconds: Int64) -> RTCPPacket? {
      requests.next(
        to: 9, Agreed.videoFrame(.vp8, feedback: feedback), senderSSRC: 1, roundTrip: .seconds(1),
        at: at(milliseconds))
    }
    #expect(next([], 0) == nil)
    let loss = RTCPPacket.pictureLoss(PictureLoss(senderSSRC: 1, mediaSSRC: 9))
    #expect(next(["nack pli", "ccm fir"], 0) == loss)
    // A request is repeated after one and a half round trips.
    #expect(next(["ccm fir"], 1499) == nil)
    for (number, time) in [(UInt8(1), Int64(1500)), (2, 3000)] {
      let request = FullIntraRequest(senderSSRC: 1, entries: [.init(ssrc: 9, number: number)])
      #expect(next(["ccm fir"], time) == .fullIntraRequest(request))
    }
  }
}
