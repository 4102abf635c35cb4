import Foundation
import Retake
import Synchronization
import Testing

/// PX1, TW13: tests an application's own codecs in a call and in its replay.
@Suite(.timeLimit(.minutes(10))) struct OwnCodecTests {
  @Test func ownCodecsAreNamedInGenesisAndTheirFramesReplaceMissingOnes() async throws {
    let folder = FileManager.default.temporaryDirectory.path + "/own-" + UUID().uuidString
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: folder) }
    let path = folder + "/call.take"
    let shown = try await call(path)
    // The application's own decoder produces the received frames, each of one brightness.
    #expect(shown.count >= 3)
    #expect(shown.allSatisfy { Set($0.samples).count == 1 && $0.width == 64 })
    let take = try Take.open(path)
    let genesis = try take.query("SELECT configuration FROM peer", as: String.self).all()
    #expect(genesis.allSatisfy { $0.contains(#""implementation":"grey""#) })
    // With the codecs, a replay executes everything; without them, it uses the take's frames.
    let whole = try await take.replay(
      encoderFactory: Grey.Factory(), decoderFactory: Grey.Factory())
    #expect(whole.isIdentical)
    #expect(try await take.replay().isIdentical)
    // The encoder factory alone is not enough to execute everything.
    #expect(try await take.replay(encoderFactory: Grey.Factory()).isIdentical)
  }

  private func call(_ path: String) async throws -> [I420Buffer] {
    var options = Session.Options()
    options.takePath = path
    options.bind = .addresses([IPAddress(ipv4: 0x7f00_0001)])
    let factory = try PeerConnectionFactory(
      encoderFactory: Grey.Factory(), decoderFactory: Grey.Factory(), options: options)
    let caller = factory.peerConnection(label: "caller")
    let callee = factory.peerConnection(label: "callee")
    let source = VideoSource(.pattern(width: 64, height: 48, framesPerSecond: 25))
    try await caller.addTrack(LocalVideoTrack(source: source, id: "camera"), streamIDs: ["s"])
    try await caller.setLocalDescription()
    try await caller.waitForGatheringComplete(timeout: .seconds(120))
    try await callee.setRemoteDescription(try #require(try await caller.localDescription))
    try await callee.setLocalDescription()
    try await callee.waitForGatheringComplete(timeout: .seconds(120))
    let screen = Screen()
    let track = try #require(callee.remoteTrack(id: "camera") as? RemoteVideoTrack)
    track.add(screen)
    try await caller.setRemoteDescription(try #require(try await callee.localDescription))
    for await _ in screen.frames where screen.shown.withLock({ $0.count }) >= 5 { break }
    try await factory.finish()
    return screen.shown.withLock { $0 }
  }

  private final class Screen: VideoRenderer {
    let shown = Mutex<[I420Buffer]>([])
    let frames: AsyncStream<Void>
    private let note: AsyncStream<Void>.Continuation

    init() { (frames, note) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1)) }

    func setSize(width: Int, height: Int) {}
    func renderFrame(_ frame: VideoFrame?) {
      if let frame { shown.withLock { $0.append(frame.videoFrame()) } }
      note.yield()
    }
  }
}

/// A codec that keeps a video frame's mean brightness, in frames with VP8 headers.
private enum Grey {
  struct Factory: VideoEncoderFactory, VideoDecoderFactory {
    let implementationName = "grey"
    let supportedCodecs = ["vp8"]

    func makeEncoder(_ settings: VideoEncoderSettings) throws(VideoCodecError) -> any VideoEncoder {
      Encoder()
    }
    func makeDecoder(_ codec: String) throws(VideoCodecError) -> any VideoDecoder { Decoder() }
  }

  final class Encoder: VideoEncoder {
    func encode(_ frame: I420Buffer, mediaTime: UInt32, needsKey: Bool) throws(VideoCodecError)
      -> EncodedVideoFrame?
    {
      let luma = frame.samples.prefix(frame.width * frame.height)
      let mean = UInt8(luma.reduce(0) { $0 + Int($1) } / max(1, luma.count))
      // A frame tag and a key frame's start code with the size (RFC 6386 section 9.1).
      let size = [frame.width, frame.height].flatMap { [UInt8($0 & 0xff), UInt8($0 >> 8)] }
      return EncodedVideoFrame(
        bytes: [0x10, 2, 0, 0x9d, 0x01, 0x2a] + size + [mean], isKey: true, quantiser: 3)
    }
    func setBitrate(_ bitsPerSecond: UInt64) {}
  }

  final class Decoder: VideoDecoder {
    func decode(_ bytes: [UInt8]) throws(VideoCodecError) -> I420Buffer {
      guard bytes.count == 11 else { throw VideoCodecError(reason: "not a grey frame") }
      let (width, height) = (Int(bytes[6]), Int(bytes[8]))
      return I420Buffer(
        width: width, height: height,
        samples: [UInt8](
          repeating: bytes[10], count: I420Buffer.byteCount(width: width, height: height)))
    }
  }
}
