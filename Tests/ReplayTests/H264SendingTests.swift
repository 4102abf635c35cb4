import Foundation
import JSEP
import Lab
import Media
import Peer
import RTP
import Tape
import Testing
import Wire

@testable import Replay

/// Tests that video frames are encoded in H.264 if it was negotiated and genesis enables it.
@Suite(.enabled(if: LibraryCodecs.openH264Version != nil, "this build has no OpenH264"))
struct H264SendingTests {
  private var configuration: PeerConfiguration {
    var configuration = PeerConfiguration()
    configuration.encoders = LibraryCodecs.furtherEncoders
    configuration.decoders = LibraryCodecs.furtherDecoders
    return configuration
  }

  private func codecs(_ names: [String], mode: String? = nil) -> [RTPCodec] {
    names.flatMap { name in
      RTPCodec.capabilities(.video).filter { codec in
        codec.mimeType == "video/" + name
          && (mode.map { codec.sdpFmtpLine?.contains("packetization-mode=" + $0) != false } ?? true)
      }
    }
  }

  /// Records a call in which the first peer sends a pattern and prefers some codecs.
  private func recorded(
    preferring codecs: [RTPCodec], source: MediaSource, seed: UInt64 = 21,
    during: (VirtualCall) -> Void
  ) throws -> (call: VirtualCall, path: String) {
    let path = FileManager.default.temporaryDirectory.path + "/\(UUID().uuidString).take"
    let recording = try RecordedVirtualCall(
      path: path, seed: seed, links: [LinkSettings(), LinkSettings()], labels: ["a", "b"],
      configurations: [configuration, configuration])
    let call = recording.call
    call.call(0, .addTrack(kind: .video, streamIDs: ["s"], source: source))
    #expect(call.call(0, .setCodecPreferences(transceiver: 1, codecs)).error == nil)
    #expect(call.negotiate() == nil)
    during(call)
    call.call(0, .getStats())
    _ = try recording.finish()
    return (call, path)
  }

  private let pattern = MediaSource.pattern(width: 320, height: 180, framesPerSecond: 15)

  @Test func aCameraIsSentInH264WhereThatIsPreferredAndReplays() throws {
    let (call, path) = try recorded(
      preferring: codecs(["H264", "VP8", "rtx"]), source: pattern
    ) { $0.run(for: .seconds(3)) }
    defer { try? FileManager.default.removeItem(atPath: path) }
    let sent = call.frames(of: 0, kind: .video, isInbound: false)
    #expect(sent.count > 30 && sent.allSatisfy { $0.codec == .h264 && $0.outcome == "encoded" })
    let shown = call.frames(of: 1, kind: .video, isInbound: true)
    #expect(shown.count > 30 && shown.allSatisfy { $0.outcome == "decoded" && $0.width == 320 })
    let report = try replay(path, Replayer.Options())
    if case .identical = report.verdict {} else { Issue.record("\(report)") }
    let take = try TakeFile.open(path)
    let told = try take.integer(
      "SELECT count(*) FROM stat WHERE type = 'outbound-rtp' AND members ->> 'qpSum' > 0"
        + " AND members ->> 'encoderImplementation' = 'OpenH264'")
    #expect(told ?? 0 > 0)
    // On a machine with another OpenH264, the recorded frames replace encoding, and the rest is
    // compared.
    let header = try TapeReader(path: path).header
    #expect(header.toolchain.openh264 == LibraryCodecs.openH264Version)
    var other = header.toolchain
    other.openh264 = "openh264 9.9.9"
    let substitution = try Substitution(of: path, header, by: other)
    #expect(substitution.skipsCodecs && substitution.isReplayable)
  }

  /// The peer offers H.264 alone, in packetization mode 0 or 1.
  @Test(arguments: ["0", "1"])
  func h264IsSentIfThePeerAcceptsNothingElse(mode: String) throws {
    let (call, path) = try recorded(
      preferring: codecs(["H264", "rtx"], mode: mode),
      source: .pattern(width: 640, height: 360, framesPerSecond: 15)
    ) { $0.run(for: .seconds(2)) }
    defer { try? FileManager.default.removeItem(atPath: path) }
    let shown = call.frames(of: 1, kind: .video, isInbound: true)
    #expect(shown.count > 15 && shown.allSatisfy { $0.outcome == "decoded" && $0.width == 640 })
    let fragments = try TakeFile.open(path).integer(
      "SELECT count(*) FROM format WHERE codec = 'h264' AND outcome = 'encoded'")
    #expect(fragments ?? 0 > 0)
    let report = try replay(path, Replayer.Options())
    if case .identical = report.verdict {} else { Issue.record("\(report)") }
  }

  /// The application may switch between raw and encoded frames during the call.
  @Test func framesAreEncodedOrPassedOn() throws {
    let encoder = try LibraryCodecs().videoEncoder(
      track: "1",
      VideoSettings(codec: .h264, width: 320, height: 180, framesPerSecond: 10, bitrate: 300_000))
    let pattern = TestPattern(width: 320, height: 180)
    let (call, path) = try recorded(
      preferring: codecs(["H264", "rtx"]), source: .application
    ) { call in
      call.run(for: .milliseconds(500))
      for number in 0..<40 {
        call.run(for: .milliseconds(100))
        let frame = pattern.videoFrame(Int64(number))
        guard (10..<20).contains(number) else {
          call.step(0, .captured(transceiver: 1, .videoFrame(frame)))
          continue
        }
        let made = try? encoder.encode(
          frame, mediaTime: UInt32(number) * 9000, forceKey: number == 10)
        if let made = made ?? nil {
          call.step(0, .captured(transceiver: 1, .encoded(.h264, made.bytes)))
        }
      }
      call.run(for: .milliseconds(300))
    }
    defer { try? FileManager.default.removeItem(atPath: path) }
    let outcomes = call.frames(of: 0, kind: .video, isInbound: false).map(\.outcome)
    #expect(outcomes.filter { $0 == "passed on" }.count >= 8)
    #expect(outcomes.first == "encoded" && outcomes.last == "encoded")
    let shown = call.frames(of: 1, kind: .video, isInbound: true)
    #expect(shown.count > 25 && shown.allSatisfy { $0.outcome == "decoded" })
    let report = try replay(path, Replayer.Options())
    if case .identical = report.verdict {} else { Issue.record("\(report)") }
  }

  /// A peer whose genesis lists no encoders offers and refuses codecs as earlier versions did.
  @Test func withoutEncodersInGenesisNothingIsEncoded() throws {
    let call = VirtualCall(seed: 5)
    call.call(0, .addTrack(kind: .video, streamIDs: ["s"], source: pattern))
    #expect(call.call(0, .setCodecPreferences(transceiver: 1, codecs(["H264"]))).error == nil)
    #expect(call.negotiate() == nil)
    call.run(for: .seconds(1))
    #expect(call.frames(of: 0, kind: .video, isInbound: false).isEmpty)
  }
}
