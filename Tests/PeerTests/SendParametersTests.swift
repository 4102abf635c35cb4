import JSEP
import Lab
import Media
import SDP
import Testing
import Wire

@testable import Peer

struct SendParametersTests {
  private func parameters(_ call: VirtualCall, _ id: UInt32) throws -> RTPSendParameters {
    guard case .parameters(let parameters) = call.call(0, .getParameters(transceiver: id)) else {
      throw PeerError(name: "TestError", message: "no parameters")
    }
    return parameters
  }

  private func set(
    _ call: VirtualCall, _ id: UInt32, _ change: (inout RTPEncoding) -> Void
  ) throws -> PeerError? {
    var parameters = try parameters(call, id)
    change(&parameters.encodings[0])
    return call.call(0, .setParameters(transceiver: id, parameters)).error
  }

  private func sent(
    _ call: VirtualCall, _ kind: MediaKind, while run: () -> Void
  ) -> ArraySlice<FrameRecord> {
    let before = call.frames(of: 0, kind: kind, isInbound: false).count
    run()
    return call.frames(of: 0, kind: kind, isInbound: false)[before...]
  }

  @Test func parametersReflectTheNegotiation() throws {
    let call = CallTests.call(seed: 40, seconds: 1)
    let video = try parameters(call, 2)
    #expect(video.encodings == [RTPEncoding(scaleResolutionDownBy: 1)])
    #expect(video.codecs.prefix(4).map(\.payloadType) == [96, 97, 98, 99])
    #expect(
      video.codecs.prefix(3).map(\.codec.mimeType) == ["video/VP8", "video/rtx", "video/VP9"])
    #expect(video.codecs[1].codec.sdpFmtpLine == "apt=96")
    #expect(!video.headerExtensions.isEmpty && !video.cname.isEmpty && video.reducedSizeRTCP)
    let audio = try parameters(call, 1)
    #expect(audio.encodings == [RTPEncoding()])
    #expect(audio.codecs.map(\.codec) == RTPCodec.capabilities(.audio, offering: ["opus"]))
  }

  @Test func limitsApplyToARunningCall() throws {
    let call = CallTests.call(seed: 41, seconds: 2)
    #expect(
      try set(call, 2) { encoding in
        encoding.scaleResolutionDownBy = 2
        encoding.maxFramerate = 5
      } == nil)
    let limited = sent(call, .video) { call.run(for: .seconds(4)) }
    #expect((18...22).contains(limited.count))
    #expect(limited.allSatisfy { $0.width == 80 && $0.height == 60 })
    let shown = try #require(call.frames(of: 1, kind: .video, isInbound: true).last)
    #expect(shown.width == 80 && shown.height == 60)
  }

  @Test(arguments: [UInt32(1), 2])
  func anInactiveSenderSendsNothing(id: UInt32) throws {
    let kind: MediaKind = id == 1 ? .audio : .video
    let call = CallTests.call(seed: 42, seconds: 2)
    #expect(try set(call, id) { $0.active = false } == nil)
    #expect(sent(call, kind) { call.run(for: .seconds(2)) }.isEmpty)
    #expect(call.state("signaling", of: 0) == "stable")
    #expect(try set(call, id) { $0.active = true } == nil)
    let again = sent(call, kind) { call.run(for: .seconds(2)) }
    #expect(again.count > 25)
    // Media time continues, so the peer sees one stream.
    let times = call.frames(of: 0, kind: kind, isInbound: false).map(\.rtpTime)
    #expect(times == times.sorted())
  }

  @Test func bitratesStayBelowTheLimit() throws {
    let call = CallTests.call(seed: 43, seconds: 3)
    #expect(try set(call, 1) { $0.maxBitrate = 8_000 } == nil)
    #expect(try set(call, 2) { $0.maxBitrate = 40_000 } == nil)
    call.run(for: .seconds(2))
    let seconds = 5
    for (kind, limit) in [(MediaKind.audio, 8_000), (.video, 40_000)] {
      let frames = sent(call, kind) { call.run(for: .seconds(Int64(seconds))) }
      let rate = frames.reduce(0) { $0 + $1.bytes.count } * 8 / seconds
      #expect(rate > limit / 4 && rate < limit * 5 / 4, "\(kind): \(rate)")
    }
  }

  /// Puts a limit into each section of a description, by kind.
  private func limiting(_ limits: [(MediaKind, String)]) -> (String) -> String {
    { sdp in
      var document = try? SDPDocument(parsing: sdp)
      for (kind, value) in limits {
        for index in document?.sections.indices ?? 0..<0
        where document?.sections[index].kind.rawValue == kind.rawValue {
          document?.sections[index].lines.insert(
            .other(type: UInt8(ascii: "b"), value: value), at: 0)
        }
      }
      return document?.text ?? sdp
    }
  }

  @Test func bitratesStayBelowThePeersLimit() throws {
    let call = CallTests.call(seed: 46, seconds: 2)
    func rates() -> [Int] {
      [MediaKind.audio, .video].map { kind in
        sent(call, kind) { call.run(for: .seconds(4)) }.reduce(0) { $0 + $1.bytes.count } * 2
      }
    }
    let free = rates()
    #expect(
      call.negotiate(edit: limiting([(.audio, "TIAS:8000"), (.video, "AS:80")])) == nil)
    // The application's settings are unchanged; the lower limit applies.
    #expect(try parameters(call, 1).encodings == [RTPEncoding()])
    call.run(for: .seconds(2))
    let limited = rates()
    #expect(limited[0] > 2_000 && limited[0] < 10_000 && free[0] > 15_000, "\(free) \(limited)")
    #expect(limited[1] > 10_000 && limited[1] < 75_000 && free[1] > 90_000, "\(free) \(limited)")
    #expect(try set(call, 2) { $0.maxBitrate = 30_000 } == nil)
    call.run(for: .seconds(2))
    let lower = rates()
    #expect(lower[1] < 45_000 && lower[0] < 10_000, "\(lower)")
    #expect(try set(call, 2) { $0.maxBitrate = nil } == nil)
    #expect(call.negotiate() == nil)
    call.run(for: .seconds(2))
    let again = rates()
    #expect(again[0] > 15_000 && again[1] > 90_000, "\(again)")
  }

  private static let shares: [(UInt64, [UInt64?], [UInt64])] = [
    (900, [], []), (900, [nil, nil, nil], [300, 300, 300]),
    (900, [100, nil, nil], [100, 400, 400]), (900, [nil, 350, 100], [450, 350, 100]),
    (900, [500, 500], [450, 450]), (100, [10, 20], [10, 20]), (0, [nil, 5], [0, 0]),
  ]

  @Test(arguments: shares)
  func unusedBitrateGoesToOtherSenders(total: UInt64, limits: [UInt64?], shares: [UInt64]) {
    #expect(SenderTable.shares(of: total, limits: limits) == shares)
  }

  @Test func onlyTheLastReadParametersCanBeSetAndOnlyOnce() throws {
    let call = CallTests.call(seed: 44, seconds: 1)
    let read = try parameters(call, 2)
    #expect(try parameters(call, 2) == read)
    func set(_ parameters: RTPSendParameters) -> String? {
      call.call(0, .setParameters(transceiver: 2, parameters)).error?.name
    }
    var changed = read
    changed.codecs.removeLast()
    #expect(set(changed) == "InvalidModificationError")
    changed = read
    changed.encodings.append(RTPEncoding())
    #expect(set(changed) == "InvalidModificationError")
    changed.encodings = []
    #expect(set(changed) == "InvalidModificationError")
    changed = read
    changed.transactionId = "x"
    #expect(set(changed) == "InvalidModificationError")
    for value in [0.5, -1, .nan, .infinity] {
      changed = read
      changed.encodings[0].scaleResolutionDownBy = value
      #expect(set(changed) == "RangeError")
    }
    changed = read
    changed.encodings[0].maxFramerate = -1
    #expect(set(changed) == "RangeError")
    #expect(set(read) == nil)
    #expect(set(read) == "InvalidStateError")
    // After an exchange, the parameters read before are outdated.
    let later = try parameters(call, 2)
    #expect(call.negotiate() == nil)
    #expect(set(later) == "InvalidStateError")
    #expect(call.call(0, .getParameters(transceiver: 9)).error?.name == "InvalidAccessError")
  }

  @Test func aTransceiverBeginsWithTheGivenEncoding() throws {
    let call = VirtualCall(seed: 45)
    call.call(
      0,
      .addTransceiver(
        kind: .video, direction: .sendonly, streamIDs: [],
        source: .pattern(width: 160, height: 120, framesPerSecond: 15),
        sendEncodings: [RTPEncoding(scaleResolutionDownBy: 4)]))
    #expect(call.negotiate() == nil)
    call.run(for: .seconds(2))
    let frames = call.frames(of: 0, kind: .video, isInbound: false)
    #expect(frames.count > 15 && frames.allSatisfy { $0.width == 40 && $0.height == 30 })
    let wrong = call.call(
      0,
      .addTransceiver(
        kind: .video, direction: .sendonly, streamIDs: [], source: nil,
        sendEncodings: [RTPEncoding(scaleResolutionDownBy: 0)]))
    #expect(wrong.error?.name == "RangeError")
  }
}
