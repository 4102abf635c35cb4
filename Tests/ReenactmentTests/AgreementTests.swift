import RTP
import SDP
import Signaling
import Testing
import Wire

@testable import Reenactment

/// Tests what is negotiated with a live client, and how recorded packets are rewritten for it.
struct AgreementTests {
  private static let sequenceURI = HeaderExtensionURI.transportSequence.rawValue
  private static let midURI = HeaderExtensionURI.mid.rawValue

  /// Returns a hand-made plan: video with retransmissions, redundancy and forward error correction.
  private static func plan(_ packets: [[UInt8]] = []) throws -> ReenactmentPlan {
    var plan = try ReenactmentPlan(
      take: PlanTests.folder + "virtual-heavy-loss.take", peer: 1)
    var section = ReenactmentPlan.Section(kind: .video, mid: "v")
    section.formats = [
      ReenactmentPlan.Format(payloadType: 96, name: "vp8", clockRate: 90_000),
      ReenactmentPlan.Format(
        payloadType: 97, name: "rtx", clockRate: 90_000, parameters: "apt=96"),
      ReenactmentPlan.Format(payloadType: 118, name: "red", clockRate: 90_000),
      ReenactmentPlan.Format(payloadType: 120, name: "ulpfec", clockRate: 90_000),
    ]
    section.extensions = [3: sequenceURI, 4: midURI]
    plan.sections = [section]
    plan.streams = [
      ReenactmentPlan.Stream(ssrc: 2, section: 0, payloadTypes: [97], repairs: 1),
      ReenactmentPlan.Stream(ssrc: 1, section: 0, payloadTypes: [96, 118]),
    ]
    plan.packets = packets.map {
      ReenactmentPlan.Packet(distance: .zero, isRTCP: false, bytes: $0)
    }
    return plan
  }

  /// Returns a packet with a transport-wide sequence number and the mid `v`.
  private static func packet(
    _ type: UInt8, ssrc: UInt8 = 1, sequence: UInt8, number: UInt8, _ payload: [UInt8]
  ) -> [UInt8] {
    [0x90, type, 0, sequence, 0, 0, 0, 9, 0, 0, 0, ssrc, 0xbe, 0xde, 0, 2]
      + [0x31, 0, number, 0x40, UInt8(ascii: "v"), 0, 0, 0] + payload
  }

  private static func offer(_ lines: [String]) throws -> SDPDocument {
    try SDPDocument(
      parsing: (["v=0", "o=- 1 1 IN IP4 0.0.0.0", "s=-", "t=0 0"] + lines).map { $0 + "\r\n" }
        .joined())
  }

  private static let video = [
    "a=group:BUNDLE long", "m=video 9 UDP/TLS/RTP/SAVPF 100 101", "a=mid:long", "a=recvonly",
    "a=rtcp-mux", "a=rtpmap:100 VP8/90000", "a=rtpmap:101 rtx/90000", "a=fmtp:101 apt=100",
    "a=extmap:7 \(sequenceURI)", "a=extmap:2 \(midURI)", "a=ssrc:1 cname:client",
  ]

  @Test func numbersAreThoseOfTheClient() throws {
    let packets = [
      Self.packet(96, sequence: 5, number: 200, [1, 2, 3]),
      Self.packet(97, ssrc: 2, sequence: 9, number: 201, [0, 4, 7, 8]),
    ]
    let plan = try Self.plan(packets)
    let agreement = try Agreement(plan, with: try Self.offer(Self.video), answersOffer: false)
    var rewriter = PacketRewriter(plan, agreement, leavesRepairsOut: false)
    // The client itself uses SSRC 1, so the recorded stream gets another SSRC.
    #expect(agreement.ssrcs[1] == 3)
    let media = try #require(rewriter.rewrite(plan.packets[0])?.bytes)
    let header = try RTPHeader(parsing: media.span.bytes)
    #expect(header.payloadType == 100 && header.ssrc == 3 && header.sequence == 5)
    #expect(Array(media[header.payload]) == [1, 2, 3])
    var map = HeaderExtensionMap()
    (map.transportSequence, map.mid) = (7, 2)
    let values = HeaderExtensions(parsing: media.span.bytes, header: header, map: map)
    #expect(values.transportSequence == 200)
    #expect(values.mid.map { Array(media[$0]) } == Array("long".utf8))
    let again = try #require(rewriter.rewrite(plan.packets[1])?.bytes)
    let repeated = try RTPHeader(parsing: again.span.bytes)
    #expect(repeated.payloadType == 101 && repeated.ssrc == agreement.ssrcs[2])
    let answer = agreement.answer(to: try Self.offer(Self.video), plan)
    #expect(answer.sections[0].formats == ["100", "101"])
    #expect(answer.sections[0].direction == .sendonly)
    // The media stream is first, although the plan lists its retransmissions first.
    #expect(answer.sections[0].ssrcGroups.map(\.ssrcs) == [[3, 2]])
    #expect(answer.sections[0].ssrcs.map(\.ssrc) == [3, 2])
    let sources = plan.offer.sections[0].ssrcs.map(\.ssrc)
    #expect(sources == [1, 2])
  }

