import Retake
import RetakeRTC
import RetakeTesting
import Synchronization
import Testing

/// Tests an application's own codecs, and a view that shows their output (PX1, TW13, GU16).
@Suite(.timeLimit(.minutes(10)), .serialized) struct CodecFactoryTests {
  @Test func anApplicationsCodecsAreCalledAndNamedInTheTake() async throws {
    let folder = FileManager.default.temporaryDirectory.path + "/rtc-\(UUID().uuidString)"
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: folder) }
    let path = folder + "/call.take"
    let session = try LoopbackPair.session(take: path)
    let pair = try LoopbackPair(session: session, codecs: GreyCodecs())
    let source = pair.factory.videoSource()
    let track = pair.factory.videoTrack(with: source, trackId: "v")
    pair.caller.add(track, streamIds: ["s"])
    try await pair.connect()
    let received = try #require(pair.calleeHears.streams.first?.videoTracks.first)
    let view = RTCMTLVideoView(frame: CGRect(x: 0, y: 0, width: 320, height: 320))
    let sizes = SizeListener()
    view.delegate = sizes
    #expect(view.videoFrame == nil && view.videoRect == nil)
    received.add(view)
    let capturer = RTCVideoCapturer(delegate: source)
    var number: Int64 = 0
    // Captures frames one at a time, each as soon as the previous one has been sent.
    while view.videoFrame == nil {
      number += 1
      let frame = RTCVideoFrame(
        buffer: RTCI420Buffer(width: 64, height: 48), rotation: ._0,
        timeStampNs: number * 40_000_000)
      source.capturer(capturer, didCapture: frame)
      _ = await pair.caller.statistics()
    }
    // The application's decoder fills the frame with its mean brightness.
    #expect(view.videoFrame?.buffer.toI420().dataY.allSatisfy { $0 == 77 } == true)
    #expect(sizes.told.log == ["64x48"])
    view.videoContentMode = .scaleAspectFit
    #expect(view.videoRect == CGRect(x: 0, y: 40, width: 320, height: 240))
    view.rotationOverride = ._90
    #expect(view.videoRect == CGRect(x: 40, y: 0, width: 240, height: 320))
    view.videoContentMode = .scaleToFill
    #expect(view.videoRect == CGRect(x: 0, y: 0, width: 320, height: 320))
    view.isEnabled = false
    pair.caller.close()
    pair.callee.close()
    try await session.finish()
    let take = try Take.open(path)
    let genesis = try take.query("SELECT configuration FROM peer", as: String.self).all()
    #expect(genesis.count == 2)
    #expect(genesis.allSatisfy { $0.contains(#""implementation":"grey""#) })
    // Without the codecs, the take's recorded frames replace them.
    #expect(try await take.replay().isIdentical)
  }

  @Test func theLibrarysFactoriesChangeNothing() throws {
    let factory = RTCPeerConnectionFactory(
      session: try LoopbackPair.session(), encoderFactory: RTCDefaultVideoEncoderFactory(),
      decoderFactory: RTCDefaultVideoDecoderFactory())
    let connection = factory.peerConnection(
      with: RTCConfiguration(), constraints: LoopbackPair.none, delegate: nil)
    #expect(connection != nil)
    // H.264 is available if the build has OpenH264.
    let names = RTCDefaultVideoEncoderFactory().supportedCodecs().map(\.name)
    #expect([["VP8", "VP9"], ["VP8", "VP9", "H264"]].contains(names))
    connection?.close()
  }

  private final class SizeListener: RTCVideoViewDelegate {
    let told = Told()

    func videoView(_ videoView: any RTCVideoRenderer, didChangeVideoSize size: CGSize) {
      told.note("\(Int(size.width))x\(Int(size.height))")
    }
  }
}

/// A codec that keeps only the mean brightness, in frames with VP8 headers.
final class GreyCodecs: RTCVideoEncoderFactory, RTCVideoDecoderFactory {
  func createEncoder(_ info: RTCVideoCodecInfo) -> (any RTCVideoEncoder)? { Encoder() }
  func createDecoder(_ info: RTCVideoCodecInfo) -> (any RTCVideoDecoder)? { Decoder() }
  func supportedCodecs() -> [RTCVideoCodecInfo] {
    [RTCVideoCodecInfo(name: kRTCVideoCodecVp8Name)]
  }

  private final class Encoder: RTCVideoEncoder {
    private var callback: RTCVideoEncoderCallback?
    private var size = (width: 0, height: 0)

    func setCallback(_ callback: RTCVideoEncoderCallback?) { self.callback = callback }
    func startEncode(with settings: RTCVideoEncoderSettings, numberOfCores: Int32) -> Int {
      size = (Int(settings.width), Int(settings.height))
      return settings.name == "VP8" ? 0 : -1
    }
    func release() -> Int { 0 }
    func encode(
      _ frame: RTCVideoFrame, codecSpecificInfo info: (any RTCCodecSpecificInfo)?,
      frameTypes: [NSNumber]
    ) -> Int {
      // A frame tag and a key frame's start code with the size (RFC 6386 section 9.1).
      let sides = [size.width, size.height].flatMap { [UInt8($0 & 0xff), UInt8($0 >> 8)] }
      let image = RTCEncodedImage(
        buffer: Data([0x10, 2, 0, 0x9d, 0x01, 0x2a] + sides + [77]), encodedWidth: frame.width,
        encodedHeight: frame.height, timeStamp: UInt32(bitPattern: frame.timeStamp),
        frameType: .videoFrameKey, qp: 3)
      return callback?(image, nil) == true ? 0 : -1
    }
    func setBitrate(_ bitrateKbit: UInt32, framerate: UInt32) -> Int32 { 0 }
    func implementationName() -> String { "grey" }
  }

  private final class Decoder: RTCVideoDecoder {
    private var callback: RTCVideoDecoderCallback?

    func setCallback(_ callback: @escaping RTCVideoDecoderCallback) { self.callback = callback }
    func startDecode(withNumberOfCores numberOfCores: Int32) -> Int { 0 }
    func release() -> Int { 0 }
    func decode(
      _ encodedImage: RTCEncodedImage, missingFrames: Bool,
      codecSpecificInfo info: (any RTCCodecSpecificInfo)?, renderTimeMs: Int64
    ) -> Int {
      let bytes = [UInt8](encodedImage.buffer)
      guard bytes.count == 11 else { return -1 }
      let (width, height) = (Int(bytes[6]), Int(bytes[8]))
      let count = width * height
      let planes =
        [UInt8](repeating: bytes[10], count: count) + [UInt8](repeating: 128, count: count / 2)
      let pixels = CVPixelBuffer(
        width: width, height: height, pixelFormat: kCVPixelFormatType_420YpCbCr8Planar,
        bytes: planes)
      callback?(RTCVideoFrame(pixelBuffer: pixels, rotation: ._0, timeStampNs: 0))
      return 0
    }
    func implementationName() -> String { "grey" }
  }
}
