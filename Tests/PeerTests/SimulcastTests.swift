import Flow
import JSEP
import Lab
import Media
import RTP
import SDP
import Stats
import Testing
import Wire

@testable import Peer

/// Tests which layers of a source are sent, and which layer is shown.
struct SimulcastTests {
  static let encodings = [
    RTPEncoding(rid: "q", scaleResolutionDownBy: 4),
    RTPEncoding(rid: "h", scaleResolutionDownBy: 2),
    RTPEncoding(rid: "f"),
  ]
  private static let pattern = MediaSource.pattern(width: 320, height: 180, framesPerSecond: 15)

  /// Makes a call in which the first peer sends layers, and the answer accepts some of them.
  static func call(
    _ encodings: [RTPEncoding] = encodings, taking layers: String = "q;h;f", seed: UInt64 = 60,
    link: LinkSettings = LinkSettings(), seconds: Int64 = 3,
    configuration: PeerConfiguration = PeerConfiguration()
  ) -> VirtualCall {
    let call = VirtualCall(
      seed: seed, links: [link, link], configurations: [configuration, configuration])
    #expect(call.addLayers(encodings, pattern) == 1)
    #expect(call.negotiate(edit: VirtualCall.accepting(layers)) == nil)
    call.run(for: .seconds(seconds))
    return call
  }

  private func stats(_ call: VirtualCall, _ type: String) -> [StatsObject] {
    guard case .stats(let report) = call.call(0, .getStats()) else { return [] }
    return report.objects.filter { $0.type == type }
  }

  private func sent(_ call: VirtualCall, since count: Int = 0) -> [Int: Int] {
    var frames: [Int: Int] = [:]
    for frame in call.frames(of: 0, kind: .video, isInbound: false).dropFirst(count) {
      frames[frame.width, default: 0] += 1
    }
    return frames
  }

  private func set(
    _ call: VirtualCall, _ change: (inout [RTPEncoding]) -> Void
  ) throws -> PeerError? {
    guard case .parameters(var parameters) = call.call(0, .getParameters(transceiver: 1)) else {
      throw PeerError(name: "TestError", message: "no parameters")
    }
    change(&parameters.encodings)
    return call.call(0, .setParameters(transceiver: 1, parameters)).error
  }

  @Test func eachLayerIsSentInItsSizeAndTheLargestIsShown() throws {
    let call = Self.call()
    let frames = sent(call)
    #expect(frames.keys.sorted() == [80, 160, 320])
    #expect(frames.values.allSatisfy { $0 > 35 }, "\(frames)")
    let shown = call.frames(of: 1, kind: .video, isInbound: true)
    #expect(shown.count > 35 && shown.suffix(20).allSatisfy { $0.width == 320 })
    let outbound = stats(call, "outbound-rtp")
    #expect(outbound.map { $0["rid"] } == ["q", "h", "f"].map { .text($0) })
    #expect(outbound.map { $0["frameWidth"] } == [80, 160, 320].map { .integer($0) })
    #expect(outbound.map { $0["encodingIndex"] } == [0, 1, 2].map { .integer($0) })
    #expect(outbound.allSatisfy { $0["active"] == .flag(true) })
    #expect(Set(outbound.compactMap { $0["ssrc"] }).count == 3)
    #expect(stats(call, "remote-inbound-rtp").count == 3)
    #expect(stats(call, "media-source").count == 1)
  }

  @Test(.enabled(if: LibraryCodecs.openH264Version != nil, "this build has no OpenH264"))
  func layersAreEncodedInH264Too() throws {
    var configuration = PeerConfiguration()
    configuration.encoders = LibraryCodecs.furtherEncoders
    configuration.decoders = LibraryCodecs.furtherDecoders
    let call = VirtualCall(seed: 62, configurations: [configuration, configuration])
    #expect(call.addLayers(Self.encodings, Self.pattern) == 1)
    let codecs = RTPCodec.capabilities(.video).filter {
      ["video/H264", "video/rtx"].contains($0.mimeType)
    }
    #expect(call.call(0, .setCodecPreferences(transceiver: 1, codecs)).error == nil)
    #expect(call.negotiate(edit: VirtualCall.accepting("q;h;f")) == nil)
    call.run(for: .seconds(3))
    #expect(sent(call).keys.sorted() == [80, 160, 320])
    #expect(sent(call).values.allSatisfy { $0 > 25 }, "\(sent(call))")
    let shown = call.frames(of: 1, kind: .video, isInbound: true)
    #expect(shown.count > 25 && shown.suffix(15).allSatisfy { $0.width == 320 })
    #expect(shown.allSatisfy { $0.codec == .h264 && $0.outcome == "decoded" })
  }