  @Test func aClientWithoutRetransmissionAndRedundancyGetsPlainMedia() throws {
    let packets = [
      Self.packet(118, sequence: 5, number: 10, [96, 1, 2]),
      Self.packet(118, sequence: 6, number: 11, [120, 5, 5]),
      Self.packet(97, ssrc: 2, sequence: 9, number: 12, [0, 4, 7, 8]),
    ]
    let plan = try Self.plan(packets)
    let lines = Self.video.map { $0.replacing("SAVPF 100 101", with: "SAVPF 100") }
    let offer = try Self.offer(lines.filter { !$0.contains("101") })
    let agreement = try Agreement(plan, with: offer, answersOffer: false)
    var rewriter = PacketRewriter(plan, agreement, leavesRepairsOut: false)
    let sent = plan.packets.compactMap { rewriter.rewrite($0)?.bytes }
    let headers = try sent.map { try RTPHeader(parsing: $0.span.bytes) }
    // The results: the primary data without redundancy, padding in place of an FEC packet, and a
    // retransmission under its original header.
    #expect(headers.map(\.payloadType) == [100, 100, 100])
    #expect(headers.map(\.sequence) == [5, 6, 4])
    #expect(headers.map { $0.payload.count } == [2, 0, 2])
    #expect(headers[1].paddingLength == 4)
    #expect(Array(sent[2][headers[2].payload]) == [7, 8])
  }

  @Test func redundantDataIsReadToItsLastBlock() {
    let blocks = RedundantBlocks([0x80 | 111, 0, 0, 2, 96, 8, 8, 7])
    #expect(blocks.types == [111, 96] && blocks.heads == [0, 4] && blocks.lastStart == 7)
    for cut in [[], [0x80 | 111], [0x80 | 111, 0, 0, 2]] as [ArraySlice<UInt8>] {
      #expect(RedundantBlocks(cut).types.isEmpty)
    }
    #expect(RedundantBlocks([0x80 | 111, 0, 3, 255, 96, 8]).lastStart == nil)
  }

  @Test func omittedPacketsLeaveNoGapInTransportNumbers() throws {
    let packets = [
      Self.packet(96, sequence: 1, number: 10, [1]),
      Self.packet(97, ssrc: 2, sequence: 1, number: 11, [0, 1, 1]),
      Self.packet(96, sequence: 2, number: 13, [1]),
      Self.packet(96, sequence: 3, number: 12, [1]),
    ]
    let plan = try Self.plan(packets)
    let agreement = try Agreement(plan, with: try Self.offer(Self.video), answersOffer: false)
    var rewriter = PacketRewriter(plan, agreement, leavesRepairsOut: true)
    var numbers: [UInt16] = []
    var map = HeaderExtensionMap()
    map.transportSequence = 7
    func record(_ bytes: [UInt8]?) throws {
      guard let bytes else { return }
      let header = try RTPHeader(parsing: bytes.span.bytes)
      let values = HeaderExtensions(parsing: bytes.span.bytes, header: header, map: map)
      if let number = values.transportSequence { numbers.append(number) }
    }
    for packet in plan.packets.prefix(3) { try record(rewriter.rewrite(packet)?.bytes) }
    try record(rewriter.repeated(packets[0])?.bytes)
    try record(rewriter.rewrite(plan.packets[3])?.bytes)
    // 11 is omitted: 13 is renumbered 12, the retransmission is 13, and the late 12 becomes 11.
    #expect(numbers == [10, 12, 13, 11])
  }

  @Test func aCodecThatTheClientLacksIsNamed() throws {
    let plan = try Self.plan([Self.packet(96, sequence: 1, number: 1, [1])])
    let offer = try Self.offer([
      "m=video 9 UDP/TLS/RTP/SAVPF 102", "a=mid:0", "a=recvonly", "a=rtcp-mux",
      "a=rtpmap:102 H264/90000", "a=fmtp:102 packetization-mode=1;profile-level-id=42e01f",
    ])
    let refusal = #expect(throws: CallRefusal.self) {
      try Agreement(plan, with: offer, answersOffer: false)
    }
    #expect(refusal?.reason.contains("VP8") == true && refusal?.reason.contains("H264") == true)
  }

  @Test(arguments: [
    ("freezeCount <= 1", true), ("freezeCount<1", false), ("audio.freezeCount >= 0", false),
    ("video.framesDecoded > 100", true), ("transport.bytesReceived == 5", true),
    ("noSuchMember == 0", false),
  ])
  func statisticsAreJudged(text: String, holds: Bool) throws {
    let objects = try JSONValue(
      parsing: """
        [{"type":"inbound-rtp","kind":"video","freezeCount":1,"framesDecoded":101},
         {"type":"inbound-rtp","kind":"audio"},{"type":"transport","id":"t","bytesReceived":5}]
        """
    ).elements
    let expectation = try #require(StatExpectation(argument: text))
    #expect(expectation.judge(objects).holds == holds)
  }

  @Test(arguments: [
    "", "freezeCount", "freezeCount <= ", "<= 1", "a.b.c <= 1", "a b <= 1", "x <= nan",
  ])
  func otherExpectationsAreRefused(text: String) {
    #expect(StatExpectation(argument: text) == nil)
  }
}
