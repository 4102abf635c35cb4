import AudioSession
import Live
import Media
import Peer
import Synchronization
import Testing
import Wire

@testable import RetakeRTC

/// Tests sources and tracks as classes, and how a source adapts its frames.
@Suite(.timeLimit(.minutes(10)), .serialized) struct SourceTests {
  /// Records the sizes and times of its frames.
  private final class Screen: RTCVideoRenderer {
    var shown: [RTCVideoFrame] = []
    func setSize(_ size: CGSize) {}
    func renderFrame(_ frame: RTCVideoFrame?) { if let frame { shown.append(frame) } }
  }

  private func frame(_ width: Int32, _ height: Int32, at milliseconds: Int64) -> RTCVideoFrame {
    RTCVideoFrame(
      buffer: RTCI420Buffer(width: width, height: height), rotation: ._0,
      timeStampNs: milliseconds * 1_000_000)
  }

  /// Returns the sizes to which a source adapts frames.
  private func adapted(
    _ width: Int32, _ height: Int32, _ fps: Int32, _ frames: [RTCVideoFrame]
  ) -> [RTCVideoFrame] {
    let factory = RTCPeerConnectionFactory(connections: [])
    let source = factory.videoSource()
    let track = factory.videoTrack(with: source, trackId: "v")
    let screen = Screen()
    track.add(screen)
    source.adaptOutputFormat(toWidth: width, height: height, fps: fps)
    let capturer = RTCVideoCapturer(delegate: source)
    for frame in frames { source.capturer(capturer, didCapture: frame) }
    return screen.shown
  }

  @Test func anOutputFormatCutsScalesAndLeavesOut() {
    let sizes = adapted(
      640, 480, 30, [frame(1_280, 720, at: 0), frame(480, 640, at: 100), frame(320, 240, at: 200)])
    // 1280x720 is first cropped to 960x720; for a portrait frame, the format's sides are swapped; a
    // small frame keeps its size.
    #expect(sizes.map { [$0.width, $0.height] } == [[640, 480], [480, 640], [320, 240]])
    let cut = adapted(320, 180, 30, [frame(320, 240, at: 0)])
    #expect(cut.map { [$0.width, $0.height] } == [[320, 180]])
    let slow = adapted(64, 48, 10, (0..<30).map { frame(64, 48, at: $0 * 33) })
    #expect((9...11).contains(slow.count), "\(slow.count)")
    // Neither a source whose times start again nor an invalid size stops the frames.
    let odd = adapted(0, -5, 0, [frame(64, 48, at: 90_000), frame(64, 48, at: 0)])
    #expect(odd.count == 2 && odd.allSatisfy { $0.width >= 1 && $0.height >= 1 })
  }

  @Test func tracksAndSourcesHaveBaseClasses() throws {
    let pair = try LoopbackPair()
    let source: RTCMediaSource = pair.factory.videoSource()
    #expect(source.state == .live)
    let tracks: [RTCMediaStreamTrack] = [
      pair.factory.audioTrack(withTrackId: "a"),
      pair.factory.videoTrack(with: pair.factory.videoSource(), trackId: "v"),
    ]
    #expect(tracks.map(\.kind) == [kRTCMediaStreamTrackKindAudio, kRTCMediaStreamTrackKindVideo])
    #expect(tracks[0] is RTCAudioTrack && (tracks[1] as? RTCVideoTrack)?.trackId == "v")
    for track in tracks { pair.caller.add(track, streamIds: ["s"]) }
    #expect(pair.caller.senders.compactMap(\.track) == tracks && Set(tracks).count == 2)
    #expect(tracks.allSatisfy { $0.isEnabled && $0.readyState == .live })
    pair.caller.close()
    pair.callee.close()
  }

  @Test func aRefusedConnectionWithoutConstraintsIsAClosedOne() async {
    let factory = RTCPeerConnectionFactory()
    let configuration = RTCConfiguration()
    configuration.sdpSemantics = .planB
    let connection = factory.peerConnection(with: configuration, constraints: nil, delegate: nil)
    #expect(connection.signalingState == .closed && connection.connectionState == .closed)
    await #expect(throws: RTCPeerConnectionError.self) {
      try await connection.offer(for: LoopbackPair.none)
    }
    connection.close()
  }

  @Test @MainActor func anApplicationOnTheMainActorIsCalledThere() async throws {
    let screen = OrdinaryScreen(
      factory: RTCPeerConnectionFactory(session: try LoopbackPair.session()))
    screen.call()
    while !screen.happened.contains("set") { await Task.yield() }
    #expect(screen.happened.filter { $0 != "negotiate" }.contains("signaling haveLocalOffer"))
    screen.peerConn?.close()
    try await screen.factory.finish()
  }

  @Test func addressesOfIPv6AreOmitted() async throws {
    var options = Session.Options()
    options.statsInterval = nil
    options.bind = .addresses(["127.0.0.1", "::1"].compactMap { IPAddress($0) })
    let factory = RTCPeerConnectionFactory(session: try Session(options))
    for disables in [false, true] {
      let configuration = RTCConfiguration()
      configuration.disableIPV6 = disables
      configuration.iceConnectionReceivingTimeout = 1_500
      let listener = Listener()
      let connection = try #require(
        factory.peerConnection(
          with: configuration, constraints: LoopbackPair.none, delegate: listener))
      connection.addTransceiver(of: .audio)
      try await connection.setLocalDescription()
      await listener.told.wait(for: "gathering complete")
      let sdp = connection.localDescription?.sdp ?? ""
      #expect(sdp.contains("127.0.0.1") && sdp.contains("::1") == !disables)
      #expect(connection.configuration.iceConnectionReceivingTimeout == 1_500)
      connection.close()
    }
    try await factory.finish()
  }

  @Test func poolsAndPrioritiesReachTheConnection() async throws {
    let configuration = RTCConfiguration()
    #expect(configuration.native?.iceCandidatePoolSize == nil)
    #expect(configuration.native?.enablesDSCP == nil)
    configuration.iceCandidatePoolSize = 2
    configuration.enableDscp = true
    #expect(configuration.native?.iceCandidatePoolSize == 2)
    #expect(configuration.native?.enablesDSCP == true)
    let factory = RTCPeerConnectionFactory(session: try LoopbackPair.session())
    let connection = try #require(
      factory.peerConnection(
        with: configuration, constraints: LoopbackPair.none, delegate: nil))
    #expect(connection.configuration.iceCandidatePoolSize == 2)
    #expect(connection.configuration.enableDscp)
    let sender = try #require(connection.addTransceiver(of: .audio)).sender
    let parameters = sender.parameters
    #expect(parameters.encodings.first?.networkPriority == .low)
    parameters.encodings.first?.networkPriority = .high
    sender.parameters = parameters
    #expect(sender.parameters.encodings.first?.networkPriority == .high)
    connection.close()
    try await factory.finish()
  }

  @Test func framesAreShownAsRGBA() {
    let white = CVPixelBuffer(
      width: 4, height: 2, pixelFormat: kCVPixelFormatType_420YpCbCr8BiPlanarVideoRange,
      bytes: Array(repeating: 235, count: 8) + Array(repeating: 128, count: 4))
    let frame = RTCVideoFrame(pixelBuffer: white, rotation: ._90, timeStampNs: 0)
    let pixels = frame.rgba()
    #expect(pixels.count == 32 && pixels.allSatisfy { $0 >= 254 })
    // A red frame; the bytes are R, G, B, A.
    let red = CVPixelBuffer(
      width: 2, height: 2, pixelFormat: kCVPixelFormatType_420YpCbCr8BiPlanarVideoRange,
      bytes: [81, 81, 81, 81, 90, 240])
    let first = RTCVideoFrame(pixelBuffer: red, rotation: ._0, timeStampNs: 0).rgba().prefix(4)
    #expect(first.elementsEqual([254, 0, 0, 255]) || first.elementsEqual([255, 0, 0, 255]))
    let short = CVPixelBuffer(
      width: 4, height: 2, pixelFormat: kCVPixelFormatType_32BGRA, bytes: [1])
    let black = RTCVideoFrame(pixelBuffer: short, rotation: ._0, timeStampNs: 0).rgba()
    #expect(black.count == 32 && black.max() == 255 && black.count { $0 == 0 } == 24)
  }
}
