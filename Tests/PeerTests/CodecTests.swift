import JSEP
import Lab
import Media
import RTP
import SDP
import Stats
import Testing
import Wire

@testable import Peer

/// Tests calls with video codecs other than VP8.
struct CodecTests {
  private static let codecs = RTPCodec.capabilities(.video)

  private func prefer(_ names: [String], _ call: VirtualCall) {
    let chosen = names.flatMap { name in Self.codecs.filter { $0.mimeType == "video/" + name } }
    let reply = call.call(0, .setCodecPreferences(transceiver: 2, chosen))
    if case .failure(let error) = reply { Issue.record("\(error)") }
  }

  private func call(_ names: [String], seed: UInt64) -> VirtualCall {
    let call = VirtualCall(seed: seed)
    call.addMedia(videoFrames: .pattern(width: 160, height: 120, framesPerSecond: 15))
    prefer(names, call)
    #expect(call.negotiate() == nil)
    call.run(for: .seconds(2))
    return call
  }

  /// Returns the MIME types of the codecs in use, as in getStats.
  private func codecs(_ call: VirtualCall) -> [String] {
    guard case .stats(let report) = call.call(1, .getStats()) else { return [] }
    return report.objects.compactMap { $0["mimeType"]?.text }
  }

  @Test func vp9IsSentAndDecodedWhereItIsPreferred() throws {
    let call = call(["VP9", "VP8", "rtx"], seed: 91)
    for peer in 0..<2 {
      let frames = call.frames(of: peer, kind: .video, isInbound: true)
      #expect(frames.count > 20)
      #expect(frames.allSatisfy { $0.codec == .vp9 && $0.outcome == "decoded" && $0.width == 160 })
      #expect(frames.filter(\.isKey).count == 1)
    }
    #expect(codecs(call).contains("video/VP9") && !codecs(call).contains("video/VP8"))
  }

  @Test func anotherCodecTakesOverInARunningCall() throws {
    let call = call(["VP8", "VP9", "rtx"], seed: 92)
    prefer(["VP9", "rtx"], call)
    #expect(call.negotiate() == nil)
    call.run(for: .seconds(2))
    for peer in 0..<2 {
      let frames = call.frames(of: peer, kind: .video, isInbound: true)
      let change = try #require(frames.firstIndex { $0.codec == .vp9 })
      #expect(change > 20 && frames.count - change > 20)
      #expect(frames[..<change].allSatisfy { $0.codec == .vp8 && $0.outcome == "decoded" })
      #expect(frames[change...].allSatisfy { $0.codec == .vp9 && $0.outcome == "decoded" })
    }
  }

  @Test func aCodecWithoutAnEncoderIsRefusedInOneSentence() throws {
    let call = call(["H264"], seed: 93)
    for peer in 0..<2 {
      #expect(call.frames(of: peer, kind: .video, isInbound: false).isEmpty)
      #expect(call.state("connection", of: peer) == "connected")
      let reasons = call.events[peer].compactMap { entry -> String? in
        guard case .refused(let layer, let reason) = entry.event, layer == "encoder" else {
          return nil
        }
        return reason
      }
      #expect(reasons.count == 1 && reasons[0].contains("h264"))
    }
  }

  /// Codecs that are always decoded come before those that are passed through.
  @Test func theTableIsInOrder() {
    for kind in [MediaKind.audio, .video] {
      let passed = Codec.all.filter { $0.kind == kind }.map(\.isPassedThrough)
      #expect(passed == passed.filter { !$0 } + passed.filter(\.self))
    }
    #expect(Set(Codec.all.map(\.name)).count == Codec.all.count)
    #expect(Codec.all.filter(\.isUsual).map(\.spelling) == ["opus", "VP8", "VP9", "H264"])
    for codec in Codec.all where codec.isPassedThrough {
      #expect(codec.look != nil && codec.container != nil)
    }
  }
}