  @Test func layersAreSwitchedOffAndOnDuringTheCall() throws {
    let call = Self.call()
    #expect(try set(call) { $0[2].active = false } == nil)
    let count = call.frames(of: 0, kind: .video, isInbound: false).count
    call.run(for: .seconds(3))
    #expect(sent(call, since: count)[320] == nil)
    #expect(sent(call, since: count)[160] ?? 0 > 35)
    let active = stats(call, "outbound-rtp").map { $0["active"] }
    #expect(active == [true, true, false].map { .flag($0) })
    // The remaining layer is shown, from a key frame on.
    #expect(call.frames(of: 1, kind: .video, isInbound: true).last?.width == 160)
    #expect(
      try set(call) { encodings in
        encodings[2].active = true
        encodings[0].maxFramerate = 5
      } == nil)
    let again = call.frames(of: 0, kind: .video, isInbound: false).count
    call.run(for: .seconds(2))
    // The resumed layer starts with a key frame, the others need none.
    let keys = call.frames(of: 0, kind: .video, isInbound: false).dropFirst(again).filter(\.isKey)
    #expect(Set(keys.map(\.width)) == [320])
    let frames = sent(call, since: again)
    #expect(frames[320] ?? 0 > 25 && (8...12).contains(frames[80] ?? 0), "\(frames)")
    #expect(call.frames(of: 1, kind: .video, isInbound: true).last?.width == 320)
  }

  @Test func layersThatAnAnswerRefusesAreRemoved() throws {
    let call = Self.call(taking: "f;~q")
    #expect(sent(call).keys.sorted() == [320])
    guard case .parameters(let parameters) = call.call(0, .getParameters(transceiver: 1)) else {
      return
    }
    #expect(parameters.encodings.map(\.rid) == ["q", "f"])
  }

  @Test func aPeerWithoutSimulcastReceivesTheFirstLayer() throws {
    let call = VirtualCall(seed: 61, links: [LinkSettings(), LinkSettings()])
    call.addLayers(Self.encodings.reversed(), Self.pattern)
    #expect(call.negotiate() == nil)
    call.run(for: .seconds(2))
    #expect(sent(call).keys.sorted() == [320])
    #expect(call.frames(of: 1, kind: .video, isInbound: true).count > 20)
    #expect(stats(call, "outbound-rtp").map { $0["rid"] } == [nil])
    // Another exchange changes nothing.
    #expect(call.negotiate() == nil)
    let count = call.frames(of: 0, kind: .video, isInbound: false).count
    call.run(for: .seconds(2))
    #expect(sent(call, since: count)[320] ?? 0 > 25)
  }

  @Test func upperLayersWaitForEnoughBandwidth() throws {
    let call = Self.call()
    call.call(0, .limitBitrate(minimum: nil, current: nil, maximum: 60_000))
    call.run(for: .seconds(1))
    let count = call.frames(of: 0, kind: .video, isInbound: false).count
    call.run(for: .seconds(3))
    #expect(sent(call, since: count)[320] == nil && sent(call, since: count)[80] ?? 0 > 35)
    let top = try #require(stats(call, "outbound-rtp").last)
    #expect(top["qualityLimitationReason"] == .text("bandwidth"))
    #expect(top["active"] == .flag(true))
    call.call(0, .limitBitrate(minimum: nil, current: 1_000_000, maximum: 2_000_000))
    call.run(for: .seconds(3))
    #expect(sent(call, since: count)[320] ?? 0 > 25)
  }

  @Test func lossesAreRepairedOnEachLayer() throws {
    var link = LinkSettings()
    link.lossPerMille = 50
    link.delay = .milliseconds(20)
    let call = Self.call(seed: 62, link: link, seconds: 6)
    let resent = stats(call, "outbound-rtp").compactMap { object -> Int64? in
      guard case .integer(let count)? = object["retransmittedPacketsSent"] else { return nil }
      return count
    }
    #expect(resent.count == 3 && resent.allSatisfy { $0 > 0 }, "\(resent)")
    #expect(call.frames(of: 1, kind: .video, isInbound: true).count { $0.width == 320 } > 60)
  }

  @Test func scalabilityModesDetermineTheTemporalLayers() throws {
    let encodings = [
      RTPEncoding(rid: "q", scalabilityMode: "L1T3"),
      RTPEncoding(rid: "h", scalabilityMode: "L1T2"),
      RTPEncoding(rid: "f"),
    ]
    let call = Self.call(encodings, seconds: 2)
    let modes = stats(call, "outbound-rtp").map { $0["scalabilityMode"] }
    #expect(modes == ["L1T3", "L1T2", "L1T1"].map { .text($0) })
    #expect(call.frames(of: 1, kind: .video, isInbound: true).count > 20)
    #expect(try set(call) { $0[0].scalabilityMode = "L3T3" }?.name == "OperationError")
    #expect(try set(call) { $0[2].scalabilityMode = "L1T3" } == nil)
    let count = call.frames(of: 0, kind: .video, isInbound: false).count
    call.run(for: .seconds(1))
    let keys = call.frames(of: 0, kind: .video, isInbound: false).dropFirst(count).filter(\.isKey)
    #expect(keys.map(\.width) == [320])
  }

  @Test(arguments: [
    [RTPEncoding(), RTPEncoding(rid: "a")], [RTPEncoding(rid: "a"), RTPEncoding(rid: "a")],
    [RTPEncoding(rid: "a"), RTPEncoding(rid: "b c")], [RTPEncoding(), RTPEncoding()],
  ])
  func encodingsWithoutUniqueNamesAreRefused(encodings: [RTPEncoding]) {
    let call = VirtualCall(seed: 1, links: [LinkSettings()])
    let reply = call.call(
      0,
      .addTransceiver(
        kind: .video, direction: .sendonly, streamIDs: [], source: nil, sendEncodings: encodings))
    #expect(reply.error?.name == "TypeError")
  }

  @Test func encodingsAreHalvedByDefault() throws {
    let named = ["a", "b", "c", "d"].map { RTPEncoding(rid: $0) }
    #expect(try RTPEncoding.suited(named, to: .video).map(\.scaleResolutionDownBy) == [4, 2, 1])
    #expect(try RTPEncoding.suited(named, to: .audio) == [RTPEncoding()])
    #expect(try RTPEncoding.suited(Array(named.prefix(1)), to: .video)[0].rid == nil)
  }

  @Test func bitrateIsAssignedToTheLowestLayersFirst() {
    func shares(_ total: UInt64, sent: Int = 3) -> [UInt64] {
      LayerAllocation.shares(
        of: total,
        [200_000, 600_000, 2_400_000].enumerated().map {
          LayerAllocation.Layer(target: $1, isSent: $0 < sent)
        })
    }
    #expect(shares(5_000_000) == [200_000, 600_000, 2_400_000])
    #expect(shares(1_000_000) == [200_000, 200_000, 600_000])
    #expect(shares(999_999) == [200_000, 600_000, 0])
    #expect(shares(1_000_000, sent: 2) == [200_000, 600_000, 0])
    #expect(shares(1_060_000, sent: 2) == [200_000, 260_000, 600_000])
    #expect(shares(30_000) == [30_000, 0, 0] && shares(0) == [1, 0, 0])
    #expect(LayerAllocation.target(width: 1280, height: 720, dividedBy: 4) == 200_520)
  }

  // MARK: Shown layer

  private func frame(_ ssrc: UInt32, _ width: Int? = nil, at seconds: Int64) -> ReceivedFrame {
    var bytes: [UInt8] = [width == nil ? 1 : 0, 0, 0, 0x9d, 0x01, 0x2a]
    bytes += [UInt8((width ?? 0) & 0xff), UInt8((width ?? 0) >> 8), 90, 0]
    bytes += [UInt8](repeating: 0, count: 40)
    var frame = ReceivedFrame(
      mid: "0", ssrc: ssrc, kind: .video, codec: .vp8, payloadType: 96, firstSequence: 0,
      lastSequence: 0, rtpTime: 0, extendedTime: 0, firstArrival: .zero,
      lastArrival: .zero + .seconds(seconds), bytes: bytes, isKey: width != nil)
    frame.rid = String(ssrc)
    return frame
  }

  @Test func theLargestLayerThatArrivesIsShown() {
    var choice = LayerChoice()
    #expect(choice.decide(frame(1, at: 0)) == .needsKey)
    #expect(choice.decide(frame(1, 80, at: 0)) == .shown)
    #expect(choice.decide(frame(2, at: 0)) == .passedOver)
    #expect(choice.decide(frame(2, 320, at: 0)) == .shown)
    #expect(choice.decide(frame(1, 80, at: 1)) == .passedOver && choice.shows(2, of: "0"))
    #expect(choice.decide(frame(1, at: 2)) == .needsKey)
    #expect(choice.decide(frame(1, 80, at: 2)) == .shown && !choice.shows(2, of: "0"))
    choice.retain([])
    #expect(choice.shows(2, of: "0"))
  }

  // MARK: Offers that request layers

  /// Makes a call whose second peer sends an added track, and whose first peer requests layers.
  private func asked(for layers: String, isEnabled: Bool? = nil) -> VirtualCall {
    var configuration = PeerConfiguration()
    configuration.takesOfferedLayers = true
    let call = VirtualCall(
      seed: 64, links: [LinkSettings(), LinkSettings()],
      configurations: [PeerConfiguration(), configuration])
    call.call(
      0,
      .addTransceiver(kind: .video, direction: .recvonly, streamIDs: [], source: nil))
    call.call(
      1,
      .addTrack(kind: .video, streamIDs: ["s"], source: Self.pattern, isEnabled: isEnabled))
    #expect(call.negotiate(edit: layers.isEmpty ? { $0 } : VirtualCall.accepting(layers)) == nil)
    return call
  }

  @Test func anOfferDeterminesTheLayersOfATrack() throws {
    let call = asked(for: "r0;r1;r2")
    call.run(for: .seconds(3))
    var widths: [Int: Int] = [:]
    for frame in call.frames(of: 1, kind: .video, isInbound: false) {
      widths[frame.width, default: 0] += 1
    }
    #expect(widths.keys.sorted() == [80, 160, 320])
    #expect(widths.values.allSatisfy { $0 > 35 }, "\(widths)")
    guard case .parameters(let parameters) = call.call(1, .getParameters(transceiver: 1)) else {
      Issue.record("no parameters")
      return
    }
    #expect(parameters.encodings.map(\.rid) == ["r0", "r1", "r2"])
    #expect(parameters.encodings.map(\.scaleResolutionDownBy) == [4, 2, 1])
  }

  @Test func withoutLayersInTheOfferATrackIsASingleStream() throws {
    let call = asked(for: "")
    call.run(for: .seconds(1))
    let frames = call.frames(of: 1, kind: .video, isInbound: false)
    #expect(frames.count > 10 && frames.allSatisfy { $0.width == 320 })
  }

  @Test func aDisabledTrackStaysDisabledInLayers() throws {
    let call = asked(for: "r0;r1;r2", isEnabled: false)
    call.run(for: .seconds(2))
    guard case .stats(let report) = call.call(1, .getStats()) else { return }
    let outbound = report.objects.filter { $0.type == "outbound-rtp" }
    #expect(outbound.count == 3)
    // Black frames need next to nothing (W3C MediaStreamTrack.enabled).
    let whole = asked(for: "r0;r1;r2")
    whole.run(for: .seconds(2))
    func bytes(_ call: VirtualCall) -> Int {
      call.frames(of: 1, kind: .video, isInbound: false).reduce(0) { $0 + $1.bytes.count }
    }
    #expect(bytes(call) * 4 < bytes(whole))
  }

  @Test func layersFromAnOfferAreRolledBack() throws {
    var configuration = PeerConfiguration()
    configuration.takesOfferedLayers = true
    let call = VirtualCall(
      seed: 65, links: [LinkSettings(), LinkSettings()],
      configurations: [PeerConfiguration(), configuration])
    call.call(
      0, .addTransceiver(kind: .video, direction: .recvonly, streamIDs: [], source: nil))
    call.call(1, .addTrack(kind: .video, streamIDs: ["s"], source: Self.pattern))
    call.call(0, .setLocalDescription(nil))
    guard case .description(var offer) = call.call(0, .localDescription) else { return }
    let plain = offer
    offer.sdp = VirtualCall.accepting("r0;r1")(offer.sdp)
    func rids() -> [String?] {
      guard case .parameters(let parameters) = call.call(1, .getParameters(transceiver: 1)) else {
        return []
      }
      return parameters.encodings.map(\.rid)
    }
    #expect(call.call(1, .setRemoteDescription(offer)).error == nil)
    #expect(rids() == ["r0", "r1"])
    let rollback = SessionDescription(type: .rollback, sdp: "")
    #expect(call.call(1, .setRemoteDescription(rollback)).error == nil)
    #expect(rids() == [nil])
    #expect(call.call(1, .setRemoteDescription(plain)).error == nil)
    #expect(call.call(1, .setLocalDescription(nil)).error == nil)
    guard case .description(let answer) = call.call(1, .localDescription) else { return }
    #expect(call.call(0, .setRemoteDescription(answer)).error == nil)
    call.run(for: .seconds(1))
    let frames = call.frames(of: 1, kind: .video, isInbound: false)
    #expect(frames.count > 10 && frames.allSatisfy { $0.width == 320 })
  }
}
